/* The verbs that do not block, driven by the program's event loop. Callbacks
 * run only in hf_client_dispatch() and at the end of hf_close(), on the thread
 * that calls the function. */
#include "conf.h"

#include <sys/epoll.h>

struct call {
    int called, result, freed;
    hf_lock *lock;
    pthread_t thread;
    struct total *total;
};

struct total {
    int called, granted;
};

static void note(void *arg, hf_lock *lock, int result)
{
    struct call *call = arg;

    call->called++;
    call->result = result;
    call->lock = lock;
    call->thread = pthread_self();
}

/* The program's event loop: epoll on the client's descriptor, then dispatch. */
struct loop {
    hf_client *client;
    int ep;
};

static void close_fd(void *fd)
{
    close((int)(intptr_t)fd);
}

static void loop_open(struct loop *l, hf_client *c)
{
    struct epoll_event ev = {.events = EPOLLIN};
    int fd = hf_client_fd(c);

    assert_true(fd >= 0);
    assert_int_equal(hf_client_fd(c), fd);
    l->client = c;
    l->ep = epoll_create1(EPOLL_CLOEXEC);
    conf_defer(close_fd, (void *)(intptr_t)l->ep);
    assert_int_equal(epoll_ctl(l->ep, EPOLL_CTL_ADD, fd, &ev), 0);
}

static bool loop_turn(struct loop *l)
{
    struct epoll_event ev;

    if (epoll_wait(l->ep, &ev, 1, 10) == 1)
        assert_true(hf_client_dispatch(l->client) >= 0);
    return true;
}

#define LOOP_UNTIL(l, cond) COMES((cond) || (loop_turn(l) && (cond)))

/* Asserts that the verb calls back with this result. */
static void returns(struct loop *l, const struct call *call, int result)
{
    LOOP_UNTIL(l, call->called);
    EXPECT(result, call->result);
}

static void take(hf_lock *lock, struct call *call, int64_t wait_ms)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    *call = (struct call){0};
    opt.wait_ms = wait_ms;
    OK(hf_lock_acquire_async(lock, &opt, note, call, E));
}

static void give(hf_lock *lock, struct call *call)
{
    *call = (struct call){0};
    OK(hf_lock_release_async(lock, note, call, E));
}

CONF_CASE(test_async_acquire_and_release, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock_flags(c, conf_name(), HF_OWNER_HANDLE);
    struct loop l;
    struct call call;

    loop_open(&l, c);
    for (int i = 0; i < 10; i++) {
        take(lock, &call, HF_FOREVER);
        assert_int_equal(call.called, 0); /* callbacks run only in dispatch */
        returns(&l, &call, 0);
        assert_ptr_equal(call.lock, lock);
        assert_true(pthread_equal(call.thread, pthread_self()));
        OK(hf_lock_check(lock));
        conf_token(lock);
        give(lock, &call);
        assert_int_equal(call.called, 0);
        returns(&l, &call, 0);
        EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    }
}

CONF_CASE(test_async_waits_for_another_client, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    struct loop l;
    struct call call;

    loop_open(&l, b);
    OK(hf_lock_acquire(held, NULL, E));
    take(lock, &call, HF_FOREVER);
    for (int i = 0; i < 10; i++)
        loop_turn(&l);
    assert_int_equal(call.called, 0);
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    OK(hf_lock_release(held, E));
    returns(&l, &call, 0);
    EXPECT(HF_EBUSY, hf_lock_try(held, E));
    OK(hf_lock_release(lock, E)); /* the synchronous form works too */
}

/* A program that never gets the client's descriptor, but dispatches
 * occasionally. */
CONF_CASE(test_async_without_the_descriptor, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    struct call call;

    OK(hf_lock_acquire(held, NULL, E));
    take(lock, &call, HF_FOREVER);
    OK(hf_lock_release(held, E));
    COMES((hf_client_dispatch(b), call.called));
    OK(call.result);
    give(lock, &call);
    COMES((hf_client_dispatch(b), call.called));
    OK(call.result);
}

