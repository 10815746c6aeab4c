/* The mutex: acquire, try, timed wait, release, and HF_SYNCHRONIZED. */
#include "conf.h"

CONF_CASE(test_mutex_is_taken_and_released, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());

    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_mutex_try_says_busy_at_once, CONF_EACH)
{
    hf_lock *mine = conf_lock(conf_open(), conf_name());
    hf_lock *other = conf_rival(mine, 0);

    OK(hf_lock_try(mine, E));
    for (int i = 0; i < 3; i++)
        EXPECT(HF_EBUSY, hf_lock_try(other, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(other));
    OK(hf_lock_release(mine, E));
    OK(hf_lock_try(other, E));
    EXPECT(HF_EBUSY, hf_lock_try(mine, E));
    OK(hf_lock_release(other, E));
}

/* A waiter that timed out leaves nothing at the server, whether or not the
 * server has a queue. */
CONF_CASE(test_mutex_timed_wait_ends_in_time, CONF_EACH)
{
    hf_lock *mine = conf_lock(conf_open(), conf_name());
    hf_lock *other = conf_rival(mine, 0);
    struct wait_mark begun;

    OK(hf_lock_acquire(mine, NULL, E));
    begun = wait_mark();
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(other, 150, E));
    assert_true(wait_took(begun, 150, 1150));
    OK(hf_lock_check(mine));
    OK(hf_lock_release(mine, E));
    COMES(hf_lock_try(mine, NULL) == 0); /* it has left the queue */
    OK(hf_lock_release(mine, E));
    conf_comes_free(other);
}

CONF_CASE(test_mutex_timed_wait_between_threads_of_a_client, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    struct conf_taker t = {0};

    OK(hf_lock_acquire(lock, NULL, E));
    t.opt = (hf_acquire_options)HF_ACQUIRE_OPTIONS_INIT;
    t.opt.wait_ms = 100;
    conf_taker_start(&t, lock);
    conf_taker_ends(&t, HF_ETIMEDOUT);
    t.opt.wait_ms = 0;
    conf_taker_start(&t, lock);
    conf_taker_ends(&t, HF_EBUSY);
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}

/* A waiter is granted the lock at once, because the release notifies it. */
static void wait_and_hand_over(hf_client *a, hf_client *b)
{
    const char *name = conf_name();
    hf_lock *mine = conf_lock(a, name), *other = conf_lock(b, name);
    struct conf_taker t;
    int64_t released;

    OK(hf_lock_acquire(mine, NULL, E));
    conf_taker_wait(&t, other, HF_WRITE, 0);
    assert_false(conf_taker_has(&t));
    released = wait_fair();
    OK(hf_lock_release(mine, E));
    COMES(conf_taker_has(&t));
    assert_true(wait_within(released, 2000));
    conf_taker_ends(&t, 0);
}

CONF_CASE(test_mutex_waiter_gets_it_from_another_client, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();

    for (int i = 0; i < 5; i++)
        wait_and_hand_over(a, b);
}

CONF_CASE(test_mutex_waiter_gets_it_from_a_thread_of_its_client, CONF_EACH)
{
    hf_client *c = conf_open();

    for (int i = 0; i < 5; i++)
        wait_and_hand_over(c, c);
}

