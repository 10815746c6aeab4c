/* The latch: it is set once, counted down and waited for, and has no owner. */
#include "conf.h"

struct latches {
    const char *name;
    hf_client *c[2];
    hf_latch *l[2]; /* two clients' latches of one name */
};

static struct latches begin(void)
{
    struct latches s = {.name = conf_name()};

    for (int i = 0; i < 2; i++) {
        s.c[i] = conf_open();
        s.l[i] = conf_latch(s.c[i], s.name);
    }
    return s;
}

static void is_at(hf_latch *latch, uint64_t expected)
{
    uint64_t count = UINT64_MAX;

    OK(hf_latch_get(latch, &count, E));
    assert_int_equal(count, expected);
}

struct waiter {
    struct conf_thread t;
    hf_latch *latch;
    hf_cancel cancel;
    int64_t wait_ms;
    int rc;
};

static void wait_for_it(void *arg)
{
    struct waiter *w = arg;

    w->rc = hf_latch_wait(w->latch, w->wait_ms, &w->cancel, NULL);
}

static void returns(struct waiter *w, int rc)
{
    conf_thread_join(&w->t);
    EXPECT(rc, w->rc);
}

static void all_return(struct waiter *w, int n)
{
    for (int i = 0; i < n; i++) {
        COMES(conf_thread_ended(&w[i].t));
        returns(&w[i], 0);
    }
}

static void start(struct waiter *w, hf_latch *latch)
{
    *w = (struct waiter){.latch = latch, .wait_ms = HF_FOREVER};
    hf_cancel_init(&w->cancel);
    conf_thread_start(&w->t, wait_for_it, w);
    conf_thread_asleep(&w->t);
}

/* Starts a waiter; returns when the server has registered the waiter. It is not
 * enough that the waiter's thread sleeps, because the thread may be waiting for
 * the reply to a request. A waiter sends only a few requests, and replies
 * arrive in order, so a few more requests on the same client are enough. */
static void start_and_settle(struct waiter *w, hf_latch *latch)
{
    start(w, latch);
    for (int i = 0; i < 5; i++)
        is_at(latch, 1);
    conf_thread_asleep(&w->t);
}

CONF_CASE(test_latch_is_counted_down, CONF_LATCH)
{
    struct latches s = begin();
    uint64_t after = 0;

    is_at(s.l[0], 0);
    OK(hf_latch_set(s.l[0], 3, E));
    for (uint64_t left = 3; left; left--) {
        is_at(s.l[0], left);
        is_at(s.l[1], left);
        EXPECT(HF_ETIMEDOUT, hf_latch_wait(s.l[1], 20, NULL, E));
        OK(hf_latch_down(s.l[left % 2], &after, E));
        assert_int_equal(after, left - 1);
    }
    is_at(s.l[0], 0);
    OK(hf_latch_wait(s.l[0], 0, NULL, E));
    OK(hf_latch_wait(s.l[1], HF_FOREVER, NULL, E));
}

CONF_CASE(test_latch_is_set_once, CONF_LATCH)
{
    struct latches s = begin();

    OK(hf_latch_set(s.l[0], 2, E));
    EXPECT(HF_EBUSY, hf_latch_set(s.l[0], 5, E));
    EXPECT(HF_EBUSY, hf_latch_set(s.l[1], 2, E));
    is_at(s.l[1], 2);
    OK(hf_latch_down(s.l[0], NULL, E));
    EXPECT(HF_EBUSY, hf_latch_set(s.l[1], 2, E));
    is_at(s.l[0], 1);
    OK(hf_latch_down(s.l[1], NULL, E));
    OK(hf_latch_set(s.l[1], 1, E)); /* a latch at 0 can be set again */
    is_at(s.l[0], 1);
    OK(hf_latch_down(s.l[0], NULL, E));
}

CONF_CASE(test_latch_stays_at_zero, CONF_LATCH)
{
    struct latches s = begin();

    OK(hf_latch_down(s.l[0], NULL, E)); /* it was never set */
    is_at(s.l[0], 0);
    OK(hf_latch_set(s.l[0], 1, E));
    for (int i = 0; i < 3; i++)
        OK(hf_latch_down(s.l[i % 2], NULL, E));
    is_at(s.l[0], 0);
    OK(hf_latch_wait(s.l[1], 0, NULL, E));
}