CONF_CASE(test_async_try_and_timed, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    struct loop l;
    struct call call;
    struct wait_mark begun;

    loop_open(&l, b);
    OK(hf_lock_acquire(held, NULL, E));
    take(lock, &call, 0);
    returns(&l, &call, HF_EBUSY);
    begun = wait_mark();
    take(lock, &call, 200);
    returns(&l, &call, HF_ETIMEDOUT);
    assert_true(wait_took(begun, 200, 1200));
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
    OK(hf_lock_release(held, E));
    take(lock, &call, WAIT_LONG_MS);
    returns(&l, &call, 0);
    take(lock, &call, HF_FOREVER); /* this handle holds the lock */
    returns(&l, &call, HF_EDEADLK);
    give(lock, &call);
    returns(&l, &call, 0);
    give(lock, &call); /* already released */
    returns(&l, &call, HF_ENOTOWNER);
}

CONF_CASE(test_async_one_verb_at_a_time, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    hf_lock *threads = conf_lock(b, conf_name());
    struct loop l;
    struct call call, never = {0};

    loop_open(&l, b);
    OK(hf_lock_acquire(held, NULL, E));
    take(lock, &call, HF_FOREVER);
    EXPECT(HF_EBUSY, hf_lock_acquire_async(lock, NULL, note, &never, E));
    EXPECT(HF_EBUSY, hf_lock_release_async(lock, note, &never, E));
    EXPECT(HF_EBUSY, hf_lock_free(lock));
    EXPECT(HF_EINVAL, hf_lock_acquire_async(threads, NULL, note, &never, E));
    EXPECT(HF_EINVAL, hf_lock_release_async(threads, note, &never, E));
    EXPECT(HF_EINVAL, hf_lock_acquire_async(lock, NULL, NULL, NULL, E));
    OK(hf_lock_release(held, E));
    returns(&l, &call, 0);
    OK(hf_lock_release(lock, E));
    assert_int_equal(call.called, 1);
    assert_int_equal(never.called, 0);
}

CONF_CASE(test_async_cancel, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    struct loop l;
    struct call call;

    loop_open(&l, b);
    OK(hf_lock_cancel(lock)); /* nothing to cancel */
    for (int i = 0; i < 20; i++) {
        OK(hf_lock_timed(held, WAIT_LONG_MS, E));
        take(lock, &call, HF_FOREVER);
        for (int turn = 0; turn < i % 4; turn++)
            loop_turn(&l);
        if (i % 3 == 0) /* the lock may be granted before the cancel */
            OK(hf_lock_release(held, E));
        OK(hf_lock_cancel(lock));
        OK(hf_lock_cancel(lock));
        LOOP_UNTIL(&l, call.called);
        assert_true(call.result == HF_ECANCELED ||
                    (i % 3 == 0 && call.result == 0));
        if (!call.result)
            OK(hf_lock_release(lock, E));
        EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
        if (i % 3)
            OK(hf_lock_release(held, E));
        assert_int_equal(call.called, 1);
    }
    conf_comes_free(held);
}

/* Once a wait is cancelled, the handle may begin one other wait, even before
 * the callback of the cancelled wait has run. */
CONF_CASE(test_async_cancelled_wait_is_over_at_once, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    struct conf_call call = {0, 0};
    struct conf_taker t;

    OK(hf_lock_acquire(held, NULL, E));
    OK(hf_lock_acquire_async(lock, NULL, conf_note, &call, E));
    EXPECT(HF_EDEADLK, hf_lock_timed(lock, 10, E));
    OK(hf_lock_cancel(lock));
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(lock, 10, E));
    conf_taker_wait(&t, lock, HF_WRITE, 0);
    EXPECT(HF_EDEADLK, hf_lock_timed(lock, 10, E));
    assert_int_equal(call.called, 0);
    conf_calls_back(b, &call, HF_ECANCELED);
    EXPECT(HF_EDEADLK, hf_lock_timed(lock, 10, E));
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&t));
    conf_taker_ends(&t, 0);
}

#define MANY 1000

static void count_and_give(void *arg, hf_lock *lock, int result)
{
    struct call *call = arg;

    call->called++;
    call->total->called++;
    call->total->granted += result == 0;
    if (!result)
        result = hf_lock_release_nowait(lock, NULL);
    call->result = result;
}

/* Acquires MANY handles at once, on `names` different names; each callback
 * releases its handle. Some replies come long after their requests were sent,
 * so a busy machine needs more than the usual op_timeout. */
