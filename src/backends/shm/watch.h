/*
 * Whose death a waiter sleeps for, and what is done when a client dies. The
 * caller has the mutex of the line locked, except for hf__shm_watch_died.
 */
#ifndef HF_SHM_WATCH_H
#define HF_SHM_WATCH_H

#include "shm.h"
#include "wait.h"

/* Wakes all threads that sleep for the death of that client: the kernel has
 * woken only one. */
void hf__shm_wake_watchers(struct shm *, uint32_t owner);
/* Has the hold ended: is its holder gone (then it is *dead, and its watchers
 * are woken), or has its lease ended? */
bool hf__shm_is_over(struct shm *, uint32_t owner, hf__time lease_end,
                     uint32_t *dead);
/* Makes the wait check again when one of the owners dies, and at that time at
 * the latest. At most SHM_WATCHED owners. */
void hf__shm_watch(struct shm *, struct shm_wait *, const uint32_t *owners,
                   unsigned len, hf__time until);
/* Empties the list of slots that the cell watches, from that place on. */
void hf__shm_unwatch(struct shm *, struct shm_cell *, unsigned from);
/* Returns the slot that is watched at that place if its client has died since;
 * or 0. */
uint32_t hf__shm_watch_died(struct shm *, struct shm_wait *, unsigned i);
/* If a client that it watches is dead: wakes the others that sleep on the same
 * word. If it has waited in vain, it checks the processes that it watches. */
void hf__shm_pass_on_death(struct shm *, struct shm_wait *);

#endif
