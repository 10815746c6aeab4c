/* The owner of a hold: the thread, which may acquire again, or the handle. */
#include "conf.h"

CONF_CASE(test_owner_reentry_keeps_the_token_and_counts, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    hf_lock *other = conf_rival(lock, 0);
    uint64_t token;
    unsigned count = 0;

    EXPECT(HF_ENOTOWNER, hf_lock_count(lock, &count));
    OK(hf_lock_acquire(lock, NULL, E));
    token = conf_token(lock);
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_try(lock, E));
    OK(hf_lock_timed(lock, 10, E));
    OK(hf_lock_count(lock, &count));
    assert_int_equal(count, 4);
    assert_true(conf_token(lock) == token);
    for (int i = 3; i >= 1; i--) {
        OK(i % 2 ? hf_lock_release(lock, E) : hf_lock_release_nowait(lock, E));
        OK(hf_lock_count(lock, &count));
        assert_int_equal(count, i);
        EXPECT(HF_EBUSY, hf_lock_try(other, E));
    }
    OK(hf_lock_release(lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(lock, E));
    OK(hf_lock_try(other, E));
    assert_true(conf_token(other) > token);
    OK(hf_lock_release(other, E));
}

/* The thread remains the owner if it uses another handle of the client. */
CONF_CASE(test_owner_reentry_through_another_handle, CONF_EACH)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock(c, name), *two = conf_lock(c, name);
    unsigned count = 0;

    OK(hf_lock_acquire(one, NULL, E));
    OK(hf_lock_try(two, E));
    OK(hf_lock_count(one, &count));
    assert_int_equal(count, 2);
    assert_true(conf_token(one) == conf_token(two));
    OK(hf_lock_release(two, E));
    OK(hf_lock_check(two));
    OK(hf_lock_release(two, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(one));
}

/* The same thread is a different owner in another client. */
CONF_CASE(test_owner_is_another_in_another_client, CONF_EACH)
{
    hf_lock *one = conf_lock(conf_open(), conf_name());
    hf_lock *two = conf_rival(one, 0);

    OK(hf_lock_acquire(one, NULL, E));
    EXPECT(HF_EBUSY, hf_lock_try(two, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(two));
    OK(hf_lock_release(one, E));
}

CONF_CASE(test_owner_not_reentrant_says_deadlock, CONF_EACH)
{
    hf_lock *lock = conf_lock_flags(conf_open(), conf_name(), HF_NOT_REENTRANT);

    for (int i = 0; i < 2; i++) {
        OK(hf_lock_acquire(lock, NULL, E));
        EXPECT(HF_EDEADLK, hf_lock_acquire(lock, NULL, E));
        EXPECT(HF_EDEADLK, hf_lock_try(lock, E));
        EXPECT(HF_EDEADLK, hf_lock_timed(lock, 100000, E));
        OK(hf_lock_check(lock));
        OK(hf_lock_release(lock, E));
        EXPECT(HF_ENOTOWNER, hf_lock_release(lock, E));
    }
}

struct stranger {
    hf_lock *lock;
    int check, token, deadline, count, release, nowait, renew, try;
    hf_error busy;
};

static void be_strange(void *arg)
{
    struct stranger *s = arg;
    uint64_t token;
    int64_t deadline;
    unsigned count;

    s->check = hf_lock_check(s->lock);
    s->token = hf_lock_token(s->lock, &token);
    s->deadline = hf_lock_deadline(s->lock, &deadline);
    s->count = hf_lock_count(s->lock, &count);
    s->renew = hf_lock_renew(s->lock, 0, NULL);
    s->release = hf_lock_release(s->lock, NULL);
    s->nowait = hf_lock_release_nowait(s->lock, NULL);
    s->try = hf_lock_try(s->lock, &s->busy);
}

CONF_CASE(test_owner_another_thread_is_a_stranger, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    struct stranger s = {.lock = lock};
    struct conf_thread t;

    OK(hf_lock_acquire(lock, NULL, E));
    conf_thread_start(&t, be_strange, &s);
    conf_thread_join(&t);
    EXPECT(HF_ENOTOWNER, s.check);
    EXPECT(HF_ENOTOWNER, s.token);
    EXPECT(HF_ENOTOWNER, s.deadline);
    EXPECT(HF_ENOTOWNER, s.count);
    EXPECT(HF_ENOTOWNER, s.renew);
    EXPECT(HF_ENOTOWNER, s.release);
    EXPECT(HF_ENOTOWNER, s.nowait);
    EXPECT(HF_EBUSY, s.try);
    assert_non_null(
        strstr(s.busy.text, "held by another thread or handle of this client"));
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}

static void try_another(hf_lock *lock, const char *text)
{
    hf_error err = HF_ERROR_INIT;

    assert_int_equal(hf_lock_try(lock, &err), HF_EBUSY);
    if (!strstr(err.text, text))
        print_error("%s\n", err.text);
    assert_non_null(strstr(err.text, text));
}

/* The message of HF_EBUSY says whether this client holds the lock, if the
 * client knows. */
CONF_CASE(test_owner_busy_says_where_it_is_held, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name), *strange = conf_lock(b, name);
    hf_lock *handle = conf_lock_flags(a, name, HF_OWNER_HANDLE);

    OK(hf_lock_acquire(held, NULL, E));
    try_another(handle, "held by another thread or handle of this client");
    try_another(strange, "held by another client");
    OK(hf_lock_release(held, E));
}

