/* Order: fair locks are granted in the order of their waiters, and unfair locks
 * starve no waiter. Further cases are about the local hand-over and its limit,
 * and about names: a name held as one kind and fairness is not granted as
 * another. */
#include "conf.h"

CONF_CASE(test_fairness_processes_get_it_in_order, CONF_FAIR)
{
    enum { N = 5 };
    const char *name = conf_name();
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, name);
    struct proc p[N];
    struct proc_reply r;

    for (int i = 0; i < N; i++)
        p[i] = conf_puppet(name, 0);
    OK(hf_lock_acquire(lock, NULL, E));
    for (int i = 0; i < N; i++) {
        conf_puppet_wait(&p[i]);
        conf_await_queue(c, name, (size_t)i + 1);
    }
    OK(hf_lock_release(lock, E));
    for (int i = 0; i < N; i++) {
        conf_puppet_answer(&p[i], &r);
        OK(r.rc);
        for (int k = i + 1; k < N; k++)
            assert_false(proc_ready(&p[k], 0));
        OK(conf_puppet_do(&p[i], PROC_GIVE, NULL));
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(proc_end(&p[i]), 0);
}

/* A client that calls hf_lock_try() while another client waits must not
 * overtake that waiter. */
CONF_CASE(test_fairness_try_does_not_jump_the_queue, CONF_FAIR)
{
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *held = conf_lock(a, name), *other = conf_lock(b, name);
    struct proc_reply r;
    int got = 0;
    struct proc p = conf_puppet(name, 0);

    for (int i = 0; i < 10; i++) {
        OK(hf_lock_timed(held, WAIT_LONG_MS, E));
        conf_puppet_wait(&p);
        conf_await_queue(a, name, 1);
        OK(hf_lock_release(held, E));
        got += hf_lock_try(other, NULL) == 0;
        got += hf_lock_try(held, NULL) == 0;
        conf_puppet_answer(&p, &r);
        OK(r.rc);
        OK(conf_puppet_do(&p, PROC_GIVE, NULL));
    }
    assert_int_equal(got, 0);
    assert_int_equal(proc_end(&p), 0);
}

CONF_CASE(test_fairness_threads_get_it_in_order, CONF_FAIR)
{
    enum { N = 5 };
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    struct conf_taker t[N] = {0};

    OK(hf_lock_acquire(lock, NULL, E));
    for (int i = 0; i < N; i++) {
        conf_taker_start(&t[i], lock);
        conf_thread_asleep(&t[i].t);
    }
    OK(hf_lock_release(lock, E));
    for (int i = 0; i < N; i++) {
        COMES(conf_taker_has(&t[i]));
        for (int k = i + 1; k < N; k++)
            assert_false(conf_taker_has(&t[k]));
        conf_taker_ends(&t[i], 0);
    }
}

/* Other clients may overtake a waiter for an unfair lock, but not forever. */
CONF_CASE(test_fairness_nobody_starves, CONF_EACH)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    struct proc_reply r;
    int64_t begun;
    struct proc p = conf_puppet(name, 0);

    OK(hf_lock_acquire(lock, NULL, E));
    conf_puppet_wait(&p);
    OK(hf_lock_release(lock, E));
    begun = wait_now();
    while (!proc_ready(&p, 0) && wait_ms_since(begun) < WAIT_LONG_MS)
        if (!hf_lock_timed(lock, 10, NULL))
            OK(hf_lock_release(lock, E));
    conf_puppet_answer(&p, &r);
    OK(r.rc);
    assert_int_equal(proc_end(&p), 0);
}

#define HANDOFF 5
#define LOCALS 4

struct local {
    struct conf_thread t;
    hf_lock *lock;
    int rc;
};

/* Written only by the current holder, except `stop`. */
static struct {
    uint64_t token;
    int run, longest, shared;
    long grants;
    uint32_t stop; /* atomic */
} locals;

static void local_turns(void *arg)
{
    struct local *l = arg;

    while (!l->rc && !__atomic_load_n(&locals.stop, __ATOMIC_ACQUIRE)) {
        uint64_t token = 0;

        l->rc = hf_lock_acquire(l->lock, NULL, NULL);
        if (l->rc)
            return;
        hf_lock_token(l->lock, &token);
        if (token == locals.token)
            __atomic_add_fetch(&locals.shared, 1, __ATOMIC_RELAXED);
        locals.run = token == locals.token ? locals.run + 1 : 1;
        locals.token = token;
        if (locals.run > locals.longest)
            locals.longest = locals.run;
        __atomic_add_fetch(&locals.grants, 1, __ATOMIC_RELAXED);
        l->rc = hf_lock_release(l->lock, NULL);
    }
}

static long grants(void)
{
    return __atomic_load_n(&locals.grants, __ATOMIC_RELAXED);
}

static void start_locals(struct local *l, hf_lock *lock)
{
    memset(&locals, 0, sizeof(locals));
    for (int i = 0; i < LOCALS; i++) {
        l[i] = (struct local){.lock = lock};
        conf_thread_start(&l[i].t, local_turns, &l[i]);
    }
    COMES(grants() > 50);
}

static void stop_locals(struct local *l)
{
    __atomic_store_n(&locals.stop, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < LOCALS; i++) {
        conf_thread_join(&l[i].t);
        OK(l[i].rc);
    }
}

/* At most HANDOFF owners in a row, threads of one client, share one grant and
 * its token. */
CONF_CASE(test_fairness_handoff_shares_a_token_and_is_bounded, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock_options opt = LOCK_OPTIONS(.handoff = HANDOFF);
    struct local l[LOCALS];
    hf_lock *lock;

    lock = conf_lock_with(c, conf_name(), &opt);
    start_locals(l, lock);
    COMES(__atomic_load_n(&locals.shared, __ATOMIC_RELAXED) > 0);
    stop_locals(l);
    assert_true(locals.longest <= HANDOFF);
}

