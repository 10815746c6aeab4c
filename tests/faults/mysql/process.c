/* Processes that are killed or stopped, as holders and as waiters, and a server
 * that is restarted. */
#include "mysql_faults.h"

#include <stdio.h>

enum { SHORT_MS = 2000 };

/* How long the row protects its holder from now on, in us. */
static long long lease_left(void)
{
    return my_server_number(
        &my_one,
        "select greatest(0, timestampdiff(microsecond, utc_timestamp(6), "
        "lease_until)) from holdfast_locks where name='n'");
}

/* Its connections end with it, and wake the waiter. The row keeps the waiter
 * out until the lease is over. */
static void test_holder_killed(void **state)
{
    struct world *w = *state;
    hf_lock *b = world_near(w);
    long long left_us;
    struct taker *t;
    struct proc p;
    int64_t at;

    any_puppet(w, &p, SHORT_MS);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    proc_kill(&p);
    at = wait_now();
    left_us = lease_left();
    assert_true(left_us > 0);
    assert_true(WAIT_FOR_MS(taker_back(t), SHORT_MS + 1500));
    assert_int_equal(t->rc, 0);
    assert_true(t->returned - at >= left_us * 1000);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

/* What it says when it goes on comes too late, and it knows. */
static void test_holder_stopped(void **state)
{
    static const enum proc_op late[] = {PROC_RENEW, PROC_CHECK, PROC_GIVE};
    struct world *w = *state;
    hf_lock *b = world_near(w);
    struct proc_reply r;
    struct taker *t;
    struct proc p;

    any_puppet(w, &p, SHORT_MS);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    assert_int_equal(proc_stop(&p), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), SHORT_MS + 1500));
    assert_int_equal(proc_continue(&p), 0);
    for (size_t i = 0; i < sizeof(late) / sizeof(*late); i++) {
        assert_int_equal(proc_do(&p, &(struct proc_cmd){.op = late[i]}, &r), 0);
        assert_int_equal(r.rc, HF_ELOST);
    }
    assert_int_equal(any_faults.holds(w), 1);
    assert_int_equal(hf_lock_check(b), HF_ENOTOWNER); /* its thread has it */
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_int_equal(proc_end(&p), 0);
    world_is_clean(w);
}

/* A process that has begun to wait for the lock. */
static void waiting_puppet(struct world *w, struct proc *p)
{
    struct proc_cmd open = {.op = PROC_OPEN, .ttl_ms = SHORT_MS};
    struct proc_cmd new = {.op = PROC_NEW, .name = "n", .name_len = 1};
    struct proc_cmd take = {.op = PROC_TAKE, .wait_ms = WAIT_MS};
    struct proc_reply r;

    snprintf(open.text, sizeof(open.text), "%s", w->near_url);
    assert_int_equal(proc_start(p), 0);
    assert_int_equal(proc_do(p, &open, &r), 0);
    assert_int_equal(proc_do(p, &new, &r), 0);
    assert_int_equal(proc_send(p, &take), 0);
    my_has_waiters(1);
}

/* The first in the queue dies: the server frees its place within a second. */
static void test_first_waiter_killed(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;
    struct proc p;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    waiting_puppet(w, &p);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(2);
    proc_kill(&p);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 1000 + SOON_MS);
    world_is_clean(w);
}

/* It has the queue and the bell, and does not come. The server ends its turn;
 * the first gets the lock when it goes on, after the next one. */
static void test_first_waiter_stopped(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct proc_reply r;
    struct taker *t;
    struct proc p;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    waiting_puppet(w, &p);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(2);
    assert_int_equal(proc_stop(&p), 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), FAIR_PASS_MS));
    assert_int_equal(t->rc, 0);
    assert_int_equal(proc_continue(&p), 0);
    assert_false(proc_ready(&p, 300));
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_int_equal(proc_recv(&p, &r, WAIT_LONG_MS), 0);
    assert_int_equal(r.rc, 0);
    assert_true(r.token > t->token);
    assert_int_equal(proc_do(&p, &(struct proc_cmd){.op = PROC_GIVE}, &r), 0);
    assert_int_equal(r.rc, 0);
    assert_int_equal(proc_end(&p), 0);
    world_is_clean(w);
}

/* ---- the server -----------------------------------------------------------
 */

/* The row is there when the server is back, and every GET_LOCK is gone. */
static void test_server_restarted(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    uint64_t token;
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    token = token_of(a);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    my_server_kill(&my_one);
    assert_true(NEVER_MS(taker_back(t), 300));
    assert_int_equal(my_server_again(&my_one), 0);
    assert_true(WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0));
    assert_int_equal(token_of(a), token);
    my_has_waiters(1);
    assert_false(taker_back(t));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), SOON_MS));
    assert_int_equal(t->rc, 0);
    assert_true(t->token > token);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_false(world_heard_loss(w, 0));
    world_is_clean(w);
}

/* Tokens rise, whatever was restarted. */
static void test_tokens_survive(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    uint64_t last = 0;

    for (int i = 0; i < 3; i++) {
        assert_true(WAIT_FOR(hf_lock_timed(a, 1000, &w->err) == 0));
        assert_true(token_of(a) > last);
        last = token_of(a);
        assert_int_equal(hf_lock_release(a, &w->err), 0);
        my_server_kill(&my_one);
        assert_int_equal(my_server_again(&my_one), 0);
    }
    world_is_clean(w);
}

/* The holder and the server die together; the waiter outlives both. */
static void test_holder_killed_while_the_server_is_down(void **state)
{
    struct world *w = *state;
    hf_lock *b = world_near(w);
    struct taker *t;
    struct proc p;

    any_puppet(w, &p, SHORT_MS);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    my_server_kill(&my_one);
    proc_kill(&p);
    assert_int_equal(my_server_again(&my_one), 0);
    taker_gets_it(t, SHORT_MS + 2000 + SOON_MS);
    world_is_clean(w);
}

int run_process_faults(void)
{
    const struct CMUnitTest tests[] = {
        MY_CASE(test_holder_killed),
        MY_CASE(test_holder_stopped),
        MY_CASE(test_first_waiter_killed),
        MY_CASE(test_first_waiter_stopped),
        MY_CASE(test_server_restarted),
        MY_CASE(test_tokens_survive),
        MY_CASE(test_holder_killed_while_the_server_is_down),
    };

    return cmocka_run_group_tests_name("mysql: processes", tests, my_group,
                                       my_group_end);
}
