/* The timers of a client: a binary heap, guarded by client->mu. Setting a timer
 * never fails, because hf__timers_reserve() has made room for it earlier. */
#ifndef HF_TIMER_H
#define HF_TIMER_H

#include "base/time.h"

#include <holdfast.h>
#include <stdint.h>

struct hf__timer {
    hf__time at;          /* when it fires, or HF__NEVER if it is not set */
    uint32_t place : 31;  /* its position in the heap, from 1 on; 0 if it is not
                             set */
    uint32_t is_line : 1; /* 1: part of a hf__line; 0: part of a hf__async */
    uint32_t handles; /* of a line's timer: the number of the line's handles,
                         stored here because there is room */
};

struct hf__timers {
    struct hf__timer **heap; /* heap[1] is the earliest timer */
    uint32_t len, room, reserved;
};

/* Reserves room for one more timer. Returns 0 or ENOMEM. */
int hf__timers_reserve(const hf_hooks *, struct hf__timers *);
/* Gives back the room that one hf__timers_reserve() has reserved. */
void hf__timers_unreserve(struct hf__timers *);
/* Sets the timer, which may be set already, to that time. HF__NEVER removes
 * it. */
void hf__timers_set(struct hf__timers *, struct hf__timer *, hf__time at);
/* If the earliest timer is due, removes it from the heap and returns it; its
 * `at` keeps its value. Returns NULL if no timer is due. */
struct hf__timer *hf__timers_pop(struct hf__timers *, hf__time now);
/* Returns the time of the earliest timer, or HF__NEVER. */
hf__time hf__timers_next(const struct hf__timers *);
/* Returns when the timer fires. May be called without client->mu; the result
 * may then be out of date. */
static inline hf__time hf__timer_at(const struct hf__timer *timer)
{
    return __atomic_load_n(&timer->at, __ATOMIC_RELAXED);
}

#endif
