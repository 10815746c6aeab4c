/* Bells, doorbells and the futexes below them. The sleeps are in park.c. */
#include "wakeup.h"

#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

void hf__shm_futex_wake(shm_u32 *word, int how_many)
{
    syscall(SYS_futex, word, FUTEX_WAKE, how_many, NULL, NULL, 0);
}

void hf__shm_futex_wait(const void *word, int op, uint32_t value,
                        hf__time from_now)
{
    struct timespec nap = {from_now / (1000 * HF__MS),
                           from_now % (1000 * HF__MS)};

    syscall(SYS_futex, word, op, value, &nap, NULL, 0);
}

void hf__shm_ring_doorbell(struct shm *s, uint32_t owner)
{
    shm_u32 *doorbell = &s->file->slot[owner & SHM_SLOT_MASK].doorbell;

    atomic_fetch_add(doorbell, 1);
    hf__shm_futex_wake(doorbell, INT_MAX);
}

void hf__shm_ring_cell(struct shm *s, unsigned cell)
{
    struct shm_cell *c = &s->file->cell[cell];
    uint32_t owner = atomic_load(&c->owner);

    SHM_POINT();
    atomic_fetch_add(&c->bell, 1);
    SHM_POINT();
    if (atomic_load(&c->is_async))
        hf__shm_ring_doorbell(s, owner);
    else
        hf__shm_futex_wake(&c->bell, INT_MAX);
    SHM_POINT();
}

void hf__shm_wake_cell(struct shm *s, unsigned cell)
{
    shm_u32 *bell = &s->file->cell[cell].bell;

    atomic_fetch_add(bell, 1);
    hf__shm_futex_wake(bell, INT_MAX);
    SHM_POINT();
}

/* While a wait is asynchronous, ringing its cell wakes only the helper thread.
 * When the wait becomes synchronous, a thread may already sleep on the bell,
 * because of an earlier check, and the helper thread no longer watches for the
 * wait. Therefore the thread on the bell is woken. */
void hf__shm_set_async(struct shm *s, unsigned cell, bool is_async)
{
    if (atomic_exchange(&s->file->cell[cell].is_async, is_async) && !is_async)
        hf__shm_wake_cell(s, cell);
}
