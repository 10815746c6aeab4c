/*
 * Inspect, list, break, ask. With the tables locked, so that an entry is not
 * taken back meanwhile; the lock itself may change while it is looked at, and
 * the answer is then of one moment or the next.
 */
#include "shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void name_owner(struct shm *s, char to[64], uint32_t owner)
{
    snprintf(to, 64, "%u.%u", owner & SHM_SLOT_MASK,
             atomic_load(&s->file->slot[owner & SHM_SLOT_MASK].gen));
}

static void describe(struct shm *s, hf_party *party, uint32_t owner)
{
    struct shm_slot *slot = &s->file->slot[owner & SHM_SLOT_MASK];

    name_owner(s, party->owner, owner);
    gethostname(party->host, sizeof(party->host) - 1);
    party->pid = atomic_load(&slot->pid);
    shm_label_get(party->label, slot->label);
    party->left_ms = -1;
}

/* What is left of a lease that ends then; -1: it does not end. */
static int64_t left_ms(struct shm *s, hf__time end)
{
    hf__time now = s->core->now();

    return end == HF__NEVER ? -1 : end > now ? (end - now) / HF__MS : 0;
}

static int add_holder(struct shm *s, struct hf__query *q, struct shm_entry *e,
                      uint64_t word)
{
    hf_party *party = s->core->add_party(s->client, q, true);

    if (!party)
        return HF_ENOMEM;
    describe(s, party, shm_owner(word));
    if (atomic_load(&e->label_count) == word >> 40)
        shm_label_get(party->label, e->label);
    party->since_unix_ms = (int64_t)atomic_load(&e->since);
    party->token = shm_token(atomic_load(&e->epoch), word);
    party->left_ms = left_ms(s, hf__shm_mutex_lease_end(e, word));
    return 0;
}

static bool is_waiting(struct shm *s, unsigned index, uint64_t word,
                       unsigned cell)
{
    struct shm_entry *e = &s->file->entry[index];
    struct shm_cell *c = &s->file->cell[cell];
    uint32_t owner = atomic_load(&c->owner);

    if (shm_kind(e) == HF_MUTEX) /* the holder's: it is not awake yet */
        return owner != shm_owner(word) && hf__shm_alive(s, owner);
    return atomic_load(&c->ticket) &&
           !(shm_is_shared(e) && shm_has(s->file, word, cell)) &&
           hf__shm_alive(s, owner);
}

static bool is_waited_for(struct shm *s, unsigned index)
{
    struct shm_entry *e = &s->file->entry[index];
    struct shm_queue_scan r;

    hf__shm_queue_scan(
        s, index,
        shm_kind(e) == HF_MUTEX ? shm_owner(atomic_load(&e->word)) : 0, 0, &r);
    return r.first != SHM_NO_CELL;
}

/* What the party of a cell has, or wants. */
static void describe_cell(struct shm *s, hf_party *party, struct shm_entry *e,
                          struct shm_cell *c, unsigned permits)
{
    char label[SHM_LABEL];

    describe(s, party, atomic_load(&c->owner));
    shm_label_get(label, c->label);
    if (label[0])
        memcpy(party->label, label, sizeof(label));
    if (shm_kind(e) == HF_RWLOCK)
        party->mode = permits == SHM_PERMITS_MAX ? HF_WRITE : HF_READ;
    else if (shm_kind(e) == HF_SEMAPHORE)
        party->permits = permits;
    party->since_unix_ms = (int64_t)atomic_load(&c->since);
}

static int add_cell_holder(struct shm *s, struct hf__query *q,
                           struct shm_entry *e, uint64_t word, unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    hf_party *party = s->core->add_party(s->client, q, true);

    if (!party)
        return HF_ENOMEM;
    describe_cell(s, party, e, c, shm_has(s->file, word, cell));
    party->token = atomic_load(&e->epoch);
    party->left_ms = left_ms(s, shm_cell_lease_end(c));
    return 0;
}

static int add_cell_holders(struct shm *s, struct hf__query *q, unsigned index,
                            uint64_t word)
{
    unsigned n = 0;
    int rc = 0;

    for (; !rc && (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++)
        if (hf__shm_shared_is_held_by(s, word, n))
            rc = add_cell_holder(s, q, &s->file->entry[index], word, n);
    return rc;
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

static int add_waiter(struct shm *s, struct hf__query *q, struct shm_entry *e,
                      unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    hf_party *party = s->core->add_party(s->client, q, false);

    if (!party)
        return HF_ENOMEM;
    describe_cell(s, party, e, c, atomic_load(&c->want));
    return 0;
}

static int add_waiters(struct shm *s, struct hf__query *q, unsigned index,
                       uint64_t word)
{
    struct place *queue =
        s->core->alloc(s->client, SHM_CELLS * sizeof(struct place));
    unsigned len = 0, n = 0;
    int rc = 0;

    if (!queue)
        return HF_ENOMEM;
    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++)
        if (is_waiting(s, index, word, n))
            queue[len++] =
                (struct place){atomic_load(&s->file->cell[n].ticket), n};
    qsort(queue, len, sizeof(*queue), by_ticket);
    for (unsigned i = 0; i < len && !rc; i++)
        rc = add_waiter(s, q, &s->file->entry[index], queue[i].cell);
    s->core->free(s->client, queue);
    return rc;
}

/* Held by somebody who is not dead; or a latch that is set. */
static bool is_held(struct shm *s, unsigned index, uint64_t word)
{
    struct shm_entry *e = &s->file->entry[index];
    unsigned n = 0;

    if (shm_kind(e) == HF_LATCH)
        return shm_left(word);
    if (!shm_is_shared(e))
        return shm_owner(word) && !hf__shm_gone(s, shm_owner(word));
    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++)
        if (hf__shm_shared_is_held_by(s, word, n))
            return true;
    return false;
}

