/* The way to the server: answers swallowed, late, cut in the middle; a server
 * that is stopped. */
#include "any_faults.h"

static hf_lock *far(struct world *w)
{
    return world_far(w, 30000, any_faults.op_ms);
}

static void take(struct world *w, hf_lock *lock)
{
    if (hf_lock_timed(lock, WAIT_LONG_MS, &w->err))
        fail_msg("%s", w->err.text);
}

/* ---- the answer goes nowhere -------------------------------------------- */

static void lost_attempt(struct world *w, enum proxy_mode mode)
{
    hf_lock *a = far(w), *b = world_near(w);
    int64_t began;

    world_free_for_all(w, a);
    proxy_set(w->proxy, mode, 0);
    began = wait_fair();
    assert_int_not_equal(hf_lock_timed(a, 300, &w->err), 0);
    assert_true(wait_within(began, 300 + 1000));
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

static void test_release_answer_swallowed(void **state)
{
    struct world *w = *state;
    hf_lock *a = far(w), *b = world_near(w);
    int64_t began;

    world_free_for_all(w, a);
    take(w, a);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    began = wait_fair();
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    assert_true(wait_within(began, any_faults.op_ms + 1000));
    assert_int_equal(hf_lock_check(a), HF_ENOTOWNER);
    /* It was executed. Somebody else is in; the retry must not free that. */
    world_takes(w, b, 1000);
    world_heal(w);
    assert_int_not_equal(hf_lock_timed(a, 300, &w->err), 0);
    assert_int_equal(hf_lock_check(b), 0);
    assert_true(any_faults.holds(w) > 0);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    assert_int_equal(hf_lock_release(b, NULL), HF_ENOTOWNER);
    world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_release_swallowed_is_sent_again(void **state)
{
    struct world *w = *state;
    hf_lock *a = far(w), *b = world_near(w);

    take(w, a);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    assert_true(any_faults.holds(w) > 0);
    world_heal(w);
    world_free_for_all(w, b);
    world_is_clean(w);
}

/* Not waited for, and lost on its way. */
static void test_release_nowait_swallowed_is_sent_again(void **state)
{
    struct world *w = *state;
    hf_lock *a = far(w), *b = world_near(w);

    take(w, a);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_int_equal(hf_lock_release_nowait(a, &w->err), 0);
    assert_int_equal(hf_lock_try(b, NULL), HF_EBUSY);
    world_heal(w);
    world_free_for_all(w, b);
    world_is_clean(w);
}

static void test_abandon_swallowed(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = far(w);
    struct taker *t;

    take(w, a);
    t = taker_start(w, b, 2000);
    assert_true(WAIT_FOR(any_faults.is_waited_for(w) || taker_back(t)));
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 2000 + 1000));
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
    hf_lock *a = world_far(w, any_faults.ttl_ms, any_faults.op_ms);
    uint64_t before;

    take(w, a);
    before = proxy_sent(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_true(WAIT_FOR(proxy_sent(w->proxy) > before));
    world_heal(w);
    world_renews(a);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

/* The connection stays, and never answers again: nobody but us finds out. */
static void test_silent_connection_is_given_up(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, any_faults.ttl_ms + 2500, 5000);
    uint64_t before;

    take(w, a);
    before = proxy_answered(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_true(WAIT_FOR(proxy_answered(w->proxy) > before));
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_renews(a);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

static void test_partition_claim_ends_by_itself(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 1000, any_faults.op_ms), *b = world_near(w);
    int64_t began = wait_fair();

    take(w, a);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    take(w, b);
    /* Whoever gets it, the first one's claim is over before. */
    assert_int_equal(hf_lock_check(a), HF_ELOST);
    assert_true(wait_within(began, 1000 + any_faults.tick_ms + 1000 + 500));
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    world_heal(w);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    world_is_clean(w);
}

static void test_dripping_answers(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 5000);

    proxy_set(w->proxy, PROXY_DRIP, 500);
    for (int i = 0; i < 5; i++)
        world_free_for_all(w, a);
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_is_clean(w);
}

void any_gone_for(struct world *w, enum proxy_mode how, int64_t ttl_ms,
                  int64_t ms, int64_t within_ms)
{
    hf_lock *a = world_far(w, ttl_ms, 5000);
    struct taker *t;

    world_free_for_all(w, a);
    proxy_set(w->proxy, how, 0);
    proxy_cut(w->proxy);
    t = taker_start(w, a, 10000);
    assert_true(NEVER_MS(taker_back(t), ms));
    proxy_set(w->proxy, PROXY_PASS, 0); /* what was lost stays lost */
    taker_gets_it(t, within_ms);
    world_is_clean(w);
}

static void test_refused_for_a_while(void **state)
{
    any_gone_for(*state, PROXY_REFUSE, 30000, 300, 4000);
}

/* ---- stopped ------------------------------------------------------------- */

static void test_stopped_acquire_times_out_and_leaves_nothing(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->near_url, 30000, 700, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    int64_t began;

    world_free_for_all(w, a);
    assert_int_equal(any_faults.stop(w), 0);
    began = wait_fair();
    assert_int_not_equal(hf_lock_timed(a, 500, &w->err), 0);
    assert_true(wait_within(began, 500 + 1000));
    began = wait_fair();
    assert_int_not_equal(hf_lock_try(a, &w->err), 0);
    assert_true(wait_within(began, 700 + 1000));
    assert_int_equal(any_faults.go_on(w), 0);
    world_free_for_all(w, b);
    world_is_clean(w);
}

/* Longer than a timed wait may be late. */
#define STANDS_MS 1500

/* A try waits for no other holder, but for the server's answer. */
static void try_meets_a_server_that_stands(
    struct world *w,
    struct taker *(*start)(struct world *, hf_lock *, int64_t wait_ms))
{
    hf_lock *a =
        world_lock(w, w->near_url, 30000, WAIT_LONG_MS, HF_FAIR_DEFAULT);
    struct taker *t;

    world_free_for_all(w, a);
    assert_int_equal(any_faults.stop(w), 0);
    t = start(w, a, 0);
    assert_true(NEVER_MS(taker_back(t), STANDS_MS));
    assert_int_equal(any_faults.go_on(w), 0);
    taker_gets_it(t, WAIT_LONG_MS);
    world_is_clean(w);
}

static void test_stopped_try_waits_for_the_answer(void **state)
{
    try_meets_a_server_that_stands(*state, taker_start);
}

static void test_stopped_try_of_all_waits_for_the_answer(void **state)
{
    try_meets_a_server_that_stands(*state, taker_start_all);
}

static void note_result(void *arg, hf_lock *lock, int result)
{
    (void)lock;
    *(int *)arg = result;
}

static void test_stopped_async_try_waits_for_the_answer(void **state)
{
    struct world *w = *state;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock_options own = HF_LOCK_OPTIONS_INIT;
    int result = 1;
    hf_lock *a;

    world_free_for_all(
        w, world_lock(w, w->near_url, 30000, WAIT_LONG_MS, HF_FAIR_DEFAULT));
    own.flags = HF_OWNER_HANDLE;
    assert_int_equal(hf_lock_new(w->clients[0], "n", 1, &own, &a, &w->err), 0);
    assert_int_equal(any_faults.stop(w), 0);
    opt.wait_ms = 0;
    assert_int_equal(hf_lock_acquire_async(a, &opt, note_result, &result, NULL),
                     0);
    assert_true(
        NEVER_MS(!hf_client_dispatch(w->clients[0]) && result != 1, STANDS_MS));
    assert_int_equal(any_faults.go_on(w), 0);
    assert_true(WAIT_FOR(!hf_client_dispatch(w->clients[0]) && result != 1));
    assert_int_equal(result, 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    hf_lock_free(a);
    world_is_clean(w);
}

static void test_stopped_claim_ends_at_its_deadline(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->near_url, 1000, 300, HF_FAIR_DEFAULT);
    int64_t deadline;

    take(w, a);
    assert_int_equal(any_faults.stop(w), 0);
    deadline = deadline_of(a);
    /* A renewal may have been on its way back; then at the next deadline. */
    assert_true(WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST,
                            (deadline - wait_now()) / 1000000 + 1300));
    assert_int_equal(any_faults.go_on(w), 0);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    world_is_clean(w);
    world_free_for_all(w, a);
    world_is_clean(w);
}

