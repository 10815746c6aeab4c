/* Network faults: replies that are swallowed, late or cut in the middle. */
#include "../any/any_faults.h"
#include "redis_faults.h"

GROUP("net");

/* The reply to a grant is lost, but the client reconnects in time and finds
 * that it holds the lock. */
CASE(test_attempt_answer_swallowed_then_adopted)
{
    hf_lock *a = world_far(w, 30000, 3000);
    struct taker *t;

    world_free_for_all(w, a);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, a, 10000);
    COMES(redis_do(w, "EXISTS n") == 1);
    world_heal(w);
    taker_has_it(t, 2000);
    assert_int_equal(redis_do(w, "HLEN n"), 1);
    taker_gives(t);
}

CASE(test_both_connections_reset_while_waiting)
{
    hf_lock *a = world_near(w);

    any_cut_waiter(w, a, world_far(w, 30000, 1000));
}

/* A request reaches the server after all later requests: the proxy holds it
 * back until the client has lost the connection, and delivers it after the
 * requests on the new connection. */
static void late_question(struct world *w, int64_t late_ms)
{
    hf_lock *a = world_far(w, 30000, 1000);
    struct taker *t;
    int64_t began;

    world_free_for_all(w, a);
    proxy_hoard(w->proxy);
    began = wait_now();
    t = taker_start(w, a, 10000);
    COMES(proxy_hoarded(w->proxy) > 0);
    proxy_cut(w->proxy);
    taker_gets_it(t, 3000);
    while (wait_ms_since(began) < late_ms)
        wait_tick();
    proxy_deliver(w->proxy);
    world_is_clean(w);
    world_free_for_all(w, a);
    assert_true(NEVER_MS(redis_server_keys(w->redis) != 0, 300));
}

/* The client gave up the request so long ago that the server refuses it. */
CASE_IS(test_question_that_is_too_late, late_question(w, 1500))

/* The request is not old enough to be refused, so the server grants it,
 * although the client has released the lock by then. The client knows that the
 * request may still arrive, and therefore sends a second release later. */
CASE_IS(test_question_that_is_late, late_question(w, 0))

/* The request of a try is delayed, and its retry on a new connection finds the
 * lock busy. After the lock has been released, the delayed request arrives and
 * is granted. That hold must end soon. */
CASE(test_late_try_of_one_who_was_refused)
{
    hf_lock *a = world_far(w, 30000, 2000), *b = world_near(w);
    struct taker *t;

    world_free_for_all(w, a);
    OK(hf_lock_acquire(b, NULL, NULL));
    proxy_hoard(w->proxy);
    t = taker_start_lease(w, a, 0, 20000);
    COMES(proxy_hoarded(w->proxy) > 0);
    proxy_cut(w->proxy);
    COMES_MS(taker_back(t), 3000);
    assert_int_equal(t->rc, HF_EBUSY);
    OK(hf_lock_release(b, NULL));
    proxy_deliver(w->proxy);
    COMES(redis_do(w, "EXISTS n") == 1);
    COMES_MS(redis_do(w, "EXISTS n") == 0, 4000);
    taker_end(t);
}

/* A wait for a latch has timed out, and the handle of the latch has been freed,
 * but the request of that wait is still in flight. Then the connection
 * breaks. */
CASE(test_question_outlives_its_name)
{
    hf_lock *a = world_far(w, 30000, 5000);
    hf_latch *latch = world_latch(w, w->clients[0], "l");

    world_free_for_all(w, a);
    proxy_hoard(w->proxy);
    EXPECT(HF_ETIMEDOUT, hf_latch_wait(latch, 50, NULL, NULL));
    COMES(proxy_hoarded(w->proxy) > 0);
    world_ends(w, latch);
    proxy_cut(w->proxy);
    world_takes(w, a, 3000);
    OK(hf_lock_release(a, NULL));
    proxy_deliver(w->proxy);
}

CASE(test_lease_shorter_than_the_way)
{
    hf_lock *a = world_far(w, 30000, 3000), *b = world_near(w);

    proxy_set(w->proxy, PROXY_DELAY, 400);
    FAILS(take_lease(a, 1500, 300, &w->err));
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_free_for_all(w, b);
}

CASE(test_open_says_at_once_what_is_wrong)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    int64_t began = wait_fair();

    w->may_leave = true; /* the server is not running at the end */
    redis_server_kill(w->redis);
    EXPECT(HF_EBACKEND,
           hf_open(text_of("%s", w->redis->url), &opt, &c, &w->err));
    assert_null(c);
    expect_words(w->err.text, "refused");
    assert_true(w->err.may_pass);
    assert_true(wait_within(began, 1000));
    opt.connect_timeout_ms = 300;
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    began = wait_fair();
    w->err.may_pass = 0;
    EXPECT(HF_EBACKEND, hf_open(w->far_url, &opt, &c, &w->err));
    assert_true(wait_within(began, 1300));
    assert_true(w->err.may_pass);
}
