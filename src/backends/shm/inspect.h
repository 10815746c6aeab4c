/*
 * Reads who holds a name and who waits for it. With the tables locked.
 */
#ifndef HF_SHM_INSPECT_H
#define HF_SHM_INSPECT_H

#include "shm.h"

int hf__shm_inspect(struct shm *, struct hf__query *);
int hf__shm_inspect_list(struct shm *, struct hf__query *);
/* Is it held by somebody who is not dead; or a latch that is set? */
bool hf__shm_inspect_is_held(struct shm *, unsigned index, uint64_t word);
/* The text by which people name that client: hf_party.owner. */
void hf__shm_inspect_owner(struct shm *, char to[64], uint32_t owner);

#endif
