/* Verbs that send a request and wait for its reply, in both forms (synchronous
 * and asynchronous): renew, downgrade, and the latch verbs. Some cases use a
 * proxy that delays or loses replies. */
#include "conf.h"

#include <poll.h>

#define OP_MS CONF_SHORT_OP_MS
#define LEASE_MS 60000
#define COUNT 5

enum verb { RENEW, DOWNGRADE, SET, DOWN, GET, VERBS };

/* The lock or latch that the verb is called on, and the verb's results. */
struct subject {
    enum verb verb;
    const char *name;
    hf_client *client;
    struct proxy *proxy; /* or NULL */
    hf_lock *lock;
    hf_latch *latch;
    uint64_t left;
    struct conf_call call;
};

static bool is_latch(enum verb verb)
{
    return verb >= SET;
}

/* Returns whether the backend supports the verb. */
static bool there_is(enum verb verb)
{
    if (verb == DOWNGRADE)
        return conf.kind_caps[HF_RWLOCK];
    return is_latch(verb) ? conf.kind_caps[HF_LATCH] != 0
                          : (conf.caps & HF_CAP_LEASE) != 0;
}

#define EACH_VERB(verb)                                                        \
    for (enum verb verb = 0; verb < VERBS; verb++)                             \
        if (there_is(verb))

static void open_client(struct subject *s, bool far, int64_t op_timeout_ms)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;

    if (!far) {
        s->client = conf_open_long();
        return;
    }
    s->proxy = conf_proxy();
    opt.op_timeout_ms = op_timeout_ms;
    opt.ttl_ms = conf_long_ms();
    s->client = conf_open_through(s->proxy, &opt);
}

/* Sets the latch on a connection without the proxy, so that the reply arrives
 * within op_timeout. */
static void set_latch(const char *name)
{
    OK(hf_latch_set(conf_latch(conf_open(), name), COUNT, E));
}

static void begin_with(struct subject *s, enum verb verb, bool far,
                       int64_t op_timeout_ms)
{
    *s = (struct subject){.verb = verb, .name = conf_name(), .left = 99};
    open_client(s, far, op_timeout_ms);
    if (is_latch(verb)) {
        s->latch = conf_latch(s->client, s->name);
        if (verb != SET)
            set_latch(s->name);
        return;
    }
    s->lock =
        conf_lock_of(s->client, s->name, verb == RENEW ? HF_MUTEX : HF_RWLOCK,
                     0, HF_OWNER_HANDLE);
    /* The acquire is repeated, because its op_timeout is short and the first
     * one may time out. */
    COMES((verb == RENEW ? conf_take_lease(s->lock, WAIT_LONG_MS, LEASE_MS)
                         : hf_lock_timed(s->lock, WAIT_LONG_MS, NULL)) == 0);
}

static void begin(struct subject *s, enum verb verb)
{
    begin_with(s, verb, false, 0);
}

static void begin_far(struct subject *s, enum verb verb)
{
    begin_with(s, verb, true, OP_MS);
}

/* Lets replies pass again. The connections on which the proxy dropped replies
 * stay broken, so they are cut; new ones work. */
static void heal(struct subject *s)
{
    hf_lock *another = conf_lock(s->client, conf_name());

    proxy_set(s->proxy, PROXY_PASS, 0);
    proxy_cut(s->proxy);
    COMES(hf_lock_timed(another, WAIT_LONG_MS, NULL) == 0);
    conf_release_impatiently(another);
}

static void open_latch(hf_latch *latch)
{
    uint64_t left = 1;

    COMES(hf_latch_down(latch, &left, NULL) == 0 && !left);
}

/* Ends what the verb has left: releases the lock or counts the latch down to 0,
 * so that nothing is left at the server. */
static void end(struct subject *s)
{
    if (s->latch) {
        open_latch(s->latch);
    } else {
        int rc = hf_lock_release(s->lock, NULL);

        assert_true(rc == 0 || rc == HF_ENOTOWNER ||
                    (s->proxy && rc == HF_EUNKNOWN));
    }
}

static int do_sync(struct subject *s)
{
    switch (s->verb) {
    case RENEW:
        return hf_lock_renew(s->lock, 2 * LEASE_MS, NULL);
    case DOWNGRADE:
        return hf_lock_downgrade(s->lock, NULL);
    case SET:
        return hf_latch_set(s->latch, COUNT, NULL);
    case DOWN:
        return hf_latch_down(s->latch, &s->left, NULL);
    default:
        return hf_latch_get(s->latch, &s->left, NULL);
    }
}

