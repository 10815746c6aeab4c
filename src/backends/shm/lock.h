/*
 * The verbs of a lock of any kind, off the fast path. The core calls attempt
 * and abandon with the mutex of the line locked, and renew with that of the
 * client.
 */
#ifndef HF_SHM_LOCK_H
#define HF_SHM_LOCK_H

#include "lock_state.h"
#include "shm.h"

int hf__shm_lock_attempt(struct shm *, struct hf__req *);
int hf__shm_lock_abandon(void *, struct hf__req *);
int hf__shm_lock_renew(void *, struct hf__batch *);
/* Ends whatever the lock has: a hold or a wait. */
int hf__shm_lock_let_go(struct shm *, struct shm_lock *);

#endif
