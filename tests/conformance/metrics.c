/* What a client has counted: exact numbers, which are the same for every
 * backend. */
#include "conf.h"

static hf_metrics look(hf_client *c)
{
    hf_metrics m = HF_METRICS_INIT;
    uint64_t count = 0, le = 0;

    OK(hf_client_metrics(c, &m, E));
    assert_int_equal(m.size, sizeof(m));
    for (int i = 0; i < HF_WAIT_BUCKETS; i++) {
        assert_true(m.wait[i].le_us > le && m.wait[i].count >= count);
        le = m.wait[i].le_us;
        count = m.wait[i].count;
    }
    assert_true(count <= m.granted);
    return m;
}

/* Returns how many grants took at most `us` microseconds. */
static uint64_t within(const hf_metrics *m, int64_t us)
{
    uint64_t count = 0;

    for (int i = 0; i < HF_WAIT_BUCKETS && (int64_t)m->wait[i].le_us <= us; i++)
        count = m->wait[i].count;
    return count;
}

#define COUNTED(client, field, n) assert_int_equal(look(client).field, (n))

/* Asserts the client's counters of acquires and releases; those not given must
 * be 0. */
#define COUNTS(client, ...)                                                    \
    do {                                                                       \
        const hf_metrics got = look(client), want = {.size = 0, __VA_ARGS__};  \
                                                                               \
        assert_int_equal(got.granted, want.granted);                           \
        assert_int_equal(got.busy, want.busy);                                 \
        assert_int_equal(got.timed_out, want.timed_out);                       \
        assert_int_equal(got.cancelled, want.cancelled);                       \
        assert_int_equal(got.failed, want.failed);                             \
        assert_int_equal(got.released, want.released);                         \
        assert_int_equal(got.lost, want.lost);                                 \
        assert_int_equal(got.held, want.held);                                 \
        assert_int_equal(got.waiting, want.waiting);                           \
    } while (0)

CONF_CASE(test_metrics_begin_at_zero, 0)
{
    hf_client *c = conf_open();
    hf_metrics m = look(c), other = HF_METRICS_INIT;

    for (int i = 0; i < HF_WAIT_BUCKETS; i++)
        m.wait[i].le_us = 0;
    assert_memory_equal(&m, &other, sizeof(m));
    EXPECT(HF_EINVAL, hf_client_metrics(NULL, &m, E));
    EXPECT(HF_EINVAL, hf_client_metrics(c, NULL, E));
    m.size--;
    EXPECT(HF_EINVAL, hf_client_metrics(c, &m, E));
}

/* Each call counts, including a second acquire by the same thread. */
CONF_CASE(test_metrics_acquire_and_release, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    struct wait_mark began = wait_mark();
    hf_metrics m;

    for (int i = 0; i < 3; i++) {
        OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
        COUNTED(c, held, 1);
        OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
        COUNTED(c, held, 1);
        OK(hf_lock_release(lock, E));
        COUNTED(c, held, 1);
        OK(i ? hf_lock_release_nowait(lock, E) : hf_lock_release(lock, E));
        COUNTED(c, held, 0);
    }
    EXPECT(HF_ENOTOWNER, hf_lock_release(lock, E));
    m = look(c);
    assert_int_equal(m.granted, 6);
    assert_int_equal(m.released, 6);
    assert_int_equal(m.busy + m.timed_out + m.cancelled + m.failed + m.lost, 0);
    assert_int_equal(m.waiting, 0);
    assert_true((int64_t)m.wait_sum_ns <= wait_now() - began.now);
    assert_int_equal(within(&m, INT64_MAX), 6);
}