CONF_CASE(test_mutex_release_by_a_stranger_is_refused, CONF_EACH)
{
    hf_lock *mine = conf_lock(conf_open(), conf_name());
    hf_lock *other = conf_rival(mine, 0);

    EXPECT(HF_ENOTOWNER, hf_lock_release(mine, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release_nowait(mine, E));
    OK(hf_lock_acquire(mine, NULL, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(other, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release_nowait(other, E));
    EXPECT(HF_ENOTOWNER, hf_lock_renew(other, 0, E));
    OK(hf_lock_check(mine));
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    OK(hf_lock_release(mine, E));
    OK(hf_lock_acquire(other, NULL, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(mine, E)); /* already released */
    OK(hf_lock_check(other));
    EXPECT(HF_EBUSY, hf_lock_try(mine, E));
    OK(hf_lock_release(other, E));
}

CONF_CASE(test_mutex_release_without_waiting_frees_it, CONF_EACH)
{
    hf_lock *mine = conf_lock(conf_open(), conf_name());
    hf_lock *other = conf_rival(mine, 0);

    for (int i = 0; i < 20; i++) {
        OK(hf_lock_acquire(mine, NULL, E));
        OK(hf_lock_release_nowait(mine, E));
        EXPECT(HF_ENOTOWNER, hf_lock_check(mine));
        OK(hf_lock_timed(other, WAIT_LONG_MS, E));
        OK(hf_lock_release_nowait(other, E));
    }
    /* The next acquire of the same client need not wait for the release. */
    for (int i = 0; i < 20; i++) {
        OK(hf_lock_timed(mine, WAIT_LONG_MS, E));
        OK(hf_lock_release_nowait(mine, E));
    }
    conf_comes_free(other);
}

CONF_CASE(test_mutex_names_do_not_disturb_each_other, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock[20];

    for (int i = 0; i < 20; i++) {
        lock[i] = conf_lock(c, conf_name());
        OK(hf_lock_try(lock[i], E));
    }
    for (int i = 0; i < 20; i++)
        OK(hf_lock_check(lock[i]));
    for (int i = 0; i < 20; i++) {
        OK(hf_lock_release(lock[i], E));
        conf_free(lock[i]);
    }
}

static int leave_by_return(hf_lock *lock)
{
    HF_SYNCHRONIZED(lock)
    {
        if (hf_lock_check(lock))
            return -1;
        return 7;
    }
    return -2;
}

static int leave_by_break(hf_lock *lock)
{
    int seen = -1;

    HF_SYNCHRONIZED(lock)
    {
        seen = hf_lock_check(lock);
        if (!seen)
            break;
        seen = -2;
    }
    return seen;
}

static int leave_by_goto(hf_lock *lock)
{
    HF_SYNCHRONIZED(lock)
    {
        goto out;
    }
    return -1;
out:
    return hf_lock_check(lock);
}

CONF_CASE(test_mutex_synchronized_lets_go_however_it_is_left, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    int runs = 0;

    HF_SYNCHRONIZED(lock)
    {
        OK(hf_lock_check(lock));
        runs++;
    }
    assert_int_equal(runs, 1);
    OK(hf_synchronized_result());
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    assert_int_equal(leave_by_return(lock), 7);
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    assert_int_equal(leave_by_break(lock), 0);
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    assert_int_equal(leave_by_goto(lock), HF_ENOTOWNER);
    OK(hf_synchronized_result());
}

CONF_CASE(test_mutex_synchronized_nests, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    hf_lock *inner = conf_lock(c, conf_name());
    unsigned count = 0;

    HF_SYNCHRONIZED(lock)
    {
        HF_SYNCHRONIZED(inner)
        {
            HF_SYNCHRONIZED(lock)
            {
                OK(hf_lock_count(lock, &count));
            }
        }
        EXPECT(HF_ENOTOWNER, hf_lock_check(inner));
        OK(hf_lock_check(lock));
    }
    assert_int_equal(count, 2);
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
}

CONF_CASE(test_mutex_synchronized_is_skipped_when_not_got, CONF_EACH)
{
    hf_lock *lock = conf_lock_flags(conf_open(), conf_name(), HF_NOT_REENTRANT);
    int runs = 0;

    OK(hf_lock_acquire(lock, NULL, E));
    HF_SYNCHRONIZED(lock)
    {
        runs++;
    }
    assert_int_equal(runs, 0);
    EXPECT(HF_EDEADLK, hf_synchronized_result());
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
    HF_SYNCHRONIZED(NULL)
    {
        runs++;
    }
    assert_int_equal(runs, 0);
    EXPECT(HF_EINVAL, hf_synchronized_result());
}
