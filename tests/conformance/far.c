/* A proxy between client and server delays and loses replies. */
#include "conf.h"

#include <poll.h>

#define OP_MS CONF_SHORT_OP_MS

/* A client behind a proxy. `blocks` counts the memory blocks of the client. */
struct far {
    struct proxy *proxy;
    hf_client *client;
    long blocks; /* atomic */
};

static void *give(void *ctx, size_t size)
{
    __atomic_add_fetch(&((struct far *)ctx)->blocks, 1, __ATOMIC_RELAXED);
    return malloc(size);
}

static void take_back(void *ctx, void *p)
{
    __atomic_sub_fetch(&((struct far *)ctx)->blocks, 1, __ATOMIC_RELAXED);
    free(p);
}

/* Runs when the client has been closed and its last handle has been freed.
 * Asserts that the client has then freed all its memory. */
static void far_end(void *far)
{
    struct far *f = far;

    assert_int_equal(f->blocks, 0);
    free(f);
}

static struct far *far_open(int64_t op_timeout_ms)
{
    struct far *f = calloc(1, sizeof(*f));
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_hooks hooks = {.ctx = f, .alloc = give, .free = take_back};

    assert_non_null(f);
    f->proxy = conf_proxy();
    conf_defer(far_end, f);
    opt.hooks = &hooks;
    opt.op_timeout_ms = op_timeout_ms;
    f->client = conf_open_through(f->proxy, &opt);
    return f;
}

/* Acquires the lock; tries again, because a short op_timeout may end before the
 * reply arrives. */
static void far_take(hf_lock *lock)
{
    COMES(hf_lock_timed(lock, WAIT_LONG_MS, NULL) == 0);
}

/* Lets replies pass again. The connections on which the proxy dropped replies
 * stay broken, so they are cut; new ones work. */
static void far_heal(struct far *f)
{
    proxy_set(f->proxy, PROXY_PASS, 0);
    proxy_cut(f->proxy);
}

/* A renewal that shortens the lease takes effect at once in the client, whether
 * or not the server has received it. */
CONF_CASE(test_far_renewal_that_shortens_counts_at_once,
          CONF_EACH | CONF_FAR | CONF_LEASE)
{
    struct far *f;
    hf_lock *lock, *other;
    struct pollfd p = {.events = POLLIN};
    int64_t asked;
    bool over;
    int rc;

    f = far_open(OP_MS);
    other = conf_lock(f->client, conf_name());
    lock = conf_lock(f->client, conf_name());
    COMES(conf_take_lease(lock, WAIT_LONG_MS, 30000) == 0);
    p.fd = hf_lock_fd(lock);
    assert_true(p.fd >= 0);
    /* Without a connection the client does not even send the renewal. The
     * failed try shows that the client has noticed the loss of its
     * connection. */
    proxy_set(f->proxy, PROXY_REFUSE, 0);
    proxy_cut(f->proxy);
    EXPECT(HF_EBACKEND, hf_lock_try(other, E));
    asked = wait_now();
    rc = hf_lock_renew(lock, 2 * OP_MS, E);
    over = rc == HF_ELOST && conf_may_be_over(asked, 2 * OP_MS);
    conf_expect(over ? HF_ELOST : HF_EUNKNOWN, rc, "hf_lock_renew", __FILE__,
                __LINE__);
    COMES_MS(poll(&p, 1, 0) == 1, OP_MS + 1000);
    far_heal(f);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
}

enum { PARTS = 8 };

/* Acquires several locks while the replies are late: all of the locks are
 * acquired together, or all are released again. */
static void take_slowly(int64_t wait_ms, int64_t op_ms, long delay_ms,
                        int result)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_client *near = conf_open();
    hf_part far_parts[PARTS] = {0}, near_parts[PARTS] = {0};
    struct far *f;
    int64_t began;

    f = far_open(op_ms);
    for (int i = 0; i < PARTS; i++) {
        const char *name = conf_name();

        far_parts[i].lock = conf_lock(f->client, name);
        near_parts[i].lock = conf_lock(near, name);
    }
    proxy_set(f->proxy, PROXY_DELAY, delay_ms);
    opt.wait_ms = wait_ms;
    began = wait_fair();
    EXPECT(result, hf_lock_acquire_all(far_parts, PARTS, &opt, E));
    assert_true(wait_within(began, (wait_ms ? wait_ms : op_ms) + 1000));
    proxy_set(f->proxy, PROXY_PASS, 0);
    opt.wait_ms = WAIT_LONG_MS;
    if (result == 0)
        OK(hf_lock_release_all(far_parts, PARTS, E));
    OK(hf_lock_acquire_all(near_parts, PARTS, &opt, E));
    OK(hf_lock_release_all(near_parts, PARTS, E));
}

