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
 * LEAVING: a loop that was to end the hold or the wait was given up (retry.c);
 * it is finished before anything else is done with the lock. A latch is IDLE or
 * QUEUED. Of a lock with a cell (struct shm_cell_lock) "in our name" means that
 * the cell has permits; its `cell` may be SHM_NO_CELL while it is IDLE.
 */
#ifndef HF_SHM_LOCK_STATE_H
#define HF_SHM_LOCK_STATE_H

#include "shm.h"

enum shm_lock_state { SHM_IDLE, SHM_QUEUED, SHM_HELD, SHM_LEAVING };

/* One name in one client: hf__remote.impl. There may be thousands: small. */
struct shm_lock {
    struct shm_entry *entry;
    shm_u64 mine; /* HELD: the word, as it was granted */
    shm_u64 hold_id;
    _Atomic(struct shm_wait *) wait; /* NULL until there was one */
    uint32_t take_mask; /* bits of the word that must be 0 to take it at once */
    uint16_t index;     /* of the entry */
    uint8_t state;
    uint8_t kind; /* of any but HF_MUTEX it is a shm_cell_lock */
};

/* A mutex of which nobody takes what is free before those who wait. */
static inline bool shm_is_fair(const struct shm_lock *l)
{
    return l->take_mask & SHM_FLAGS;
}

/* One of the locks of a name of another kind. Its cell stays with it when it
 * is idle, if there are enough. */
struct shm_cell_lock {
    struct shm_lock lock;
    shm_u16 cell;   /* or SHM_NO_CELL; renew reads it */
    uint16_t size;  /* permits that there are */
    bool leased;    /* the cell's lease may have an end */
    uint32_t round; /* latch: when the wait began */
};

#endif
