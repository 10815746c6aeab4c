/* Faults that a client must survive with every kind of server: replies that are
 * swallowed, late or cut in the middle, and a server that is stopped. */
#include "any_faults.h"

GROUP("any");
static const struct world_group unfair = {.name = "any",
                                          .unless = &any_faults.fair_only};

static hf_lock *far(struct world *w)
{
    return world_far(w, 30000, any_faults.op_ms);
}

static void take(struct world *w, hf_lock *lock)
{
    OK(hf_lock_timed(lock, WAIT_LONG_MS, &w->err));
}

static void lost_attempt(struct world *w, enum proxy_mode mode)
{
    hf_lock *a = far(w), *b = world_near(w);

    world_free_for_all(w, a);
    proxy_set(w->proxy, mode, 0);
    WITHIN(300 + 1000, FAILS(hf_lock_timed(a, 300, &w->err)));
    world_heal(w);
    world_free_for_all(w, b);
    world_is_clean(w);
    world_free_for_all(w, a);
}

CASE_IS(test_attempt_answer_swallowed, lost_attempt(w, PROXY_SWALLOW))
CASE_IS(test_attempt_swallowed, lost_attempt(w, PROXY_DEAF))
CASE_IS(test_attempt_into_a_black_hole, lost_attempt(w, PROXY_BLACK_HOLE))

CASE(test_release_answer_swallowed)
{
    hf_lock *a = far(w), *b = world_near(w);

    world_free_for_all(w, a);
    take(w, a);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    WITHIN(any_faults.op_ms + 1000,
           EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err)));
    EXPECT(HF_ENOTOWNER, hf_lock_check(a));
    /* The release was executed and another client holds the lock: the retried
     * release must not end that hold. */
    world_takes(w, b, 1000);
    world_heal(w);
    FAILS(hf_lock_timed(a, 300, &w->err));
    OK(hf_lock_check(b));
    assert_true(any_faults.holds(w) > 0);
    OK(hf_lock_release(b, NULL));
    EXPECT(HF_ENOTOWNER, hf_lock_release(b, NULL));
    world_free_for_all(w, a);
}

CASE(test_release_swallowed_is_sent_again)
{
    hf_lock *a = far(w), *b = world_near(w);

    take(w, a);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err));
    assert_true(any_faults.holds(w) > 0);
    world_heal(w);
    world_free_for_all(w, b);
}

CASE(test_release_nowait_swallowed_is_sent_again)
{
    hf_lock *a = far(w), *b = world_near(w);

    take(w, a);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    OK(hf_lock_release_nowait(a, &w->err));
    EXPECT(HF_EBUSY, hf_lock_try(b, NULL));
    world_heal(w);
    world_free_for_all(w, b);
}

CASE(test_abandon_swallowed)
{
    hf_lock *a = world_near(w), *b = far(w);
    struct taker *t;

    take(w, a);
    t = taker_start(w, b, 2000);
    COMES(w->server->is_waited_for(w) || taker_back(t));
    proxy_set(w->proxy, PROXY_DEAF, 0);
    COMES_MS(taker_back(t), 2000 + 1000);
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
    OK(hf_lock_release(a, NULL));
    world_heal(w);
    world_free_for_all(w, a);
    world_is_clean(w);
    world_free_for_all(w, b);
}

