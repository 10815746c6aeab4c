/*
 * Wakes threads of this and of other processes. Each cell has a bell and each
 * client a doorbell: words in the file on which threads sleep. To ring a bell
 * is to raise its value and then wake its sleepers; a thread that is about to
 * sleep on the old value does not sleep. These functions need no lock, and any
 * thread may call them.
 */
#ifndef HF_SHM_WAKEUP_H
#define HF_SHM_WAKEUP_H

#include "shm.h"

/* Wakes at most `how_many` threads of any process that sleep on the word. */
void hf__shm_futex_wake(shm_u32 *word, int how_many);
/* Sleeps while the word is `value`. `op` is FUTEX_WAIT or FUTEX_WAIT_PRIVATE.
 * May return early. */
void hf__shm_futex_wait(const void *word, int op, uint32_t value,
                        hf__time from_now);
/* Makes the owner of the cell check its wait: wakes the thread that sleeps on
 * the bell or, for an asynchronous wait, the owner's helper thread. */
void hf__shm_ring_cell(struct shm *, unsigned cell);
/* Wakes the helper thread of the client `owner`. */
void hf__shm_ring_doorbell(struct shm *, uint32_t owner);
/* Rings the bell even if the wait is asynchronous, for a thread of ours that
 * may still sleep on it after the wait has ended or changed. */
void hf__shm_wake_cell(struct shm *, unsigned cell);
/* Sets which thread waits with the cell: the helper thread of its client, or
 * another thread. */
void hf__shm_set_async(struct shm *, unsigned cell, bool is_async);

#endif
