/*
 * Names. An entry is in use while a client that lives has a handle on it, or
 * somebody holds it or waits for it; then it is taken back. Nobody but those
 * who are attached ever touches an entry without the lock of the tables, so
 * that one that nobody is attached to can be given another name. Who lets go of
 * a name never waits for that: the next thread that has it sweeps.
 *
 * Tokens must go on rising when an entry is taken back and made again, when
 * the file was deleted, and after a reboot. So an entry starts from the wall
 * clock, in units of 64 ns: more than 15 million grants a second of one name,
 * all the time, would be needed to get ahead of it. And not below the floor,
 * which is the highest token of the entries taken back so far. Counted from
 * 2025 the tokens stay exact in a double (2^53) until 2043: Lua and JSON
 * readers have nothing better.
 */
#include "shm.h"

#include "base/hash.h"

#include <string.h>
#include <time.h>

#define EPOCH_2025 1735689600

static uint32_t hash_of(const char *name, size_t len)
{
    uint32_t hash = hf__hash32(HF__HASH32, name, len);

    return hash ? hash : 1;
}

int hf__shm_name_find(struct shm *s, const char *name, size_t len,
                      bool attached)
{
    struct shm_file *f = s->file;
    uint32_t high = atomic_load(&f->header.names_high) % (SHM_NAMES + 1);
    uint32_t hash = hash_of(name, len);

    for (uint32_t i = 0; i < high; i++)
        if ((!attached || (s->lock_counts && s->lock_counts[i])) &&
            atomic_load_explicit(&f->hash[i], memory_order_relaxed) == hash &&
            f->entry[i].name_len == len && len <= SHM_NAME_MAX &&
            !memcmp(f->entry[i].name, name, len))
            return (int)i;
    return -1;
}

static uint64_t first_token(struct shm *s)
{
    uint64_t floor = atomic_load(&s->file->header.floor);
    struct timespec now;
    uint64_t token = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec > EPOCH_2025)
        token = (uint64_t)(now.tv_sec - EPOCH_2025) * (1000000000 / 64) +
                (uint64_t)now.tv_nsec / 64;
    return token > floor ? token : floor;
}

/* When the count has moved on, see layout.h. Seldom. */
void hf__shm_mutex_raise_epoch(struct shm_entry *e, uint64_t epoch)
{
    SHM_POINT();
    atomic_compare_exchange_strong(&e->epoch, &epoch, epoch + 1);
}

void hf__shm_mutex_label_grant(struct shm_entry *e, const char *label,
                               uint64_t word)
{
    shm_label_put(e->label, label);
    atomic_store_explicit(&e->label_count, (uint32_t)(word >> 40),
                          memory_order_relaxed);
}

/* As it is in the entry. */
static uint16_t kind_of(const struct hf__remote *remote)
{
    bool fair = remote->fair || remote->kind == HF_LATCH; /* has no order */

    return (uint16_t)(remote->kind | (fair ? 256 : 0));
}

static void make_locked(struct shm *s, unsigned index,
                        const struct hf__remote *remote)
{
    struct shm_file *f = s->file;
    struct shm_entry *e = &f->entry[index];
    uint64_t token = first_token(s);

    memset(e, 0, sizeof(*e));
    if (remote->kind == HF_MUTEX) {
        atomic_store(&e->epoch, token >> SHM_EPOCH_SHIFT);
        atomic_store(&e->word, token << 40);
    } else {
        atomic_store(&e->epoch, token);
    }
    /* Tickets of two entries do not meet: who is late with the lease of a cell
     * that has gone to another entry tells it by the ticket. */
    atomic_store(&e->next_ticket, token);
    atomic_store(&e->kind, kind_of(remote));
    atomic_store(&e->permits, remote->permits);
    atomic_store(&e->name_len, remote->name_len);
    memcpy(e->name, remote->name, remote->name_len);
    if (index >= atomic_load(&f->header.names_high))
        atomic_store(&f->header.names_high, index + 1);
    SHM_POINT();
    atomic_store(&f->hash[index], hash_of(remote->name, remote->name_len));
    SHM_POINT();
}

