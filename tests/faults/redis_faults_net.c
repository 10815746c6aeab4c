/* The way to the server: answers swallowed, late, cut in the middle. */
#include "redis_faults.h"

#define OP_MS 400

/* ---- the answer goes nowhere -------------------------------------------- */

static void lost_attempt(struct world *w, enum proxy_mode mode)
{
    hf_lock *a = world_far(w, 30000, OP_MS), *b = world_near(w);
    int64_t began;

    world_free_for_all(w, a);
    proxy_set(w->proxy, mode, 0);
    began = wait_fair();
    assert_int_not_equal(hf_lock_timed(a, 300, &w->err), 0);
    assert_true(wait_within(began, 1300));
    world_heal(w);
    world_free_for_all(w, b);
    world_is_clean(w);
    world_free_for_all(w, a);
}

static void test_attempt_answer_swallowed(void **state)
{
    lost_attempt(*state, PROXY_SWALLOW);
}

static void test_attempt_swallowed(void **state)
{
    lost_attempt(*state, PROXY_DEAF);
}

static void test_attempt_into_a_black_hole(void **state)
{
    lost_attempt(*state, PROXY_BLACK_HOLE);
}

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

static void test_release_answer_swallowed(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, OP_MS), *b = world_near(w);
    int64_t began;

    world_free_for_all(w, a);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    began = wait_fair();
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    assert_true(wait_within(began, OP_MS + 1000));
    assert_int_equal(hf_lock_check(a), HF_ENOTOWNER);
    /* It was executed. Somebody else is in; the retry must not free that. */
    world_takes(w, b, 1000);
    world_heal(w);
    assert_int_equal(hf_lock_timed(a, 300, &w->err), HF_ETIMEDOUT);
    assert_int_equal(hf_lock_check(b), 0);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    assert_int_equal(hf_lock_release(b, NULL), HF_ENOTOWNER);
    world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_release_swallowed_is_sent_again(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, OP_MS), *b = world_near(w);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    world_heal(w);
    world_free_for_all(w, b);
    world_is_clean(w);
}

static void test_abandon_answer_swallowed(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, OP_MS);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 500);
    world_has_waiter(w, "holdfast:waiters:{n}");
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 1500));
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_heal(w);
    world_free_for_all(w, a);
    world_is_clean(w);
    world_free_for_all(w, b);
}

static void test_renewal_swallowed_is_retried(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 2000, OP_MS);
    uint64_t before;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    before = proxy_sent(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_true(WAIT_FOR(proxy_sent(w->proxy) > before));
    world_heal(w);
    assert_true(NEVER_MS(hf_lock_check(a) != 0, 3000));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

/* The connection stays, and never answers again: nobody but us finds out. */
static void test_renewal_swallowed_on_a_connection_that_stays(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 3000, 5000);
    uint64_t before;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    before = proxy_answered(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_true(WAIT_FOR(proxy_answered(w->proxy) > before));
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(NEVER_MS(hf_lock_check(a) != 0, 6000));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

static void test_partition_claim_ends_by_itself(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 1000, OP_MS), *b = world_near(w);
    int64_t began = wait_fair();

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    assert_int_equal(hf_lock_timed(b, 5000, &w->err), 0);
    /* Whoever gets it, the first one's claim is over before. */
    assert_int_equal(hf_lock_check(a), HF_ELOST);
    assert_true(wait_within(began, 3000));
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    world_heal(w);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    world_is_clean(w);
}

/* ---- cut in the middle --------------------------------------------------- */

/* After each number of bytes that an answer may have. */
static void cut_answers(struct world *w, enum proxy_mode mode)
{
    hf_lock *a = world_far(w, 30000, 3000);
    uint64_t last = 0;

    world_free_for_all(w, a); /* the scripts are known: no answers but ours */
    for (long n = 0; n < 64; n++) {
        proxy_set(w->proxy, mode, n);
        if (hf_lock_timed(a, 5000, &w->err))
            fail_msg("after %ld bytes: %s", n, w->err.text);
        assert_int_equal(redis_server_do(w->redis, "HLEN n"), 1);
        assert_true(token_of(a) > last);
        last = token_of(a);
        proxy_set(w->proxy, mode, n);
        assert_int_equal(hf_lock_release(a, &w->err), 0);
        world_is_clean(w);
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
}

static void test_reset_in_the_middle_of_an_answer(void **state)
{
    cut_answers(*state, PROXY_RESET);
}

static void test_half_close_in_the_middle_of_an_answer(void **state)
{
    cut_answers(*state, PROXY_HALF_CLOSE);
}

static void test_dripping_answers(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 5000);

    proxy_set(w->proxy, PROXY_DRIP, 500);
    for (int i = 0; i < 5; i++)
        world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_both_connections_reset_while_waiting(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 1000);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 20000);
    world_has_waiter(w, "holdfast:waiters:{n}");
    for (int i = 0; i < 5; i++) {
        proxy_cut(w->proxy);
        wait_tick();
    }
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 2200));
    assert_int_equal(t->rc, 0);
    taker_end(t);
    world_is_clean(w);
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

