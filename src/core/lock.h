/*
 * A handle: what hf_lock_new() and hf_latch_new() return. Its name and options
 * are constant. A name has one line or several (line.h); the mutex of the first
 * line guards those members of the handle that change.
 */
#ifndef HF_CORE_LOCK_H
#define HF_CORE_LOCK_H

#include "base/thread_id.h"
#include "core/line.h"

struct hf__async;

struct hf_lock {
    struct hf__line *line; /* the first line of its name */
    struct hf__async *async;
    hf_lock *next_watcher; /* line->mu */
    int64_t max_hold_ms;
    uint64_t owner; /* the handle's number, or 0 if threads are the owners */
    uint32_t ttl_ms;
    uint32_t flags : 2; /* hf_lock_flag */
    uint32_t handoff : 30;
    /* The descriptor of hf_lock_fd(), or -1; line->mu. The bit-fields above are
     * constant, those below are written. They must not share a memory location,
     * which is why this member stands between them. */
    int loss_fd;
    /* line->mu: */
    uint32_t waits : 30;    /* verbs under way through this handle */
    uint32_t acquiring : 1; /* one of these verbs is a waiting acquire; only set
                               if the handle is the owner */
    uint32_t loss_signalled : 1; /* loss_fd signals a loss */
};

/* Returns the number of the owner on whose behalf this thread calls, or 0 if
 * out of memory. *thread (unless `thread` is NULL) is set to the record of the
 * calling thread, or to NULL if the handle is the owner. */
static inline uint64_t hf__owner_of(const hf_lock *lock,
                                    struct hf__thread **thread)
{
    struct hf__thread *me = lock->owner ? NULL : hf__thread_me();

    if (thread)
        *thread = me;
    return me ? me->number : lock->owner;
}

#endif
