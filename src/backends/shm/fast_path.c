/* Acquires and releases a mutex by one swap of its word. All other cases go to
 * lock.c, mutex.c and shared_lock.c. */
#include "fast_path.h"

#include "lock.h"
#include "lock_state.h"
#include "mutex.h"
#include "mutex_word.h"
#include "shared_lock.h"

int hf__shm_fast_attempt(void *self, struct hf__req *req)
{
    struct shm *s = self;
    struct shm_lock *l = req->remote->impl;
    uint64_t word, new;

    if (l->kind != HF_MUTEX) {
        if (!shm_is_lost(s) && hf__shm_shared_take(s, req))
            return HF__GRANTED;
    } else if (__builtin_expect(l->state == SHM_IDLE && !req->fixed, 1) &&
               !shm_is_lost(s)) {
        word = atomic_load_explicit(&l->entry->word, memory_order_relaxed);
        new = (word + SHM_COUNT_ONE) | s->me;
        SHM_POINT();
        if (!(word & l->take_mask) &&
            atomic_compare_exchange_strong_explicit(&l->entry->word, &word, new,
                                                    memory_order_acquire,
                                                    memory_order_relaxed)) {
            SHM_POINT();
            if (__builtin_expect(shm_mutex_grant(s, l, req, new), 1))
                return HF__GRANTED;
        }
    }
    return hf__shm_lock_attempt(s, req);
}

int hf__shm_fast_release(void *self, struct hf__req *req)
{
    struct shm_lock *l = req->remote->impl;
    uint64_t word = atomic_load_explicit(&l->mine, memory_order_relaxed);
    uint64_t flags = word & SHM_FLAGS;

    if (l->kind != HF_MUTEX)
        return hf__shm_shared_release(self, req);
    if (l->state != SHM_HELD ||
        atomic_load_explicit(&l->hold_id, memory_order_relaxed) != req->hold_id)
        return HF_ENOTOWNER;
    SHM_POINT();
    /* No waiter needs to be rung if no client waits, or if the lock is unfair
     * and a waiter that was woken has not checked yet. */
    if ((!flags || (flags == (SHM_WAITERS | SHM_WAKING) && !shm_is_fair(l))) &&
        atomic_compare_exchange_strong_explicit(
            &l->entry->word, &word, word & ~SHM_OWNER_MASK,
            memory_order_release, memory_order_relaxed)) {
        SHM_POINT();
        l->state = SHM_IDLE;
        return HF__DONE;
    }
    return hf__shm_mutex_release(self, l);
}
