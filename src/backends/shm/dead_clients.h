/*
 * Takes back what dead clients left. Any client may do it for any client that
 * is gone (hf__shm_gone), with the tables locked.
 */
#ifndef HF_SHM_DEAD_CLIENTS_H
#define HF_SHM_DEAD_CLIENTS_H

#include "shm.h"

/* Removes all waits, holds and handles of this slot. `reclaim`: frees unused
 * entries as well; the tables must then be locked. */
void hf__shm_sweep_client(struct shm *, uint32_t slot, bool reclaim);
/* Takes back what all clients left that are gone. With many clients each
 * process checks only some of them for a closed file. */
void hf__shm_bury_all_locked(struct shm *);
/* The same for one client, if it is gone. Does nothing if the tables are
 * locked. */
void hf__shm_bury(struct shm *, uint32_t owner);

#endif
