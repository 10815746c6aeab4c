/*
 * Registers this client in the file. Both are called by the helper thread,
 * whose life is from then on the client's.
 */
#ifndef HF_SHM_CLIENT_SLOT_H
#define HF_SHM_CLIENT_SLOT_H

#include "shm.h"

int hf__shm_slot_take(struct shm *, const char *label, hf__time by);
void hf__shm_slot_give(struct shm *);

#endif