CASE(test_renewal_swallowed_is_retried)
{
    hf_lock *a = world_far(w, any_faults.ttl_ms, any_faults.op_ms);
    uint64_t before;

    take(w, a);
    before = proxy_sent(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    COMES(proxy_sent(w->proxy) > before);
    world_heal(w);
    world_renews(a);
    OK(hf_lock_release(a, NULL));
}

/* The connection stays open, but no reply arrives any longer. The client must
 * notice this by itself, and reconnect. */
CASE(test_silent_connection_is_given_up)
{
    hf_lock *a = world_far(w, any_faults.ttl_ms + 2500, 5000);
    uint64_t before;

    take(w, a);
    before = proxy_answered(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    COMES(proxy_answered(w->proxy) > before);
    proxy_set(w->proxy, PROXY_PASS, 0);
    world_renews(a);
    OK(hf_lock_release(a, NULL));
}

CASE(test_partition_claim_ends_by_itself)
{
    hf_lock *a = world_far(w, 1000, any_faults.op_ms), *b = world_near(w);
    int64_t began = wait_fair();

    take(w, a);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    take(w, b);
    /* The first client's hold has ended before another client gets the lock. */
    EXPECT(HF_ELOST, hf_lock_check(a));
    assert_true(wait_within(began, 1000 + any_faults.tick_ms + 1000 + 500));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_heal(w);
    OK(hf_lock_release(b, NULL));
}

CASE(test_dripping_answers)
{
    hf_lock *a = world_far(w, 30000, 5000);

    proxy_set(w->proxy, PROXY_DRIP, 500);
    for (int i = 0; i < 5; i++)
        world_free_for_all(w, a);
    proxy_set(w->proxy, PROXY_PASS, 0);
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
    proxy_set(w->proxy, PROXY_PASS, 0); /* the lost hold stays lost */
    taker_gets_it(t, within_ms);
    world_is_clean(w);
}

CASE_IS(test_refused_for_a_while,
        any_gone_for(w, PROXY_REFUSE, 30000, 300, 4000))

CASE(test_stopped_acquire_times_out_and_leaves_nothing)
{
    hf_lock *a = world_lock(w, w->near_url, 30000, 700, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);

    world_free_for_all(w, a);
    OK(server_stop(w->process));
    WITHIN(500 + 1000, FAILS(hf_lock_timed(a, 500, &w->err)));
    WITHIN(700 + 1000, FAILS(hf_lock_try(a, &w->err)));
    OK(server_continue(w->process));
    world_free_for_all(w, b);
}

/* Longer than the time by which a timed wait may exceed its limit. */
#define STANDS_MS 1500

/* A try waits for the reply of a stopped server, but not for another holder. */
static void try_meets_a_server_that_stands(
    struct world *w,
    struct taker *(*start)(struct world *, hf_lock *, int64_t wait_ms))
{
    hf_lock *a =
        world_lock(w, w->near_url, 30000, WAIT_LONG_MS, HF_FAIR_DEFAULT);
    struct taker *t;

    world_free_for_all(w, a);
    OK(server_stop(w->process));
    t = start(w, a, 0);
    assert_true(NEVER_MS(taker_back(t), STANDS_MS));
    OK(server_continue(w->process));
    taker_gets_it(t, WAIT_LONG_MS);
    world_is_clean(w);
}

CASE_IS(test_stopped_try_waits_for_the_answer,
        try_meets_a_server_that_stands(w, taker_start))
CASE_IS(test_stopped_try_of_all_waits_for_the_answer,
        try_meets_a_server_that_stands(w, taker_start_all))

static void note_result(void *arg, hf_lock *lock, int result)
{
    *(int *)arg = result;
}

CASE(test_stopped_async_try_waits_for_the_answer)
{
    int result = 1;
    hf_lock *a;

    world_free_for_all(
        w, world_lock(w, w->near_url, 30000, WAIT_LONG_MS, HF_FAIR_DEFAULT));
    OK(hf_lock_new(w->clients[0], "n", 1,
                   KIND(HF_MUTEX, .flags = HF_OWNER_HANDLE), &a, &w->err));
    OK(server_stop(w->process));
    OK(hf_lock_acquire_async(a, HOW(0), note_result, &result, NULL));
    assert_true(
        NEVER_MS(!hf_client_dispatch(w->clients[0]) && result != 1, STANDS_MS));
    OK(server_continue(w->process));
    COMES(!hf_client_dispatch(w->clients[0]) && result != 1);
    assert_int_equal(result, 0);
    OK(hf_lock_release(a, NULL));
    hf_lock_free(a);
}

CASE(test_stopped_claim_ends_at_its_deadline)
{
    hf_lock *a = world_lock(w, w->near_url, 1000, 300, HF_FAIR_DEFAULT);
    int64_t deadline;

    take(w, a);
    OK(server_stop(w->process));
    deadline = deadline_of(a);
    /* The limit is longer than the time to the deadline, because a renewal
     * whose reply is on its way may extend the lease once more. */
    COMES_MS(hf_lock_check(a) == HF_ELOST,
             (deadline - wait_now()) / 1000000 + 1300);
    OK(server_continue(w->process));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_is_clean(w);
    world_free_for_all(w, a);
}

static void *play(void *arg)
{
    hf_lock *lock = arg;
    intptr_t failed = 0;

    for (int i = 0; i < any_faults.rounds; i++)
        failed |=
            hf_lock_acquire(lock, NULL, NULL) || hf_lock_release(lock, NULL);
    return (void *)failed;
}

/* Two clients take turns. The message that notifies the waiter and the reply to
 * its request may arrive in either order. No message may be lost: a lost one
 * would cost almost 2 s, until the next safety poll. */
static void to_and_fro(struct world *w, enum hf_fairness fair, int64_t ttl_ms)
{
    hf_lock *a = world_lock(w, w->near_url, ttl_ms, 5000, fair);
    hf_lock *b = world_lock(w, w->near_url, ttl_ms, 5000, fair);
    int64_t began = wait_fair();
    pthread_t thread;
    void *failed;

    OK(pthread_create(&thread, NULL, play, a));
    assert_null(play(b));
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_true(wait_within(began, 10000));
    world_is_clean(w);
}

CASE_IS(test_fair_hand_overs_are_heard, to_and_fro(w, HF_FAIR, 30000))

CASE_OF(unfair, test_unfair_hand_overs_are_heard)
{
    to_and_fro(w, HF_UNFAIR, 30000);
}

/* On Redis a release does not hand over a lock with a TTL shorter than
 * RD_HAND_MIN_MS, as here: it only notifies the waiter, which must then acquire
 * the lock. */
CASE_IS(test_fair_calls_are_heard, to_and_fro(w, HF_FAIR, 5000))

CASE_OF(unfair, test_unfair_calls_are_heard)
{
    to_and_fro(w, HF_UNFAIR, 5000);
}