CONF_CASE(test_latch_lets_all_go_at_zero, CONF_LATCH)
{
    struct latches s = begin();
    struct waiter w[4];

    OK(hf_latch_set(s.l[0], 2, E));
    for (int i = 0; i < 4; i++)
        start(&w[i], s.l[i % 2]);
    OK(hf_latch_down(s.l[0], NULL, E));
    for (int i = 0; i < 4; i++)
        conf_thread_asleep(&w[i].t);
    OK(hf_latch_down(s.l[1], NULL, E));
    all_return(w, 4);
}

/* One client counts the latch down to 0; the other may free its handle as soon
 * as the waiters on that handle have returned. */
CONF_CASE(test_latch_is_freed_when_the_last_wait_is_over, CONF_LATCH)
{
    struct latches s = begin();
    struct waiter w;
    int rc;

    for (int i = 0; i < 20; i++) {
        OK(hf_latch_set(s.l[0], 1, E));
        start(&w, s.l[1]);
        OK(hf_latch_down(s.l[0], NULL, E));
        conf_forget(s.l[1]);
        while ((rc = hf_latch_free(s.l[1])) == HF_EBUSY)
            ;
        OK(rc);
        returns(&w, 0);
        s.l[1] = conf_latch(s.c[1], s.name);
    }
}

/* The latch reaches 0 and is set again. A wait that begins afterwards waits,
 * while older waits end. */
CONF_CASE(test_latch_set_again_is_another_wait, CONF_LATCH)
{
    struct latches s = begin();
    struct waiter w;

    for (int i = 0; i < 5; i++) {
        OK(hf_latch_set(s.l[0], 1, E));
        start(&w, s.l[0]);
        OK(hf_latch_down(s.l[0], NULL, E));
        OK(hf_latch_set(s.l[0], 1, E));
        EXPECT(HF_ETIMEDOUT, hf_latch_wait(s.l[0], 20, NULL, E));
        EXPECT(HF_EBUSY, hf_latch_wait(s.l[1], 0, NULL, E));
        OK(hf_latch_down(s.l[0], NULL, E));
        all_return(&w, 1);
    }
}

/* A wait ends when the latch reaches 0, even if the latch is set again before
 * the waiter can look. */
CONF_CASE(test_latch_set_again_at_once_keeps_nobody, CONF_LATCH)
{
    struct latches s = begin();
    struct waiter w[4];

    for (int i = 0; i < 15; i++) {
        OK(hf_latch_set(s.l[0], 1, E));
        for (int j = 0; j < 4; j++)
            start_and_settle(&w[j], s.l[j % 2]);
        OK(hf_latch_down(s.l[0], NULL, E));
        OK(hf_latch_set(s.l[0], 1, E));
        all_return(w, 4);
        EXPECT(HF_EBUSY, hf_latch_wait(s.l[1], 0, NULL, E));
        OK(hf_latch_down(s.l[0], NULL, E));
    }
}

CONF_CASE(test_latch_wait_ends_early, CONF_LATCH)
{
    struct latches s = begin();
    struct waiter w;
    struct wait_mark began;

    OK(hf_latch_set(s.l[0], 1, E));
    began = wait_mark();
    EXPECT(HF_ETIMEDOUT, hf_latch_wait(s.l[0], 100, NULL, E));
    assert_true(wait_took(began, 100, 1100));
    start(&w, s.l[1]);
    EXPECT(HF_EBUSY, hf_latch_free(s.l[1]));
    hf_cancel_fire(&w.cancel);
    returns(&w, HF_ECANCELED);
    EXPECT(HF_EINVAL, hf_latch_wait(s.l[0], -2, NULL, E));
    is_at(s.l[0], 1);
    OK(hf_latch_down(s.l[0], NULL, E));
}

CONF_CASE(test_latch_wait_ends_with_the_client, CONF_LATCH)
{
    struct latches s = begin();
    struct waiter w;

    OK(hf_latch_set(s.l[0], 1, E));
    start(&w, s.l[1]);
    conf_close(s.c[1]);
    returns(&w, HF_ECLOSED);
    EXPECT(HF_ECLOSED, hf_latch_down(s.l[1], NULL, E));
    EXPECT(HF_ECLOSED, hf_latch_set(s.l[1], 1, E));
    EXPECT(HF_ECLOSED, hf_latch_get(s.l[1], &(uint64_t){0}, E));
    EXPECT(HF_ECLOSED, hf_latch_wait(s.l[1], 0, NULL, E));
    OK(hf_latch_down(s.l[0], NULL, E));
}

