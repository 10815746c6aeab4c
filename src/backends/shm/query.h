/*
 * Serves all requests other than attempt, release, abandon and renewal. The
 * core calls the function with the mutex of the client locked. Returns HF__DONE
 * or a code.
 */
#ifndef HF_SHM_QUERY_H
#define HF_SHM_QUERY_H

#include "shm.h"

int hf__shm_query(void *, struct hf__query *);

#endif