CONF_CASE(test_far_several_are_not_had_beyond_their_time, CONF_EACH | CONF_FAR)
{
    take_slowly(100, 5000, 300, HF_ETIMEDOUT);
    /* One op_timeout is the limit for all of the locks together. */
    take_slowly(0, OP_MS, 300, HF_EBACKEND);
}

CONF_ROW(test_far_several_tries_wait_for_their_answers, CONF_EACH | CONF_FAR,
         take_slowly(0, WAIT_LONG_MS, 150, 0));

/* Releases while the reply is delayed or lost; asserts the result of the
 * release. */
static void release_async(enum proxy_mode mode, long value, int result)
{
    struct conf_call call = {0, 0};
    const char *name = conf_name();
    hf_client *near = conf_open();
    hf_lock *other = conf_lock(near, name), *lock;
    struct far *f;
    int64_t began;

    f = far_open(result ? OP_MS : 5000);
    lock = conf_lock_flags(f->client, name, HF_OWNER_HANDLE);
    far_take(lock);
    proxy_set(f->proxy, mode, value);
    began = wait_fair();
    OK(hf_lock_release_async(lock, conf_note, &call, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    EXPECT(HF_EBUSY, hf_lock_release_async(lock, conf_note, &call, E));
    COMES(conf_called(f->client, &call));
    EXPECT(result, call.result);
    assert_true(wait_within(began, OP_MS + 1000));
    if (mode == PROXY_DELAY)
        proxy_set(f->proxy, PROXY_PASS, 0);
    else
        far_heal(f);
    conf_comes_free(other);
    /* The next verb can already use the handle. If a late reply to the release
     * arrives, it arrives before the reply to this acquire. */
    far_take(lock);
    conf_release_impatiently(lock);
    assert_true(hf_client_dispatch(f->client) >= 0);
    assert_int_equal(call.called, 1);
}

CONF_ROW(test_far_release_async_answered_late, CONF_EACH | CONF_FAR,
         release_async(PROXY_DELAY, OP_MS / 4, 0));
CONF_ROW(test_far_release_async_answered_too_late_is_unknown,
         CONF_EACH | CONF_FAR,
         release_async(PROXY_DELAY, 2 * OP_MS, HF_EUNKNOWN));
CONF_ROW(test_far_release_async_without_answer_is_unknown, CONF_EACH | CONF_FAR,
         release_async(PROXY_SWALLOW, 0, HF_EUNKNOWN));
CONF_ROW(test_far_release_async_unsent_is_unknown, CONF_EACH | CONF_FAR,
         release_async(PROXY_DEAF, 0, HF_EUNKNOWN));

/* A release is pending when its client is closed. */
CONF_CASE(test_far_release_async_is_answered_by_the_closing,
          CONF_EACH | CONF_FAR)
{
    struct conf_call call = {0, 0};
    hf_lock *lock;
    struct far *f;
    int64_t began;

    f = far_open(OP_MS);
    lock = conf_lock_flags(f->client, conf_name(), HF_OWNER_HANDLE);
    far_take(lock);
    proxy_set(f->proxy, PROXY_SWALLOW, 0);
    OK(hf_lock_release_async(lock, conf_note, &call, E));
    began = wait_fair();
    conf_forget(f->client);
    EXPECT(HF_EUNKNOWN, hf_close(f->client));
    assert_true(wait_within(began, OP_MS + 1000));
    assert_int_equal(call.called, 1);
    EXPECT(HF_EUNKNOWN, call.result);
}

/* One thread reads the client's connection and sleeps for long, because another
 * thread of the same client holds the lock. Requests of other threads must
 * still time out. */
CONF_CASE(test_far_silence_is_told_beside_a_sleeping_driver,
          CONF_EACH | CONF_FAR | CONF_LEASE)
{
    struct conf_call call = {0, 0};
    hf_acquire_options soon = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock *held, *wanted, *mine;
    struct conf_taker driver;
    struct far *f;
    int64_t began, taken;

    f = far_open(OP_MS);
    held = conf_lock(f->client, conf_name());
    wanted = conf_lock(f->client, conf_name());
    mine = conf_lock_flags(f->client, conf_name(), HF_OWNER_HANDLE);
    COMES(conf_take_lease(held, WAIT_LONG_MS, 600000) == 0);
    conf_taker_wait(&driver, held, HF_WRITE, 0);
    /* 2 * OP_MS later, no request and no timer is pending. */
    taken = wait_now();
    COMES(wait_ms_since(taken) > 2 * OP_MS);
    proxy_set(f->proxy, PROXY_SWALLOW, 0);
    soon.wait_ms = OP_MS;
    began = wait_fair();
    OK(hf_lock_acquire_async(mine, &soon, conf_note, &call, E));
    COMES(conf_called(f->client, &call));
    assert_true(wait_within(began, OP_MS + 1000));
    assert_true(call.result == HF_ETIMEDOUT || call.result == HF_EBACKEND);
    began = wait_fair();
    EXPECT(HF_EBACKEND, hf_lock_acquire(wanted, NULL, E));
    assert_true(wait_within(began, OP_MS + 1000));
    assert_false(conf_taker_has(&driver));
    far_heal(f);
    far_take(wanted);
    conf_release_impatiently(wanted);
    hf_lock_release(held, NULL);
    conf_taker_end(&driver);
}

/* A stopped thread, which was reading the client's connection, must not delay
 * the client's other threads, however late the replies are. */
CONF_CASE(test_far_slow_answers_beside_a_driver_that_stands,
          CONF_EACH | CONF_FAR)
{
    const char *name = conf_name();
    hf_client *near = conf_open_long();
    hf_lock *held = conf_lock(near, name), *wanted, *lock;
    struct conf_taker driver;
    struct far *f;
    int64_t began;

    f = far_open(5000);
    wanted = conf_lock(f->client, name);
    lock = conf_lock(f->client, conf_name());
    OK(hf_lock_acquire(held, NULL, E));
    conf_taker_wait(&driver, wanted, HF_WRITE, 0);
    conf_thread_stand(&driver.t);
    proxy_set(f->proxy, PROXY_DELAY, 300);
    began = wait_fair();
    conf_comes_free(lock);
    assert_true(wait_within(began, 4000));
    proxy_set(f->proxy, PROXY_PASS, 0);
    conf_thread_go_on();
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&driver));
    conf_taker_end(&driver);
}

