/*
 * Registers this client in the file. The helper thread calls both functions:
 * between them the client counts as alive while this thread runs.
 */
#ifndef HF_SHM_CLIENT_SLOT_H
#define HF_SHM_CLIENT_SLOT_H

#include "shm.h"

/* Returns 0, or EBACKEND if no slot is free or the tables cannot be locked
 * before `by`. Also takes back what dead clients left. */
int hf__shm_slot_take(struct shm *, const char *label, hf__time by);
/* Ends all holds and waits of this client, and frees its slot. Does not wait
 * for the tables. */
void hf__shm_slot_give(struct shm *);

#endif