struct call {
    int called, result;
    hf_latch *latch;
};

static void note(void *arg, hf_latch *latch, int result)
{
    struct call *call = arg;

    call->called++;
    call->result = result;
    call->latch = latch;
}

static bool called(hf_client *c, const struct call *call)
{
    assert_true(hf_client_dispatch(c) >= 0);
    return call->called;
}

static void wait_async(hf_latch *latch, int64_t wait_ms, struct call *call)
{
    *call = (struct call){0, 0, NULL};
    OK(hf_latch_wait_async(latch, wait_ms, note, call, E));
}

CONF_CASE(test_latch_async, CONF_LATCH)
{
    struct latches s = begin();
    struct call call;

    wait_async(s.l[0], HF_FOREVER, &call); /* the latch is at 0 */
    assert_int_equal(call.called, 0);      /* callbacks run only in dispatch */
    COMES(called(s.c[0], &call));
    OK(call.result);
    assert_ptr_equal(call.latch, s.l[0]);
    OK(hf_latch_set(s.l[0], 1, E));
    wait_async(s.l[1], 50, &call);
    EXPECT(HF_EBUSY, hf_latch_wait_async(s.l[1], 50, note, &call, E));
    EXPECT(HF_EBUSY, hf_latch_free(s.l[1]));
    COMES(called(s.c[1], &call));
    EXPECT(HF_ETIMEDOUT, call.result);
    wait_async(s.l[1], HF_FOREVER, &call);
    assert_false(called(s.c[1], &call));
    OK(hf_latch_cancel(s.l[1]));
    COMES(called(s.c[1], &call));
    EXPECT(HF_ECANCELED, call.result);
    wait_async(s.l[1], HF_FOREVER, &call);
    OK(hf_latch_down(s.l[0], NULL, E));
    COMES(called(s.c[1], &call));
    OK(call.result);
    assert_int_equal(call.called, 1);
}

CONF_CASE(test_latch_async_ends_with_the_client, CONF_LATCH)
{
    struct latches s = begin();
    struct call call;

    OK(hf_latch_set(s.l[0], 1, E));
    wait_async(s.l[1], HF_FOREVER, &call);
    conf_close(s.c[1]);
    assert_int_equal(call.called, 1);
    EXPECT(HF_ECLOSED, call.result);
    EXPECT(HF_ECLOSED, hf_latch_wait_async(s.l[1], 0, note, &call, E));
    EXPECT(HF_ECLOSED, hf_latch_cancel(s.l[1]));
    OK(hf_latch_down(s.l[0], NULL, E));
}

CONF_CASE(test_latch_is_seen, CONF_LATCH | CONF_INSPECT)
{
    struct latches s = begin();
    struct waiter w;
    hf_info *info;

    OK(hf_latch_set(s.l[0], 3, E));
    start(&w, s.l[0]);
    info = conf_inspect(s.c[1], s.name);
    assert_int_equal(info->kind, HF_LATCH);
    assert_int_equal(info->count, 3);
    assert_int_equal(info->holders_len, 0);
    assert_int_equal(info->waiters_unknown, !conf.local);
    assert_int_equal(info->waiters_len, conf.local ? 1 : 0);
    for (int i = 0; i < 3; i++)
        OK(hf_latch_down(s.l[0], NULL, E));
    returns(&w, 0);
}

/* A latch has no holders but may have waiters: a break sets it to 0, which ends
 * their waits. */
CONF_CASE(test_latch_break_lets_all_go, CONF_LATCH | CONF_INSPECT)
{
    struct latches s = begin();
    struct waiter w[2];

    EXPECT(HF_ENOTOWNER, hf_break(s.c[1], s.name, HF_CSTRING, E));
    for (int round = 0; round < 2; round++) {
        OK(hf_latch_set(s.l[0], 3, E));
        for (int i = 0; i < 2; i++)
            start(&w[i], s.l[i]);
        OK(hf_latch_down(s.l[0], NULL, E));
        OK(hf_break(s.c[1], s.name, HF_CSTRING, E));
        is_at(s.l[0], 0);
        all_return(w, 2);
        EXPECT(HF_ENOTOWNER, hf_break(s.c[1], s.name, HF_CSTRING, E));
    }
}