struct asker {
    struct conf_thread t;
    hf_client *client;
    const char *name;
    hf_info *info;
    int rc;
};

static void inspect(void *arg)
{
    struct asker *a = arg;

    a->rc = hf_inspect(a->client, a->name, HF_CSTRING, &a->info, NULL);
}

/* Closes the client while a thread is inside a call whose reply arrives too
 * late or never. */
static void close_around_a_question(enum proxy_mode mode, long value)
{
    struct asker a = {.name = conf_name()};
    struct far *f;
    uint64_t sent;
    int64_t began;

    f = far_open(OP_MS);
    a.client = f->client;
    proxy_set(f->proxy, mode, value);
    sent = proxy_sent(f->proxy);
    conf_thread_start(&a.t, inspect, &a);
    COMES(proxy_sent(f->proxy) > sent);
    began = wait_fair();
    conf_forget(f->client);
    assert_in_range(-hf_close(f->client), 0, -HF_EUNKNOWN);
    assert_true(wait_within(began, OP_MS + 1000));
    conf_thread_join(&a.t);
    assert_true(a.rc == 0 || a.rc == HF_EUNKNOWN || a.rc == HF_ECLOSED);
    if (a.rc == 0)
        hf_info_free(a.info);
}

CONF_CASE(test_far_close_around_a_late_answer,
          CONF_EACH | CONF_FAR | CONF_INSPECT)
{
    for (long delay = 1; delay < 2 * OP_MS; delay *= 4)
        close_around_a_question(PROXY_DELAY, delay);
}

CONF_ROW(test_far_close_around_a_lost_answer,
         CONF_EACH | CONF_FAR | CONF_INSPECT,
         close_around_a_question(PROXY_SWALLOW, 0));

struct impatient {
    struct conf_thread t;
    hf_lock *lock;
    int number, granted, rc;
};

/* A thread that acquires with waits so short that they end before the request
 * is sent, while it is pending, or while its reply is on its way. */
static void give_up(void *arg)
{
    struct impatient *w = arg;

    for (int i = 0; i < 60 && !w->rc; i++) {
        int rc = hf_lock_timed(w->lock, 1 + (i + w->number) % 7, NULL);

        if (!rc) {
            w->granted++;
            rc = hf_lock_release_nowait(w->lock, NULL);
        }
        if (rc != HF_ETIMEDOUT)
            w->rc = rc;
    }
}

static void start_impatient(struct impatient *w, int n, hf_lock *lock)
{
    for (int i = 0; i < n; i++) {
        w[i] = (struct impatient){.lock = lock, .number = i};
        conf_thread_start(&w[i].t, give_up, &w[i]);
    }
}

static bool all_ended(struct impatient *w, int n)
{
    for (int i = 0; i < n; i++)
        if (!conf_thread_ended(&w[i].t))
            return false;
    return true;
}

