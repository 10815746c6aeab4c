/*
 * Takes back what dead clients left. Any client that holds the table lock may
 * do this for any client that is gone (hf__shm_gone).
 */
#ifndef HF_SHM_DEAD_CLIENTS_H
#define HF_SHM_DEAD_CLIENTS_H

#include "shm.h"

/* Removes all waits, holds and handles of the client in `slot`. If `reclaim` is
 * true, also frees the entries that are unused after that; the caller must then
 * hold the table lock. */
void hf__shm_sweep_client(struct shm *, uint32_t slot, bool reclaim);
/* Takes back what all clients that are gone have left. The caller holds the
 * table lock. If many slots are in use, each process tests the byte locks of
 * only some of them. */
void hf__shm_bury_all_locked(struct shm *);
/* Takes back what the client `owner` left, if it is gone. Does nothing if
 * another thread holds the table lock. */
void hf__shm_bury(struct shm *, uint32_t owner);

#endif