struct releaser {
    hf_lock *lock;
    int check, release;
};

static void release_elsewhere(void *arg)
{
    struct releaser *r = arg;

    r->check = hf_lock_check(r->lock);
    r->release = hf_lock_release(r->lock, NULL);
}

CONF_CASE(test_owner_handle_is_released_by_any_thread, CONF_EACH)
{
    hf_lock *lock = conf_lock_flags(conf_open(), conf_name(), HF_OWNER_HANDLE);
    hf_lock *other = conf_rival(lock, 0);
    struct releaser r = {.lock = lock};
    struct conf_thread t;

    OK(hf_lock_acquire(lock, NULL, E));
    EXPECT(HF_EDEADLK, hf_lock_acquire(lock, NULL, E));
    conf_thread_start(&t, release_elsewhere, &r);
    conf_thread_join(&t);
    OK(r.check);
    OK(r.release);
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    EXPECT(HF_ENOTOWNER, hf_lock_release(lock, E));
    OK(hf_lock_try(other, E));
    OK(hf_lock_release(other, E));
}

/* Two handles are two owners, even in one thread. */
CONF_CASE(test_owner_handles_exclude_each_other, CONF_EACH)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *two = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *mine = conf_lock(c, name);

    OK(hf_lock_acquire(one, NULL, E));
    EXPECT(HF_EBUSY, hf_lock_try(two, E));
    EXPECT(HF_EBUSY, hf_lock_try(mine, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(two, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(mine, E));
    OK(hf_lock_release(one, E));
    OK(hf_lock_acquire(mine, NULL, E));
    EXPECT(HF_EBUSY, hf_lock_try(one, E));
    OK(hf_lock_release(mine, E));
}

/* Two threads use one handle, which is one owner. The second gets HF_EDEADLK,
 * whether the first holds the lock or waits for it. */
CONF_CASE(test_owner_handle_acquires_once, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    struct conf_taker t = {0};
    struct conf_call call = {0, 0};

    OK(hf_lock_acquire(held, NULL, E));
    conf_taker_wait(&t, lock, HF_WRITE, 0);
    EXPECT(HF_EDEADLK, hf_lock_acquire(lock, NULL, E));
    EXPECT(HF_EDEADLK, hf_lock_try(lock, E));
    EXPECT(HF_EDEADLK, hf_lock_acquire_async(lock, NULL, conf_note, &call, E));
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&t));
    EXPECT(HF_EDEADLK, hf_lock_acquire(lock, NULL, E));
    conf_taker_ends(&t, 0);
    OK(hf_lock_timed(held, WAIT_LONG_MS, E));
    /* A failed wait must not prevent the next one. */
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(lock, 20, E));
    EXPECT(HF_EBUSY, hf_lock_try(lock, E));
    OK(hf_lock_acquire_async(lock, NULL, conf_note, &call, E));
    EXPECT(HF_EDEADLK, hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_cancel(lock));
    conf_calls_back(b, &call, HF_ECANCELED);
    OK(hf_lock_release(held, E));
    conf_comes_free(lock);
    assert_int_equal(call.called, 1);
}

