/* The scenes of alloc: each call, and what must hold after it failed. */
#include "alloc.h"

#include <poll.h>
#include <stdio.h>

/* Treats HF_EUNKNOWN as success, because it does not matter whether the release
 * has reached the server. */
static int known(int rc)
{
    return rc == HF_EUNKNOWN ? 0 : rc;
}

static bool readable(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 0) == 1;
}

static void open_and_close(struct stage *s, long n)
{
    hf_client *c = NULL;
    int rc = TRY(n, open_client(s, &c));

    assert_int_equal(c == NULL, rc != 0);
    OK(hf_close(c));
}

static void make_locks(struct stage *s, long n)
{
    enum { MANY = 40 };
    hf_lock *lock[MANY] = {0};
    int rc = 0, made = 0;

    arm(n);
    while (!rc && made < MANY) {
        rc = hf_lock_new(s->c, conf_name(), HF_CSTRING, NULL, &lock[made], E);
        if (!rc)
            made++;
        else
            assert_null(lock[made]);
    }
    disarm();
    check_code(rc, "hf_lock_new", n);
    for (int i = 0; i < made; i++) {
        OK(hf_lock_try(lock[i], E));
        OK(hf_lock_release(lock[i], E));
        conf_free(lock[i]);
    }
}

static void acquire(struct stage *s, long n)
{
    int rc = TRY(n, hf_lock_timed(s->lock, WAIT_LONG_MS, E));

    if (!rc)
        OK(hf_lock_release(s->lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
}

struct waiter {
    struct conf_thread t;
    hf_lock *lock;
    /* Atomic: set once allocations may fail; the thread waits for this. */
    uint32_t go;
    int rc;
};

static void wait_for_it(void *arg)
{
    struct waiter *w = arg;

    while (!__atomic_load_n(&w->go, __ATOMIC_ACQUIRE))
        wait_tick();
    w->rc = hf_lock_timed(w->lock, WAIT_LONG_MS, NULL);
}

/* The holder releases when the waiter sleeps or has given up. */
static void acquire_contended(struct stage *s, long n)
{
    struct waiter w = {.lock = s->lock};

    OK(hf_lock_acquire(s->theirs, NULL, E));
    conf_thread_start(&w.t, wait_for_it, &w);
    COMES(__atomic_load_n(&w.t.tid, __ATOMIC_ACQUIRE));
    arm(n);
    __atomic_store_n(&w.go, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 20 && !conf_thread_ended(&w.t); i++)
        wait_tick();
    they_let_go(s, n);
    conf_thread_join(&w.t);
    disarm();
    check_code(w.rc, "a waiting acquire", n);
    if (!w.rc)
        OK(hf_lock_release(s->lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
}

static void try_held(struct stage *s, long n)
{
    int rc;

    OK(hf_lock_acquire(s->theirs, NULL, E));
    arm(n);
    rc = hf_lock_try(s->lock, E);
    disarm();
    check_code(rc == HF_EBUSY ? 0 : rc, "hf_lock_try", n);
    OK(hf_lock_release(s->theirs, E));
}

static bool dispatched(struct stage *s, struct conf_call *call)
{
    int rc = hf_client_dispatch(s->c);

    return rc < 0 || call->called;
}

static void async(struct stage *s, long n)
{
    struct conf_call call = {0, 0};
    int rc;

    OK(hf_lock_acquire(s->theirs, NULL, E));
    arm(n);
    rc = hf_lock_acquire_async(s->lock, NULL, conf_note, &call, E);
    check_code(rc, "hf_lock_acquire_async", n);
    for (int i = 0; i < 10; i++, wait_tick())
        hf_client_dispatch(s->c);
    they_let_go(s, n);
    if (!rc) {
        COMES(dispatched(s, &call));
        assert_int_equal(call.called, 1);
        check_code(call.result, "an asynchronous acquire", n);
    }
    if (!rc && !call.result) {
        call = (struct conf_call){0, 0};
        rc = hf_lock_release_async(s->lock, conf_note, &call, E);
        check_code(rc, "hf_lock_release_async", n);
        if (rc)
            OK(hf_lock_release(s->lock, E));
        else
            COMES(dispatched(s, &call));
        check_code(call.result, "an asynchronous release", n);
    }
    disarm();
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
}

static void async_cancel(struct stage *s, long n)
{
    struct conf_call call = {0, 0};
    int rc;

    OK(hf_lock_acquire(s->theirs, NULL, E));
    arm(n);
    rc = hf_lock_acquire_async(s->lock, NULL, conf_note, &call, E);
    check_code(rc, "hf_lock_acquire_async", n);
    for (int i = 0; i < 5; i++, wait_tick())
        hf_client_dispatch(s->c);
    OK(hf_lock_cancel(s->lock));
    if (!rc)
        COMES(dispatched(s, &call));
    disarm();
    if (call.result != HF_ECANCELED)
        check_code(call.result, "a cancelled acquire", n);
    assert_true(rc || call.result); /* the lock was never free */
    OK(hf_lock_release(s->theirs, E));
}

/* Whatever the release returns, the hold has ended for its caller. */
static void release(struct stage *s, long n)
{
    OK(hf_lock_timed(s->lock, WAIT_LONG_MS, E));
    TRY(n, known(n % 2 ? hf_lock_release(s->lock, E)
                       : hf_lock_release_nowait(s->lock, E)));
    EXPECT(HF_ENOTOWNER, hf_lock_check(s->lock));
}

/* Sends more releases at once than earlier requests reserved memory for. A
 * release that cannot be sent because memory is missing is sent later. */
static void release_many(struct stage *s, long n)
{
    enum { MANY = 12 };
    hf_lock *lock[MANY], *theirs[MANY];

    for (int i = 0; i < MANY; i++) {
        const char *name = conf_name();

        conf.fairness =
            i % 2 && conf.caps & HF_CAP_UNFAIR ? HF_UNFAIR : HF_FAIR_DEFAULT;
        lock[i] = conf_lock_flags(s->c, name, HF_OWNER_HANDLE);
        theirs[i] = conf_lock(s->other, name);
        OK(hf_lock_timed(lock[i], WAIT_LONG_MS, E));
    }
    conf.fairness = HF_FAIR_DEFAULT;
    arm(n);
    for (int i = 0; i < MANY; i++)
        check_code(hf_lock_release_nowait(lock[i], E), "hf_lock_release_nowait",
                   n);
    disarm();
    if (n == 1 && !strncmp(conf.url, "zk:", 3))
        assert_true(any_failed()); /* on ZooKeeper each release needs memory */
    for (int i = 0; i < MANY; i++) {
        OK(hf_lock_timed(theirs[i], WAIT_LONG_MS, E));
        OK(hf_lock_release(theirs[i], E));
        conf_free(theirs[i]);
        conf_free(lock[i]);
    }
}

static void renew(struct stage *s, long n)
{
    OK(conf_take_lease(s->lock, WAIT_LONG_MS, 20000));
    TRY(n, hf_lock_renew(s->lock, 30000, E));
    OK(hf_lock_check(s->lock));
    OK(hf_lock_renew(s->lock, 30000, E));
    OK(hf_lock_release(s->lock, E));
}

static bool is_good_beyond(hf_lock *lock, int64_t then)
{
    int64_t deadline = conf_deadline(lock);

    return deadline > then || deadline == HF_NO_DEADLINE;
}

/* Memory is missing for the first or the second renewal. That renewal must be
 * repeated before the hold ends. */
static void watchdog(struct stage *s, long n)
{
    int64_t begun, deadline;

    OK(hf_lock_timed(s->lock, WAIT_LONG_MS, E));
    begun = wait_now();
    arm(n);
    COMES(any_failed() || wait_ms_since(begun) > s->ttl_ms * 5 / 6);
    deadline = conf_deadline(s->lock);
    COMES(is_good_beyond(s->lock, deadline));
    disarm();
    OK(hf_lock_check(s->lock));
    EXPECT(HF_EBUSY, hf_lock_try(s->theirs, E));
    OK(hf_lock_release(s->lock, E));
}

/* If memory is missing, the event may not be delivered; hf_lock_check() and the
 * descriptor still report the loss. */
static void loss(struct stage *s, long n)
{
    int fd = hf_lock_fd(s->lock);

    assert_true(fd >= 0);
    OK(conf_take_lease(s->lock, WAIT_LONG_MS, 100));
    arm(n);
    COMES(readable(fd));
    EXPECT(HF_ELOST, hf_lock_check(s->lock));
    COMES((hf_client_dispatch(s->c), s->lost || any_failed()));
    disarm();
    EXPECT(HF_ELOST, hf_lock_release(s->lock, E));
}

/* Uses its own folder: listing a ZooKeeper folder allocates for each node in
 * it, and the server removes the nodes of unused names at any time. */
static void queries(struct stage *s, long n)
{
    char folder[80], name[96];
    hf_info *info = NULL;
    hf_names *names = NULL;
    hf_lock *lock;
    int rc;

    snprintf(folder, sizeof(folder), "%s/", s->name);
    snprintf(name, sizeof(name), "%sinner", folder);
    lock = conf_lock(s->other, name);
    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    arm(n);
    rc = hf_inspect(s->c, name, HF_CSTRING, &info, E);
    check_code(rc, "hf_inspect", n);
    assert_int_equal(info == NULL, rc != 0);
    rc = hf_list(s->c, folder, &names, E);
    check_code(rc, "hf_list", n);
    assert_int_equal(names == NULL, rc != 0);
    disarm();
    assert_true(any_failed() || !names || names->len == 1);
    hf_info_free(info);
    hf_names_free(names);
    OK(hf_lock_release(lock, E));
    conf_free(lock);
}

static void diagnose(struct stage *s, long n)
{
    hf_diagnosis *diagnosis = NULL;
    int rc;

    arm(n);
    rc = hf_diagnose(s->c, &diagnosis, E);
    disarm();
    /* If there is no memory for a long reply, the connection ends, and the
     * outcome is unknown. */
    if (rc != HF_EUNKNOWN && rc != HF_ENOTSUP)
        check_code(rc, "hf_diagnose", n);
    assert_int_equal(diagnosis == NULL, rc != 0);
    hf_diagnosis_free(diagnosis);
}

/* The code of hf_break() tells whether the hold was broken, unless it is
 * HF_EUNKNOWN. */
static void break_it(struct stage *s, long n)
{
    int rc, released;

    OK(hf_lock_timed(s->theirs, WAIT_LONG_MS, E));
    rc = TRY(n, hf_break(s->c, s->name, HF_CSTRING, E));
    released = hf_lock_release(s->theirs, E);
    if (rc != HF_EUNKNOWN)
        EXPECT(rc ? 0 : HF_ELOST, released);
}

/* A holder asks for its own lock. Whether it is notified or not, it keeps the
 * hold. */
static void ask(struct stage *s, long n)
{
    int rc;

    OK(hf_lock_timed(s->lock, WAIT_LONG_MS, E));
    arm(n);
    rc = hf_ask(s->c, s->name, HF_CSTRING, E);
    disarm();
    if (rc != HF_ENOTSUP)
        check_code(rc, "hf_ask", n);
    check_code(hf_lock_release(s->lock, E), "hf_lock_release", n);
}

static void several(struct stage *s, long n)
{
    hf_part part[3] = {{.lock = s->lock}};
    int rc;

    part[1].lock = conf_lock(s->c, conf_name());
    part[2].lock = conf_lock(s->c, conf_name());
    rc = TRY(n, hf_lock_acquire_all(part, 3, NULL, E));
    for (int i = 0; i < 3; i++)
        EXPECT(rc ? HF_ENOTOWNER : 0, hf_lock_check(part[i].lock));
    if (!rc)
        OK(hf_lock_release_all(part, 3, E));
    conf_free(part[1].lock);
    conf_free(part[2].lock);
}

static void permits(struct stage *s, long n)
{
    hf_lock *lock =
        conf_lock_of(s->c, conf_name(), HF_SEMAPHORE, 3, HF_OWNER_HANDLE);
    int rc = TRY(n, conf_take(lock, HF_WRITE, 2, WAIT_LONG_MS));

    if (!rc)
        OK(hf_lock_release(lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    COMES(conf_take(lock, HF_WRITE, 3, WAIT_LONG_MS) == 0);
    OK(hf_lock_release(lock, E));
    conf_free(lock);
}

/* Returns the result of the call or, if the call succeeded, of its callback. */
static int outcome(struct stage *s, int rc, struct conf_call *call)
{
    if (rc)
        return rc;
    COMES(dispatched(s, call));
    assert_int_equal(call->called, 1);
    return call->result;
}

/* After the downgrade, whether it succeeded or not, the lock is still held. */
static void downgrade(struct stage *s, long n)
{
    hf_lock *lock =
        conf_lock_of(s->c, conf_name(), HF_RWLOCK, 0, HF_OWNER_HANDLE);
    struct conf_call call = {0, 0};
    int rc;

    OK(hf_lock_timed(lock, WAIT_LONG_MS, E));
    arm(n);
    if (n % 2)
        rc = hf_lock_downgrade(lock, E);
    else
        rc = outcome(s, hf_lock_downgrade_async(lock, conf_note, &call, E),
                     &call);
    disarm();
    check_code(rc == HF_EUNKNOWN ? 0 : rc, "hf_lock_downgrade", n);
    OK(hf_lock_check(lock));
    if (!rc)
        EXPECT(HF_ENOTOWNER, hf_lock_downgrade(lock, E));
    OK(hf_lock_release(lock, E));
    conf_free(lock);
}

static void note_latch(void *call, hf_latch *latch, int result)
{
    (void)latch;
    conf_note(call, NULL, result);
}

/* Unless the call returns HF_EUNKNOWN, its code tells whether the latch was
 * counted down. */
static void latch_down(struct stage *s, long n)
{
    struct conf_call call = {0, 0};
    uint64_t left = 99;
    hf_latch *latch;
    int rc;

    OK(hf_latch_new(s->c, conf_name(), HF_CSTRING, &latch, E));
    OK(hf_latch_set(latch, 2, E));
    arm(n);
    if (n % 2)
        rc = hf_latch_down(latch, NULL, E);
    else
        rc = outcome(s, hf_latch_down_async(latch, NULL, note_latch, &call, E),
                     &call);
    disarm();
    check_code(rc == HF_EUNKNOWN ? 0 : rc, "hf_latch_down", n);
    OK(hf_latch_get(latch, &left, E));
    if (rc != HF_EUNKNOWN)
        assert_int_equal(left, rc ? 2 : 1);
    while (left)
        OK(hf_latch_down(latch, &left, E));
    OK(hf_latch_free(latch));
}

/* Waits for the latch while another request is in flight and uses the reserved
 * memory. */
static void latch_wait(struct stage *s, long n)
{
    struct conf_call call = {0, 0};
    hf_latch *latch, *other;
    uint64_t left;

    OK(hf_latch_new(s->c, conf_name(), HF_CSTRING, &latch, E));
    OK(hf_latch_new(s->c, conf_name(), HF_CSTRING, &other, E));
    OK(hf_latch_get_async(other, &left, note_latch, &call, E));
    TRY(n, hf_latch_wait(latch, WAIT_LONG_MS, NULL, E));
    check_code(outcome(s, 0, &call), "hf_latch_get_async", n);
    COMES(hf_latch_wait(latch, WAIT_LONG_MS, NULL, NULL) == 0);
    OK(hf_latch_free(latch));
    OK(hf_latch_free(other));
}

static void see(void *arg, hf_watch *watch, const char *name, size_t len)
{
    (void)watch;
    (void)name;
    (void)len;
    ++*(int *)arg;
}

static bool is_seen(struct stage *s, const int *calls)
{
    return hf_client_dispatch(s->c) < 0 || *calls;
}

/* Once the watch exists, missing memory must not lose a change. */
static void watch_name(struct stage *s, long n)
{
    hf_watch *w = NULL;
    int calls = 0, rc;
    int64_t began;

    if (!conf.watches)
        return;
    arm(n);
    began = wait_fair();
    rc = hf_watch_new(s->c, s->name, HF_CSTRING, 0, see, &calls, &w, E);
    /* The call must not wait until memory is available. */
    assert_true(wait_within(began, WAIT_LONG_MS / 2));
    if (rc != HF_EUNKNOWN) /* the failure may have ended the connection */
        check_code(rc, "hf_watch_new", n);
    assert_int_equal(w == NULL, rc != 0);
    rc = hf_lock_timed(s->theirs, WAIT_LONG_MS, E);
    check_code(rc, "hf_lock_timed", n);
    for (int i = 0; i < 10; i++, wait_tick())
        hf_client_dispatch(s->c);
    disarm();
    if (rc)
        OK(hf_lock_acquire(s->theirs, NULL, E));
    if (w)
        COMES(is_seen(s, &calls));
    OK(hf_watch_free(w));
    OK(hf_lock_release(s->theirs, E));
}

/* Asserts the result of an acquire during which the client was closed. If the
 * attempt was repeated before the close, memory may have been missing. */
static void was_closed(int rc, long n)
{
    if (rc != HF_ECLOSED)
        check_code(rc, "an acquire", n);
    assert_int_not_equal(rc, 0);
}

/* Closes a client that has a hold, a waiting thread and an asynchronous
 * acquire. */
static void close_busy(struct stage *s, long n)
{
    hf_lock *busy[3];
    struct conf_call call = {0, 0};
    struct conf_taker t = {0};
    hf_client *c = NULL;

    /* A busy machine may need more than the short connect_timeout. */
    COMES(open_client(s, &c) == 0);
    busy[0] = conf_lock(c, conf_name());
    busy[1] = conf_lock(c, s->name);
    busy[2] = conf_lock_flags(c, s->name, HF_OWNER_HANDLE);
    OK(hf_lock_acquire(s->theirs, NULL, E));
    OK(hf_lock_acquire(busy[0], NULL, E));
    OK(hf_lock_acquire_async(busy[2], NULL, conf_note, &call, E));
    conf_taker_start(&t, busy[1]);
    conf_thread_asleep(&t.t);
    TRY(n, known(hf_close(c)));
    conf_taker_end(&t);
    was_closed(t.rc, n);
    assert_int_equal(call.called, 1);
    was_closed(call.result, n);
    for (int i = 0; i < 3; i++)
        conf_free(busy[i]);
    OK(hf_lock_release(s->theirs, E));
}

const struct scene scenes[] = {
    {"test_alloc_open_and_close", open_and_close, SCENE_SURELY},
    {"test_alloc_lock_new", make_locks, SCENE_SURELY},
    {"test_alloc_acquire", acquire, 0},
    {"test_alloc_acquire_contended", acquire_contended, 0},
    {"test_alloc_try_of_a_held_one", try_held, 0},
    {"test_alloc_async", async, SCENE_SURELY},
    {"test_alloc_async_cancel", async_cancel, 0},
    {"test_alloc_release", release, SCENE_TWICE},
    {"test_alloc_release_many", release_many, 0},
    {"test_alloc_renew", renew, 0},
    {"test_alloc_watchdog", watchdog, SCENE_ONCE | SCENE_RENEWS},
    {"test_alloc_loss", loss, 0},
    {"test_alloc_inspect_and_list", queries, SCENE_INSPECTS},
    {"test_alloc_diagnose", diagnose, 0},
    {"test_alloc_break", break_it, SCENE_INSPECTS},
    {"test_alloc_ask", ask, SCENE_INSPECTS},
    {"test_alloc_acquire_all", several, 0},
    {"test_alloc_permits", permits, SCENE_KINDS},
    {"test_alloc_downgrade", downgrade,
     SCENE_SURELY | SCENE_TWICE | SCENE_KINDS},
    {"test_alloc_latch_down", latch_down,
     SCENE_SURELY | SCENE_TWICE | SCENE_KINDS},
    {"test_alloc_latch_wait", latch_wait, SCENE_KINDS},
    {"test_alloc_watch", watch_name, 0},
    {"test_alloc_close_of_a_busy_client", close_busy, 0},
    {0},
};
