/* How long a hold lasts: the deadline, renewal, fixed leases, max_hold. */
#include "conf.h"

#define MS ((int64_t)1000000)

CONF_CASE(test_lease_deadline_counts_from_the_sending, CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open_long(), conf_name());
    int64_t before, after, deadline;

    for (int i = 0; i < 10; i++) {
        before = wait_now();
        OK(conf_take_lease(lock, HF_FOREVER, 60000));
        after = wait_now();
        deadline = conf_deadline(lock);
        /* The deadline has a margin, so that it is never later than the end of
         * the lease at the server. */
        assert_true(deadline < after + 60000 * MS);
        assert_true(deadline > before + 60000 * MS * 9 / 10);
        OK(hf_lock_release(lock, E));
    }
}

CONF_CASE(test_lease_of_a_waiter_counts_from_its_grant, CONF_EACH | CONF_LEASE)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    struct proc_reply r;
    struct proc_cmd cmd = {.op = PROC_TAKE,
                           .wait_ms = HF_FOREVER,
                           .lease_ms = 10000,
                           .announce = true};
    int64_t released;
    struct proc p = conf_puppet(name, 0);

    OK(hf_lock_acquire(lock, NULL, E));
    assert_int_equal(proc_do(&p, &cmd, &r), 0);
    assert_true(wait_asleep(p.pid, p.pid));
    released = wait_now();
    COMES(wait_ms_since(released) > 500);
    released = wait_now();
    OK(hf_lock_release(lock, E));
    conf_puppet_answer(&p, &r);
    OK(r.rc);
    assert_true(r.deadline < r.returned + 10000 * MS);
    assert_true(r.deadline > released + 10000 * MS * 98 / 100);
    assert_int_equal(proc_end(&p), 0);
}

/* Two handles of one client wait with leases of different lengths, and the
 * first gives up. The server may grant the lock with the first handle's lease.
 * The second handle must then use that length, not the one that it
 * requested. */
static void grant_after_another(enum hf_kind kind)
{
    hf_client *a = conf_open(), *b = conf_open_long();
    const char *name = conf_name();
    hf_lock *held = conf_lock_of(a, name, kind, 0, 0);
    hf_lock_options opt =
        LOCK_OPTIONS(.kind = kind, .flags = HF_OWNER_HANDLE, .ttl_ms = 6000);
    struct conf_taker first = {0}, second = {0};
    hf_cancel cancel = HF_CANCEL_INIT;
    hf_lock *brief, *lasting;
    hf_info *info;
    int64_t deadline;

    brief = conf_lock_with(b, name, &opt);
    opt.ttl_ms = 60000;
    lasting = conf_lock_with(b, name, &opt);
    OK(hf_lock_acquire(held, NULL, E));
    first.opt = (hf_acquire_options)HF_ACQUIRE_OPTIONS_INIT;
    first.opt.cancel = &cancel;
    conf_taker_start(&first, brief);
    conf_thread_asleep(&first.t);
    conf_taker_start(&second, lasting);
    conf_thread_asleep(&second.t);
    hf_cancel_fire(&cancel);
    conf_taker_ends(&first, HF_ECANCELED);
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&second));
    deadline = conf_deadline(lasting);
    info = conf_inspect(a, name);
    assert_int_equal(info->holders_len, 1);
    if (info->holders[0].left_ms >= 0)
        assert_true(deadline <
                    wait_now() + (info->holders[0].left_ms + 1) * MS);
    conf_taker_ends(&second, 0);
}

CONF_ROW(test_lease_is_that_of_whoever_has_it, CONF_EACH | CONF_INSPECT,
         grant_after_another(HF_MUTEX));
CONF_ROW(test_lease_is_that_of_whoever_writes,
         CONF_EACH | CONF_INSPECT | CONF_RWLOCK,
         grant_after_another(HF_RWLOCK));

/* Returns whether the hold has a deadline after `then`, which shows that it was
 * renewed. */
static bool moved_past(hf_lock *lock, int64_t then)
{
    int64_t deadline = 0;

    return hf_lock_deadline(lock, &deadline) == 0 && deadline > then;
}

CONF_CASE(test_lease_watchdog_keeps_the_hold_past_its_ttl, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open_ttl(CONF_KEPT_TTL_MS), conf_name());
    hf_lock *other = conf_rival(lock, 0);
    int64_t taken = wait_now();
    uint64_t token;

    OK(hf_lock_acquire(lock, NULL, E));
    token = conf_token(lock);
    COMES(moved_past(lock, taken + CONF_KEPT_MS * MS));
    COMES(wait_now() > taken + CONF_KEPT_MS * MS);
    OK(hf_lock_check(lock));
    assert_true(conf_token(lock) == token);
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    OK(hf_lock_release(lock, E));
    conf_comes_free(other);
}

