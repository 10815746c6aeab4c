/*
 * What this process knows of its own locks: hf__remote.impl of each.
 *
 * The states of a lock, and which fields are valid in each:
 *
 *     state    does the word name us?       wait->cell       hold_id, mine
 *     IDLE     no                           SHM_NO_CELL      of an earlier hold
 *     QUEUED   it may, at any time          is in the queue  hold_id is valid
 *     HELD     yes, unless it was broken    SHM_NO_CELL      both are valid
 *     LEAVING  it may still                 SHM_NO_CELL      hold_id is valid
 *
 * LEAVING means that a loop that should end the hold or the wait gave up
 * (retry.c); every later call for the lock first tries again to end it. A latch
 * is IDLE or QUEUED. For a lock with a cell (struct shm_cell_lock) "the word
 * names us" means that the cell has permits; its `cell` may be SHM_NO_CELL
 * while the lock is IDLE.
 */
#ifndef HF_SHM_LOCK_STATE_H
#define HF_SHM_LOCK_STATE_H

#include "shm.h"

enum shm_lock_state { SHM_IDLE, SHM_QUEUED, SHM_HELD, SHM_LEAVING };

/* One line of the client: hf__remote.impl. The struct is small, because a
 * client may have thousands of lines. */
struct shm_lock {
    struct shm_entry *entry;
    shm_u64 mine; /* while HELD: for a mutex, the word with which it was
                     granted; for other kinds, the token */
    shm_u64 hold_id;
    _Atomic(struct shm_wait *) wait; /* NULL until the first wait */
    uint32_t take_mask; /* bits of the word that must be 0 for the lock to be
                           taken */
    uint16_t index;     /* of the entry */
    uint8_t state;
    uint8_t kind; /* unless HF_MUTEX, the lock is a shm_cell_lock */
};

/* Returns true for a fair mutex, which no client takes while others wait. */
static inline bool shm_is_fair(const struct shm_lock *l)
{
    return l->take_mask & SHM_FLAGS;
}

/* A lock of a kind other than the mutex. A client may have several on one name.
 * The lock keeps its cell while it is idle, if enough cells are free. */
struct shm_cell_lock {
    struct shm_lock lock;
    shm_u16 cell;   /* number of its cell, or SHM_NO_CELL; renew reads it */
    uint16_t size;  /* all permits of the name */
    bool leased;    /* true if the cell may have a lease */
    uint32_t round; /* for a latch, the round in which the wait began */
};

#endif