static int join_impatient(struct impatient *w, int n)
{
    int granted = 0;

    for (int i = 0; i < n; i++) {
        conf_thread_join(&w[i].t);
        OK(w[i].rc);
        granted += w[i].granted;
    }
    return granted;
}

/* Asserts that the lock is free and has no waiters, either in the client or at
 * the server. */
static void nothing_is_left(hf_lock *other, hf_lock *lock)
{
    conf_comes_free(other);
    conf_comes_free(lock);
    assert_int_equal(conf_left(), 0);
}

static void given_up_with_delay(long delay_ms, bool lets_go)
{
    enum { N = 8 };
    const char *name = conf_name();
    hf_client *near = conf_open();
    hf_lock *other = conf_lock(near, name), *lock;
    struct impatient w[N];
    struct far *f;
    int granted;

    f = far_open(5000);
    lock = conf_lock(f->client, name);
    OK(hf_lock_acquire(other, NULL, E));
    proxy_set(f->proxy, PROXY_DELAY, delay_ms);
    start_impatient(w, N, lock);
    while (lets_go && !all_ended(w, N)) {
        /* The lock is granted to a wait that may just have ended; in that case
         * the client must release the lock. */
        OK(hf_lock_release(other, E));
        OK(hf_lock_timed(other, WAIT_LONG_MS, E));
    }
    granted = join_impatient(w, N);
    if (!lets_go)
        assert_int_equal(granted, 0);
    OK(hf_lock_check(other));
    OK(hf_lock_release(other, E));
    proxy_set(f->proxy, PROXY_PASS, 0);
    nothing_is_left(other, lock);
}

CONF_CASE(test_far_waits_given_up_leave_nothing, CONF_EACH | CONF_FAR)
{
    given_up_with_delay(2, false);
    given_up_with_delay(20, false);
}

CONF_CASE(test_far_late_grants_are_given_back, CONF_EACH | CONF_FAR)
{
    given_up_with_delay(2, true);
    given_up_with_delay(8, true);
}

/* Cancels acquires whose requests are pending, and at once begins the next ones
 * on the same handles. The replies that then arrive belong to older
 * requests. */
static void cancel_in_flight(struct far *f, hf_lock *const *lock, int n,
                             int round)
{
    struct conf_call call[4] = {{0, 0}};

    for (int i = 0; i < n; i++)
        OK(hf_lock_acquire_async(lock[i], NULL, conf_note, &call[i], E));
    for (int i = 0; i < round % 4; i++, wait_tick())
        hf_client_dispatch(f->client);
    for (int i = 0; i < n; i++)
        OK(hf_lock_cancel(lock[(i + round) % n]));
    for (int i = 0; i < n; i++) {
        COMES(conf_called(f->client, &call[i]));
        assert_int_equal(call[i].called, 1);
        assert_true(call[i].result == 0 || call[i].result == HF_ECANCELED);
        if (!call[i].result)
            OK(hf_lock_release_nowait(lock[i], E));
    }
}

/* Repeatedly cancels acquires. With `cuts`, connections break too: after
 * reconnecting, the client must repeat the abandon of a cancelled acquire,
 * although the next request is already pending. */
static void cancelled_with_delay(long delay_ms, bool cuts)
{
    enum { N = 4 };
    const char *name = conf_name();
    hf_client *near = conf_open();
    hf_lock *other = conf_lock(near, name), *lock[N];
    struct far *f;

    f = far_open(5000);
    for (int i = 0; i < N; i++)
        lock[i] = conf_lock_flags(f->client, name, HF_OWNER_HANDLE);
    proxy_set(f->proxy, PROXY_DELAY, delay_ms);
    for (int round = 0; round < 60; round++) {
        if (round % 8 == 0) /* `other` holds the lock in half of the rounds */
            OK(hf_lock_timed(other, WAIT_LONG_MS, E));
        cancel_in_flight(f, lock, N, round);
        if (cuts && round % 3 == 0)
            proxy_cut(f->proxy);
        if (round % 8 == 4)
            OK(hf_lock_release(other, E));
    }
    OK(hf_lock_release(other, E));
    proxy_set(f->proxy, PROXY_PASS, 0);
    nothing_is_left(other, lock[0]);
}

CONF_CASE(test_far_cancelled_questions_leave_nothing, CONF_EACH | CONF_FAR)
{
    cancelled_with_delay(1, false);
    cancelled_with_delay(20, false);
}

CONF_CASE(test_far_cancelled_questions_over_lost_connections,
          CONF_EACH | CONF_FAR)
{
    cancelled_with_delay(1, true);
    cancelled_with_delay(20, true);
}