CONF_CASE(test_lease_ttl_of_the_lock_overrides_the_client, CONF_EACH)
{
    const int64_t ttl_ms = conf.session ? 900 : CONF_KEPT_TTL_MS;
    hf_client *c = conf_open();
    hf_lock_options opt = LOCK_OPTIONS(.ttl_ms = ttl_ms);
    hf_lock *lock;
    int64_t taken = wait_now();

    lock = conf_lock_with(c, conf_name(), &opt);
    OK(hf_lock_acquire(lock, NULL, E));
    if (conf_deadline(lock) != HF_NO_DEADLINE && !conf.session)
        assert_true(conf_deadline(lock) < wait_now() + ttl_ms * MS);
    COMES(wait_now() > taken + (ttl_ms + 500) * MS);
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}

/* A waiting thread that reads the client's connection is stopped for a while,
 * as can happen to a thread of low priority. The client's other holds must
 * survive. */
CONF_CASE(test_lease_is_renewed_beside_a_driver_that_stands, CONF_EACH)
{
    hf_client *a = conf_open_ttl(conf.session ? CONF_KEPT_TTL_MS : 60000);
    hf_client *b = conf_open_long();
    const char *name = conf_name();
    hf_lock *wanted = conf_lock(a, name), *other = conf_lock(b, name), *lock;
    hf_lock_options opt = LOCK_OPTIONS(.ttl_ms = CONF_KEPT_TTL_MS);
    struct conf_taker driver;
    int64_t taken;

    lock = conf_lock_with(a, conf_name(), &opt);
    OK(hf_lock_acquire(other, NULL, E));
    OK(hf_lock_acquire(lock, NULL, E));
    conf_taker_wait(&driver, wanted, HF_WRITE, 0);
    conf_thread_stand(&driver.t);
    taken = wait_now();
    COMES(wait_now() > taken + (CONF_KEPT_MS + 1000) * MS);
    OK(hf_lock_check(lock));
    conf_thread_go_on();
    OK(hf_lock_release(other, E));
    COMES(conf_taker_has(&driver));
    conf_taker_end(&driver);
    OK(hf_lock_release(lock, E));
}

/* A client renews many holds together, and all survive. The TTL is long enough
 * for a helper thread that waits three seconds for a processor. */
CONF_CASE(test_lease_watchdog_keeps_many_holds, CONF_EACH)
{
    enum { MANY = 300, TTL = 4500 };
    hf_client *c = conf_open_ttl(TTL);
    static hf_lock *lock[MANY];
    int64_t taken;

    for (int i = 0; i < MANY; i++) {
        lock[i] = conf_lock(c, conf_name());
        OK(hf_lock_acquire(lock[i], NULL, E));
    }
    taken = wait_now();
    COMES(wait_now() > taken + (TTL + 500) * MS);
    for (int i = 0; i < MANY; i++) {
        OK(hf_lock_check(lock[i]));
        OK(hf_lock_release(lock[i], E));
        conf_free(lock[i]);
    }
}

CONF_CASE(test_lease_fixed_ends_by_itself, CONF_EACH | CONF_LEASE)
{
    const int64_t ttl_ms = conf.session ? 2000 : 200;
    hf_client *a = conf_open_ttl(ttl_ms), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);
    int64_t taken = wait_now(), deadline = 0;

    OK(conf_take_lease(lock, HF_FOREVER, 500));
    HELD(taken, 500, hf_lock_check(lock));
    HELD(taken, 500, hf_lock_deadline(lock, &deadline));
    assert_true(deadline < wait_now() + 500 * MS);
    OK(conf_take_within(other, HF_WRITE, 0,
                        500 + 1000)); /* although client a still runs */
    assert_true(wait_now() >= deadline);
    EXPECT(HF_ELOST, hf_lock_check(lock));
    OK(hf_lock_release(other, E));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    taken = wait_now();
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    HELD(taken, ttl_ms, hf_lock_release(lock, E));
}

/* A thread of the same client that waits for the lock must not delay the end of
 * the lease. */
CONF_CASE(test_lease_fixed_ends_for_a_thread_of_the_client,
          CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    struct conf_taker t = {0};
    int64_t taken = wait_now();
    uint64_t token = 0;

    OK(conf_take_lease(lock, HF_FOREVER, 300));
    HELD(taken, 300, hf_lock_token(lock, &token));
    conf_taker_start(&t, lock);
    COMES(conf_taker_has(&t));
    assert_true(t.token > token);
    EXPECT(HF_ELOST, hf_lock_check(lock));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(lock, E));
    conf_taker_ends(&t, 0);
}

