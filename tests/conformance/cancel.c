/* A wait is cancelled by another thread or in a signal handler, but never by a
 * signal itself. A cancelled wait returns 0 with a hold, or HF_ECANCELED. */
#include "conf.h"

#include <signal.h>
#include <sys/mman.h>

struct pair {
    hf_lock *held, *wanted; /* the locks of two clients */
};

static struct pair begin(void)
{
    hf_lock *held = conf_lock(conf_open(), conf_name());

    return (struct pair){held, conf_rival(held, 0)};
}

static void start_cancellable(struct conf_taker *t, hf_lock *lock,
                              hf_cancel *cancel)
{
    hf_cancel_init(cancel);
    *t = (struct conf_taker){.opt = HF_ACQUIRE_OPTIONS_INIT};
    t->opt.cancel = cancel;
    conf_taker_start(t, lock);
}

static void wait_by_turns(struct pair *p, hf_cancel *cancel)
{
    struct conf_taker t = {.opt = HF_ACQUIRE_OPTIONS_INIT};

    OK(hf_lock_timed(p->held, WAIT_LONG_MS, E));
    t.opt.cancel = cancel;
    conf_taker_start(&t, p->wanted);
    conf_thread_asleep(&t.t);
    OK(hf_lock_release(p->held, E));
    COMES(conf_taker_has(&t));
    conf_taker_ends(&t, 0);
}

/* One cancel lives as long as the program and is passed to every wait. It must
 * not fire when the counter in its word wraps around. */
CONF_CASE(test_cancel_that_never_fires, CONF_EACH)
{
    hf_cancel cancel = HF_CANCEL_INIT;
    struct pair p = begin();

    cancel.word = 0x7ffffffc;
    for (int i = 0; i < 4; i++)
        wait_by_turns(&p, &cancel);
    cancel.word = 0xfffffffc;
    for (int i = 0; i < 4; i++)
        wait_by_turns(&p, &cancel);
}

/* A client cancels its wait for a lock that another client holds; nothing of
 * the wait is left. */
CONF_CASE(test_cancel_from_another_thread, CONF_EACH)
{
    struct conf_taker t;
    hf_cancel cancel;
    int64_t fired;
    struct pair p = begin();

    OK(hf_lock_acquire(p.held, NULL, E));
    for (int i = 0; i < 3; i++) {
        start_cancellable(&t, p.wanted, &cancel);
        conf_thread_asleep(&t.t);
        fired = wait_fair();
        hf_cancel_fire(&cancel);
        conf_taker_ends(&t, HF_ECANCELED);
        assert_true(wait_within(fired, 1000));
    }
    OK(hf_lock_release(p.held, E));
    COMES(hf_lock_try(p.held, NULL) == 0);
    OK(hf_lock_release(p.held, E));
    conf_comes_free(p.wanted);
}

/* Several threads of one client wait. A cancel ends only the wait that it was
 * passed to. */
CONF_CASE(test_cancel_is_for_one_wait, CONF_EACH)
{
    struct conf_taker t[4];
    hf_cancel cancel[4];
    struct pair p = begin();

    OK(hf_lock_acquire(p.held, NULL, E));
    for (int i = 0; i < 4; i++) {
        start_cancellable(&t[i], p.wanted, &cancel[i]);
        conf_thread_asleep(&t[i].t);
    }
    /* The other waits must continue, although all may share one request. */
    hf_cancel_fire(&cancel[0]);
    conf_taker_ends(&t[0], HF_ECANCELED);
    hf_cancel_fire(&cancel[2]);
    conf_taker_ends(&t[2], HF_ECANCELED);
    OK(hf_lock_release(p.held, E));
    for (int i = 1; i < 4; i += 2)
        __atomic_store_n(&t[i].let_go, 1, __ATOMIC_RELEASE);
    for (int i = 1; i < 4; i += 2) {
        conf_taker_ends(&t[i], 0);
    }
}

CONF_CASE(test_cancel_before_the_wait, CONF_EACH)
{
    hf_cancel cancel;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    int rc;
    struct pair p = begin();

    OK(hf_lock_acquire(p.held, NULL, E));
    hf_cancel_init(&cancel);
    hf_cancel_fire(&cancel);
    hf_cancel_fire(&cancel);
    opt.cancel = &cancel;
    EXPECT(HF_ECANCELED, hf_lock_acquire(p.wanted, &opt, E));
    EXPECT(HF_ECANCELED, hf_lock_acquire(p.wanted, &opt, E)); /* still fired */
    OK(hf_lock_release(p.held, E));
    rc = hf_lock_acquire(p.wanted, &opt, E); /* free: both results are right */
    assert_true(rc == 0 || rc == HF_ECANCELED);
    if (!rc)
        OK(hf_lock_release(p.wanted, E));
    hf_cancel_init(&cancel);
    OK(hf_lock_acquire(p.wanted, &opt, E));
    OK(hf_lock_release(p.wanted, E));
}

/* The cancel fires just before or during the grant. The wait may return 0 or
 * HF_ECANCELED; the code must match what the thread holds. */
