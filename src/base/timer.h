/* Timers of a client: a binary heap, under client->mu. Adding never fails,
 * because room was reserved when the thing that has the timer was made. */
#ifndef HF_TIMER_H
#define HF_TIMER_H

#include "base/time.h"

#include <holdfast.h>
#include <stdint.h>

struct hf__timer {
    hf__time at;          /* what it was set to; HF__NEVER */
    uint32_t place : 31;  /* in the heap, from 1; 0: not in it */
    uint32_t is_line : 1; /* of a hf__line, else of a hf__async */
    uint32_t handles;     /* of a hf__line, on it: here is room */
};

struct hf__timers {
    struct hf__timer **heap; /* from 1 */
    uint32_t len, room, reserved;
};

/* Room for one more timer, or for one less. ENOMEM. */
int hf__timers_reserve(const hf_hooks *, struct hf__timers *);
void hf__timers_unreserve(struct hf__timers *);
/* Adds it, or moves it. HF__NEVER removes it. */
void hf__timers_set(struct hf__timers *, struct hf__timer *, hf__time at);
/* The earliest, if it is due; taken out, and keeps its time. */
struct hf__timer *hf__timers_pop(struct hf__timers *, hf__time now);
hf__time hf__timers_next(const struct hf__timers *);
/* Without client->mu; what is set meanwhile is seen, or not. */
static inline hf__time hf__timer_at(const struct hf__timer *timer)
{
    return __atomic_load_n(&timer->at, __ATOMIC_RELAXED);
}

#endif