CONF_CASE(test_owner_handle_outlives_the_thread, CONF_EACH)
{
    hf_lock *lock = conf_lock_flags(conf_open_ttl(CONF_KEPT_TTL_MS),
                                    conf_name(), HF_OWNER_HANDLE);
    struct conf_taker t = {.keep = true};
    int64_t begun;

    conf_taker_start(&t, lock);
    COMES(conf_taker_has(&t));
    conf_taker_end(&t);
    begun = wait_now();
    COMES(hf_lock_check(lock) || wait_ms_since(begun) > CONF_KEPT_MS);
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}

struct heard {
    int orphaned, lost, others;
    uint64_t orphaned_token, lost_token;
    char name[64];
};

static void hear(void *arg, const hf_event *e)
{
    struct heard *h = arg;

    if (e->type == HF_EVENT_ORPHANED) {
        h->orphaned++;
        h->orphaned_token = e->token;
        if (e->name_len < sizeof(h->name))
            memcpy(h->name, e->name, e->name_len);
    } else if (e->type == HF_EVENT_LOST) {
        h->lost++;
        h->lost_token = e->token;
    } else {
        h->others++;
    }
}

static bool dispatch_until(hf_client *c, const int *heard)
{
    hf_client_dispatch(c);
    return *heard > 0;
}

CONF_CASE(test_owner_thread_that_exits_is_reported_and_not_renewed, CONF_EACH)
{
    enum { TTL_MS = 1500 }; /* longer than the thread takes to exit */
    struct heard h = {0};
    hf_client *a, *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock, *other = conf_lock(b, name);
    struct conf_taker t = {.keep = true};
    hf_client_options opt =
        CLIENT_OPTIONS(.ttl_ms = TTL_MS, .on_event = hear, .event_arg = &h);

    a = conf_open_with(&opt);
    lock = conf_lock(a, name);
    conf_taker_start(&t, lock);
    COMES(conf_taker_has(&t));
    EXPECT(HF_EBUSY, hf_lock_try(other, E));
    conf_taker_end(&t);
    COMES(dispatch_until(a, &h.orphaned));
    assert_int_equal(h.orphaned, 1);
    assert_true(h.orphaned_token == t.token);
    assert_string_equal(h.name, name);
    OK(conf_take_within(other, HF_WRITE, 0, 3 * TTL_MS + 1000));
    COMES(dispatch_until(a, &h.lost));
    assert_true(h.lost_token == t.token);
    assert_int_equal(h.orphaned, 1);
    OK(hf_lock_release(other, E));
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E)); /* the handle still works */
    OK(hf_lock_release(lock, E));
}

/* While a thread holds the lock, the client's last handle on the name cannot be
 * freed, even if that handle has HF_OWNER_HANDLE. */
CONF_CASE(test_owner_last_handle_keeps_the_hold_of_a_thread, CONF_EACH)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(c, name);
    hf_lock *other = conf_lock_flags(c, name, HF_OWNER_HANDLE);

    OK(hf_lock_acquire(lock, NULL, E));
    conf_free(lock);
    EXPECT(HF_EBUSY, hf_lock_free(other));
    lock = conf_lock(c, name);
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}