static void many(int names)
{
    hf_client_options patient = CLIENT_OPTIONS(.op_timeout_ms = 60000);
    hf_client *a, *c;
    static hf_lock *lock[MANY];
    static struct call call[MANY];
    struct total total = {0, 0};
    hf_lock *held[2] = {0};
    struct loop l;
    size_t tasks;
    char name[128];
    const char *base = conf_name();

    a = conf_open_with(&patient);
    c = conf_open_with(&patient);
    loop_open(&l, c);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%s-%d", base, i % names);
        lock[i] = conf_lock_flags(c, name, HF_OWNER_HANDLE);
        call[i] = (struct call){.total = &total};
        if (i < 2 && i < names) {
            held[i] = conf_lock(a, name);
            OK(hf_lock_acquire(held[i], NULL, E));
        }
    }
    tasks = conf_count_entries("/proc/self/task");
    for (int i = 0; i < MANY; i++)
        OK(hf_lock_acquire_async(lock[i], NULL, count_and_give, &call[i], E));
    assert_int_equal(conf_count_entries("/proc/self/task"), tasks);
    if (names <= 2) {
        loop_turn(&l);
        assert_int_equal(total.called, 0);
    }
    for (int i = 0; i < 2; i++)
        if (held[i])
            OK(hf_lock_release(held[i], E));
    LOOP_UNTIL(&l, total.called == MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(call[i].called, 1);
        OK(call[i].result);
    }
    assert_int_equal(total.granted, MANY);
}

CONF_ROW(test_async_thousand_waiters_of_one_name, CONF_EACH, many(1));
CONF_ROW(test_async_thousand_names, CONF_EACH, many(MANY));

struct chain {
    hf_client *client, *inner;
    hf_lock *other;
    int steps, rc;
};

static void step(void *arg, hf_lock *lock, int result)
{
    struct chain *chain = arg;

    chain->steps++;
    if (result)
        chain->rc = result;
    else if (chain->steps == 1) /* the callback can use its handle again */
        chain->rc = hf_lock_release_async(lock, step, chain, NULL);
    else if (chain->steps == 2)
        chain->rc = hf_lock_acquire(chain->other, NULL, NULL);
}

CONF_CASE(test_async_callback_may_call_holdfast, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock_flags(c, conf_name(), HF_OWNER_HANDLE);
    hf_lock *other = conf_lock(c, conf_name());
    struct chain chain = {.other = other};
    struct loop l;

    loop_open(&l, c);
    OK(hf_lock_acquire_async(lock, NULL, step, &chain, E));
    LOOP_UNTIL(&l, chain.steps == 2);
    OK(chain.rc);
    OK(hf_lock_release(other, E));
}

static void close_client(void *arg, hf_lock *lock, int result)
{
    struct chain *chain = arg;

    chain->steps++;
    if (!result)
        conf_forget(chain->client);
    chain->rc = result ? result : hf_close(chain->client);
    if (!result && chain->rc)
        conf_keep(chain->client);
}

/* A callback that dispatches another client, whose callback then tries to close
 * the first client. */
static void dispatch_other(void *arg, hf_lock *lock, int result)
{
    struct chain *chain = arg, inner = {.client = chain->client};

    chain->rc = result ? result
                       : hf_lock_acquire_async(chain->other, NULL, close_client,
                                               &inner, NULL);
    if (!chain->rc) {
        WAIT_FOR((hf_client_dispatch(chain->inner), inner.steps));
        chain->rc = inner.rc;
    }
    chain->steps++;
}

CONF_CASE(test_async_callback_may_not_close_its_client, CONF_EACH)
{
    hf_client *c = conf_open(), *other = conf_open();
    hf_lock *lock = conf_lock_flags(c, conf_name(), HF_OWNER_HANDLE), *inner;
    struct chain chain = {.client = c};

    OK(hf_lock_acquire_async(lock, NULL, close_client, &chain, E));
    COMES((hf_client_dispatch(c), chain.steps));
    EXPECT(HF_EBUSY, chain.rc);
    OK(hf_lock_release(lock, E));
    inner = conf_lock_flags(other, conf_name(), HF_OWNER_HANDLE);
    chain = (struct chain){.client = c, .inner = other, .other = inner};
    OK(hf_lock_acquire_async(lock, NULL, dispatch_other, &chain, E));
    COMES((hf_client_dispatch(c), chain.steps));
    EXPECT(HF_EBUSY, chain.rc);
    OK(hf_lock_release(inner, E));
    conf_free(inner);
    chain = (struct chain){.client = other};
    OK(hf_lock_release_async(lock, close_client, &chain, E));
    COMES((hf_client_dispatch(c), chain.steps));
    OK(chain.rc);
}