static void note_latch(void *arg, hf_latch *latch, int result)
{
    conf_note(arg, NULL, result);
}

static int do_async(struct subject *s)
{
    struct conf_call *call = &s->call;

    switch (s->verb) {
    case RENEW:
        return hf_lock_renew_async(s->lock, 2 * LEASE_MS, conf_note, call, E);
    case DOWNGRADE:
        return hf_lock_downgrade_async(s->lock, conf_note, call, E);
    case SET:
        return hf_latch_set_async(s->latch, COUNT, note_latch, call, E);
    case DOWN:
        return hf_latch_down_async(s->latch, &s->left, note_latch, call, E);
    default:
        return hf_latch_get_async(s->latch, &s->left, note_latch, call, E);
    }
}

static int free_it(struct subject *s)
{
    return s->latch ? hf_latch_free(s->latch) : hf_lock_free(s->lock);
}

static int cancel_it(struct subject *s)
{
    return s->latch ? hf_latch_cancel(s->latch) : hf_lock_cancel(s->lock);
}

/* Asserts that the verb took effect (a DOWN: exactly once). A RENEW is checked
 * by the lock's own deadline, any other verb by another client. */
static void was_done(struct subject *s)
{
    hf_client *c = conf_open();
    hf_lock *lock;
    uint64_t left;

    if (s->verb == RENEW) {
        assert_true(conf_deadline(s->lock) >
                    wait_now() + 1000000LL * LEASE_MS * 3 / 2);
    } else if (s->verb == DOWNGRADE) {
        lock = conf_lock_of(c, s->name, HF_RWLOCK, 0, 0);
        OK(conf_take(lock, HF_READ, 0, WAIT_LONG_MS));
        OK(hf_lock_release(lock, E));
        EXPECT(HF_EBUSY, conf_take(lock, HF_WRITE, 0, 0));
    } else {
        OK(hf_latch_get(conf_latch(c, s->name), &left, E));
        assert_int_equal(left, s->verb == DOWN ? COUNT - 1 : COUNT);
        assert_int_equal(s->left, s->verb == SET ? 99 : left);
    }
}

CONF_CASE(test_answers_async, 0)
{
    EACH_VERB(verb)
    {
        struct subject s;

        begin(&s, verb);
        OK(do_async(&s));
        assert_int_equal(s.call.called, 0); /* callbacks run only in dispatch */
        assert_int_equal(s.left, 99);
        EXPECT(HF_EBUSY, do_async(&s));
        EXPECT(HF_EBUSY, free_it(&s));
        conf_calls_back(s.client, &s.call, 0);
        assert_int_equal(s.call.called, 1);
        OK(cancel_it(&s)); /* nothing to cancel */
        was_done(&s);
        end(&s);
    }
}

/* The program waits until the client's descriptor is readable, then
 * dispatches. */
CONF_CASE(test_answers_wake_the_loop, 0)
{
    EACH_VERB(verb)
    {
        struct pollfd p = {.events = POLLIN};
        struct subject s;

        begin(&s, verb);
        p.fd = hf_client_fd(s.client);
        assert_true(p.fd >= 0);
        OK(do_async(&s));
        COMES(poll(&p, 1, 0) == 1 && conf_called(s.client, &s.call));
        OK(s.call.result);
        was_done(&s);
        end(&s);
    }
}

/* A result that is known without the server is returned by the call itself, and
 * the callback does not run. */
