/* Attaches this client to names, and detaches it. An entry is created, or
 * recreated as another kind, only under the table lock. A client that gives up
 * its last lock on a name never waits for the table lock. */
#include "attach.h"

#include "cell_lock.h"
#include "dead_clients.h"
#include "file.h"
#include "lock.h"
#include "lock_state.h"
#include "name_table.h"
#include "notify.h"
#include "queue.h"
#include "shared_word.h"
#include "table_lock.h"

#include <stdlib.h>

static int attach_free_index_locked(struct shm *s)
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

static int attach_mismatch(struct shm *s, const struct shm_entry *e)
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

/* Returns the index of the entry of that name. Creates the entry if none
 * exists, or recreates it if it is of another kind and unused. Returns a code
 * if neither is possible. */
static int attach_find_or_make_locked(struct shm *s,
                                      const struct hf__remote *remote)
{
    uint16_t kind = shm_entry_kind(remote);
    int index = hf__shm_name_find(s, remote->name, remote->name_len, false);

    if (index >= 0) {
        struct shm_entry *e = &s->file->entry[index];

        if (e->kind == kind && e->permits == remote->permits)
            return index;
        hf__shm_bury_all_locked(s);
        if (atomic_load(&s->file->hash[index]) &&
            !hf__shm_name_reclaim_locked(s, (unsigned)index))
            return attach_mismatch(s, e);
    }
    index = attach_free_index_locked(s);
    if (index >= 0)
        hf__shm_name_make_locked(s, (unsigned)index, remote);
    return index;
}

static void attach_init_lock(struct shm *s, const struct hf__remote *remote,
                             struct shm_lock *lock, unsigned index)
{
    lock->entry = &s->file->entry[index];
    lock->index = (uint16_t)index;
    lock->kind = remote->kind;
    lock->take_mask =
        (uint32_t)(SHM_OWNER_MASK | (remote->fair ? SHM_FLAGS : 0));
}

/* Attaches the client's first lock on the name: marks the entry as attached,
 * for other clients to see. */
static int attach_first(struct shm *s, const struct hf__remote *remote,
                        int *index)
{
    uint32_t slot = s->me & SHM_SLOT_MASK;
    struct shm_thread thread;

    if (hf__shm_tables_lock(s, &thread, SHM_TABLES_NS, SHM_CROWD_NS))
        return HF__LATER;
    hf__shm_names_sweep_locked(s);
    *index = attach_find_or_make_locked(s, remote);
    if (*index >= 0)
        atomic_fetch_or(&s->file->entry[*index].attached[slot / 64],
                        1ULL << slot % 64);
    hf__shm_tables_unlock(s, &thread);
    return *index < 0 ? *index : 0;
}

/* Checks the permits, and allocates the table that counts this client's locks
 * on each name. (A client has at most one lock on the name of a mutex, but may
 * have several on a name of another kind.) */
static int attach_prepare_lock_counts(struct shm *s,
                                      const struct hf__remote *remote)
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
    if (!is_mutex && (rc = attach_prepare_lock_counts(s, remote)))
        return rc;
    lock = s->core->alloc(s->client, hf__shm_notify_lock_size(s, remote->kind));
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
    attach_init_lock(s, remote, lock, (unsigned)index);
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

/* Detaches this client from the name when its last lock on that name is
 * removed. */
static void attach_detach_last(struct shm *s, struct shm_lock *lock)
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
        attach_detach_last(s, lock);
    s->core->free(s->client, atomic_load(&lock->wait));
    s->core->free(s->client, lock);
    remote->impl = NULL;
}
