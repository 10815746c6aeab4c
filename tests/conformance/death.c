/* Holders and waiters are killed, are stopped, or exit; their locks become
 * free. */
#include "conf.h"

#include <signal.h>

#define MS ((int64_t)1000000)
#define DEATHS 5

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* Returns how many deaths a case causes: only a few if a death is noticed only
 * when the lease ends. */
static int deaths(void)
{
    return conf.local ? DEATHS : 3;
}

/* Asserts that the median is within the bound, and the longest time within the
 * bound plus one second, because a loaded machine may be late once. */
static void check_bound(int64_t *took, int n, int64_t bound_ms)
{
    qsort(took, (size_t)n, sizeof(*took), compare);
    if (took[n / 2] > bound_ms * MS || took[n - 1] > (bound_ms + 1000) * MS)
        print_error("free after %lld to %lld ms, median %lld; at most "
                    "%lld allowed\n",
                    (long long)(took[0] / MS), (long long)(took[n - 1] / MS),
                    (long long)(took[n / 2] / MS), (long long)bound_ms);
    assert_true(took[n / 2] <= bound_ms * MS);
    assert_true(took[n - 1] <= (bound_ms + 1000) * MS);
}

/* Makes a puppet hold the lock and a thread wait for it. Returns false if the
 * hold ended before the thread waited, because the machine stalled; the lock is
 * then free and the thread has ended. */
static bool waits_behind(struct proc *p, struct conf_taker *t,
                         struct proc_reply *r)
{
    OK(conf_puppet_take(p, WAIT_LONG_MS, 0, r));
    conf_taker_start(t, t->lock);
    conf_thread_asleep(&t->t);
    if (!conf_taker_has(t))
        return true;
    EXPECT(HF_ELOST, conf_puppet_do(p, PROC_CHECK, NULL));
    EXPECT(HF_ELOST, conf_puppet_do(p, PROC_GIVE, NULL));
    conf_taker_end(t);
    return false;
}

/* Kills the holder while a thread waits; returns how long the waiter took to
 * get the lock. */
static int64_t killed_holder(hf_lock *lock, const char *name, int64_t ttl_ms)
{
    struct proc_reply r;
    struct conf_taker t = {.lock = lock};
    int64_t killed, took;
    struct proc p = conf_puppet(name, ttl_ms);

    COMES(waits_behind(&p, &t, &r));
    killed = wait_fair();
    proc_kill(&p);
    COMES(conf_taker_has(&t));
    took = wait_fair() - killed;
    assert_true(t.token > r.token);
    conf_taker_ends(&t, 0);
    return took;
}

CONF_CASE(test_death_of_a_holder_frees_the_lock_in_time, CONF_EACH)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    const int64_t ttl_ms = conf.session ? 1000 : 600;
    int64_t took[DEATHS] = {0};

    for (int i = 0; i < deaths(); i++)
        took[i] = killed_holder(lock, name, ttl_ms);
    check_bound(took, deaths(), conf_death_ms(ttl_ms));
}

/* A holder dies while no client waits. A client that tries to acquire
 * afterwards succeeds within conf_death_ms() and a second. */
CONF_CASE(test_death_of_a_holder_is_found_by_who_comes_later, CONF_EACH)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    struct proc_reply r;
    struct proc p = conf_puppet(name, 600);

    OK(conf_puppet_take(&p, WAIT_LONG_MS, 0, &r));
    proc_kill(&p);
    COMES_MS(hf_lock_try(lock, NULL) == 0, conf_death_ms(600) + 1000);
    assert_true(conf_token(lock) > r.token);
    OK(hf_lock_release(lock, E));
}

/* A holder calls exit() without closing its client. This must have the same
 * effect as any other death. */
CONF_CASE(test_death_by_exit_frees_the_lock, CONF_EACH)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    struct proc_cmd cmd = {.op = PROC_EXIT};
    struct proc_reply r;
    struct proc p = conf_puppet(name, 600);

    OK(conf_puppet_take(&p, WAIT_LONG_MS, 0, &r));
    assert_int_equal(proc_send(&p, &cmd), 0);
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    assert_true(conf_token(lock) > r.token);
    OK(hf_lock_release(lock, E));
    proc_kill(&p);
}

/* Kills `dead` waiters while they are in the queue ahead of a live one. Each
 * dead waiter must be skipped. Returns how long after the release the live
 * waiter got the lock. */
static int64_t killed_waiters(const char *name, hf_lock *held, hf_lock *wanted,
                              int dead)
{
    struct proc p[3];
    struct conf_taker t;
    int64_t released, took;

    OK(hf_lock_timed(held, WAIT_LONG_MS, E));
    for (int i = 0; i < dead; i++) {
        p[i] = conf_puppet(name, 2000);
        conf_puppet_wait(&p[i]);
    }
    conf_taker_wait(&t, wanted, HF_WRITE, 0);
    for (int i = 0; i < dead; i++)
        proc_kill(&p[i]);
    released = wait_fair();
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&t));
    took = wait_fair() - released;
    conf_taker_ends(&t, 0);
    return took;
}

