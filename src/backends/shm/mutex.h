/*
 * A mutex, off the fast path. The caller has the mutex of the line (struct
 * hf__remote) locked.
 */
#ifndef HF_SHM_MUTEX_H
#define HF_SHM_MUTEX_H

#include "lock_state.h"
#include "shm.h"

/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code. *dead is a client that
 * must be buried, or 0. */
int hf__shm_mutex_attempt(struct shm *, struct shm_lock *, struct hf__req *,
                          uint32_t *dead);
/* Returns HF__DONE; ENOTOWNER if the hold was broken; or EBACKEND if the
 * release gave up, see retry.h. */
int hf__shm_mutex_release(struct shm *, struct shm_lock *);
/* Ends the lock's hold or wait, if it has one. Returns HF__DONE or a code. */
int hf__shm_mutex_let_go(struct shm *, struct shm_lock *);

#endif
