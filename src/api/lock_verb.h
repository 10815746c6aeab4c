/*
 * What every verb of a lock does first and last: it checks the handle, takes
 * the mutex of the name, and counts itself in the client while it waits.
 */
#ifndef HF_LOCK_VERB_H
#define HF_LOCK_VERB_H

#include "core/client.h"
#include "core/lock.h"

/* Fails with EINVAL, EFORK or ECLOSED and the reason why the handle cannot be
 * used. */
int hf__lock_unusable(const hf_lock *, hf_error *);

/* Returns 0 if the handle can be used, otherwise what hf__lock_unusable()
 * returns. */
static inline int hf__lock_check(const hf_lock *lock, hf_error *err)
{
    if (__builtin_expect(lock && !hf__client_check(lock->line->client), 1))
        return 0;
    return hf__lock_unusable(lock, err);
}

/* Checks a lease or TTL. Returns 0, or EINVAL with an error message that
 * includes `zero`, the meaning of 0. */
int hf__lock_lease_valid(const char *field, int64_t ms, const char *zero,
                         hf_error *);

/* Takes line->mu for a verb, and returns 0. Returns ECLOSED, without the mutex,
 * if hf_close() has begun. (hf_close() sets client->closed, and then visits
 * every line under the line's mutex. It therefore visits the line after any
 * verb that has found the client open here.) */
static inline int hf__lock_enter(const hf_lock *lock, hf_error *err)
{
    hf__mutex_lock(&lock->line->mu);
    if (__builtin_expect(
            !__atomic_load_n(&lock->line->client->closed, __ATOMIC_ACQUIRE), 1))
        return 0;
    hf__mutex_unlock(&lock->line->mu);
    return hf__lock_unusable(lock, err);
}

/* Calls hf__lock_check(), then hf__lock_enter(). */
static inline int hf__lock_begin(const hf_lock *lock, hf_error *err)
{
    int rc = hf__lock_check(lock, err);

    return rc ? rc : hf__lock_enter(lock, err);
}

/* Must be called before a wait: the handle, its line and the client stay until
 * hf__lock_wait_end(). Unlocks line->mu. */
void hf__lock_wait_begin(hf_lock *);
/* Ends what hf__lock_wait_begin() has begun. Takes line->mu itself. */
void hf__lock_wait_end(hf_lock *, struct hf__line *line);
/* The first half of hf__lock_wait_end(), for a caller that holds line->mu.
 * After the unlock the handle and its line may be freed. The second half is
 * hf__client_leave(). */
void hf__lock_wait_leave(hf_lock *, struct hf__line *);
/* Returns the current time. Returns 0 if nothing about the line has a time
 * limit and `timed` is not set, because reading the clock costs as much as the
 * rest of an acquire in shared memory. */
hf__time hf__lock_clock(const struct hf__line *, bool timed);

#endif