CONF_CASE(test_metrics_results, CONF_EACH)
{
    struct conf_taker t = {.opt = HF_ACQUIRE_OPTIONS_INIT};
    hf_cancel cancel = HF_CANCEL_INIT;
    hf_metrics m;
    struct conf_group g = conf_group(HF_MUTEX, 0, HF_NOT_REENTRANT);

    OK(hf_lock_acquire(g.l[0], NULL, E));
    EXPECT(HF_EDEADLK, hf_lock_acquire(g.l[0], NULL, E));
    COUNTED(g.c[0], failed, 1);
    EXPECT(HF_EINVAL, hf_lock_timed(g.l[0], -7, E));
    COUNTED(g.c[0], failed, 1);
    EXPECT(HF_EBUSY, hf_lock_try(g.l[1], E));
    EXPECT(HF_EBUSY, hf_lock_try(g.l[1], E));
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(g.l[1], 30, E));
    t.opt.cancel = &cancel;
    conf_taker_start(&t, g.l[1]);
    conf_thread_asleep(&t.t);
    COUNTED(g.c[1], waiting, 1);
    hf_cancel_fire(&cancel);
    conf_taker_ends(&t, HF_ECANCELED);
    m = look(g.c[1]);
    assert_int_equal(m.granted, 0);
    assert_int_equal(m.busy, 2);
    assert_int_equal(m.timed_out, 1);
    assert_int_equal(m.cancelled, 1);
    assert_int_equal(m.failed, 0);
    assert_int_equal(m.waiting, 0);
    assert_int_equal(m.held, 0);
    assert_int_equal(m.wait_sum_ns, 0);
    OK(hf_lock_release(g.l[0], E));
    COUNTED(g.c[2], granted, 0); /* other clients' calls do not count */
}

/* The recorded wait is at least the 40 ms for which the lock was held, and at
 * most the time measured here. */
CONF_CASE(test_metrics_time_of_a_wait, 0)
{
    struct conf_taker t = {.opt = HF_ACQUIRE_OPTIONS_INIT};
    int64_t began, asleep, took;
    hf_metrics m;
    struct conf_group g = conf_group(HF_MUTEX, 0, 0);

    OK(hf_lock_acquire(g.l[0], NULL, E));
    began = wait_now();
    conf_taker_start(&t, g.l[1]);
    conf_thread_asleep(&t.t);
    asleep = wait_now();
    while (wait_now() < asleep + 40 * INT64_C(1000000))
        wait_tick();
    OK(hf_lock_release(g.l[0], E));
    COMES(conf_taker_has(&t));
    took = wait_now() - began;
    m = look(g.c[1]);
    conf_taker_ends(&t, 0);
    assert_int_equal(m.granted, 1);
    assert_int_equal(m.held, 1);
    assert_true(m.wait_sum_ns >= 40 * 1000000 &&
                (int64_t)m.wait_sum_ns <= took);
    assert_int_equal(within(&m, 39999), 0);
    assert_int_equal(within(&m, 4 * took / 1000), 1);
    COUNTS(g.c[1], .granted = 1, .released = 1);
}

/* Threads of one client wait for each other and hand the lock over. */
CONF_CASE(test_metrics_hand_over, CONF_EACH)
{
    hf_lock_options opt = LOCK_OPTIONS(.handoff = 10);
    hf_client *c = conf_open();
    struct conf_taker t[3];
    hf_lock *lock;

    lock = conf_lock_with(c, conf_name(), &opt);
    OK(hf_lock_acquire(lock, NULL, E));
    for (int i = 0; i < 3; i++) {
        t[i] = (struct conf_taker){.opt = HF_ACQUIRE_OPTIONS_INIT};
        t[i].let_go = 1;
        conf_taker_start(&t[i], lock);
        conf_thread_asleep(&t[i].t);
    }
    COUNTS(c, .granted = 1, .waiting = 3, .held = 1);
    OK(hf_lock_release(lock, E));
    for (int i = 0; i < 3; i++) {
        conf_taker_ends(&t[i], 0);
    }
    COUNTS(c, .granted = 4, .released = 4);
}

