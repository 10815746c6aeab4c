/*
 * Whose death a waiter sleeps for, and what is done when one dies. The caller
 * has the mutex of the line locked, except for hf__shm_watch_died.
 */
#ifndef HF_SHM_WATCH_H
#define HF_SHM_WATCH_H

#include "shm.h"
#include "wait.h"

/* Wakes all who sleep for the death of that client: the kernel has woken one of
 * them. */
void hf__shm_wake_watchers(struct shm *, uint32_t owner);
/* Is a holder gone (then it is *dead, and those who watch it are woken), or its
 * lease over? */
bool hf__shm_is_over(struct shm *, uint32_t owner, hf__time lease_end,
                     uint32_t *dead);
/* To check again when one of the owners dies, and at that time at the latest.
 * At most SHM_WATCHED. */
void hf__shm_watch(struct shm *, struct shm_wait *, const uint32_t *owners,
                   unsigned len, hf__time until);
/* The cell watches nobody any more, from that place of its list on. */
void hf__shm_unwatch(struct shm *, struct shm_cell *, unsigned from);
/* The slot that is watched at that place, if its client has died since; 0. */
uint32_t hf__shm_watch_died(struct shm *, struct shm_wait *, unsigned i);
/* If whom it watches is dead: wakes those who sleep on the same word. Asks the
 * kernel if it has waited in vain. */
void hf__shm_pass_on_death(struct shm *, struct shm_wait *);

#endif
