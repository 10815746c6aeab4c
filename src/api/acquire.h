/*
 * The parts of an acquire that the synchronous and the asynchronous verb share.
 */
#ifndef HF_ACQUIRE_H
#define HF_ACQUIRE_H

#include "core/client.h"
#include "core/lock.h"

/* A timed wait waits this long for the server's first answer even if its limit
 * is shorter, so it returns at most a second after its limit. */
#define HF__GRACE_MS 800

/* Returns the time limit for the server's first answer, which applies even if
 * wait_ms is shorter. A try (wait_ms is 0) allows op_timeout, like any other
 * verb. A timed wait allows HF__GRACE_MS at most, so that it does not end long
 * after its limit. */
static inline hf__time hf__answer_by(const hf_client *c, int64_t wait_ms,
                                     hf__time now)
{
    uint32_t ms = c->op_timeout_ms;

    return now + (wait_ms && ms > HF__GRACE_MS ? HF__GRACE_MS : ms) * HF__MS;
}

extern const hf_acquire_options hf__acquire_default;
/* Does what hf_lock_acquire() does, but the first answer must come by
 * `latest`. */
int hf__acquire_by(hf_lock *, const hf_acquire_options *, hf__time latest,
                   hf_error *);
int hf__acquire_check_options(const hf_lock *, const hf_acquire_options *,
                              hf_error *);

static inline void hf__acquire_fill(const hf_lock *lock,
                                    const hf_acquire_options *opt,
                                    struct hf__waiter *w)
{
    w->handoff = lock->handoff;
    w->max_hold_ms = lock->max_hold_ms;
    w->fixed = opt->lease_ms != 0;
    w->lease_ms = w->fixed ? (uint32_t)opt->lease_ms : lock->ttl_ms;
    w->is_try = opt->wait_ms == 0;
    w->permits = opt->permits ? opt->permits : 1;
    w->reentrant = !lock->owner && !(lock->flags & HF_NOT_REENTRANT);
    w->owner = hf__owner_of(lock, &w->thread);
    w->handle = (hf_lock *)(uintptr_t)lock;
}

/* Enters the queue. line->mu is held. Returns GRANTED, PENDING or an error
 * code. */
int hf__acquire_enter(struct hf__line *, struct hf__waiter *, hf__time now);

#endif
