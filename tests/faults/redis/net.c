/* The way to the server: answers swallowed, late, cut in the middle. */
#include "../any/any_faults.h"
#include "redis_faults.h"

/* ---- the answer goes nowhere -------------------------------------------- */

/* The connection gives way in time: the grant that was lost is adopted. */
static void test_attempt_answer_swallowed_then_adopted(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 3000);
    struct taker *t;

    world_free_for_all(w, a);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, a, 10000);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "EXISTS n") == 1));
    world_heal(w);
    assert_true(WAIT_FOR_MS(taker_back(t), 2000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(redis_server_do(w->redis, "HLEN n"), 1);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

/* ---- cut in the middle --------------------------------------------------- */

static void test_reset_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 3000), PROXY_RESET, 64, 3);
}

static void test_half_close_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 3000), PROXY_HALF_CLOSE,
                    64, 3);
}

static void test_both_connections_reset_while_waiting(void **state)
{
    hf_lock *a = world_near(*state);

    any_cut_waiter(*state, a, world_far(*state, 30000, 1000));
}

/* A question that gets to the server when all is over: the connection was
 * reset on our side alone, and a new one was quicker. */
static void late_question(struct world *w, int64_t late_ms)
{
    hf_lock *a = world_far(w, 30000, 1000);
    struct taker *t;
    int64_t began;

    world_free_for_all(w, a);
    proxy_hoard(w->proxy);
    began = wait_now();
    t = taker_start(w, a, 10000);
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    proxy_cut(w->proxy);
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_int_equal(t->rc, 0);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    while (wait_ms_since(began) < late_ms)
        wait_tick();
    proxy_deliver(w->proxy);
    world_is_clean(w);
    world_free_for_all(w, a);
    assert_true(NEVER_MS(redis_server_keys(w->redis) != 0, 300));
}

/* Nobody will ask for it any more: it is refused. */
static void test_question_that_is_too_late(void **state)
{
    late_question(*state, 1500);
}

/* Too early for that: granted, and taken back. */
static void test_question_that_is_late(void **state)
{
    late_question(*state, 0);
}

/* A try that was lost and, asked again, was not granted: then its first copy
 * comes, and is. */
static void test_late_try_of_one_who_was_refused(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 2000), *b = world_near(w);
    struct taker *t;

    world_free_for_all(w, a);
    assert_int_equal(hf_lock_acquire(b, NULL, NULL), 0);
    proxy_hoard(w->proxy);
    t = taker_start_lease(w, a, 0, 20000);
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    proxy_cut(w->proxy);
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_int_equal(t->rc, HF_EBUSY);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    proxy_deliver(w->proxy);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "EXISTS n") == 1));
    assert_true(WAIT_FOR_MS(redis_server_do(w->redis, "EXISTS n") == 0, 4000));
    taker_end(t);
    world_is_clean(w);
}

/* Who asked has gone, and the name with it: the connection breaks after that,
 * while the question might be answered still. */
static void test_question_outlives_its_name(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 5000);
    hf_latch *latch = NULL;

    assert_int_equal(hf_latch_new(w->clients[0], "l", 1, &latch, &w->err), 0);
    world_free_for_all(w, a);
    proxy_hoard(w->proxy);
    assert_int_equal(hf_latch_wait(latch, 50, NULL, NULL), HF_ETIMEDOUT);
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    assert_int_equal(hf_latch_free(latch), 0);
    proxy_cut(w->proxy);
    world_takes(w, a, 3000);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    proxy_deliver(w->proxy);
    world_is_clean(w);
}

/* ---- slow, refused --------------------------------------------------------
 */

static void test_lease_shorter_than_the_way(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 3000), *b = world_near(w);

    proxy_set(w->proxy, PROXY_DELAY, 400);
    assert_int_not_equal(take_lease(a, 1500, 300, &w->err), 0);
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_free_for_all(w, b);
    world_is_clean(w);
}

static void test_open_says_at_once_what_is_wrong(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    int64_t began = wait_fair();
    char url[64];

    snprintf(url, sizeof(url), "%s", w->redis->url);
    redis_server_kill(w->redis);
    assert_int_equal(hf_open(url, &opt, &c, &w->err), HF_EBACKEND);
    assert_null(c);
    assert_non_null(strstr(w->err.text, "refused"));
    assert_true(w->err.may_pass);
    assert_true(wait_within(began, 1000));
    opt.connect_timeout_ms = 300;
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    began = wait_fair();
    w->err.may_pass = 0;
    assert_int_equal(hf_open(w->far_url, &opt, &c, &w->err), HF_EBACKEND);
    assert_true(wait_within(began, 1300));
    assert_true(w->err.may_pass);
}

int run_net_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_attempt_answer_swallowed_then_adopted),
        T(test_reset_in_the_middle_of_an_answer),
        T(test_half_close_in_the_middle_of_an_answer),
        T(test_both_connections_reset_while_waiting),
        T(test_question_that_is_too_late),
        T(test_question_that_is_late),
        T(test_late_try_of_one_who_was_refused),
        T(test_question_outlives_its_name),
        T(test_lease_shorter_than_the_way),
        T(test_open_says_at_once_what_is_wrong),
    };

    return cmocka_run_group_tests_name("redis: the network", tests, NULL, NULL);
}
