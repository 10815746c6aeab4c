/*
 * Reads which clients hold a name and which wait for it. The caller holds the
 * table lock.
 */
#ifndef HF_SHM_INSPECT_H
#define HF_SHM_INSPECT_H

#include "shm.h"

/* Returns 0; ENOMEM; or EPROTO if the entry is damaged. A name without an entry
 * is free. */
int hf__shm_inspect(struct shm *, struct hf__query *);
/* Lists the names that are held or waited for. Returns 0 or ENOMEM. */
int hf__shm_inspect_list(struct shm *, struct hf__query *);
/* Returns whether a client that is not gone holds the name or, for a latch,
 * whether the latch is set. */
bool hf__shm_inspect_is_held(struct shm *, unsigned index, uint64_t word);
/* Writes the string that identifies the client `owner`: hf_party.owner. */
void hf__shm_inspect_owner(struct shm *, char to[64], uint32_t owner);

#endif
