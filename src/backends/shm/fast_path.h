/*
 * Acquires and releases locks. For a mutex without contention each is one swap
 * of the word, and calls no other function. All else goes to lock.h, mutex.h
 * and shared_lock.h. The core calls them with the mutex of the line (struct
 * hf__remote) locked.
 */
#ifndef HF_SHM_FAST_PATH_H
#define HF_SHM_FAST_PATH_H

#include "shm.h"

/* Returns HF__GRANTED, HF__QUEUED, HF__BUSY or a code. */
int hf__shm_fast_attempt(void *, struct hf__req *);
/* Returns HF__DONE; ENOTOWNER: the hold was gone; or EBACKEND: the core tries
 * again. */
int hf__shm_fast_release(void *, struct hf__req *);

#endif
