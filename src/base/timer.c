#include "base/timer.h"

#include "base/memory.h"
#include "base/time.h"

#include <string.h>

int hf__timers_reserve(const hf_hooks *hooks, struct hf__timers *t)
{
    if (t->reserved + 1 >= t->room) {
        uint32_t room = t->room ? t->room + t->room / 2 : 16;
        struct hf__timer **heap = hf__alloc_by(hooks, room * sizeof(*heap));

        if (!heap)
            return HF_ENOMEM;
        if (t->len)
            memcpy(heap, t->heap, (t->len + 1) * sizeof(*heap));
        hf__free_by(hooks, t->heap);
        t->heap = heap;
        t->room = room;
    }
    t->reserved++;
    return 0;
}

void hf__timers_unreserve(struct hf__timers *t)
{
    t->reserved--;
}

static void timer_put(struct hf__timers *t, uint32_t place,
                      struct hf__timer *timer)
{
    t->heap[place] = timer;
    timer->place = place & INT32_MAX;
}

static void timer_rise(struct hf__timers *t, uint32_t i,
                       struct hf__timer *timer)
{
    for (; i > 1 && t->heap[i / 2]->at > timer->at; i /= 2)
        timer_put(t, i, t->heap[i / 2]);
    timer_put(t, i, timer);
}

static void timer_sink(struct hf__timers *t, uint32_t i,
                       struct hf__timer *timer)
{
    for (;;) {
        uint32_t child = i * 2;

        if (child > t->len)
            break;
        if (child < t->len && t->heap[child + 1]->at < t->heap[child]->at)
            child++;
        if (t->heap[child]->at >= timer->at)
            break;
        timer_put(t, i, t->heap[child]);
        i = child;
    }
    timer_put(t, i, timer);
}

static void timer_take_out(struct hf__timers *t, struct hf__timer *timer)
{
    uint32_t i = timer->place;
    struct hf__timer *last = t->heap[t->len--];

    timer->place = 0;
    if (last == timer)
        return;
    if (last->at < timer->at)
        timer_rise(t, i, last);
    else
        timer_sink(t, i, last);
}

void hf__timers_set(struct hf__timers *t, struct hf__timer *timer, hf__time at)
{
    if (timer->place)
        timer_take_out(t, timer);
    __atomic_store_n(&timer->at, at, __ATOMIC_RELAXED);
    if (at != HF__NEVER)
        timer_rise(t, ++t->len, timer);
}

struct hf__timer *hf__timers_pop(struct hf__timers *t, hf__time now)
{
    struct hf__timer *timer;

    if (!t->len || t->heap[1]->at > now)
        return NULL;
    timer = t->heap[1];
    timer_take_out(t, timer);
    return timer;
}

hf__time hf__timers_next(const struct hf__timers *t)
{
    return t->len ? t->heap[1]->at : HF__NEVER;
}
