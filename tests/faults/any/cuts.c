/* Connections that break in the middle of a reply, and while a client waits. */
#include "any_faults.h"

GROUP("cuts");

void any_cut_answers(struct world *w, hf_lock *lock, enum proxy_mode mode,
                     long most, long step)
{
    uint64_t last = 0;

    world_free_for_all(w, lock); /* connects: the greeting is not to be cut */
    for (long n = 0; n < most; n += step) {
        proxy_set(w->proxy, mode, n);
        if (hf_lock_timed(lock, 8000, &w->err))
            fail_msg("after %ld bytes: %s", n, w->err.text);
        assert_int_equal(any_faults.holds(w), 1);
        assert_true(token_of(lock) > last);
        last = token_of(lock);
        proxy_set(w->proxy, mode, n % 40);
        if (hf_lock_release(lock, &w->err))
            fail_msg("release, after %ld bytes: %s", n % 40, w->err.text);
        COMES(any_faults.holds(w) <= 0);
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_is_clean(w);
}

void any_cut_waiter(struct world *w, hf_lock *holder, hf_lock *waiter)
{
    struct taker *t = taker_behind(w, holder, waiter, 20000);

    for (int i = 0; i < 5; i++) {
        proxy_cut(w->proxy);
        wait_tick();
    }
    OK(hf_lock_release(holder, NULL));
    taker_gets_it(t, 3000);
    world_is_clean(w);
}

static void cut_all(struct world *w, enum proxy_mode mode)
{
    any_cut_answers(w, world_far(w, 30000, any_faults.cut_op_ms), mode,
                    any_faults.cut_most, any_faults.cut_step);
}

CASE_IS(test_reset_in_the_middle_of_an_answer, cut_all(w, PROXY_RESET))
CASE_IS(test_half_close_in_the_middle_of_an_answer,
        cut_all(w, PROXY_HALF_CLOSE))

/* The pauses between connection attempts grow from about 10 ms to an eighth of
 * op_timeout; a backend may open two connections at a time. */
static void are_paced(uint64_t connections)
{
    if (connections > 60)
        fail_msg("%llu connections", (unsigned long long)connections);
}

#define REPEAT_MS 2000 /* a waiter polls at least this often */

/* Asserts that an endless wait, which began at `asked` and polls within
 * look_ms, fails once the server has not answered for op_timeout. */
static void is_failed(struct taker *t, int64_t asked, int64_t look_ms)
{
    int64_t op_ms = any_faults.op_ms;

    if (!WAIT_FOR_MS(taker_back(t), look_ms + op_ms + 1000))
        fail_msg("it still waits");
    if (t->rc != HF_EBACKEND)
        fail_msg("%d: %s", t->rc, t->err.text);
    assert_true(t->returned - asked >= op_ms * 1000000);
    taker_end(t);
}

static void cut_every_request(struct world *w, struct taker *t, int64_t asked,
                              int64_t look_ms)
{
    uint64_t before = proxy_connections(w->proxy);

    proxy_cut_at(w->proxy, any_faults.request);
    proxy_cut(w->proxy);
    is_failed(t, asked, look_ms);
    are_paced(proxy_connections(w->proxy) - before);
    proxy_cut_at(w->proxy, NULL);
}

CASE(test_every_request_is_cut)
{
    hf_lock *a = world_far(w, 30000, any_faults.op_ms);
    int64_t asked;

    world_free_for_all(w, a);
    proxy_cut_at(w->proxy, any_faults.request);
    asked = wait_now();
    cut_every_request(w, taker_start(w, a, -1), asked, 0);
    world_free_for_all(w, a);
}

/* Every poll of a waiter is cut after the server has queued the waiter. */
CASE(test_every_look_is_cut)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, any_faults.op_ms);
    int64_t asked = wait_now();
    struct taker *t = taker_behind(w, a, b, -1);

    cut_every_request(w, t, asked, REPEAT_MS);
    OK(hf_lock_release(a, NULL));
    world_free_for_all(w, b);
}

/* A waiter in the queue loses its server, so its wait fails. */
static void lose_server(struct world *w, enum proxy_mode mode)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, any_faults.op_ms);
    int64_t asked = wait_now();
    struct taker *t = taker_behind(w, a, b, -1);

    assert_true(NEVER_MS(taker_back(t), 200)); /* the waiter is queued */
    proxy_set(w->proxy, mode, 0);
    if (mode == PROXY_REFUSE)
        proxy_cut(w->proxy);
    is_failed(t, asked, REPEAT_MS);
    world_heal(w);
    OK(hf_lock_release(a, NULL));
    world_free_for_all(w, b);
}

CASE_IS(test_waiter_cannot_connect, lose_server(w, PROXY_REFUSE))
CASE_IS(test_waiter_is_cut_off, lose_server(w, PROXY_BLACK_HOLE))

/* Some of the waiter's polls are cut for longer than op_timeout, but the server
 * answers others in between: the wait continues. (If the machine stalled for
 * op_timeout, the wait would rightly end.) */
CASE(test_waiter_survives_cuts)
{
    enum { LONG_OP_MS = 5000, CUTS_MS = 7000 };
    hf_lock *a = world_near(w), *b = world_far(w, 30000, LONG_OP_MS);
    int64_t end = wait_now() + CUTS_MS * 1000000LL;
    struct taker *t = taker_behind(w, a, b, -1);

    proxy_count(w->proxy, any_faults.request);
    while (wait_now() < end) {
        uint64_t answers = proxy_counted(w->proxy);

        proxy_cut(w->proxy);
        COMES(proxy_counted(w->proxy) > answers);
        assert_true(NEVER_MS(taker_back(t), 100));
    }
    OK(hf_lock_release(a, NULL));
    taker_gets_it(t, 3000);
}
