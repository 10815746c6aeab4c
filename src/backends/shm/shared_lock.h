/*
 * A read-write lock or a semaphore. The caller has the mutex of the line
 * locked; that of the client for renew and downgrade. Who lets go of a lock
 * that nobody uses any more needs neither.
 */
#ifndef HF_SHM_SHARED_LOCK_H
#define HF_SHM_SHARED_LOCK_H

#include "lock_state.h"
#include "shm.h"

/* It is free, and nobody waits: it is ours. False: hf__shm_shared_attempt is
 * to check. Of a latch: false. */
bool hf__shm_shared_take(struct shm *, struct hf__req *);
/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code; *dead: a client to be
 * buried, or 0. */
int hf__shm_shared_attempt(struct shm *, struct hf__req *, uint32_t *dead);
/* Of a latch: there is nothing to release. */
int hf__shm_shared_release(struct shm *, struct hf__req *);
int hf__shm_shared_renew(struct shm *, const struct hf__renewal *,
                         hf__time now);
int hf__shm_shared_downgrade(struct shm *, const struct hf__query *);
/* Ends whatever the lock has: a hold or a wait. */
int hf__shm_shared_let_go(struct shm *, struct shm_cell_lock *);

#endif