/* A latch has no owner: it stays as it is when the process that set it is
 * killed and the session of that process ends. */
CONF_CASE(test_latch_survives_whoever_set_it, CONF_LATCH)
{
    const int64_t ttl_ms = conf.session ? 1500 : 300;
    struct proc_cmd set = {.op = PROC_SET, .times = 2};
    struct proc_cmd wait = {
        .op = PROC_WAIT, .wait_ms = HF_FOREVER, .announce = true};
    struct latches s = begin();
    struct proc waiter;
    struct proc_reply r;
    int64_t killed;
    struct proc setter = conf_puppet_of(s.name, ttl_ms, HF_LATCH, 0);

    assert_int_equal(proc_do(&setter, &set, &r), 0);
    OK(r.rc);
    OK(conf_puppet_do(&setter, PROC_DOWN, NULL));
    waiter = conf_puppet_of(s.name, ttl_ms, HF_LATCH, 0);
    assert_int_equal(proc_do(&waiter, &wait, &r), 0);
    proc_kill(&setter);
    killed = wait_now();
    COMES(wait_ms_since(killed) > 2 * ttl_ms); /* longer than its session */
    is_at(s.l[0], 1);
    assert_false(proc_ready(&waiter, 0));
    OK(hf_latch_down(s.l[0], NULL, E));
    conf_puppet_answer(&waiter, &r);
    OK(r.rc);
    assert_int_equal(proc_end(&waiter), 0);
}

/* Threads, clients and processes count a latch down at the same time; each call
 * counts once. */
struct counter {
    struct conf_thread t;
    hf_latch *latch;
    int times, rc;
};

static void count_down(void *arg)
{
    struct counter *c = arg;

    for (int i = 0; i < c->times && !c->rc; i++)
        c->rc = hf_latch_down(c->latch, NULL, NULL);
}

CONF_CASE(test_latch_counts_each_once, CONF_LATCH)
{
    enum { N = 4, TIMES = 50 };
    struct latches s = begin();
    struct counter c[N];

    OK(hf_latch_set(s.l[0], N * TIMES + 1, E));
    for (int i = 0; i < N; i++) {
        c[i] = (struct counter){.latch = s.l[i % 2], .times = TIMES};
        conf_thread_start(&c[i].t, count_down, &c[i]);
    }
    for (int i = 0; i < N; i++) {
        conf_thread_join(&c[i].t);
        OK(c[i].rc);
    }
    is_at(s.l[0], 1);
    OK(hf_latch_down(s.l[0], NULL, E));
}

CONF_CASE(test_latch_bad_arguments, CONF_LATCH)
{
    hf_client *c = conf_open();
    hf_latch *latch = conf_latch(c, conf_name()), *none = NULL;

    EXPECT(HF_EINVAL, hf_latch_new(NULL, "n", 1, &none, E));
    EXPECT(HF_EINVAL, hf_latch_new(c, NULL, 1, &none, E));
    EXPECT(HF_EINVAL, hf_latch_new(c, "", 0, &none, E));
    EXPECT(HF_EINVAL, hf_latch_new(c, "a\0b", 3, &none, E));
    EXPECT(HF_EINVAL, hf_latch_new(c, "n", 1, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_get(latch, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_set(latch, 0, E));
    EXPECT(HF_EINVAL, hf_latch_set(latch, (uint64_t)INT32_MAX + 1, E));
    EXPECT(HF_EINVAL, hf_latch_wait_async(latch, 0, NULL, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_cancel(NULL));
    OK(hf_latch_cancel(latch)); /* nothing to cancel */
    EXPECT(HF_EINVAL, hf_latch_set(NULL, 1, E));
    EXPECT(HF_EINVAL, hf_latch_down(NULL, NULL, E));
    EXPECT(HF_EINVAL, hf_latch_wait(NULL, 0, NULL, E));
    OK(hf_latch_free(NULL));
}
