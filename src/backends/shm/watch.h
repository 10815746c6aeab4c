/*
 * Chooses the clients whose death must wake a waiter, and reacts when a client
 * dies. The caller has the mutex of the line (struct hf__remote) locked, except
 * for hf__shm_watch_died.
 */
#ifndef HF_SHM_WATCH_H
#define HF_SHM_WATCH_H

#include "shm.h"
#include "wait.h"

/* Wakes all threads that sleep until the death of `owner`, which has died. The
 * kernel has woken only one of them. */
void hf__shm_wake_watchers(struct shm *, uint32_t owner);
/* Returns true if the hold of `owner` can be taken: `owner` is gone (*dead is
 * then `owner`), or the lease has ended. */
bool hf__shm_is_over(struct shm *, uint32_t owner, hf__time lease_end,
                     uint32_t *dead);
/* Makes the wait check again when one of the owners dies, and at `until` at the
 * latest. There may be at most SHM_WATCHED owners. */
void hf__shm_watch(struct shm *, struct shm_wait *, const uint32_t *owners,
                   unsigned len, hf__time until);
/* Empties the list of slots that the cell watches, from element `from` on. */
void hf__shm_unwatch(struct shm *, struct shm_cell *, unsigned from);
/* Returns the i-th slot that the wait watches if the client in it has died
 * since the last check, else 0. */
uint32_t hf__shm_watch_died(struct shm *, struct shm_wait *, unsigned i);
/* If a client that the wait watches is dead, wakes the other threads that sleep
 * on the same word. If the wait's time was up and nothing woke it, checks the
 * processes that it watches. */
void hf__shm_pass_on_death(struct shm *, struct shm_wait *);

#endif
