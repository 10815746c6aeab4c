/*
 * Breaks holds, for hf_break. The caller has the tables locked.
 */
#ifndef HF_SHM_BREAK_H
#define HF_SHM_BREAK_H

#include "shm.h"

/* Returns 0; ENOTOWNER if there is no hold; EBUSY if it is another hold than
 * the query names, whose token is then in the query; or EBACKEND. */
int hf__shm_break(struct shm *, struct hf__query *);

#endif