static bool is_any(shm_u64 *map)
{
    for (unsigned i = 0; i < SHM_MAP_LEN; i++)
        if (atomic_load(&map[i]))
            return true;
    return false;
}

/* Held, or a latch that is set. (Who holds what is shared has a cell.) */
static bool is_taken(struct shm_entry *e)
{
    uint64_t word = atomic_load(&e->word);
    unsigned kind = shm_kind(e);

    return kind == HF_LATCH ? shm_left(word)
                            : kind == HF_MUTEX && shm_owner(word);
}

bool hf__shm_name_reclaim_locked(struct shm *s, unsigned index)
{
    struct shm_file *f = s->file;
    struct shm_entry *e = &f->entry[index];
    uint64_t token;

    if (is_taken(e) || is_any(e->attached) || is_any(e->cells))
        return false;
    token = shm_entry_token(e);
    SHM_POINT();
    if (token > atomic_load(&f->header.floor))
        atomic_store(&f->header.floor, token);
    SHM_POINT();
    atomic_store(&f->hash[index], 0);
    return true;
}

/* One that is missed here (whoever left it was killed) does no harm: it is
 * taken back when the table is full, or the name wanted as another kind. */
void hf__shm_names_sweep_locked(struct shm *s)
{
    struct shm_file *f = s->file;
    uint32_t unswept = atomic_load(&f->header.unswept);
    uint32_t high = atomic_load(&f->header.names_high) % (SHM_NAMES + 1);

    if (!unswept)
        return;
    for (unsigned i = 0; i < high; i++)
        if (atomic_load(&f->hash[i]))
            hf__shm_name_reclaim_locked(s, i);
    atomic_compare_exchange_strong(&f->header.unswept, &unswept, 0);
}

static int free_index_locked(struct shm *s)
{
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < SHM_NAMES; i++)
            if (!atomic_load_explicit(&s->file->hash[i], memory_order_relaxed))
                return (int)i;
        hf__shm_bury_all_locked(s);
        for (unsigned i = 0; i < SHM_NAMES; i++)
            hf__shm_name_reclaim_locked(s, i);
    }
    return s->core->why(s->client, HF_EBACKEND,
                        "%s: all %u names are in use; a name is free again "
                        "when its last handle is freed. Use fewer at a time, "
                        "or a second directory: shm:///directory",
                        s->path, SHM_NAMES);
}

static int mismatch(struct shm *s, const struct shm_entry *e)
{
    const char *mutex = e->kind & 256 ? "a fair mutex" : "an unfair mutex";
    const char *const kinds[] = {"?", mutex, "a read-write lock", "?",
                                 "a latch"};
    unsigned kind = shm_kind(e);

    if (kind == HF_SEMAPHORE)
        return s->core->why(s->client, HF_EMISMATCH,
                            "the name is in use as a semaphore of %u",
                            e->permits);
    return s->core->why(s->client, HF_EMISMATCH, "the name is in use as %s",
                        kinds[kind <= HF_LATCH ? kind : 0]);
}

/* The entry of that name, made if there is none, or made anew if it is of
 * another kind and nobody uses it. */
static int find_or_make_locked(struct shm *s, const struct hf__remote *remote)
{
    uint16_t kind = kind_of(remote);
    int index = hf__shm_name_find(s, remote->name, remote->name_len, false);

    if (index >= 0) {
        struct shm_entry *e = &s->file->entry[index];

        if (e->kind == kind && e->permits == remote->permits)
            return index;
        hf__shm_bury_all_locked(s);
        if (atomic_load(&s->file->hash[index]) &&
            !hf__shm_name_reclaim_locked(s, (unsigned)index))
            return mismatch(s, e);
    }
    index = free_index_locked(s);
    if (index >= 0)
        make_locked(s, (unsigned)index, remote);
    return index;
}

static void init_lock(struct shm *s, const struct hf__remote *remote,
                      struct shm_lock *lock, unsigned index)
{
    lock->entry = &s->file->entry[index];
    lock->index = (uint16_t)index;
    lock->kind = remote->kind;
    lock->take_mask =
        (uint32_t)(SHM_OWNER_MASK | (remote->fair ? SHM_FLAGS : 0));
}

