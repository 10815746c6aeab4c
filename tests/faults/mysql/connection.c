/* Connections that an administrator kills, that break, and that are half open:
 * of a holder, and of a waiter the one for commands and the one that waits. */
#include "mysql_faults.h"

/* The n-th connection of those that wait, or of the others. It may be gone, and
 * another one be there, between two looks. */
static void kill_thread(bool waits, int n)
{
    long id = 0;

    assert_true(WAIT_FOR((id = my_thread(waits, n)) > 0 &&
                         !my_server_try(&my_one, "kill %ld", id)));
}

/* The row protects the holder, who keeps the lock; the one who waits is told
 * nevertheless when it is released. */
static void test_connection_killed_while_holding(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    uint64_t token;
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    token = token_of(a);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    kill_thread(false, 0); /* the first client was opened first */
    assert_true(NEVER_MS(taker_back(t), 500));
    assert_int_equal(hf_lock_check(a), 0);
    assert_true(WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0));
    assert_int_equal(token_of(a), token);
    assert_true(NEVER_MS(taker_back(t), 300));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, SOON_MS);
    assert_false(world_heard_loss(w, 0));
    world_is_clean(w);
}

/* Nothing but the release comes over the new connection. */
static void test_connection_killed_before_the_release(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    kill_thread(false, 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, SOON_MS);
    world_is_clean(w);
}

static void killed_while_waiting(struct world *w, bool waits, bool at_once)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, WAIT_MS);
    for (int i = 0; i < 3; i++) {
        my_has_waiters(1);
        kill_thread(waits, waits ? 0 : 1);
        if (!at_once) /* the killed one may still be seen */
            assert_true(NEVER_MS(taker_back(t), 100));
    }
    assert_int_equal(hf_lock_check(a), 0);
    if (!at_once)
        my_has_waiters(1);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, at_once ? REPEAT_MS : SOON_MS);
    assert_int_equal(hf_lock_renew(a, 0, NULL), HF_ENOTOWNER);
    world_is_clean(w);
}

static void test_command_connection_killed_while_waiting(void **state)
{
    killed_while_waiting(*state, false, false);
}

static void test_waiting_connection_killed(void **state)
{
    killed_while_waiting(*state, true, false);
}

static void test_waiting_connection_killed_before_the_release(void **state)
{
    killed_while_waiting(*state, true, true);
}

/* KILL QUERY tells the first waiter to look, and anybody of that user may say
 * it: a waiter that finds nothing waits on. */
static void test_wait_is_interrupted_by_a_stranger(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, WAIT_MS);
    for (int i = 0; i < 5; i++) {
        my_has_waiters(1);
        my_server_try(&my_one, "kill query %ld", my_thread(true, 0));
        assert_true(NEVER_MS(taker_back(t), 50));
    }
    my_has_waiters(1);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, SOON_MS);
    world_is_clean(w);
}

/* ---- half open ------------------------------------------------------------
 */

/* Its bell is never rung: the waiter looks when the lease ends. */
static void test_holder_half_open(void **state)
{
    enum { TTL_MS = 2000 };
    struct world *w = *state;
    hf_lock *a = world_far(w, TTL_MS, 5000), *b = world_near(w);
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    assert_true(WAIT_FOR_MS(taker_back(t), TTL_MS + 1500));
    assert_int_equal(t->rc, 0);
    assert_int_equal(hf_lock_check(a), HF_ELOST);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_heal(w);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    world_is_clean(w);
}

/* It has the queue until the server ends its connection, which says nothing. */
static void test_first_waiter_half_open(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 2000);
    hf_lock *c = world_near(w);
    static struct my_waiter next;
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, 1000);
    my_has_waiters(1);
    my_waiter_start(&next, NULL, c);
    my_has_waiters(2);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_not_equal(t->rc, 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(WAIT_FOR_MS(my_waiter_back(&next), FAIR_PASS_MS));
    my_waiter_end(&next);
    assert_int_equal(next.rc, 0);
    assert_int_equal(next.release_rc, 0);
    world_heal(w);
    taker_end(t);
    world_is_clean(w);
    world_free_for_all(w, b);
}

/* ---- broken ---------------------------------------------------------------
 */

static void test_reset_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 3000), PROXY_RESET, 120,
                    7);
}

static void test_half_close_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 3000), PROXY_HALF_CLOSE,
                    120, 7);
}

static void test_both_connections_reset_while_waiting(void **state)
{
    hf_lock *a = world_near(*state);

    any_cut_waiter(*state, a, world_far(*state, 30000, 1000));
}

/* Every connection for waiting is cut as soon as it waits: the client polls
 * meanwhile, and makes few of them. */
static void test_every_wait_is_cut(void **state)
{
    enum { MS = 2000, MOST = 20 };
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    uint64_t before;
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    proxy_cut_at(w->proxy, "/*hf:");
    before = proxy_connections(w->proxy);
    t = taker_start(w, b, WAIT_MS);
    assert_true(WAIT_FOR(proxy_connections(w->proxy) > before + 1));
    assert_true(NEVER_MS(taker_back(t), MS));
    if (proxy_connections(w->proxy) - before > MOST)
        fail_msg("%llu connections within %d ms",
                 (unsigned long long)(proxy_connections(w->proxy) - before),
                 MS);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, SOON_MS);
    proxy_cut_at(w->proxy, NULL);
    world_is_clean(w);
}

int run_connection_faults(void)
{
    const struct CMUnitTest tests[] = {
        MY_CASE(test_connection_killed_while_holding),
        MY_CASE(test_connection_killed_before_the_release),
        MY_CASE(test_command_connection_killed_while_waiting),
        MY_CASE(test_waiting_connection_killed),
        MY_CASE(test_waiting_connection_killed_before_the_release),
        MY_CASE(test_wait_is_interrupted_by_a_stranger),
        MY_CASE(test_holder_half_open),
        MY_CASE(test_first_waiter_half_open),
        MY_CASE(test_reset_in_the_middle_of_an_answer),
        MY_CASE(test_half_close_in_the_middle_of_an_answer),
        MY_CASE(test_both_connections_reset_while_waiting),
        MY_CASE(test_every_wait_is_cut),
    };

    return cmocka_run_group_tests_name("mysql: connections", tests, my_group,
                                       my_group_end);
}
