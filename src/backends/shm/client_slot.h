/*
 * Registers this client in the file. The helper thread calls both: from then on
 * the client counts as alive while this thread runs.
 */
#ifndef HF_SHM_CLIENT_SLOT_H
#define HF_SHM_CLIENT_SLOT_H

#include "shm.h"

int hf__shm_slot_take(struct shm *, const char *label, hf__time by);
void hf__shm_slot_give(struct shm *);

#endif