/* A lock that was acquired twice counts as lost once. */
static void break_it(bool looks)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock(a, name);

    for (int i = 0; i < 2; i++)
        OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_renew(lock, 0, E));
    assert_true(look(a).renewed >= 1);
    COUNTED(a, renewals_failed, 0);
    OK(hf_break(b, name, HF_CSTRING, E));
    if (looks) {
        EXPECT(HF_ELOST, hf_lock_renew(lock, 0, E));
        COUNTS(a, .granted = 2, .lost = 1);
        EXPECT(HF_ELOST, hf_lock_acquire(lock, NULL, E));
        COUNTED(a, failed, 1);
        EXPECT(HF_ELOST, hf_lock_release(lock, E));
    } else { /* 0 or HF_ELOST: the client may not know of the break */
        (void)hf_lock_release(lock, NULL);
    }
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    COUNTS(a, .granted = 2, .failed = looks, .lost = 1, .released = 2);
}

CONF_ROW(test_metrics_of_a_broken_hold, CONF_INSPECT, break_it(true));
CONF_ROW(test_metrics_of_a_release_that_finds_it_broken, CONF_INSPECT,
         break_it(false));

CONF_CASE(test_metrics_of_a_lease_that_ended, CONF_LEASE)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());

    OK(conf_take_lease(lock, HF_FOREVER, 200));
    COMES(hf_lock_check(lock) == HF_ELOST);
    COUNTS(c, .granted = 1, .lost = 1);
    EXPECT(HF_ELOST, hf_lock_release(lock, E));
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    COUNTED(c, held, 1);
    OK(hf_lock_release(lock, E));
    COUNTS(c, .lost = 1, .granted = 2, .released = 2);
}

/* The client keeps the counts after the handles and names that they belong to
 * have been freed. */
CONF_CASE(test_metrics_outlive_handles, 0)
{
    hf_client *c = conf_open(), *b = conf_open();

    for (int i = 0; i < 20; i++) {
        const char *name = conf_name();
        hf_lock *lock = conf_lock(c, name), *other = conf_lock(b, name);

        OK(hf_lock_acquire(lock, NULL, E));
        EXPECT(HF_EBUSY, hf_lock_try(other, E));
        OK(hf_lock_release(lock, E));
        conf_free(lock);
        conf_free(other);
        COUNTS(c, .granted = i + 1, .released = i + 1);
        COUNTED(b, busy, i + 1);
    }
    COUNTED(c, held, 0);
}

CONF_CASE(test_metrics_async, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock_flags(c, conf_name(), HF_OWNER_HANDLE);
    hf_lock *other = conf_rival(lock, 0);
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    struct conf_call call = {0};

    OK(hf_lock_acquire(other, NULL, E));
    OK(hf_lock_acquire_async(lock, NULL, conf_note, &call, E));
    COUNTED(c, waiting, 1);
    EXPECT(HF_EBUSY, hf_lock_acquire_async(lock, NULL, conf_note, &call, E));
    COUNTED(c, failed, 1);
    OK(hf_lock_cancel(lock));
    conf_calls_back(c, &call, HF_ECANCELED);
    call.called = 0;
    opt.wait_ms = 20;
    OK(hf_lock_acquire_async(lock, &opt, conf_note, &call, E));
    conf_calls_back(c, &call, HF_ETIMEDOUT);
    OK(hf_lock_release(other, E));
    call.called = 0;
    OK(hf_lock_acquire_async(lock, NULL, conf_note, &call, E));
    conf_calls_back(c, &call, 0);
    COUNTS(c, .granted = 1, .cancelled = 1, .timed_out = 1, .failed = 1,
           .held = 1);
    call.called = 0;
    OK(hf_lock_release_async(lock, conf_note, &call, E));
    conf_calls_back(c, &call, 0);
    COUNTS(c, .granted = 1, .cancelled = 1, .timed_out = 1, .failed = 1,
           .released = 1);
}

