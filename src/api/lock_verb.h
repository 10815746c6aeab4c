/*
 * What every verb of a lock does first and last: the checks of the handle, its
 * name's mutex, and a place in the client while the verb waits.
 */
#ifndef HF_LOCK_VERB_H
#define HF_LOCK_VERB_H

#include "core/client.h"
#include "core/lock.h"

/* Why the handle cannot be used: EINVAL, EFORK or ECLOSED, with a text. */
int hf__lock_unusable(const hf_lock *, hf_error *);

/* The same; 0: it can be used. */
static inline int hf__lock_check(const hf_lock *lock, hf_error *err)
{
    if (__builtin_expect(lock && !hf__client_check(lock->line->client), 1))
        return 0;
    return hf__lock_unusable(lock, err);
}

/* A lease or TTL: EINVAL, with a text that says what 0 would mean. */
int hf__lock_lease_valid(const char *field, int64_t ms, const char *zero,
                         hf_error *);

/* Takes line->mu for a verb. ECLOSED, and not taken, if hf_close() has begun:
 * it visits every line under its mutex after it has set client->closed. */
static inline int hf__lock_enter(const hf_lock *lock, hf_error *err)
{
    hf__mutex_lock(&lock->line->mu);
    if (__builtin_expect(
            !__atomic_load_n(&lock->line->client->closed, __ATOMIC_ACQUIRE), 1))
        return 0;
    hf__mutex_unlock(&lock->line->mu);
    return hf__lock_unusable(lock, err);
}

/* The check of the handle, and then the mutex. */
static inline int hf__lock_begin(const hf_lock *lock, hf_error *err)
{
    int rc = hf__lock_check(lock, err);

    return rc ? rc : hf__lock_enter(lock, err);
}

/* From the one to the other, neither handle (with its name) nor client go away.
 * begin: line->mu is held, and free afterwards. */
void hf__lock_wait_begin(hf_lock *);
void hf__lock_wait_end(hf_lock *, struct hf__line *line);
/* The first half of its end, for who has line->mu: once that is free the handle
 * may go, and the name with it. The other half is hf__client_leave(). */
void hf__lock_wait_leave(hf_lock *, struct hf__line *);
/* The time, or 0 where nothing about the line has an end: reading the clock
 * costs as much as the rest of an acquire in shared memory. */
hf__time hf__lock_clock(const struct hf__line *, bool timed);

#endif
