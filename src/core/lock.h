/*
 * A handle: what hf_lock_new() and hf_latch_new() return. Its name and options
 * are constant; what changes is guarded by the mutex of its name's first line.
 */
#ifndef HF_CORE_LOCK_H
#define HF_CORE_LOCK_H

#include "base/thread_id.h"
#include "core/line.h"

struct hf__async;

struct hf_lock {
    struct hf__line *line; /* the first of its name */
    struct hf__async *async;
    hf_lock *next_watcher; /* line->mu */
    int64_t max_hold_ms;
    uint64_t owner; /* 0: the thread */
    uint32_t ttl_ms;
    uint32_t flags : 2; /* hf_lock_flag */
    uint32_t handoff : 30;
    int loss_fd; /* -1: nobody asked; line->mu. Stands here so that bits that
                    are written are not beside bits that are only read. */
    /* line->mu: */
    uint32_t waits : 30;         /* through this handle, under way */
    uint32_t acquiring : 1;      /* one of them waits in the queue; if it has an
                                    owner */
    uint32_t loss_signalled : 1; /* loss_fd tells of a loss */
};

/* Who a call on this thread is for; 0: out of memory. *thread, unless it is
 * NULL: the same, if it is a thread. */
static inline uint64_t hf__owner_of(const hf_lock *lock,
                                    struct hf__thread **thread)
{
    struct hf__thread *me = lock->owner ? NULL : hf__thread_me();

    if (thread)
        *thread = me;
    return me ? me->number : lock->owner;
}

#endif