/* The first of ours to that name: others see that we have one. */
static int attach_first(struct shm *s, const struct hf__remote *remote,
                        int *index)
{
    uint32_t slot = s->me & SHM_SLOT_MASK;
    struct shm_thread thread;

    if (hf__shm_tables_lock(s, &thread, SHM_TABLES_NS, SHM_CROWD_NS))
        return HF__LATER;
    hf__shm_names_sweep_locked(s);
    *index = find_or_make_locked(s, remote);
    if (*index >= 0)
        atomic_fetch_or(&s->file->entry[*index].attached[slot / 64],
                        1ULL << slot % 64);
    hf__shm_tables_unlock(s, &thread);
    return *index < 0 ? *index : 0;
}

/* What other kinds than the mutex need. */
static int prepare_lines(struct shm *s, const struct hf__remote *remote)
{
    if (remote->kind == HF_SEMAPHORE && remote->permits > SHM_PERMITS_MAX)
        return s->core->why(s->client, HF_EINVAL,
                            "a semaphore of %u: at most %u are possible",
                            remote->permits, SHM_PERMITS_MAX);
    if (!s->lock_counts)
        s->lock_counts =
            s->core->alloc(s->client, SHM_NAMES * sizeof(*s->lock_counts));
    return s->lock_counts ? 0
                          : s->core->why(s->client, HF_ENOMEM, "out of memory");
}

int hf__shm_attach(void *self, struct hf__remote *remote)
{
    struct shm *s = self;
    bool is_mutex = remote->kind == HF_MUTEX;
    struct shm_lock *lock;
    int index = -1, rc = 0;

    if (!hf__shm_file_is_there(s))
        return HF_EBACKEND;
    if (!is_mutex && (rc = prepare_lines(s, remote)))
        return rc;
    lock = s->core->alloc(s->client, hf__shm_lock_size(s, remote->kind));
    if (!lock)
        return s->core->why(s->client, HF_ENOMEM, "out of memory");
    if (!is_mutex)
        index = hf__shm_name_find(s, remote->name, remote->name_len, true);
    if (index < 0)
        rc = attach_first(s, remote, &index);
    if (rc) {
        s->core->free(s->client, lock);
        return rc;
    }
    init_lock(s, remote, lock, (unsigned)index);
    if (!is_mutex) {
        struct shm_cell_lock *cell_lock = (struct shm_cell_lock *)lock;

        s->lock_counts[index]++;
        cell_lock->size = (uint16_t)shm_size(lock->entry);
        atomic_store(&cell_lock->cell, SHM_NO_CELL);
    }
    remote->impl = lock;
    hf__shm_notify_add(s, lock, remote);
    return 0;
}

/* The last of ours to that name. */
static void detach_last(struct shm *s, struct shm_lock *lock)
{
    uint32_t slot = s->me & SHM_SLOT_MASK;
    struct shm_thread thread;
    bool locked = hf__shm_tables_trylock(s, &thread);

    SHM_POINT();
    atomic_fetch_and(&lock->entry->attached[slot / 64], ~(1ULL << slot % 64));
    SHM_POINT();
    if (locked) {
        hf__shm_name_reclaim_locked(s, lock->index);
        hf__shm_tables_unlock(s, &thread);
    } else {
        atomic_fetch_add(&s->file->header.unswept, 1);
    }
}

void hf__shm_detach(void *self, struct hf__remote *remote)
{
    struct shm *s = self;
    struct shm_lock *lock = remote->impl;

    if (!lock)
        return;
    hf__shm_notify_remove(s, lock);
    hf__shm_lock_let_go(s, lock);
    if (lock->kind != HF_MUTEX)
        hf__shm_cell_lock_give_cell(s, (struct shm_cell_lock *)lock);
    if (lock->kind == HF_MUTEX || !--s->lock_counts[lock->index])
        detach_last(s, lock);
    s->core->free(s->client, atomic_load(&lock->wait));
    s->core->free(s->client, lock);
    remote->impl = NULL;
}
