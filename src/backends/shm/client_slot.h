/*
 * Registers this client in the file. The helper thread calls both functions.
 * Between the two calls, the client counts as alive while that thread runs.
 */
#ifndef HF_SHM_CLIENT_SLOT_H
#define HF_SHM_CLIENT_SLOT_H

#include "shm.h"

/* Takes a slot, and takes back what dead clients left. Returns 0; or EBACKEND
 * if no slot is free, if the table lock cannot be taken before `by`, or if
 * /proc cannot be read. */
int hf__shm_slot_take(struct shm *, const char *label, hf__time by);
/* Ends all holds and waits of this client, and frees its slot. Does not wait
 * for the table lock. */
void hf__shm_slot_give(struct shm *);

#endif
