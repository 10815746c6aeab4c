/*
 * Takes back what dead clients left. Any client may do it for any client that
 * is gone (hf__shm_gone), with the tables locked.
 */
#ifndef HF_SHM_DEAD_CLIENTS_H
#define HF_SHM_DEAD_CLIENTS_H

#include "shm.h"

/* Removes all waits, holds and handles of the client in `slot`. `reclaim`:
 * also frees the entries that are unused then; for that the tables must be
 * locked. */
void hf__shm_sweep_client(struct shm *, uint32_t slot, bool reclaim);
/* Takes back what all clients left that are gone. If many slots are in use,
 * each process tests the file locks of only some of them. */
void hf__shm_bury_all_locked(struct shm *);
/* The same for the client `owner`, if it is gone. Does nothing if another
 * thread has the tables locked. */
void hf__shm_bury(struct shm *, uint32_t owner);

#endif
