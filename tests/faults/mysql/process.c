/* Holders and waiters that are killed or stopped, and a server that is
 * restarted. */
#include "mysql_faults.h"

#include <stdio.h>

GROUP("process");

enum { SHORT_MS = 2000 };

/* Returns how long the row still protects its holder, in us. */
static long long lease_left(void)
{
    return my_server_number(
        &my_one,
        "select greatest(0, timestampdiff(microsecond, utc_timestamp(6), "
        "lease_until)) from holdfast_locks where name='n'");
}

/* When the holder is killed, its connections end, which wakes the waiter. The
 * row still protects the hold until the lease ends. */
CASE(test_holder_killed)
{
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
    taker_has_it(t, SHORT_MS + 1500);
    assert_true(t->returned - at >= left_us * 1000);
    taker_gives(t);
}

CASE_IS(test_holder_stopped, any_holder_stopped(w, SHORT_MS, SHORT_MS + 1500))

/* Starts a process that waits for the lock. */
static void waiting_puppet(struct world *w, struct proc *p)
{
    struct proc_cmd open = {.op = PROC_OPEN, .ttl_ms = SHORT_MS};
    struct proc_cmd new = {.op = PROC_NEW, .name = "n", .name_len = 1};
    struct proc_cmd take = {.op = PROC_TAKE, .wait_ms = WAIT_MS};
    struct proc_reply r;

    snprintf(open.text, sizeof(open.text), "%s", w->near_url);
    OK(proc_start(p));
    OK(proc_do(p, &open, &r));
    OK(proc_do(p, &new, &r));
    OK(proc_send(p, &take));
    my_has_waiters(1);
}

/* The first waiter in the queue is killed: the server frees its place within a
 * second. */
CASE(test_first_waiter_killed)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;
    struct proc p;

    OK(hf_lock_timed(a, 5000, &w->err));
    waiting_puppet(w, &p);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(2);
    proc_kill(&p);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 1000 + SOON_MS);
}

/* The first waiter is stopped, and then its turn comes: the server ends that
 * turn, and the next waiter gets the lock. The first waiter gets the lock after
 * it has continued and the next waiter has released. */
CASE(test_first_waiter_stopped)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct proc_reply r;
    struct taker *t;
    struct proc p;

    OK(hf_lock_timed(a, 5000, &w->err));
    waiting_puppet(w, &p);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(2);
    OK(proc_stop(&p));
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, FAIR_PASS_MS);
    OK(proc_continue(&p));
    assert_false(proc_ready(&p, 300));
    taker_gives(t);
    OK(proc_recv(&p, &r, WAIT_LONG_MS));
    assert_int_equal(r.rc, 0);
    assert_true(r.token > t->token);
    OK(proc_do(&p, &(struct proc_cmd){.op = PROC_GIVE}, &r));
    assert_int_equal(r.rc, 0);
    OK(proc_end(&p));
}

/* The server is restarted: the row survives, but every GET_LOCK is lost. */
CASE(test_server_restarted)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);
    uint64_t token = token_of(a);

    my_server_kill(&my_one);
    assert_true(NEVER_MS(taker_back(t), 300));
    OK(my_server_again(&my_one));
    COMES(hf_lock_renew(a, 0, &w->err) == 0);
    assert_int_equal(token_of(a), token);
    my_has_waiters(1);
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, SOON_MS);
    assert_true(t->token > token);
    taker_gives(t);
    assert_false(world_heard_loss(w, 0));
}

CASE(test_tokens_survive)
{
    hf_lock *a = world_near(w);
    uint64_t last = 0;

    for (int i = 0; i < 3; i++) {
        COMES(hf_lock_timed(a, 1000, &w->err) == 0);
        assert_true(token_of(a) > last);
        last = token_of(a);
        OK(hf_lock_release(a, &w->err));
        my_server_kill(&my_one);
        OK(my_server_again(&my_one));
    }
}

/* The holder and the server are killed together; the waiter survives both. */
CASE(test_holder_killed_while_the_server_is_down)
{
    hf_lock *b = world_near(w);
    struct taker *t;
    struct proc p;

    any_puppet(w, &p, SHORT_MS);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    my_server_kill(&my_one);
    proc_kill(&p);
    OK(my_server_again(&my_one));
    taker_gets_it(t, SHORT_MS + 2000 + SOON_MS);
}