CONF_CASE(test_answers_async_known_at_once, 0)
{
    struct conf_call never = {0, 0};
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock_flags(c, conf_name(), HF_OWNER_HANDLE);
    hf_lock *threads = conf_lock(c, conf_name());

    EXPECT(HF_ENOTOWNER, hf_lock_renew_async(lock, 0, conf_note, &never, E));
    EXPECT(HF_ENOTOWNER, hf_lock_downgrade_async(lock, conf_note, &never, E));
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_acquire(threads, NULL, E));
    EXPECT(HF_EINVAL, hf_lock_renew_async(lock, 1, conf_note, &never, E));
    EXPECT(HF_EINVAL, hf_lock_renew_async(lock, 1000, conf_note, &never, E));
    EXPECT(HF_EINVAL, hf_lock_renew_async(lock, 0, NULL, NULL, E));
    EXPECT(HF_EINVAL, hf_lock_renew_async(threads, 0, conf_note, &never, E));
    EXPECT(HF_EINVAL, hf_lock_renew_async(NULL, 0, conf_note, &never, E));
    EXPECT(HF_ENOTSUP, hf_lock_downgrade_async(lock, conf_note, &never, E));
    EXPECT(HF_EINVAL, hf_lock_downgrade_async(threads, conf_note, &never, E));
    EXPECT(HF_EINVAL, hf_lock_downgrade_async(lock, NULL, NULL, E));
    assert_true(hf_client_dispatch(c) >= 0);
    assert_int_equal(never.called, 0);
    OK(hf_lock_release(lock, E));
    OK(hf_lock_release(threads, E));
}

CONF_CASE(test_answers_async_of_a_latch_known_at_once, CONF_LATCH)
{
    struct conf_call call = {0, 0};
    hf_client *c = conf_open();
    hf_latch *latch = conf_latch(c, conf_name());

    EXPECT(HF_EINVAL, hf_latch_set_async(NULL, 1, note_latch, &call, E));
    EXPECT(HF_EINVAL, hf_latch_set_async(latch, 0, note_latch, &call, E));
    EXPECT(HF_EINVAL, hf_latch_set_async(latch, 1, NULL, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_down_async(NULL, NULL, note_latch, &call, E));
    EXPECT(HF_EINVAL, hf_latch_down_async(latch, NULL, NULL, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_get_async(latch, NULL, note_latch, &call, E));
    OK(hf_latch_set(latch, 1, E));
    OK(hf_latch_set_async(latch, 1, note_latch, &call, E));
    COMES(conf_called(c, &call));
    EXPECT(HF_EBUSY, call.result); /* the latch is set already */
    OK(hf_latch_down_async(latch, NULL, note_latch, &call, E));
    COMES(conf_called(c, &call) && call.called == 2);
    OK(call.result);
}

CONF_CASE(test_answers_end_with_the_client, 0)
{
    EACH_VERB(verb)
    {
        struct subject s;

        begin(&s, verb);
        OK(do_async(&s));
        conf_close(s.client);
        assert_int_equal(s.call.called, 1); /* exactly once, from hf_close() */
        assert_true(s.call.result == 0 || s.call.result == HF_ECLOSED);
        EXPECT(HF_ECLOSED, do_async(&s));
        EXPECT(HF_ECLOSED, cancel_it(&s));
        if (s.latch)
            open_latch(conf_latch(conf_open(), s.name));
    }
}

/* A thread that dispatches while the main thread begins verbs and cancels
 * them. */
struct dispatcher {
    struct conf_thread t;
    hf_client *client;
    uint32_t stop, called, done; /* atomic */
    int odd;                     /* a result that must not occur, or 0 */
};

static void dispatch_on(void *arg)
{
    struct dispatcher *d = arg;

    while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE))
        hf_client_dispatch(d->client);
}

static void count(void *arg, hf_latch *latch, int result)
{
    struct dispatcher *d = arg;

    if (result == 0)
        __atomic_add_fetch(&d->done, 1, __ATOMIC_RELAXED);
    else if (result != HF_EUNKNOWN)
        d->odd = result;
    __atomic_add_fetch(&d->called, 1, __ATOMIC_RELEASE);
}

CONF_CASE(test_answers_given_up_as_they_come, CONF_LATCH)
{
    enum { ROUNDS = 400 };
    struct dispatcher d = {.client = conf_open()};
    hf_latch *latch = conf_latch(d.client, conf_name());
    uint64_t left;

    OK(hf_latch_set(latch, ROUNDS + 1, E));
    conf_thread_start(&d.t, dispatch_on, &d);
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        OK(hf_latch_down_async(latch, NULL, count, &d, E));
        for (uint32_t turn = 0; turn < i % 8 * 200; turn++)
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (i % 8)
            OK(hf_latch_cancel(latch));
        COMES(__atomic_load_n(&d.called, __ATOMIC_ACQUIRE) == i);
    }
    __atomic_store_n(&d.stop, 1, __ATOMIC_RELEASE);
    conf_thread_join(&d.t);
    OK(d.odd);
    /* When hf_latch_get() returns, all requests sent before it have reached the
     * server. A cancelled count-down might not have been sent if it takes
     * several steps or waits for its turn: the client begins no further step of
     * a cancelled verb. */
    OK(hf_latch_get(latch, &left, E));
    assert_in_range(left, 1,
                    conf.session || conf.in_turn ? ROUNDS + 1 - d.done : 1);
    assert_true(d.done >= ROUNDS / 8);
    OK(hf_latch_down(latch, NULL, E));
}

