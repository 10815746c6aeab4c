/*
 * Breaks holds, for hf_break. The caller holds the table lock.
 */
#ifndef HF_SHM_BREAK_H
#define HF_SHM_BREAK_H

#include "shm.h"

/* Returns 0; ENOTOWNER if there is no hold; EBUSY if the query names another
 * hold (the query's `count` is then the token of the existing hold); or
 * EBACKEND. */
int hf__shm_break(struct shm *, struct hf__query *);

#endif
