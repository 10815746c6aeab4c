/*
 * The operations of a lock of any kind, off the fast path. The core calls
 * attempt and abandon with the mutex of the line (struct hf__remote) locked,
 * and renew with the mutex of the client.
 */
#ifndef HF_SHM_LOCK_H
#define HF_SHM_LOCK_H

#include "lock_state.h"
#include "shm.h"

/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code. If it took the lock from
 * a dead client, it also takes back everything else that the dead client left,
 * unless another thread holds the table lock (dead_clients.h). */
int hf__shm_lock_attempt(struct shm *, struct hf__req *);
/* Ends the wait or hold that has the hold id of the request. Returns HF__DONE,
 * or EBACKEND, after which the core tries again. */
int hf__shm_lock_abandon(void *, struct hf__req *);
/* Returns HF__DONE; each item has its own result. */
int hf__shm_lock_renew(void *, struct hf__batch *);
/* Ends the lock's hold or wait, if it has one. The caller has the mutex of the
 * line locked, or no thread uses the lock. Returns HF__DONE or a code. */
int hf__shm_lock_let_go(struct shm *, struct shm_lock *);

#endif