static void no_answer(enum verb verb, bool async)
{
    struct subject s;
    int64_t began;

    begin_far(&s, verb);
    proxy_set(s.proxy, PROXY_SWALLOW, 0);
    began = wait_fair();
    if (async) {
        OK(do_async(&s));
        EXPECT(HF_EBUSY, free_it(&s));
        conf_calls_back(s.client, &s.call, HF_EUNKNOWN);
    } else {
        EXPECT(HF_EUNKNOWN, do_sync(&s));
    }
    assert_true(wait_within(began, OP_MS + 1000));
    assert_int_equal(s.left, 99);
    heal(&s);
    /* The next verb can use the handle, and the late reply is dropped. */
    COMES(do_sync(&s) != HF_EUNKNOWN);
    assert_true(hf_client_dispatch(s.client) >= 0);
    assert_int_equal(s.call.called, async);
    end(&s);
}

CONF_CASE(test_answers_that_do_not_come, CONF_FAR)
{
    EACH_VERB(verb)
    {
        no_answer(verb, false);
        no_answer(verb, true);
    }
}

/* A cancel does not undo a request that was sent, but the verb returns at
 * once. */
CONF_CASE(test_answers_given_up, CONF_FAR)
{
    EACH_VERB(verb)
    {
        struct subject s;

        begin_with(&s, verb, true, WAIT_LONG_MS);
        proxy_set(s.proxy, PROXY_DELAY, 300);
        OK(do_async(&s));
        OK(cancel_it(&s));
        OK(cancel_it(&s));
        COMES_MS(conf_called(s.client, &s.call), 250);
        EXPECT(HF_EUNKNOWN, s.call.result);
        OK(cancel_it(&s));
        proxy_set(s.proxy, PROXY_PASS, 0);
        assert_true(do_sync(&s) != HF_EUNKNOWN); /* the late reply came first */
        assert_true(hf_client_dispatch(s.client) >= 0);
        assert_int_equal(s.call.called, 1);
        end(&s);
    }
}

CONF_CASE(test_answers_to_a_release_given_up, CONF_FAR | CONF_LEASE)
{
    struct subject s;

    begin_with(&s, RENEW, true, WAIT_LONG_MS);
    proxy_set(s.proxy, PROXY_DELAY, 300);
    OK(hf_lock_release_async(s.lock, conf_note, &s.call, E));
    OK(hf_lock_cancel(s.lock));
    COMES_MS(conf_called(s.client, &s.call), 250);
    EXPECT(HF_EUNKNOWN, s.call.result);
    EXPECT(HF_ENOTOWNER, hf_lock_check(s.lock));
    proxy_set(s.proxy, PROXY_PASS, 0);
    OK(hf_lock_timed(s.lock, WAIT_LONG_MS, E)); /* the release had been sent */
    assert_int_equal(s.call.called, 1);
    end(&s);
}

/* The connection breaks after the server has received the request. The client
 * sends the request again, and it takes effect once. */
static void lose_answer(enum verb verb, bool async)
{
    struct subject s;
    uint64_t answered;
    int rc;

    begin_with(&s, verb, true, 5000);
    answered = proxy_answered(s.proxy);
    proxy_set(s.proxy, PROXY_RESET, 0);
    if (async) {
        OK(do_async(&s));
        COMES(conf_called(s.client, &s.call));
        rc = s.call.result;
    } else {
        rc = do_sync(&s);
    }
    assert_true(proxy_answered(s.proxy) > answered);
    /* A renewal may return HF_EUNKNOWN, because the caller decides whether to
     * repeat it. */
    if (verb != RENEW || rc != HF_EUNKNOWN)
        OK(rc);
    if (verb == RENEW)
        OK(do_sync(&s));
    was_done(&s);
    end(&s);
}

