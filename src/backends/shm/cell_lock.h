/*
 * A lock of any kind but the mutex. The lock holds and waits with a cell. An
 * idle lock keeps its cell if enough cells are free. The caller has the mutex
 * of the line (struct hf__remote) locked.
 */
#ifndef HF_SHM_CELL_LOCK_H
#define HF_SHM_CELL_LOCK_H

#include "lock_state.h"
#include "shm.h"

/* An idle lock keeps its cell only while the locks of its client have at most
 * SHM_KEPT_MAX cells, and only if the number of its cell is below
 * SHM_KEPT_BELOW. No idle lock keeps a cell of the last quarter of the
 * table. */
#define SHM_KEPT_MAX 64u
#define SHM_KEPT_BELOW (SHM_CELLS / 4 * 3)

/* Takes a cell for the lock if the lock has none. Returns 0 or a code. */
int hf__shm_cell_lock_take_cell(struct shm *, struct shm_cell_lock *,
                                const struct hf__remote *);
/* Gives back the cell, if the lock has one. The lock must be idle. */
void hf__shm_cell_lock_give_cell(struct shm *, struct shm_cell_lock *);
/* Enters the queue and gives the cell a ticket. Returns 0 or a code. */
int hf__shm_cell_lock_enqueue(struct shm *, struct shm_cell_lock *,
                              struct hf__req *);
/* Leaves the queue, with or without a grant. */
void hf__shm_cell_lock_dequeue(struct shm *, struct shm_cell_lock *);

static inline struct shm_cell *shm_cell_lock_cell(struct shm *s,
                                                  struct shm_cell_lock *l)
{
    return &s->file->cell[atomic_load_explicit(&l->cell, memory_order_relaxed) %
                          SHM_CELLS];
}

/* Returns how many permits the request wants. */
static inline unsigned shm_cell_lock_wanted(const struct shm_cell_lock *l,
                                            const struct hf__req *req)
{
    if (l->lock.kind == HF_RWLOCK)
        return req->remote->mode == HF_READ ? 1 : SHM_PERMITS_MAX;
    return req->permits ? req->permits : 1;
}

/* Returns whether the cell still holds permits. */
static inline bool shm_cell_lock_has(struct shm *s, struct shm_cell_lock *l)
{
    return shm_has(s->file, atomic_load(&l->lock.entry->word),
                   atomic_load_explicit(&l->cell, memory_order_relaxed));
}

/* Gives back the cell of an idle lock that must not keep it (see
 * SHM_KEPT_MAX). */
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
