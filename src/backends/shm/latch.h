/*
 * The latch. An attempt waits until the count is 0. The caller of
 * hf__shm_latch_attempt and hf__shm_latch_let_go has the mutex of the line
 * (struct hf__remote) locked, or no thread uses the lock. The other functions
 * change the count; their caller is attached to the entry or holds the table
 * lock, so that the entry is not given to another name.
 */
#ifndef HF_SHM_LATCH_H
#define HF_SHM_LATCH_H

#include "lock_state.h"
#include "shm.h"

/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code. */
int hf__shm_latch_attempt(struct shm *, struct hf__req *);
/* Ends the wait, if there is one. */
int hf__shm_latch_let_go(struct shm *, struct shm_cell_lock *);
/* Lowers the count by one or, if `all`, to 0; *left is the count after that.
 * Returns HF__DONE; ENOTOWNER if the count was 0 already; or EBACKEND. */
int hf__shm_latch_count_down(struct shm *, unsigned index, bool all,
                             uint32_t *left);
/* Sets the count to *count if it is 0. Returns HF__DONE; EBUSY, with the
 * current count in *count, if it is not 0; or EBACKEND. */
int hf__shm_latch_set(struct shm *, struct shm_entry *, uint64_t *count);

#endif