/* A waiting thread that reads the client's connection is stopped. The program's
 * loop must continue without that thread, and the client's descriptor must not
 * stay readable without reason. */
CONF_CASE(test_async_beside_a_driver_that_stands, CONF_EACH)
{
    hf_client *a = conf_open_long(), *b = conf_open_long();
    const char *name = conf_name();
    hf_lock *held = conf_lock(b, name), *wanted = conf_lock(a, name);
    hf_lock *lock = conf_lock_flags(a, conf_name(), HF_OWNER_HANDLE);
    struct conf_taker driver;
    struct call call;
    struct loop l;
    int64_t quiet;

    OK(hf_lock_acquire(held, NULL, E));
    loop_open(&l, a);
    conf_taker_wait(&driver, wanted, HF_WRITE, 0);
    conf_thread_stand(&driver.t);
    take(lock, &call, HF_FOREVER);
    returns(&l, &call, 0);
    give(lock, &call);
    returns(&l, &call, 0);
    quiet = wait_now();
    COMES(wait_ms_since(quiet) > 2000);
    /* A synchronous verb must not need the stopped thread either. */
    OK(conf_take_within(lock, HF_WRITE, 0, 3000));
    OK(hf_lock_release(lock, E));
    conf_thread_go_on();
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&driver));
    conf_taker_end(&driver);
}

/* A callback that repeatedly begins a verb which ends at once. The loop must
 * still get control between the calls. */
static void try_again(void *arg, hf_lock *lock, int result)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.wait_ms = 0);
    struct chain *chain = arg;

    chain->steps++;
    if (!result)
        chain->other = lock; /* acquired */
    else if (chain->steps < 1000)
        chain->rc = hf_lock_acquire_async(lock, &opt, try_again, chain, NULL);
}

CONF_CASE(test_async_callback_that_tries_again, CONF_EACH)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_lock *lock = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    struct chain chain = {0};
    struct loop l;

    loop_open(&l, c);
    opt.wait_ms = 0;
    OK(hf_lock_acquire(held, NULL, E));
    OK(hf_lock_acquire_async(lock, &opt, try_again, &chain, E));
    LOOP_UNTIL(&l, chain.steps >= 3);
    assert_true(chain.steps < 100);
    OK(hf_lock_release(held, E));
    LOOP_UNTIL(&l, chain.other == lock);
    OK(chain.rc);
    OK(hf_lock_release(lock, E));
}

/* A callback that frees its handle. The library must not use the handle
 * afterwards. */
static void free_handle(void *arg, hf_lock *lock, int result)
{
    struct call *call = arg;

    conf_forget(lock);
    call->freed = hf_lock_free(lock);
    note(arg, NULL, result);
}

CONF_CASE(test_async_callback_may_free_its_handle, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    struct call call[3] = {{0}};
    hf_lock *lock[3];

    for (int i = 0; i < 3; i++)
        lock[i] = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    OK(hf_lock_acquire(lock[0], NULL, E));
    OK(hf_lock_release_async(lock[0], free_handle, &call[0], E));
    COMES((hf_client_dispatch(b), call[0].called));
    OK(call[0].result);
    OK(call[0].freed);
    OK(hf_lock_timed(held, WAIT_LONG_MS, E));
    /* When lock[2] is freed, b has no other handle of the name. */
    for (int i = 1; i < 3; i++)
        OK(hf_lock_acquire_async(lock[i], NULL, free_handle, &call[i], E));
    for (int i = 1; i < 3; i++) {
        OK(hf_lock_cancel(lock[i]));
        COMES((hf_client_dispatch(b), call[i].called));
        EXPECT(HF_ECANCELED, call[i].result);
        OK(call[i].freed);
    }
    OK(hf_lock_release(held, E));
}

