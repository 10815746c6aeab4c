/* HF_SYNCHRONIZED: a block of the program that runs while a lock is held. */
#include "core/lock.h"

static __thread int synchronized_result;

hf_guard hf_guard_enter(hf_lock *lock)
{
    synchronized_result = hf_lock_acquire(lock, NULL, NULL);
    return (hf_guard){synchronized_result ? NULL : lock,
                      synchronized_result == 0};
}

void hf_guard_leave(hf_guard *guard)
{
    int rc;

    if (!guard->lock)
        return;
    rc = hf_lock_release(guard->lock, NULL);
    /* The result of the block is the result of its release, such as a loss, and
     * not what an inner block has left in the variable. */
    synchronized_result = rc;
}

int hf_synchronized_result(void)
{
    return synchronized_result;
}
