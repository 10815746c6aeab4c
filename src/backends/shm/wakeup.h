/*
 * Wakes threads of this and of other processes. Each cell has a bell and each
 * client a doorbell: words in the file on which threads sleep, and which are
 * raised before the sleepers are woken, so that who is about to sleep does not.
 * Nothing here is locked, and anybody may call it.
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
/* A thread of ours may sleep there for another who has left: its place is not
 * there any more. */
void hf__shm_wake_cell(struct shm *, unsigned cell);
/* Of a place in a queue: is it the helper thread who waits there? */
void hf__shm_set_async(struct shm *, unsigned cell, bool is_async);

#endif