/* A callback that has not returned yet when another thread frees the handle. */
struct stay {
    struct conf_thread t;
    hf_client *client;
    uint32_t inside, go; /* atomic */
    int result, dispatched;
};

static void stay(void *arg, hf_lock *lock, int result)
{
    struct stay *s = arg;

    s->result = result;
    __atomic_store_n(&s->inside, 1, __ATOMIC_RELEASE);
    WAIT_FOR(__atomic_load_n(&s->go, __ATOMIC_ACQUIRE));
}

static void dispatch_until_called(void *arg)
{
    struct stay *s = arg;

    WAIT_FOR((s->dispatched = hf_client_dispatch(s->client)) != 0);
}

CONF_CASE(test_async_callback_outlives_its_handle, CONF_EACH)
{
    struct stay s = {.client = conf_open(), .result = 99};
    const char *name = conf_name();
    hf_lock *lock = conf_lock_flags(s.client, name, HF_OWNER_HANDLE);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_release_async(lock, stay, &s, E));
    conf_thread_start(&s.t, dispatch_until_called, &s);
    COMES(__atomic_load_n(&s.inside, __ATOMIC_ACQUIRE));
    conf_free(lock); /* the verb has ended, so the handle can be freed */
    lock = conf_lock_flags(s.client, name, HF_OWNER_HANDLE);
    conf_comes_free(lock);
    conf_free(lock);
    __atomic_store_n(&s.go, 1, __ATOMIC_RELEASE);
    conf_thread_join(&s.t);
    OK(s.result);
    assert_int_equal(s.dispatched, 1);
}

/* Other threads use synchronous verbs on the client whose descriptor the loop
 * drives. */
CONF_CASE(test_async_beside_threads, CONF_EACH)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *mine = conf_lock(c, name);
    hf_lock *lock = conf_lock_flags(c, name, HF_OWNER_HANDLE);
    struct loop l;
    struct call call;
    struct conf_taker t = {0};

    loop_open(&l, c);
    for (int i = 0; i < 20; i++) {
        conf_taker_start(&t, mine);
        __atomic_store_n(&t.let_go, 1, __ATOMIC_RELEASE);
        take(lock, &call, HF_FOREVER);
        returns(&l, &call, 0);
        give(lock, &call);
        returns(&l, &call, 0);
        conf_taker_ends(&t, 0);
    }
}

/* A thread's wait and the loop's wait share one request. When the thread's wait
 * times out, the loop's wait must continue. */
CONF_CASE(test_async_waits_on_when_a_thread_gives_up, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name), *mine = conf_lock(b, name);
    hf_lock *lock = conf_lock_flags(b, name, HF_OWNER_HANDLE);
    struct conf_taker t = {.opt = HF_ACQUIRE_OPTIONS_INIT};
    struct loop l;
    struct call call;
    int64_t began;

    loop_open(&l, b);
    OK(hf_lock_acquire(held, NULL, E));
    t.opt.wait_ms = 1000;
    began = wait_now();
    conf_taker_start(&t, mine);
    if (!conf_thread_sleeps(&t.t)) /* timed out: the machine stalled */
        assert_true(wait_ms_since(began) >= 1000);
    take(lock, &call, HF_FOREVER);
    conf_taker_ends(&t, HF_ETIMEDOUT);
    OK(hf_lock_release(held, E));
    returns(&l, &call, 0);
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_async_waits_end_with_the_client, CONF_EACH)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *held = conf_lock(a, name);
    hf_lock *lock[5];
    struct call call[5];

    OK(hf_lock_acquire(held, NULL, E));
    for (int i = 0; i < 5; i++) {
        lock[i] = conf_lock_flags(b, name, HF_OWNER_HANDLE);
        take(lock[i], &call[i], HF_FOREVER);
    }
    conf_close(b);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(call[i].called, 1); /* exactly once, from hf_close() */
        EXPECT(HF_ECLOSED, call[i].result);
    }
    OK(hf_lock_check(held));
    OK(hf_lock_release(held, E));
    COMES(hf_lock_try(held, NULL) == 0);
    OK(hf_lock_release(held, E));
}