CONF_CASE(test_metrics_of_several_at_once, 0)
{
    hf_client *c = conf_open(), *b = conf_open();
    const char *one = conf_name(), *two = conf_name();
    hf_part parts[2] = {{.lock = conf_lock(c, one)},
                        {.lock = conf_lock(c, two)}};
    const char *last = strcmp(one, two) > 0 ? one : two;
    hf_lock *other = conf_lock(b, last);
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    OK(hf_lock_acquire_all(parts, 2, NULL, E));
    COUNTED(c, held, 2);
    OK(hf_lock_release_all(parts, 2, E));
    OK(hf_lock_acquire(other, NULL, E));
    opt.wait_ms = 0;
    EXPECT(HF_EBUSY, hf_lock_acquire_all(parts, 2, &opt, E));
    COUNTS(c, .granted = 3, .busy = 1, .released = 3);
    OK(hf_lock_release(other, E));
}

/* Three readers of one client, some of which share one hold at the server. */
static void read_it(bool lose)
{
    hf_client *c = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock[3];

    for (int i = 0; i < 3; i++) {
        lock[i] = conf_lock_of(c, name, HF_RWLOCK, 0, HF_OWNER_HANDLE);
        OK(conf_take(lock[i], HF_READ, 0, WAIT_LONG_MS));
        COUNTED(c, held, i + 1);
    }
    if (lose)
        OK(hf_break(b, name, HF_CSTRING, E));
    for (int i = 0; lose && i < 3; i++)
        EXPECT(HF_ELOST, hf_lock_renew(lock[i], 0, E));
    for (int i = 0; i < 3; i++) {
        COUNTED(c, held, lose ? 0 : 3 - i);
        EXPECT(lose ? HF_ELOST : 0, hf_lock_release(lock[i], E));
    }
    COUNTS(c, .granted = 3, .released = 3, .lost = lose ? 3 : 0);
}

CONF_ROW(test_metrics_readers, CONF_RWLOCK, read_it(false));
CONF_ROW(test_metrics_readers_that_lose, CONF_RWLOCK | CONF_INSPECT,
         read_it(true));

CONF_CASE(test_metrics_downgrade, CONF_RWLOCK)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock_of(c, conf_name(), HF_RWLOCK, 0, 0);

    OK(conf_take(lock, HF_WRITE, 0, WAIT_LONG_MS));
    OK(conf_take(lock, HF_READ, 0, WAIT_LONG_MS));
    COUNTED(c, held, 1);
    OK(hf_lock_downgrade(lock, E));
    COUNTED(c, held, 1);
    EXPECT(HF_ENOTSUP, conf_take(lock, HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_release(lock, E));
    OK(hf_lock_release(lock, E));
    COUNTS(c, .granted = 2, .failed = 1, .released = 2);
}

CONF_CASE(test_metrics_permits, CONF_SEMAPHORE)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock_of(c, conf_name(), HF_SEMAPHORE, 4, 0);

    OK(conf_take(lock, HF_WRITE, 3, WAIT_LONG_MS));
    COUNTED(c, held, 1);
    EXPECT(HF_EBUSY, conf_take(lock, HF_WRITE, 2, 0));
    OK(conf_take(lock, HF_WRITE, 1, WAIT_LONG_MS));
    COUNTED(c, held, 2);
    OK(hf_lock_release(lock, E));
    COUNTED(c, held, 1);
    OK(hf_lock_release(lock, E));
    COUNTS(c, .granted = 2, .busy = 1, .released = 2);
}

