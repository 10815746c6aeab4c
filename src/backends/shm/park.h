/*
 * Sleeps until a wait must check again. The core calls hf__shm_park without a
 * mutex: in the thread that waits, or in the helper thread (remote is NULL).
 * The helper thread calls hf__shm_advance with the mutex of the client locked,
 * before it sleeps and when it was woken.
 */
#ifndef HF_SHM_PARK_H
#define HF_SHM_PARK_H

#include "shm.h"

/* Returns when *word is no longer `expect`, when the awaited event may have
 * happened, or at `until`; perhaps earlier. */
void hf__shm_park(void *, struct hf__remote *, uint32_t *word, uint32_t expect,
                  hf__time until);
/* Reports to the core the asynchronous waits that must check again, and the
 * marks of listeners. */
void hf__shm_advance(void *, hf__time now);

#endif
