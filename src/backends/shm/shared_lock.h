/*
 * A read-write lock or a semaphore. The caller has the mutex of the line
 * (struct hf__remote) locked or, for renew and downgrade, the mutex of the
 * client. hf__shm_shared_let_go needs neither if no thread uses the lock.
 */
#ifndef HF_SHM_SHARED_LOCK_H
#define HF_SHM_SHARED_LOCK_H

#include "lock_state.h"
#include "shm.h"

/* Takes the permits that the request wants if they are free, no client waits
 * and no lease is involved. If the function returns false, the lock was not
 * acquired, and the caller calls hf__shm_lock_attempt. Always returns false for
 * a latch. */
bool hf__shm_shared_take(struct shm *, struct hf__req *);
/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code. *dead is a client that
 * must be buried, or 0. */
int hf__shm_shared_attempt(struct shm *, struct hf__req *, uint32_t *dead);
/* Returns HF__DONE, ENOTOWNER or EBACKEND. A latch has nothing to release. */
int hf__shm_shared_release(struct shm *, struct hf__req *);
/* Returns HF__DONE; ENOTOWNER if the hold no longer exists; or EBACKEND. For a
 * hold without a lease, only checks that it exists. */
int hf__shm_shared_renew(struct shm *, const struct hf__renewal *,
                         hf__time now);
/* Moves the write hold of q->line to the lock q->into, as a read hold. Returns
 * HF__DONE; ENOTOWNER if the hold no longer existed; or EBACKEND. */
int hf__shm_shared_downgrade(struct shm *, const struct hf__query *);
/* Ends the lock's hold or wait, if it has one. Returns HF__DONE or a code. */
int hf__shm_shared_let_go(struct shm *, struct shm_cell_lock *);

#endif
