/* The timers of a client: a binary heap, guarded by client->mu. Setting a timer
 * never fails, because room for it was reserved together with its line or
 * handle. */
#ifndef HF_TIMER_H
#define HF_TIMER_H

#include "base/time.h"

#include <holdfast.h>
#include <stdint.h>

struct hf__timer {
    hf__time at;          /* when it fires; HF__NEVER: it is not set */
    uint32_t place : 31;  /* its place in the heap, from 1; 0: not in it */
    uint32_t is_line : 1; /* 1: part of a hf__line; 0: part of a hf__async */
    uint32_t handles; /* of a line's timer: the number of the line's handles,
                         stored here because there is room */
};

struct hf__timers {
    struct hf__timer **heap; /* the first is heap[1] */
    uint32_t len, room, reserved;
};

/* hf__timers_reserve() reserves room for one more timer (0 or ENOMEM);
 * hf__timers_unreserve() gives it back. */
int hf__timers_reserve(const hf_hooks *, struct hf__timers *);
void hf__timers_unreserve(struct hf__timers *);
/* Sets the timer, or moves it. HF__NEVER removes it. */
void hf__timers_set(struct hf__timers *, struct hf__timer *, hf__time at);
/* Removes and returns the earliest timer if it is due; its `at` stays. NULL if
 * none is due. */
struct hf__timer *hf__timers_pop(struct hf__timers *, hf__time now);
hf__time hf__timers_next(const struct hf__timers *);
/* Returns when the timer fires. May be called without client->mu; the result
 * may then be out of date. */
static inline hf__time hf__timer_at(const struct hf__timer *timer)
{
    return __atomic_load_n(&timer->at, __ATOMIC_RELAXED);
}

#endif
