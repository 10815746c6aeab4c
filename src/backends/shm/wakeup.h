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
/* op: FUTEX_WAIT, FUTEX_WAIT_PRIVATE. May return early. */
void hf__shm_futex_wait(const void *word, int op, uint32_t value,
                        hf__time from_now);
/* Makes the client of that cell check: wakes the thread that sleeps on the bell
 * or, for an asynchronous wait, its helper thread. */
void hf__shm_ring_cell(struct shm *, unsigned cell);
/* Wakes the helper thread of that client. */
void hf__shm_ring_doorbell(struct shm *, uint32_t owner);
/* Wakes a thread of ours that may still sleep on the bell of a cell that has
 * left its place. */
void hf__shm_wake_cell(struct shm *, unsigned cell);
/* Says who waits with that cell: the helper thread of its client, or another
 * thread. */
void hf__shm_set_async(struct shm *, unsigned cell, bool is_async);

#endif
