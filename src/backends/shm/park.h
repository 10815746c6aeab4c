/*
 * Sleeps for waiters. hf__shm_park is called by the core with no mutex, by the
 * thread that waits, or by the helper thread (remote is NULL); hf__shm_advance
 * by the helper thread, before it sleeps and when it was woken, with the mutex
 * of the client.
 */
#ifndef HF_SHM_PARK_H
#define HF_SHM_PARK_H

#include "shm.h"

void hf__shm_park(void *, struct hf__remote *, uint32_t *word, uint32_t expect,
                  hf__time until);
void hf__shm_advance(void *, hf__time now);

#endif