/* ---- to and fro ---------------------------------------------------------- */

static void *play(void *arg)
{
    hf_lock *lock = arg;
    intptr_t failed = 0;

    for (int i = 0; i < any_faults.rounds; i++)
        failed |=
            hf_lock_acquire(lock, NULL, NULL) || hf_lock_release(lock, NULL);
    return (void *)failed;
}

/* A message and an answer come as they like, and none is lost: a lost one would
 * cost a safety look, almost 2 s. */
static void to_and_fro(struct world *w, enum hf_fairness fair, int64_t ttl_ms)
{
    hf_lock *a = world_lock(w, w->near_url, ttl_ms, 5000, fair);
    hf_lock *b = world_lock(w, w->near_url, ttl_ms, 5000, fair);
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

/* With a lease too short to hand anything over: who waits is called. */
static void test_fair_calls_are_heard(void **state)
{
    to_and_fro(*state, HF_FAIR, 5000);
}

static void test_unfair_calls_are_heard(void **state)
{
    to_and_fro(*state, HF_UNFAIR, 5000);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, any_faults.setup, world_end)

int run_any_faults(void)
{
    const struct CMUnitTest tests[] = {
        T(test_attempt_answer_swallowed),
        T(test_attempt_swallowed),
        T(test_attempt_into_a_black_hole),
        T(test_release_answer_swallowed),
        T(test_release_swallowed_is_sent_again),
        T(test_release_nowait_swallowed_is_sent_again),
        T(test_abandon_swallowed),
        T(test_renewal_swallowed_is_retried),
        T(test_silent_connection_is_given_up),
        T(test_partition_claim_ends_by_itself),
        T(test_dripping_answers),
        T(test_refused_for_a_while),
        T(test_stopped_acquire_times_out_and_leaves_nothing),
        T(test_stopped_try_waits_for_the_answer),
        T(test_stopped_try_of_all_waits_for_the_answer),
        T(test_stopped_async_try_waits_for_the_answer),
        T(test_stopped_claim_ends_at_its_deadline),
        T(test_fair_hand_overs_are_heard),
        T(test_fair_calls_are_heard),
        T(test_unfair_hand_overs_are_heard), /* fair_only: not these two */
        T(test_unfair_calls_are_heard),
    };
    size_t len = sizeof(tests) / sizeof(*tests);

    return _cmocka_run_group_tests("any server", tests,
                                   any_faults.fair_only ? len - 2 : len,
                                   any_faults.begin, any_faults.end);
}