CONF_CASE(test_metrics_without_latches, CONF_LATCH)
{
    hf_client *c = conf_open();
    hf_latch *latch = NULL;
    hf_metrics m;

    OK(hf_latch_new(c, conf_name(), HF_CSTRING, &latch, E));
    OK(hf_latch_wait(latch, WAIT_LONG_MS, NULL, E));
    OK(hf_latch_set(latch, 1, E));
    EXPECT(HF_EBUSY, hf_latch_wait(latch, 0, NULL, E));
    EXPECT(HF_ETIMEDOUT, hf_latch_wait(latch, 20, NULL, E));
    OK(hf_latch_down(latch, NULL, E));
    for (int i = 0; i < 2; i++) {
        m = look(c);
        assert_int_equal(m.granted + m.busy + m.timed_out + m.failed, 0);
        assert_int_equal(m.held + m.waiting + m.wait_sum_ns, 0);
        OK(hf_latch_free(latch));
        latch = NULL;
    }
}

enum { WORKERS = 3, ROUNDS = 60 };

struct worker {
    struct conf_thread t;
    hf_client *c;
    const char *shared, *own;
    int failed;
};

/* Creates and frees handles, so that their counts move to the client while the
 * main thread reads the counters. */
static void work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < ROUNDS; i++) {
        hf_lock *lock = NULL;

        w->failed += hf_lock_new(w->c, i & 1 ? w->shared : w->own, HF_CSTRING,
                                 NULL, &lock, NULL) ||
                     hf_lock_timed(lock, WAIT_LONG_MS, NULL) ||
                     hf_lock_release(lock, NULL) || hf_lock_free(lock);
    }
}

/* Counters never decrease while other threads work. */
CONF_CASE(test_metrics_beside_threads, 0)
{
    struct worker w[WORKERS];
    const char *shared = conf_name();
    hf_client *c = conf_open();
    hf_metrics before = look(c), m;
    bool over = false;

    for (int i = 0; i < WORKERS; i++) {
        w[i] = (struct worker){.c = c, .shared = shared, .own = conf_name()};
        conf_thread_start(&w[i].t, work, &w[i]);
    }
    while (!over) {
        over = true;
        for (int i = 0; i < WORKERS; i++)
            over = over && conf_thread_ended(&w[i].t);
        m = look(c);
        assert_true(m.granted >= before.granted);
        assert_true(m.released >= before.released);
        assert_true(m.wait_sum_ns >= before.wait_sum_ns);
        assert_true(m.held <= WORKERS && m.waiting <= WORKERS);
        before = m;
    }
    for (int i = 0; i < WORKERS; i++) {
        conf_thread_join(&w[i].t);
        assert_int_equal(w[i].failed, 0);
    }
    m = look(c);
    assert_int_equal(m.granted, WORKERS * ROUNDS);
    assert_int_equal(m.released, WORKERS * ROUNDS);
    assert_int_equal(m.held + m.waiting, 0);
}

CONF_CASE(test_metrics_of_a_connection, CONF_FAR)
{
    struct proxy *proxy = conf_proxy();
    hf_client_options opt = CLIENT_OPTIONS(.op_timeout_ms = CONF_SHORT_OP_MS);
    hf_client *c;
    hf_lock *lock;

    c = conf_open_through(proxy, &opt);
    lock = conf_lock(c, conf_name());
    COMES(hf_lock_timed(lock, WAIT_LONG_MS, NULL) == 0);
    proxy_set(proxy, PROXY_REFUSE, 0);
    proxy_cut(proxy);
    COMES(look(c).disconnects > 0);
    assert_true(hf_lock_renew(lock, 0, NULL) != 0);
    COMES(look(c).renewals_failed > 0);
    proxy_set(proxy, PROXY_PASS, 0);
    COMES(look(c).reconnects == look(c).disconnects);
    (void)hf_lock_release(lock, NULL);
    COUNTED(c, released, 1);
    COUNTED(c, held, 0);
}

CONF_CASE(test_metrics_of_a_closed_client, 0)
{
    hf_client *c = conf_open();
    hf_metrics m = HF_METRICS_INIT;

    conf_lock(c, conf_name()); /* a handle, which keeps the client's memory */
    conf_close(c);
    EXPECT(HF_ECLOSED, hf_client_metrics(c, &m, E));
}