CONF_CASE(test_lease_fixed_is_released_early, CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    hf_lock *other = conf_rival(lock, 0);

    OK(conf_take_lease(lock, HF_FOREVER, 60000));
    OK(hf_lock_release(lock, E));
    OK(conf_take_lease(other, 0, 60000));
    OK(hf_lock_release(other, E));
    OK(hf_lock_try(lock, E));
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_lease_renew_extends_a_fixed_one, CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open_long(), conf_name());
    int64_t first, now;

    EXPECT(HF_ENOTOWNER, hf_lock_renew(lock, 1000, E));
    first = conf_take_and_extend(lock, 1000);
    assert_true(conf_deadline(lock) > first + 50000 * MS);
    assert_true(conf_deadline(lock) < wait_now() + 60000 * MS);
    COMES(wait_now() > first + 1000 * MS);
    OK(hf_lock_check(lock));
    now = wait_now();
    OK(hf_lock_renew(lock, 20000, E)); /* a renewal may shorten the lease */
    assert_true(conf_deadline(lock) < wait_now() + 20000 * MS);
    assert_true(conf_deadline(lock) > now);
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_lease_renewed_fixed_one_is_kept_by_the_server,
          CONF_EACH | CONF_LEASE)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    hf_lock *other = conf_rival(lock, 0);
    int64_t first;

    first = conf_take_and_extend(lock, 700);
    COMES(wait_now() > first + 1000 * MS);
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    conf_shorten(lock, 300);
    OK(conf_take_within(other, HF_WRITE, 0, 300 + 1000));
    EXPECT(HF_ELOST, hf_lock_renew(lock, 60000, E));
    OK(hf_lock_release(other, E));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
}

CONF_CASE(test_lease_renew_of_a_renewed_one, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    int64_t first;
    uint64_t token;

    OK(hf_lock_acquire(lock, NULL, E));
    token = conf_token(lock);
    first = conf_deadline(lock);
    OK(hf_lock_renew(lock, 0, E));
    assert_true(conf_deadline(lock) >= first);
    assert_true(conf_token(lock) == token);
    EXPECT(HF_EINVAL, hf_lock_renew(lock, 1000, E));
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_lease_max_hold_caps_a_renewed_hold, CONF_EACH)
{
    const int64_t ttl_ms = CONF_KEPT_TTL_MS, most_ms = CONF_KEPT_MS;
    hf_client *a = conf_open_ttl(ttl_ms), *b = conf_open();
    const char *name = conf_name();
    hf_lock_options opt = LOCK_OPTIONS(.max_hold_ms = most_ms);
    hf_lock *lock, *other = conf_lock(b, name);
    int64_t taken;

    lock = conf_lock_with(a, name, &opt);
    taken = wait_now();
    OK(hf_lock_acquire(lock, NULL, E));
    assert_true(conf_deadline(lock) <= wait_now() + most_ms * MS);
    OK(hf_lock_renew(lock, 0, E));
    assert_true(conf_deadline(lock) <= wait_now() + most_ms * MS);
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    OK(conf_take_within(other, HF_WRITE, 0, most_ms + ttl_ms + 1000));
    assert_true(wait_now() >= taken + most_ms * MS);
    EXPECT(HF_ELOST, hf_lock_check(lock));
    OK(hf_lock_release(other, E));
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
}

CONF_CASE(test_lease_max_hold_caps_a_fixed_one, CONF_EACH | CONF_LEASE)
{
    hf_client *c = conf_open();
    hf_lock_options opt = LOCK_OPTIONS(.max_hold_ms = 400);
    hf_lock *lock;
    int64_t taken, deadline = 0;

    lock = conf_lock_with(c, conf_name(), &opt);
    taken = wait_now();
    OK(conf_take_lease(lock, HF_FOREVER, 60000));
    HELD(taken, 400, hf_lock_deadline(lock, &deadline));
    assert_true(deadline <= wait_now() + 400 * MS);
    HELD(taken, 400, hf_lock_renew(lock, 60000, E));
    HELD(taken, 400, hf_lock_deadline(lock, &deadline));
    assert_true(deadline <= wait_now() + 400 * MS);
    COMES(hf_lock_check(lock) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    taken = wait_now();
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E)); /* begins a new max_hold */
    HELD(taken, 400, hf_lock_check(lock));
    HELD(taken, 400, hf_lock_release(lock, E));
}

/* max_hold also limits a hold that was handed over inside the client. The hold
 * ends, and a waiter of another client is granted the lock, although no thread
 * of the first client calls the library. */
CONF_CASE(test_lease_max_hold_ends_what_was_handed_over, CONF_EACH)
{
    const int64_t most_ms = 1500; /* long enough to see the hand-over */
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock_options opt = LOCK_OPTIONS(.handoff = 4);
    hf_lock *lock, *limited, *other = conf_lock(b, name);
    struct conf_taker inside, outside;
    uint64_t token;

    lock = conf_lock_with(a, name, &opt);
    opt.max_hold_ms = most_ms;
    limited = conf_lock_with(a, name, &opt);
    OK(hf_lock_acquire(lock, NULL, E));
    token = conf_token(lock);
    conf_taker_wait(&inside, limited, HF_WRITE, 0);
    conf_taker_wait(&outside, other, HF_WRITE, 0);
    OK(hf_lock_release(lock, E));
    COMES(conf_taker_has(&inside));
    assert_true(inside.token == token);
    COMES_MS(conf_taker_has(&outside), most_ms + 1000);
    conf_taker_ends(&outside, 0);
    conf_taker_end(&inside);
    EXPECT(HF_ELOST, inside.release_rc);
}