static int inspect(struct shm *s, struct hf__query *q)
{
    int index = hf__shm_name_find(s, q->name, q->name_len, false);
    struct shm_entry *e;
    uint64_t word;
    int rc = 0;

    if (index < 0)
        return 0;
    e = &s->file->entry[index];
    word = atomic_load(&e->word);
    q->info->kind = (enum hf_kind)shm_kind(e);
    if (q->info->kind < HF_MUTEX || q->info->kind > HF_LATCH)
        return s->core->why(s->client, HF_EPROTO,
                            "%s: what it has of that name is damaged", s->path);
    q->info->fairness = e->kind & 256 ? HF_FAIR : HF_UNFAIR;
    q->info->token = shm_entry_token(e);
    if (q->info->kind == HF_LATCH)
        q->info->count = shm_left(word);
    else if (shm_is_shared(e))
        rc = add_cell_holders(s, q, (unsigned)index, word);
    else if (is_held(s, (unsigned)index, word))
        rc = add_holder(s, q, e, word);
    q->info->permits = e->permits;
    return rc ? rc : add_waiters(s, q, (unsigned)index, word);
}

static int list(struct shm *s, struct hf__query *q)
{
    struct shm_file *f = s->file;

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        struct shm_entry *e = &f->entry[i];
        size_t len = atomic_load(&f->hash[i]) ? atomic_load(&e->name_len) : 0;

        if (!len || len > SHM_NAME_MAX || len < q->name_len ||
            memcmp(e->name, q->name, q->name_len) != 0)
            continue;
        if (!is_held(s, i, atomic_load(&e->word)) && !is_waited_for(s, i))
            continue;
        if (s->core->add_name(s->client, q, e->name, len))
            return HF_ENOMEM;
    }
    return 0;
}

bool hf__shm_is_meant(struct shm *s, struct hf__query *q, uint32_t owner,
                      uint64_t token)
{
    char text[64];

    name_owner(s, text, owner);
    if ((!q->token || q->token == token) &&
        (!q->owner[0] || strcmp(q->owner, text) == 0))
        return true;
    q->count = token;
    return false;
}

static int take_away(struct shm *s, struct hf__query *q)
{
    int found = hf__shm_name_find(s, q->name, q->name_len, false);
    unsigned index = (unsigned)found;
    struct shm_entry *e = &s->file->entry[index % SHM_NAMES];
    struct shm_retry retry = {.of = e};
    uint32_t left;
    uint64_t word;

    if (found < 0)
        return HF_ENOTOWNER;
    if (shm_kind(e) == HF_LATCH)
        return q->token || q->owner[0]
                   ? HF_ENOTOWNER
                   : hf__shm_latch_count_down(s, index, true, &left);
    if (shm_is_shared(e))
        return hf__shm_shared_break(s, index, q);
    do {
        word = atomic_load(&e->word);
        if (!is_held(s, index, word))
            return HF_ENOTOWNER;
        if (!hf__shm_is_meant(s, q, shm_owner(word),
                              shm_token(atomic_load(&e->epoch), word)))
            return HF_EBUSY;
        if (!hf__shm_retry(s, &retry))
            return hf__shm_retry_refuse(s);
    } while (!hf__shm_mutex_pass(s, index, word));
    hf__shm_notify_broken(s, shm_owner(word));
    return 0;
}

int hf__shm_query(void *self, struct hf__query *q)
{
    struct shm *s = self;
    struct shm_thread thread;
    int rc;

    if (q->req.op == HF__DOWNGRADE)
        return hf__shm_shared_downgrade(s, q);
    if (!hf__shm_file_still_there(s))
        return HF_EBACKEND;
    switch (q->req.op) {
    case HF__LATCH_SET:
    case HF__LATCH_DOWN:
    case HF__LATCH_GET:
        return hf__shm_latch_query(s, q);
    case HF__DIAGNOSE:
        return hf__shm_diagnose(s, q);
    default:
        break;
    }
    rc = hf__shm_tables_lock(s, &thread, SHM_TABLES_NS, SHM_CROWD_NS);
    if (rc)
        return rc;
    if (q->req.op == HF__INSPECT)
        rc = inspect(s, q);
    else if (q->req.op == HF__LIST)
        rc = list(s, q);
    else if (q->req.op == HF__ASK)
        rc = hf__shm_notify_ask(s, q);
    else
        rc = take_away(s, q);
    hf__shm_tables_unlock(s, &thread);
    if (rc == HF_ENOMEM)
        s->core->why(s->client, rc, "out of memory");
    return rc;
}