CONF_CASE(test_answers_that_are_lost, CONF_FAR)
{
    EACH_VERB(verb)
    {
        lose_answer(verb, false);
        lose_answer(verb, true);
    }
}

/* The client is closed while a verb waits for a reply. hf_close() may return 0
 * if the verb timed out first and no other request was pending. */
static void ends_with_a_far_client(enum verb verb)
{
    struct subject s;
    int64_t began;
    int rc;

    begin_far(&s, verb);
    proxy_set(s.proxy, PROXY_SWALLOW, 0);
    began = wait_now();
    OK(do_async(&s));
    conf_forget(s.client);
    rc = hf_close(s.client);
    assert_int_equal(s.call.called, 1);
    EXPECT(HF_EUNKNOWN, s.call.result);
    if (rc || wait_ms_since(began) < OP_MS)
        EXPECT(HF_EUNKNOWN, rc);
    if (s.latch)
        open_latch(conf_latch(conf_open(), s.name));
}

CONF_CASE(test_answers_end_with_a_far_client, CONF_FAR)
{
    EACH_VERB(verb)
    ends_with_a_far_client(verb);
}

/* Long enough for the verb to be still pending when its reply arrives. */
#define KEPT_OP_MS (3 * WAIT_LONG_MS)

struct asker {
    struct conf_thread t;
    struct subject *s;
    int rc;
};

static void ask(void *arg)
{
    struct asker *a = arg;

    a->rc = do_sync(a->s);
}

CONF_CASE(test_answers_keep_a_latch, CONF_FAR | CONF_LATCH)
{
    for (enum verb verb = SET; verb < VERBS; verb++) {
        struct asker a = {.rc = 0};
        struct subject s;

        begin_with(&s, verb, true, KEPT_OP_MS);
        a.s = &s;
        proxy_set(s.proxy, PROXY_SWALLOW, 0);
        conf_thread_start(&a.t, ask, &a);
        conf_thread_asleep(&a.t);
        EXPECT(HF_EBUSY, free_it(&s));
        heal(&s); /* the client resends and gets a reply */
        conf_thread_join(&a.t);
        OK(a.rc);
        end(&s);
    }
}

/* A thread that tries to free a handle while another thread sleeps in a verb on
 * that handle. It then lets the reply pass, which wakes the other thread. */
struct freer {
    struct conf_thread t;
    pid_t sleeper;
    hf_lock *lock;
    struct proxy *proxy;
    int rc;
};

static void free_under_it(void *arg)
{
    struct freer *f = arg;

    f->rc = wait_asleep(getpid(), f->sleeper) ? hf_lock_free(f->lock) : 99;
    proxy_set(f->proxy, PROXY_PASS, 0);
    proxy_cut(f->proxy);
}

/* A thread holds the lock through one handle and calls the verb on another
 * handle. Only the pending verb protects the second handle from being freed. */
static void keep_handle(enum verb verb)
{
    enum hf_kind kind = verb == RENEW ? HF_MUTEX : HF_RWLOCK;
    struct subject s = {.verb = verb, .name = conf_name()};
    struct freer f = {.sleeper = gettid()};
    hf_lock *held;
    int rc;

    open_client(&s, true, KEPT_OP_MS);
    f.proxy = s.proxy;
    s.lock = f.lock = conf_lock_of(s.client, s.name, kind, 0, 0);
    held = conf_lock_of(s.client, s.name, kind, 0, 0);
    OK(verb == RENEW ? conf_take_lease(held, WAIT_LONG_MS, LEASE_MS)
                     : hf_lock_timed(held, WAIT_LONG_MS, E));
    proxy_set(s.proxy, PROXY_SWALLOW, 0);
    conf_thread_start(&f.t, free_under_it, &f);
    rc = do_sync(&s);
    if (verb != RENEW || rc != HF_EUNKNOWN)
        OK(rc);
    conf_thread_join(&f.t);
    EXPECT(HF_EBUSY, f.rc);
    heal(&s);
    conf_free(s.lock);
    OK(hf_lock_release(held, E));
}

CONF_CASE(test_answers_keep_a_handle, CONF_FAR | CONF_LEASE)
{
    keep_handle(RENEW);
    if (there_is(DOWNGRADE))
        keep_handle(DOWNGRADE);
}

/* The first request is lost with its connection and the second gets no reply.
 * Both requests share one op_timeout. */
