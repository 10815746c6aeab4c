/*
 * Inspects and lists names. The caller holds the table lock, so that no entry
 * is taken back while it is read. A lock may change while it is read; the
 * answer is then a mixture of two moments.
 */
#include "inspect.h"

#include "liveness.h"
#include "mutex_word.h"
#include "name_table.h"
#include "queue.h"
#include "shared_word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void hf__shm_inspect_owner(struct shm *s, char to[64], uint32_t owner)
{
    snprintf(to, 64, "%u.%u", owner & SHM_SLOT_MASK,
             atomic_load(&s->file->slot[owner & SHM_SLOT_MASK].gen));
}

static void inspect_describe(struct shm *s, hf_party *party, uint32_t owner)
{
    struct shm_slot *slot = &s->file->slot[owner & SHM_SLOT_MASK];

    hf__shm_inspect_owner(s, party->owner, owner);
    gethostname(party->host, sizeof(party->host) - 1);
    party->pid = atomic_load(&slot->pid);
    shm_label_get(party->label, slot->label);
    party->left_ms = -1;
}

/* Returns the milliseconds until `end`, at which a lease ends, or -1 if the
 * lease has no end. */
static int64_t inspect_left_ms(struct shm *s, hf__time end)
{
    hf__time now = s->core->now();

    return end == HF__NEVER ? -1 : end > now ? (end - now) / HF__MS : 0;
}

static int inspect_add_holder(struct shm *s, struct hf__query *q,
                              struct shm_entry *e, uint64_t word)
{
    hf_party *party = s->core->add_party(s->client, q, true);

    if (!party)
        return HF_ENOMEM;
    inspect_describe(s, party, shm_owner(word));
    if (atomic_load(&e->label_count) == word >> 40)
        shm_label_get(party->label, e->label);
    party->since_unix_ms = (int64_t)atomic_load(&e->since);
    party->token = shm_token(atomic_load(&e->epoch), word);
    party->left_ms = inspect_left_ms(s, hf__shm_mutex_lease_end(e, word));
    return 0;
}

static bool inspect_is_waiting(struct shm *s, unsigned index, uint64_t word,
                               unsigned cell)
{
    struct shm_entry *e = &s->file->entry[index];
    struct shm_cell *c = &s->file->cell[cell];
    uint32_t owner = atomic_load(&c->owner);

    /* The holder of a mutex may still have a cell in the queue, if it has not
     * yet seen that it was granted the lock. */
    if (shm_kind(e) == HF_MUTEX)
        return owner != shm_owner(word) && hf__shm_alive(s, owner);
    return atomic_load(&c->ticket) &&
           !(shm_is_shared(e) && shm_has(s->file, word, cell)) &&
           hf__shm_alive(s, owner);
}

static bool inspect_is_waited_for(struct shm *s, unsigned index)
{
    struct shm_entry *e = &s->file->entry[index];
    struct shm_queue_scan r;

    hf__shm_queue_scan(
        s, index,
        shm_kind(e) == HF_MUTEX ? shm_owner(atomic_load(&e->word)) : 0, 0, &r);
    return r.first != SHM_NO_CELL;
}

/* Describes the client of a cell, with the permits that it has or wants. */
static void inspect_describe_cell(struct shm *s, hf_party *party,
                                  struct shm_entry *e, struct shm_cell *c,
                                  unsigned permits)
{
    char label[SHM_LABEL];

    inspect_describe(s, party, atomic_load(&c->owner));
    shm_label_get(label, c->label);
    if (label[0])
        memcpy(party->label, label, sizeof(label));
    if (shm_kind(e) == HF_RWLOCK)
        party->mode = permits == SHM_PERMITS_MAX ? HF_WRITE : HF_READ;
    else if (shm_kind(e) == HF_SEMAPHORE)
        party->permits = permits;
    party->since_unix_ms = (int64_t)atomic_load(&c->since);
}

static int inspect_add_cell_holder(struct shm *s, struct hf__query *q,
                                   struct shm_entry *e, uint64_t word,
                                   unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    hf_party *party = s->core->add_party(s->client, q, true);

    if (!party)
        return HF_ENOMEM;
    inspect_describe_cell(s, party, e, c, shm_has(s->file, word, cell));
    party->token = atomic_load(&e->epoch);
    party->left_ms = inspect_left_ms(s, shm_cell_lease_end(c));
    return 0;
}

static int inspect_add_cell_holders(struct shm *s, struct hf__query *q,
                                    unsigned index, uint64_t word)
{
    unsigned n = 0;
    int rc = 0;

    for (; !rc && (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++)
        if (hf__shm_shared_is_held_by(s, word, n))
            rc = inspect_add_cell_holder(s, q, &s->file->entry[index], word, n);
    return rc;
}

static int inspect_by_ticket(const void *a, const void *b)
{
    uint64_t x = ((const struct shm_queue_place *)a)->ticket;
    uint64_t y = ((const struct shm_queue_place *)b)->ticket;

    return (x > y) - (x < y);
}

static int inspect_add_waiter(struct shm *s, struct hf__query *q,
                              struct shm_entry *e, unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    hf_party *party = s->core->add_party(s->client, q, false);

    if (!party)
        return HF_ENOMEM;
    inspect_describe_cell(s, party, e, c, atomic_load(&c->want));
    return 0;
}

static int inspect_add_waiters(struct shm *s, struct hf__query *q,
                               unsigned index, uint64_t word)
{
    struct shm_queue_place *queue =
        s->core->alloc(s->client, SHM_CELLS * sizeof(struct shm_queue_place));
    unsigned len = 0, n = 0;
    int rc = 0;

    if (!queue)
        return HF_ENOMEM;
    for (; (n = hf__shm_queue_next(s, index, n)) != SHM_NO_CELL; n++)
        if (inspect_is_waiting(s, index, word, n))
            queue[len++] = (struct shm_queue_place){
                atomic_load(&s->file->cell[n].ticket), n};
    qsort(queue, len, sizeof(*queue), inspect_by_ticket);
    for (unsigned i = 0; i < len && !rc; i++)
        rc = inspect_add_waiter(s, q, &s->file->entry[index], queue[i].cell);
    s->core->free(s->client, queue);
    return rc;
}

bool hf__shm_inspect_is_held(struct shm *s, unsigned index, uint64_t word)
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

int hf__shm_inspect(struct shm *s, struct hf__query *q)
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
        rc = inspect_add_cell_holders(s, q, (unsigned)index, word);
    else if (hf__shm_inspect_is_held(s, (unsigned)index, word))
        rc = inspect_add_holder(s, q, e, word);
    q->info->permits = e->permits;
    return rc ? rc : inspect_add_waiters(s, q, (unsigned)index, word);
}

int hf__shm_inspect_list(struct shm *s, struct hf__query *q)
{
    struct shm_file *f = s->file;

    for (unsigned i = 0; i < SHM_NAMES; i++) {
        struct shm_entry *e = &f->entry[i];
        size_t len = atomic_load(&f->hash[i]) ? atomic_load(&e->name_len) : 0;

        if (!len || len > SHM_NAME_MAX || len < q->name_len ||
            memcmp(e->name, q->name, q->name_len) != 0)
            continue;
        if (!hf__shm_inspect_is_held(s, i, atomic_load(&e->word)) &&
            !inspect_is_waited_for(s, i))
            continue;
        if (s->core->add_name(s->client, q, e->name, len))
            return HF_ENOMEM;
    }
    return 0;
}