CONF_CASE(test_death_of_a_waiter_holds_nobody_up, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *held = conf_lock(a, name), *wanted = conf_lock(b, name);
    int64_t took[DEATHS] = {0};

    for (int i = 0; i < deaths(); i++)
        took[i] = killed_waiters(name, held, wanted, 1);
    check_bound(took, deaths(), conf_death_ms(2000));
}

CONF_CASE(test_death_of_three_waiters_holds_nobody_up, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *held = conf_lock(a, name), *wanted = conf_lock(b, name);

    assert_true(killed_waiters(name, held, wanted, 3) <=
                (conf_death_ms(2000) + 1000) * MS);
}

/* Makes one puppet hold the lock and another wait for it. Returns false if the
 * hold ended before the second one waited. */
static bool waits_behind_another(struct proc *waiter, struct proc *holder,
                                 struct proc_reply *r)
{
    OK(conf_puppet_take(holder, HF_FOREVER, 0, r));
    if (conf_puppet_waits(waiter, HF_WRITE, 0))
        return true;
    EXPECT(HF_ELOST, conf_puppet_do(holder, PROC_CHECK, NULL));
    EXPECT(HF_ELOST, conf_puppet_do(holder, PROC_GIVE, NULL));
    conf_puppet_answer(waiter, r);
    OK(r->rc);
    conf_puppet_do(waiter, PROC_GIVE, NULL);
    return false;
}

/* A holder dies together with the first waiter in the queue. */
CONF_CASE(test_death_of_holder_and_next_waiter, CONF_EACH)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    struct proc_reply r;
    struct conf_taker t;
    struct proc holder = conf_puppet(name, 1000);
    struct proc waiter = conf_puppet(name, 1000);

    COMES(waits_behind_another(&waiter, &holder, &r));
    conf_taker_wait(&t, lock, HF_WRITE, 0);
    kill(holder.pid, SIGKILL);
    kill(waiter.pid, SIGKILL);
    proc_kill(&holder);
    proc_kill(&waiter);
    COMES(conf_taker_has(&t));
    assert_true(t.token > r.token);
    conf_taker_ends(&t, 0);
}

static void stopped_says_lost(struct proc *p)
{
    struct proc_cmd renew = {.op = PROC_RENEW};
    struct proc_reply r;

    assert_int_equal(proc_continue(p), 0);
    EXPECT(HF_ELOST, conf_puppet_do(p, PROC_CHECK, NULL));
    EXPECT(HF_ELOST, conf_puppet_do(p, PROC_TOKEN, NULL));
    assert_int_equal(proc_do(p, &renew, &r), 0);
    EXPECT(HF_ELOST, r.rc);
    EXPECT(HF_ELOST, conf_puppet_do(p, PROC_GIVE, NULL));
}

CONF_CASE(test_death_stopped_past_its_lease_is_lost, CONF_EACH | CONF_LEASE)
{
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *lock = conf_lock(a, name), *third = conf_lock(b, name);
    struct proc_reply r;
    struct proc p = conf_puppet(name, conf.session ? 700 : 0);

    OK(conf_puppet_take(&p, WAIT_LONG_MS, 700, &r));
    assert_int_equal(proc_stop(&p), 0);
    OK(conf_take_within(lock, HF_WRITE, 0, 700 + conf.tick_ms + 1000));
    assert_true(conf_token(lock) > r.token);
    stopped_says_lost(&p);
    EXPECT(HF_EBUSY, hf_lock_try(third, E)); /* `lock` is still held */
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
    OK(conf_puppet_take(&p, WAIT_LONG_MS, 0, &r));
    assert_int_equal(proc_end(&p), 0);
}

/* A holder without a fixed lease is stopped. Where holds are leases the holder
 * loses its hold; in shared memory it keeps its hold, because it has not
 * died. */
CONF_CASE(test_death_stopped_without_a_lease, CONF_EACH)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    struct proc_reply r;
    struct proc p = conf_puppet(name, 700);

    OK(conf_puppet_take(&p, WAIT_LONG_MS, 0, &r));
    assert_int_equal(proc_stop(&p), 0);
    if (conf.local) {
        EXPECT(HF_ETIMEDOUT, hf_lock_timed(lock, 1500, E));
        assert_int_equal(proc_continue(&p), 0);
        OK(conf_puppet_do(&p, PROC_CHECK, NULL));
        OK(conf_puppet_do(&p, PROC_GIVE, NULL));
        OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    } else {
        OK(conf_take_within(lock, HF_WRITE, 0, conf_death_ms(700)));
        stopped_says_lost(&p);
    }
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
    assert_int_equal(proc_end(&p), 0);
}