CONF_CASE(test_fairness_without_handoff_each_has_its_token, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    struct local l[LOCALS];

    start_locals(l, lock);
    stop_locals(l);
    assert_int_equal(locals.shared, 0);
}

/* A waiting process is granted the lock although the threads of a busy process
 * hand it over among themselves. */
CONF_CASE(test_fairness_handoff_lets_others_have_their_turn, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *c = conf_open();
    hf_lock_options opt = LOCK_OPTIONS(.handoff = HANDOFF);
    struct local l[LOCALS];
    hf_lock *lock;
    struct proc p;
    struct proc_reply r;

    lock = conf_lock_with(c, name, &opt);
    p = conf_puppet(name, 0);
    start_locals(l, lock);
    for (int i = 0; i < 4; i++) {
        long before;

        OK(conf_puppet_take(&p, WAIT_LONG_MS, 0, &r));
        OK(conf_puppet_do(&p, PROC_GIVE, NULL));
        before = grants();
        COMES(grants() > before);
    }
    stop_locals(l);
    assert_int_equal(proc_end(&p), 0);
}

/* With a fair lock, a waiting process is next as soon as the turns of the
 * current grant (hand-overs within the client) are used up. */
CONF_CASE(test_fairness_handoff_ends_after_so_many, CONF_FAIR)
{
    enum { WAITING = 3 * HANDOFF };
    const char *name = conf_name();
    hf_client *c = conf_open();
    hf_lock_options opt = LOCK_OPTIONS(.handoff = HANDOFF);
    static struct conf_taker t[WAITING];
    hf_lock *lock;
    struct proc p;
    struct proc_reply r;
    int before = 0;

    lock = conf_lock_with(c, name, &opt);
    p = conf_puppet(name, 0);
    OK(hf_lock_acquire(lock, NULL, E));
    conf_puppet_wait(&p);
    conf_await_queue(c, name, 1);
    for (int i = 0; i < WAITING; i++) {
        t[i] = (struct conf_taker){0};
        conf_taker_start(&t[i], lock);
        conf_thread_asleep(&t[i].t);
    }
    for (int i = 0; i < WAITING; i++)
        __atomic_store_n(&t[i].let_go, 1, __ATOMIC_RELEASE);
    OK(hf_lock_release(lock, E));
    conf_puppet_answer(&p, &r);
    OK(r.rc);
    for (int i = 0; i < WAITING; i++)
        before += conf_taker_has(&t[i]);
    assert_int_equal(before, HANDOFF - 1); /* the main thread was first */
    OK(conf_puppet_do(&p, PROC_GIVE, NULL));
    for (int i = 0; i < WAITING; i++) {
        conf_taker_ends(&t[i], 0);
        assert_int_equal(t[i].token > r.token, i >= HANDOFF - 1);
    }
    assert_int_equal(proc_end(&p), 0);
}

static int try_other(hf_client *c, const char *name, enum hf_kind kind,
                     enum hf_fairness fairness)
{
    hf_lock_options opt = LOCK_OPTIONS(.kind = kind, .fairness = fairness,
                                       .permits = kind == HF_SEMAPHORE ? 3 : 0);
    hf_lock *lock = NULL;
    int rc;

    rc = hf_lock_new(c, name, HF_CSTRING, &opt, &lock, E);
    if (rc)
        return rc;
    rc = hf_lock_try(lock, E);
    if (rc == HF_EBUSY || rc == HF_EBACKEND) /* the machine may have stalled */
        rc = hf_lock_timed(lock, 100, E);
    if (!rc)
        hf_lock_release(lock, NULL);
    conf_free(lock);
    return rc;
}

CONF_CASE(test_fairness_kinds_do_not_mix, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *a = conf_open();
    hf_lock *lock = conf_lock(a, name);

    /* Acquire once before, so that the server's counter for the name is not
     * 0. */
    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_release(lock, E));
    OK(hf_lock_acquire(lock, NULL, E));
    for (int kind = HF_MUTEX; kind <= HF_SEMAPHORE; kind++)
        for (int fair = HF_FAIR; fair <= HF_UNFAIR; fair++) {
            hf_client *b = conf_open();
            int rc =
                try_other(b, name, (enum hf_kind)kind, (enum hf_fairness)fair);

            conf_close(b);
            assert_true(rc == HF_ETIMEDOUT || rc == HF_EMISMATCH ||
                        rc == HF_ENOTSUP);
            if (kind == HF_MUTEX && fair == (int)conf.fairness)
                EXPECT(HF_ETIMEDOUT, rc);
            else /* the client that holds the lock refuses without a request */
                EXPECT(rc == HF_ENOTSUP ? HF_ENOTSUP : HF_EMISMATCH,
                       try_other(a, name, (enum hf_kind)kind,
                                 (enum hf_fairness)fair));
        }
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
}

/* An unused name is free for any kind. */
CONF_CASE(test_fairness_kind_is_free_after_use, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *lock = conf_lock(a, name);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_release(lock, E));
    conf_free(lock);
    for (int fair = HF_FAIR; fair <= HF_UNFAIR; fair++) {
        int cap = fair == HF_FAIR ? HF_CAP_FAIR : HF_CAP_UNFAIR;

        if (conf.caps & cap) {
            OK(try_other(a, name, HF_MUTEX, (enum hf_fairness)fair));
            OK(try_other(b, name, HF_MUTEX, (enum hf_fairness)fair));
        }
    }
}