/* ---- to and fro ---------------------------------------------------------- */

#define ROUNDS 500

static void *play(void *arg)
{
    hf_lock *lock = arg;
    intptr_t failed = 0;

    for (int i = 0; i < ROUNDS; i++)
        failed |=
            hf_lock_acquire(lock, NULL, NULL) || hf_lock_release(lock, NULL);
    return (void *)failed;
}

/* A message and an answer come by two connections: whichever is first, none
 * is lost. A lost one would cost a safety look, almost 2 s. */
static void to_and_fro(struct world *w, enum hf_fairness fair, int64_t ttl_ms)
{
    hf_lock *a = world_lock(w, w->redis->url, ttl_ms, 5000, fair);
    hf_lock *b = world_lock(w, w->redis->url, ttl_ms, 5000, fair);
    int64_t began = wait_fair();
    pthread_t thread;
    void *failed;

    assert_int_equal(pthread_create(&thread, NULL, play, a), 0);
    assert_null(play(b));
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_true(wait_within(began, 10000));
    world_is_clean(w);
}

static void test_fair_hand_overs_are_heard(void **state)
{
    to_and_fro(*state, HF_FAIR, 30000);
}

static void test_unfair_hand_overs_are_heard(void **state)
{
    to_and_fro(*state, HF_UNFAIR, 30000);
}

static void test_fair_calls_are_heard(void **state)
{
    to_and_fro(*state, HF_FAIR, 3000);
}

static void test_unfair_calls_are_heard(void **state)
{
    to_and_fro(*state, HF_UNFAIR, 3000);
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

static void test_refused_for_a_while(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 3000);
    struct taker *t;
    int64_t began = wait_fair();

    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    t = taker_start(w, a, 10000);
    assert_true(NEVER_MS(taker_back(t), 300));
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 4000));
    assert_true(wait_within(began, 5000));
    assert_int_equal(t->rc, 0);
    taker_end(t);
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
    assert_true(wait_within(began, 1000));
    opt.connect_timeout_ms = 300;
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    began = wait_fair();
    assert_int_equal(hf_open(w->far_url, &opt, &c, &w->err), HF_EBACKEND);
    assert_true(wait_within(began, 1300));
}

int run_net_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_attempt_answer_swallowed),
        T(test_attempt_swallowed),
        T(test_attempt_into_a_black_hole),
        T(test_attempt_answer_swallowed_then_adopted),
        T(test_release_answer_swallowed),
        T(test_release_swallowed_is_sent_again),
        T(test_abandon_answer_swallowed),
        T(test_renewal_swallowed_is_retried),
        T(test_renewal_swallowed_on_a_connection_that_stays),
        T(test_partition_claim_ends_by_itself),
        T(test_reset_in_the_middle_of_an_answer),
        T(test_half_close_in_the_middle_of_an_answer),
        T(test_dripping_answers),
        T(test_both_connections_reset_while_waiting),
        T(test_fair_hand_overs_are_heard),
        T(test_unfair_hand_overs_are_heard),
        T(test_fair_calls_are_heard),
        T(test_unfair_calls_are_heard),
        T(test_question_that_is_too_late),
        T(test_question_that_is_late),
        T(test_lease_shorter_than_the_way),
        T(test_refused_for_a_while),
        T(test_open_says_at_once_what_is_wrong),
    };

    return cmocka_run_group_tests_name("redis: the network", tests, NULL, NULL);
}
