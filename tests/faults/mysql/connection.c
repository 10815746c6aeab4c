/* Connections that an administrator kills, that break or that are half open:
 * the holder's, and the two connections of a waiter, for commands and for
 * waiting. */
#include "mysql_faults.h"

GROUP("connection");

/* Kills the n-th oldest connection, counted from 0, of those that wait at the
 * server or, if `waits` is false, of the others. Retries, because the client
 * may replace the connection between the query and the kill. */
static void kill_thread(bool waits, int n)
{
    long id = 0;

    COMES((id = my_thread(waits, n)) > 0 &&
          !my_server_try(&my_one, "kill %ld", id));
}

/* The holder's connection is killed. The row protects the hold, so the holder
 * keeps the lock. The waiter is still notified of the release. */
CASE(test_connection_killed_while_holding)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);
    uint64_t token = token_of(a);

    kill_thread(false, 0); /* the oldest connection is the holder's */
    assert_true(NEVER_MS(taker_back(t), 500));
    OK(hf_lock_check(a));
    COMES(hf_lock_renew(a, 0, &w->err) == 0);
    assert_int_equal(token_of(a), token);
    assert_true(NEVER_MS(taker_back(t), 300));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    assert_false(world_heard_loss(w, 0));
}

/* The release is the only request on the new connection. */
CASE(test_connection_killed_before_the_release)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);

    kill_thread(false, 0);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
}

static void killed_while_waiting(struct world *w, bool waits, bool at_once)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    OK(hf_lock_timed(a, 5000, &w->err));
    t = taker_start(w, b, WAIT_MS);
    for (int i = 0; i < 3; i++) {
        my_has_waiters(1);
        kill_thread(waits, waits ? 0 : 1);
        /* my_has_waiters() may count the killed connection for a moment longer,
         * so wait for 100 ms. */
        if (!at_once)
            assert_true(NEVER_MS(taker_back(t), 100));
    }
    OK(hf_lock_check(a));
    if (!at_once)
        my_has_waiters(1);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, at_once ? REPEAT_MS : SOON_MS);
    EXPECT(HF_ENOTOWNER, hf_lock_renew(a, 0, NULL));
}

CASE_IS(test_command_connection_killed_while_waiting,
        killed_while_waiting(w, false, false))
CASE_IS(test_waiting_connection_killed, killed_while_waiting(w, true, false))
CASE_IS(test_waiting_connection_killed_before_the_release,
        killed_while_waiting(w, true, true))

/* KILL QUERY notifies a first waiter that sleeps, but any session of the same
 * user may send KILL QUERY to any waiter. A waiter that is interrupted and
 * finds the lock held waits again. */
CASE(test_wait_is_interrupted_by_a_stranger)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    OK(hf_lock_timed(a, 5000, &w->err));
    t = taker_start(w, b, WAIT_MS);
    for (int i = 0; i < 5; i++) {
        my_has_waiters(1);
        my_server_try(&my_one, "kill query %ld", my_thread(true, 0));
        assert_true(NEVER_MS(taker_back(t), 50));
    }
    my_has_waiters(1);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
}

/* The holder's connection is half open: the holder cannot notify the waiter,
 * which checks the row when the lease ends. */
CASE(test_holder_half_open)
{
    enum { TTL_MS = 2000 };
    hf_lock *a = world_far(w, TTL_MS, 5000), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);

    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    taker_has_it(t, TTL_MS + 1500);
    EXPECT(HF_ELOST, hf_lock_check(a));
    taker_gives(t);
    world_heal(w);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
}

/* The connections of the first waiter are half open, so this waiter blocks the
 * queue until the server ends its waiting connection. The next waiter then gets
 * the lock in time. */
CASE(test_first_waiter_half_open)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 2000);
    hf_lock *c = world_near(w);
    static struct my_waiter next;
    struct taker *t = taker_behind(w, a, b, 1000);

    my_waiter_start(&next, NULL, c);
    my_has_waiters(2);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    COMES(taker_back(t));
    assert_int_not_equal(t->rc, 0);
    OK(hf_lock_release(a, &w->err));
    COMES_MS(my_waiter_back(&next), FAIR_PASS_MS);
    my_waiter_end(&next);
    assert_int_equal(next.rc, 0);
    assert_int_equal(next.release_rc, 0);
    world_heal(w);
    taker_end(t);
    world_is_clean(w);
    world_free_for_all(w, b);
}

CASE(test_both_connections_reset_while_waiting)
{
    hf_lock *a = world_near(w);

    any_cut_waiter(w, a, world_far(w, 30000, 1000));
}

/* Every waiting connection is cut as soon as it waits: the client polls in the
 * meantime and opens only a few connections. */
CASE(test_every_wait_is_cut)
{
    enum { MS = 2000, MOST = 20 };
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    uint64_t before;
    struct taker *t;

    OK(hf_lock_timed(a, 5000, &w->err));
    proxy_cut_at(w->proxy, "/*hf:");
    before = proxy_connections(w->proxy);
    t = taker_start(w, b, WAIT_MS);
    COMES(proxy_connections(w->proxy) > before + 1);
    assert_true(NEVER_MS(taker_back(t), MS));
    if (proxy_connections(w->proxy) - before > MOST)
        fail_msg("%llu connections within %d ms",
                 (unsigned long long)(proxy_connections(w->proxy) - before),
                 MS);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    proxy_cut_at(w->proxy, NULL);
}
