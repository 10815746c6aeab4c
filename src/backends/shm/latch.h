/*
 * The latch. An attempt is a wait for the count to come to 0, and its caller
 * has the mutex of the line locked; the others change the count, and may be
 * called with an entry that stays what it is: attached, or with the tables
 * locked.
 */
#ifndef HF_SHM_LATCH_H
#define HF_SHM_LATCH_H

#include "lock_state.h"
#include "shm.h"

int hf__shm_latch_attempt(struct shm *, struct hf__req *);
/* Ends the wait, if there is one. */
int hf__shm_latch_let_go(struct shm *, struct shm_cell_lock *);
/* One less, or all; what is left. DONE, EBACKEND; ENOTOWNER: it was at 0. */
int hf__shm_latch_count_down(struct shm *, unsigned index, bool all,
                             uint32_t *left);
/* DONE; EBUSY, and the count that it has, if that is not 0; EBACKEND. */
int hf__shm_latch_set(struct shm *, struct shm_entry *, uint64_t *count);

#endif
