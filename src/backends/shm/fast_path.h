/*
 * Acquires and releases a mutex without contention: each is one swap of the
 * word, and calls no other function. The core calls them with the mutex of the
 * line locked.
 */
#ifndef HF_SHM_FAST_PATH_H
#define HF_SHM_FAST_PATH_H

#include "shm.h"

int hf__shm_fast_attempt(void *, struct hf__req *);
int hf__shm_fast_release(void *, struct hf__req *);

#endif
