/*
 * Everything that is no attempt, release or renewal: the core calls it with the
 * mutex of the client locked.
 */
#ifndef HF_SHM_QUERY_H
#define HF_SHM_QUERY_H

#include "shm.h"

int hf__shm_query(void *, struct hf__query *);

#endif
