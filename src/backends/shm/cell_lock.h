/*
 * A lock of any kind but the mutex: it has a cell, to hold and to wait with.
 * Its cell stays with it when it is idle, if there are enough. The caller has
 * the mutex of the line locked.
 */
#ifndef HF_SHM_CELL_LOCK_H
#define HF_SHM_CELL_LOCK_H

#include "lock_state.h"
#include "shm.h"

/* Cells that idle locks keep for the next time: so many of a client, and never
 * the last quarter of all. */
#define SHM_KEPT_MAX 64u
#define SHM_KEPT_BELOW (SHM_CELLS / 4 * 3)

/* A cell of that entry, for the lock to hold or wait with. */
int hf__shm_cell_lock_take_cell(struct shm *, struct shm_cell_lock *,
                                const struct hf__remote *);
/* The lock is idle. */
void hf__shm_cell_lock_give_cell(struct shm *, struct shm_cell_lock *);
/* Into the queue: the cell has a ticket. */
int hf__shm_cell_lock_enqueue(struct shm *, struct shm_cell_lock *,
                              struct hf__req *);
/* Out of the queue, with or without what it waited for. */
void hf__shm_cell_lock_dequeue(struct shm *, struct shm_cell_lock *);

static inline struct shm_cell *shm_cell_lock_cell(struct shm *s,
                                                  struct shm_cell_lock *l)
{
    return &s->file->cell[atomic_load_explicit(&l->cell, memory_order_relaxed) %
                          SHM_CELLS];
}

/* The permits that the request wants. */
static inline unsigned shm_cell_lock_wanted(const struct shm_cell_lock *l,
                                            const struct hf__req *req)
{
    if (l->lock.kind == HF_RWLOCK)
        return req->remote->mode == HF_READ ? 1 : SHM_PERMITS_MAX;
    return req->permits ? req->permits : 1;
}

/* Is it held still? */
static inline bool shm_cell_lock_has(struct shm *s, struct shm_cell_lock *l)
{
    return shm_has(s->file, atomic_load(&l->lock.entry->word),
                   atomic_load_explicit(&l->cell, memory_order_relaxed));
}

/* The lock is idle: others may need its cell. */
static inline void shm_cell_lock_rest(struct shm *s, struct shm_cell_lock *l)
{
    if (__builtin_expect(
            atomic_load_explicit(&s->cells, memory_order_relaxed) >
                    SHM_KEPT_MAX ||
                atomic_load_explicit(&l->cell, memory_order_relaxed) >=
                    SHM_KEPT_BELOW,
            0) &&
        l->lock.state == SHM_IDLE)
        hf__shm_cell_lock_give_cell(s, l);
}

#endif
