/*
 * Acquires and releases locks. On a mutex without contention each operation is
 * one swap of the word. All other cases go to lock.h, mutex.h and
 * shared_lock.h. The core calls these functions with the mutex of the line
 * (struct hf__remote) locked.
 */
#ifndef HF_SHM_FAST_PATH_H
#define HF_SHM_FAST_PATH_H

#include "shm.h"

/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code. */
int hf__shm_fast_attempt(void *, struct hf__req *);
/* Returns HF__DONE; ENOTOWNER if the hold no longer existed; or EBACKEND, after
 * which the core tries again. */
int hf__shm_fast_release(void *, struct hf__req *);

#endif
