/*
 * A read-write lock or a semaphore. The caller has the mutex of the line
 * (struct hf__remote) locked, or, for renew and downgrade, the mutex of the
 * client. hf__shm_shared_let_go of a lock that no thread uses needs neither.
 */
#ifndef HF_SHM_SHARED_LOCK_H
#define HF_SHM_SHARED_LOCK_H

#include "lock_state.h"
#include "shm.h"

/* Takes the lock if it is free and no client waits. False: not taken; call
 * hf__shm_shared_attempt. Always false for a latch. */
bool hf__shm_shared_take(struct shm *, struct hf__req *);
/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code. *dead is a client to be
 * buried, or 0. */
int hf__shm_shared_attempt(struct shm *, struct hf__req *, uint32_t *dead);
/* Returns HF__DONE, ENOTOWNER or EBACKEND. A latch has nothing to release. */
int hf__shm_shared_release(struct shm *, struct hf__req *);
/* Returns HF__DONE; ENOTOWNER: the hold is gone; or EBACKEND. A hold without a
 * lease is only checked. */
int hf__shm_shared_renew(struct shm *, const struct hf__renewal *,
                         hf__time now);
/* Moves the write hold of q->line to the lock q->into, as a read hold. Returns
 * HF__DONE; ENOTOWNER: the hold was gone; or EBACKEND. */
int hf__shm_shared_downgrade(struct shm *, const struct hf__query *);
/* Ends the lock's hold or wait, if it has one. Returns HF__DONE or a code. */
int hf__shm_shared_let_go(struct shm *, struct shm_cell_lock *);

#endif
