/*
 * Wakes threads of this and of other processes. Each cell has a bell and each
 * client a doorbell: words in the file on which threads sleep. They are raised
 * before the sleepers are woken, so that a thread that is about to sleep does
 * not. These functions need no lock, and any thread may call them.
 */
#ifndef HF_SHM_WAKEUP_H
#define HF_SHM_WAKEUP_H

#include "shm.h"

void hf__shm_futex_wake(shm_u32 *word, int how_many);
/* op: FUTEX_WAIT, FUTEX_WAIT_PRIVATE */
void hf__shm_futex_wait(const void *word, int op, uint32_t value,
                        hf__time from_now);
void hf__shm_ring_cell(struct shm *, unsigned cell);
void hf__shm_ring_doorbell(struct shm *, uint32_t owner);
/* Wakes a thread of ours that may still sleep on the bell of a cell that has
 * left its place. */
void hf__shm_wake_cell(struct shm *, unsigned cell);
/* Says whether the helper thread waits for the cell, or a thread of its own. */
void hf__shm_set_async(struct shm *, unsigned cell, bool is_async);

#endif