CONF_CASE(test_cancel_races_with_the_grant, CONF_EACH)
{
    struct conf_taker t;
    hf_cancel cancel;
    int granted = 0, cancelled = 0;
    struct pair p = begin();

    for (int i = 0; i < 60; i++) {
        OK(hf_lock_timed(p.held, WAIT_LONG_MS, E));
        start_cancellable(&t, p.wanted, &cancel);
        conf_thread_asleep(&t.t);
        if (i % 2)
            hf_cancel_fire(&cancel);
        OK(hf_lock_release_nowait(p.held, E));
        for (int spin = 0; spin < i * 300; spin++)
            __asm__ volatile("" ::: "memory");
        hf_cancel_fire(&cancel);
        conf_taker_end(&t);
        granted += t.rc == 0;
        cancelled += t.rc == HF_ECANCELED;
        assert_int_equal(granted + cancelled, i + 1);
        if (!t.rc)
            assert_int_equal(t.release_rc, 0);
    }
    conf_comes_free(p.held);
}

struct guest {
    struct conf_thread t;
    hf_lock *lock;
    hf_cancel *cancel; /* on its own page */
    int rc;
};

static void wait_and_unmap(void *arg)
{
    struct guest *g = arg;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.cancel = g->cancel);

    g->rc = hf_lock_acquire(g->lock, &opt, NULL);
    munmap(g->cancel, sizeof(*g->cancel));
}

/* A cancel that has ended its wait is no longer used, so its memory may be
 * unmapped. */
CONF_CASE(test_cancel_may_go_with_its_wait, CONF_EACH)
{
    struct guest g;
    struct pair p = begin();

    OK(hf_lock_acquire(p.held, NULL, E));
    for (int i = 0; i < 20; i++) {
        g = (struct guest){.lock = p.wanted};
        g.cancel = mmap(NULL, sizeof(*g.cancel), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(g.cancel != MAP_FAILED);
        hf_cancel_init(g.cancel);
        conf_thread_start(&g.t, wait_and_unmap, &g);
        conf_thread_asleep(&g.t);
        hf_cancel_fire(g.cancel);
        conf_thread_join(&g.t);
        assert_int_equal(g.rc, HF_ECANCELED);
    }
    OK(hf_lock_release(p.held, E));
}

static hf_cancel signalled;
static int handled; /* atomic */

static void fire_in_handler(int sig)
{
    int saved = errno;

    hf_cancel_fire(&signalled);
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
    errno = saved;
}

static void count_in_handler(int sig)
{
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}

static int times_handled(void)
{
    return __atomic_load_n(&handled, __ATOMIC_SEQ_CST);
}

static void handle(void (*handler)(int), struct sigaction *old)
{
    struct sigaction sa = {.sa_handler = handler}; /* without SA_RESTART */

    __atomic_store_n(&handled, 0, __ATOMIC_SEQ_CST);
    assert_int_equal(sigaction(SIGUSR1, &sa, old), 0);
}

CONF_CASE(test_cancel_from_a_signal_handler, CONF_EACH)
{
    struct conf_taker t;
    struct sigaction old;
    struct pair p = begin();

    OK(hf_lock_acquire(p.held, NULL, E));
    handle(fire_in_handler, &old);
    start_cancellable(&t, p.wanted, &signalled);
    conf_thread_asleep(&t.t);
    assert_int_equal(pthread_kill(t.t.thread, SIGUSR1), 0);
    conf_taker_ends(&t, HF_ECANCELED);
    assert_int_equal(times_handled(), 1);
    /* Here the handler runs on a thread other than the waiter. */
    start_cancellable(&t, p.wanted, &signalled);
    conf_thread_asleep(&t.t);
    assert_int_equal(raise(SIGUSR1), 0);
    conf_taker_ends(&t, HF_ECANCELED);
    OK(hf_lock_release(p.held, E));
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

static void interrupt_a_wait(hf_lock *held, hf_lock *wanted)
{
    struct conf_taker t;

    OK(hf_lock_acquire(held, NULL, E));
    conf_taker_wait(&t, wanted, HF_WRITE, 0);
    for (int i = 0; i < 20; i++) {
        int before = times_handled();

        /* TSan delays a signal that arrives just before a system call that TSan
         * does not intercept, so the signal is sent once the thread sleeps. */
        if (SANITIZED)
            conf_thread_asleep(&t.t);
        assert_int_equal(pthread_kill(t.t.thread, SIGUSR1), 0);
        COMES(times_handled() > before);
    }
    assert_false(conf_thread_ended(&t.t));
    assert_false(conf_taker_has(&t));
    OK(hf_lock_release(held, E));
    COMES(conf_taker_has(&t));
    conf_taker_ends(&t, 0);
}

CONF_CASE(test_cancel_is_not_what_a_signal_does, CONF_EACH)
{
    struct sigaction old;
    struct pair p = begin();

    handle(count_in_handler, &old);
    interrupt_a_wait(p.held, p.wanted);
    interrupt_a_wait(p.held, p.held); /* two threads of one client */
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* Signals neither shorten nor lengthen a timed wait. */
CONF_CASE(test_cancel_signals_do_not_end_a_timed_wait, CONF_EACH)
{
    struct conf_taker t = {.opt = HF_ACQUIRE_OPTIONS_INIT};
    struct sigaction old;
    struct wait_mark begun;
    struct pair p = begin();

    handle(count_in_handler, &old);
    OK(hf_lock_acquire(p.held, NULL, E));
    t.opt.wait_ms = 400;
    begun = wait_mark();
    conf_taker_start(&t, p.wanted);
    while (!conf_thread_ended(&t.t)) {
        pthread_kill(t.t.thread, SIGUSR1);
        wait_tick();
    }
    conf_taker_ends(&t, HF_ETIMEDOUT);
    assert_true(wait_took(begun, 400, 1400));
    OK(hf_lock_release(p.held, E));
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}
