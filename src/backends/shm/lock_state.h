/*
 * What this process knows of its own locks: hf__remote.impl of each.
 *
 * The states of a lock, and what goes with each:
 *
 *     state    the word of the name      wait->cell       hold_id, mine
 *     IDLE     is not in our name        SHM_NO_CELL      of an earlier hold
 *     QUEUED   may be, at any time       is in the queue  hold_id is valid
 *     HELD     is, unless it was broken  SHM_NO_CELL      both are valid
 *     LEAVING  may be still              SHM_NO_CELL      hold_id is valid
 *
 * LEAVING: a loop that should end the hold or the wait gave up (retry.c); any
 * later call for the lock first tries again to end it. A latch is IDLE or
 * QUEUED. For a lock with a cell (struct shm_cell_lock) "in our name" means
 * that the cell has permits; its `cell` may be SHM_NO_CELL while the lock is
 * IDLE.
 */
#ifndef HF_SHM_LOCK_STATE_H
#define HF_SHM_LOCK_STATE_H

#include "shm.h"

enum shm_lock_state { SHM_IDLE, SHM_QUEUED, SHM_HELD, SHM_LEAVING };

/* One name in one client: hf__remote.impl. There may be thousands, so it is
 * small. */
struct shm_lock {
    struct shm_entry *entry;
    shm_u64 mine; /* HELD: the word with which it was granted */
    shm_u64 hold_id;
    _Atomic(struct shm_wait *) wait; /* NULL until the first wait */
    uint32_t take_mask; /* bits of the word that must be 0 to take it at once */
    uint16_t index;     /* of the entry */
    uint8_t state;
    uint8_t kind; /* unless HF_MUTEX, this is a shm_cell_lock */
};

/* True for a fair mutex: no client takes it while others wait. */
static inline bool shm_is_fair(const struct shm_lock *l)
{
    return l->take_mask & SHM_FLAGS;
}

/* One of the locks of a name of another kind. It keeps its cell while it is
 * idle, if enough cells are free. */
struct shm_cell_lock {
    struct shm_lock lock;
    shm_u16 cell;   /* number of its cell, or SHM_NO_CELL; renew reads it */
    uint16_t size;  /* all permits of the name */
    bool leased;    /* true if the cell may have a lease */
    uint32_t round; /* latch: the round in which the wait began */
};

#endif
