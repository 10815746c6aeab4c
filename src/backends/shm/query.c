/*
 * Inspect, list, break. Under the tables' mutex, so that an entry is not taken
 * back meanwhile; the lock itself may change while it is looked at, and the
 * answer is then of one moment or the next.
 */
#include "shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void describe(struct shm *s, hf_party *party, uint32_t owner)
{
    struct shm_slot *slot = &s->file->slot[owner & SHM_SLOT_MASK];

    snprintf(party->owner, sizeof(party->owner), "%u.%u", owner & SHM_SLOT_MASK,
             atomic_load(&slot->gen));
    gethostname(party->host, sizeof(party->host) - 1);
    party->pid = atomic_load(&slot->pid);
    shm_label_get(party->label, slot->label);
    party->left_ms = -1;
}

static int add_holder(struct shm *s, struct hf__query *q, struct shm_entry *e,
                      uint64_t word)
{
    hf__time end = hf__shm_lease_end(e, word), now;
    hf_party *party = s->core->add_holder(s->client, q);

    if (!party)
        return HF_ENOMEM;
    describe(s, party, shm_owner(word));
    if (atomic_load(&e->label_count) == word >> 40)
        shm_label_get(party->label, e->label);
    party->since_unix_ms = (int64_t)atomic_load(&e->since);
    party->token = shm_token(atomic_load(&e->epoch), word);
    if (end != HF__NEVER) {
        now = s->core->now();
        party->left_ms = end > now ? (end - now) / HF__MS : 0;
    }
    return 0;
}

static bool is_waiting(struct shm *s, unsigned index, unsigned cell)
{
    struct shm_entry *e = &s->file->entry[index];

    return (atomic_load(&e->waiting[cell / 64]) >> cell % 64 & 1) &&
           hf__shm_alive(s, atomic_load(&s->file->cell[cell].owner));
}

static bool is_waited_for(struct shm *s, unsigned index)
{
    for (unsigned i = 0; i < SHM_CELLS; i++)
        if (!atomic_load(&s->file->entry[index].waiting[i / 64]))
            i |= 63; /* on to the next word */
        else if (is_waiting(s, index, i))
            return true;
    return false;
}

struct place {
    uint64_t ticket;
    unsigned cell;
};

static int by_ticket(const void *a, const void *b)
{
    uint64_t x = ((const struct place *)a)->ticket;
    uint64_t y = ((const struct place *)b)->ticket;

    return (x > y) - (x < y);
}

static int add_waiter(struct shm *s, struct hf__query *q, unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    hf_party *party = s->core->add_waiter(s->client, q);
    char label[SHM_LABEL];

    if (!party)
        return HF_ENOMEM;
    describe(s, party, atomic_load(&c->owner));
    shm_label_get(label, c->label);
    if (label[0])
        memcpy(party->label, label, sizeof(label));
    party->since_unix_ms = (int64_t)atomic_load(&c->since);
    return 0;
}

static int add_waiters(struct shm *s, struct hf__query *q, unsigned index,
                       uint32_t holder)
{
    struct place *queue =
        s->core->alloc(s->client, SHM_CELLS * sizeof(struct place));
    unsigned len = 0;
    int rc = 0;

    if (!queue)
        return HF_ENOMEM;
    for (unsigned i = 0; i < SHM_CELLS; i++)
        /* The holder's: granted, and not awake yet. */
        if (is_waiting(s, index, i) &&
            atomic_load(&s->file->cell[i].owner) != holder)
            queue[len++] =
                (struct place){atomic_load(&s->file->cell[i].ticket), i};
    qsort(queue, len, sizeof(*queue), by_ticket);
    for (unsigned i = 0; i < len && !rc; i++)
        rc = add_waiter(s, q, queue[i].cell);
    s->core->free(s->client, queue);
    return rc;
}

/* Held by somebody who is not dead. */
static bool is_held(struct shm *s, uint64_t word)
{
    return shm_owner(word) && !hf__shm_gone(s, shm_owner(word));
}

static int inspect(struct shm *s, struct hf__query *q)
{
    int index = hf__shm_find_locked(s, q->name, q->name_len);
    struct shm_entry *e;
    uint64_t word;
    int rc = 0;

    if (index < 0)
        return 0;
    e = &s->file->entry[index];
    word = atomic_load(&e->word);
    q->info->kind = (enum hf_kind)(e->kind & 0xff);
    q->info->fairness = e->kind & 256 ? HF_FAIR : HF_UNFAIR;
    q->info->token = shm_token(atomic_load(&e->epoch), word);
    if (is_held(s, word))
        rc = add_holder(s, q, e, word);
    return rc ? rc : add_waiters(s, q, (unsigned)index, shm_owner(word));
}

static int list(struct shm *s, struct hf__query *q)
{
    struct shm_file *f = s->file;

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        struct shm_entry *e = &f->entry[i];
        size_t len = atomic_load(&e->name_len);

        if (!atomic_load(&f->hash[i]) || len > SHM_NAME_MAX ||
            len < q->name_len || memcmp(e->name, q->name, q->name_len) != 0)
            continue;
        if (!is_held(s, atomic_load(&e->word)) && !is_waited_for(s, i))
            continue;
        if (s->core->add_name(s->client, q, e->name, len))
            return HF_ENOMEM;
    }
    return 0;
}

static int take_away(struct shm *s, const struct hf__query *q)
{
    int index = hf__shm_find_locked(s, q->name, q->name_len);
    uint64_t word;

    do {
        word = index < 0 ? 0 : atomic_load(&s->file->entry[index].word);
        if (!is_held(s, word))
            return HF_ENOTOWNER;
    } while (!hf__shm_pass(s, (unsigned)index, word));
    return 0;
}

int hf__shm_query(void *self, struct hf__query *q)
{
    struct shm *s = self;
    int rc;

    if (q->req.op != HF__INSPECT && q->req.op != HF__LIST &&
        q->req.op != HF__BREAK)
        return HF_ENOTSUP;
    rc = hf__shm_lock(s, SHM_TABLES_NS);
    if (rc)
        return rc;
    if (q->req.op == HF__INSPECT)
        rc = inspect(s, q);
    else if (q->req.op == HF__LIST)
        rc = list(s, q);
    else
        rc = take_away(s, q);
    hf__shm_unlock(s);
    if (rc == HF_ENOMEM)
        s->core->why(s->client, rc, "out of memory");
    return rc;
}
