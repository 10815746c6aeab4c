/* The timer heap is compared with a plain array: at any time the same timer
 * must be due next in both. */
#include "../cases.h"
#include "base/memory.h"
#include "base/time.h"
#include "base/timer.h"

#define MOST 300

static const hf_hooks hooks;
static uint64_t seed;

static uint64_t chance(uint64_t below)
{
    seed ^= seed << 13; /* xorshift64 */
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

/* Returns the time of the next timer, by looking at all of them. */
static hf__time next_of(const struct hf__timer *timer)
{
    hf__time next = HF__NEVER;

    for (int i = 0; i < MOST; i++)
        if (timer[i].place && timer[i].at < next)
            next = timer[i].at;
    return next;
}

static void check_heap(const struct hf__timers *t,
                       const struct hf__timer *timer)
{
    uint32_t in = 0;

    for (uint32_t i = 1; i <= t->len; i++) {
        assert_int_equal(t->heap[i]->place, i);
        if (i > 1)
            assert_true(t->heap[i / 2]->at <= t->heap[i]->at);
    }
    for (int i = 0; i < MOST; i++)
        in += timer[i].place != 0;
    assert_int_equal(in, t->len);
    assert_true(hf__timers_next(t) == next_of(timer));
}

static void one_step(struct hf__timers *t, struct hf__timer *timer,
                     hf__time *now)
{
    struct hf__timer *one = &timer[chance(MOST)], *due;
    hf__time next = next_of(timer);

    switch (chance(8)) {
    case 0:
        hf__timers_set(t, one, HF__NEVER);
        assert_int_equal(one->place, 0);
        break;
    case 1:
    case 2:
        due = hf__timers_pop(t, *now);
        assert_int_equal(due != NULL, next <= *now);
        if (due) {
            assert_true(due->at == next);
            assert_int_equal(due->place, 0);
        }
        break;
    case 3:
        *now += (hf__time)chance(30);
        break;
    default: /* sets any timer; equal times are frequent */
        hf__timers_set(t, one, *now + (hf__time)chance(100));
        assert_true(one->place > 0);
        break;
    }
}

CASE(test_timer_heap_does_what_an_array_does)
{
    for (uint64_t run = 1; run <= 20; run++) {
        static struct hf__timer timer[MOST];
        struct hf__timers t = {0};
        hf__time now = 1000;

        seed = run * 0x9e3779b97f4a7c15ULL;
        for (int i = 0; i < MOST; i++) {
            timer[i] = (struct hf__timer){0};
            assert_int_equal(hf__timers_reserve(&hooks, &t), 0);
        }
        for (int i = 0; i < 5000; i++) {
            one_step(&t, timer, &now);
            if (i % 16 == 0)
                check_heap(&t, timer);
        }
        hf__free_by(&hooks, t.heap);
    }
}

/* Timers fire in the order of their times. */
CASE(test_timer_heap_sorts)
{
    static struct hf__timer timer[MOST];
    struct hf__timers t = {0};
    struct hf__timer *due;
    hf__time last = 0;
    int popped = 0;

    seed = 7;
    for (int i = 0; i < MOST; i++) {
        timer[i] = (struct hf__timer){0};
        assert_int_equal(hf__timers_reserve(&hooks, &t), 0);
        hf__timers_set(&t, &timer[i], 1 + (hf__time)chance(1000));
    }
    assert_null(hf__timers_pop(&t, 0));
    while ((due = hf__timers_pop(&t, 1000))) {
        assert_true(due->at >= last);
        last = due->at;
        popped++;
    }
    assert_int_equal(popped, MOST);
    assert_true(hf__timers_next(&t) == HF__NEVER);
    hf__free_by(&hooks, t.heap);
}

/* Reserved room is reused, and growing keeps the timers. */
CASE(test_timer_room_is_reserved)
{
    struct hf__timers t = {0};
    struct hf__timer timer[40] = {0};

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++) {
            assert_int_equal(hf__timers_reserve(&hooks, &t), 0);
            hf__timers_set(&t, &timer[i], 1000 - i);
            assert_true(hf__timers_next(&t) == 1000 - i);
        }
        assert_true(t.room > 40);
        for (int i = 0; i < 40; i++) {
            hf__timers_set(&t, &timer[i], HF__NEVER);
            hf__timers_unreserve(&t);
        }
        assert_int_equal(t.len, 0);
        assert_int_equal(t.reserved, 0);
    }
    hf__free_by(&hooks, t.heap);
}

static void *no_alloc(void *ctx, size_t size)
{
    return NULL;
}

static void no_free(void *ctx, void *p)
{
}

CASE(test_timer_without_memory_nothing_is_reserved)
{
    const hf_hooks poor = {.alloc = no_alloc, .free = no_free};
    struct hf__timers t = {0};

    assert_int_equal(hf__timers_reserve(&poor, &t), HF_ENOMEM);
    assert_int_equal(t.reserved, 0);
    assert_int_equal(hf__timers_reserve(&hooks, &t), 0);
    assert_int_equal(t.reserved, 1);
    hf__free_by(&hooks, t.heap);
}

CASES_MAIN(NULL, NULL);
