/*
 * Breaks holds, for hf_break. With the tables locked.
 */
#ifndef HF_SHM_BREAK_H
#define HF_SHM_BREAK_H

#include "shm.h"

/* 0; ENOTOWNER: there is no hold; EBUSY: it is not the one that is meant, and
 * the query has its token; EBACKEND. */
int hf__shm_break(struct shm *, struct hf__query *);

#endif