CONF_CASE(test_answers_downgrade_returns_in_time, CONF_FAR | CONF_RWLOCK)
{
    enum { PATIENCE_MS = 3000 };
    struct asker a = {.rc = 0};
    struct subject s;
    struct wait_mark began;

    begin_with(&s, DOWNGRADE, true, PATIENCE_MS);
    a.s = &s;
    proxy_set(s.proxy, PROXY_SWALLOW, 0);
    began = wait_mark();
    conf_thread_start(&a.t, ask, &a);
    COMES(wait_ms_since(began.now) > PATIENCE_MS * 3 / 4);
    proxy_cut(s.proxy);
    conf_thread_join(&a.t);
    EXPECT(HF_EUNKNOWN, a.rc);
    assert_true(wait_within(began.fair, PATIENCE_MS + 1000));
    heal(&s);
    end(&s);
}

/* Takes the lock with a fixed lease and begins to downgrade. The server never
 * receives the first request. The client queues the second request long before
 * a new connection allows it to be sent. */
static void tell_twice(struct subject *s, int64_t lease_ms, int64_t *deadline)
{
    int64_t cut;

    *s = (struct subject){.verb = DOWNGRADE, .name = conf_name()};
    open_client(s, true, 5000);
    s->lock = conf_lock_of(s->client, s->name, HF_RWLOCK, 0, HF_OWNER_HANDLE);
    OK(conf_take_lease(s->lock, WAIT_LONG_MS, lease_ms));
    *deadline = conf_deadline(s->lock);
    proxy_hoard(s->proxy);
    OK(do_async(s));
    COMES((hf_client_dispatch(s->client), proxy_hoarded(s->proxy) > 0));
    proxy_set(s->proxy, PROXY_REFUSE, 0);
    proxy_cut(s->proxy); /* drops the held-back bytes */
    cut = wait_now();
    COMES((hf_client_dispatch(s->client), wait_ms_since(cut) > 500));
    assert_int_equal(s->call.called, 0);
    proxy_set(s->proxy, PROXY_PASS, 0);
}

/* The second request names the same end of the lease as the first one did, so
 * the lease ends when it would have ended without the retry. */
CONF_CASE(test_answers_downgrade_of_a_fixed_lease_is_told_again,
          CONF_FAR | CONF_RWLOCK | CONF_LEASE)
{
    struct subject s;
    hf_lock *other;
    int64_t deadline;

    tell_twice(&s, 5000, &deadline);
    other = conf_lock_of(conf_open(), s.name, HF_RWLOCK, 0, 0);
    conf_calls_back(s.client, &s.call, 0);
    assert_true(conf_deadline(s.lock) <= deadline);
    assert_true(conf_deadline(s.lock) > deadline - 500 * 1000000LL);
    OK(conf_take(other, HF_READ, 0, WAIT_LONG_MS));
    OK(hf_lock_check(s.lock)); /* the lease has not ended yet */
    OK(hf_lock_release(other, E));
    EXPECT(HF_EBUSY, conf_take(other, HF_WRITE, 0, 0));
    OK(conf_take(other, HF_WRITE, 0, WAIT_LONG_MS)); /* the lease has ended */
    EXPECT(HF_ELOST, hf_lock_release(s.lock, E));
    OK(hf_lock_release(other, E));
}

/* A renewal after the downgrade sets a lease of full length again, whether or
 * not the client got the reply to the downgrade. */
CONF_CASE(test_answers_downgrade_told_again_is_as_long,
          CONF_FAR | CONF_RWLOCK | CONF_LEASE)
{
    for (int heard = 0; heard < 2; heard++) {
        struct subject s;
        int64_t deadline, before;

        tell_twice(&s, LEASE_MS, &deadline);
        if (!heard)
            OK(hf_lock_cancel(s.lock));
        COMES(conf_called(s.client, &s.call));
        EXPECT(heard ? 0 : HF_EUNKNOWN, s.call.result);
        heal(&s); /* after this, the request has been sent */
        assert_true(conf_deadline(s.lock) <= deadline);
        before = wait_now();
        OK(hf_lock_renew(s.lock, 0, E));
        assert_true(conf_deadline(s.lock) >
                    before + LEASE_MS * 1000000LL * 989 / 1000);
        end(&s);
    }
}
