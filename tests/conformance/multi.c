/* Several locks acquired at once: all or none, and no deadlock in any order. */
#include "conf.h"

#define N 4

struct set {
    hf_client *a, *b;
    hf_part mine[N], other[N]; /* two clients' locks of the same names */
    char name[N][80];
};

static struct set begin(void)
{
    const char *base = conf_name();
    struct set s = {.a = conf_open(), .b = conf_open()};

    for (int i = 0; i < N; i++) {
        snprintf(s.name[i], sizeof(s.name[i]), "%s-%d", base, i * 7 % N);
        s.mine[i] = (hf_part){.lock = conf_lock(s.a, s.name[i])};
        s.other[i] = (hf_part){.lock = conf_lock(s.b, s.name[i])};
    }
    return s;
}

static void all_are(const hf_part *locks, int code)
{
    for (int i = 0; i < N; i++)
        EXPECT(code, hf_lock_check(locks[i].lock));
}

static int take_all(const hf_part *locks, int64_t wait_ms)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.wait_ms = wait_ms);

    return hf_lock_acquire_all(locks, N, &opt, E);
}

CONF_CASE(test_multi_takes_all_and_releases_all, CONF_EACH)
{
    struct set s = begin();

    OK(hf_lock_acquire_all(s.mine, N, NULL, E));
    all_are(s.mine, 0);
    for (int i = 0; i < N; i++)
        EXPECT(HF_EBUSY, hf_lock_try(s.other[i].lock, E));
    OK(hf_lock_release_all(s.mine, N, E));
    all_are(s.mine, HF_ENOTOWNER);
    OK(take_all(s.other, 0));
    OK(hf_lock_release_all(s.other, N, E));
}

CONF_CASE(test_multi_takes_none_if_one_is_busy, CONF_EACH)
{
    struct wait_mark begun;
    struct set s = begin();

    for (int busy = 0; busy < N; busy++) {
        OK(hf_lock_timed(s.other[busy].lock, WAIT_LONG_MS, E));
        EXPECT(HF_EBUSY, take_all(s.mine, 0));
        all_are(s.mine, HF_ENOTOWNER);
        begun = wait_mark();
        EXPECT(HF_ETIMEDOUT, take_all(s.mine, 120));
        assert_true(wait_took(begun, 120, 1120));
        all_are(s.mine, HF_ENOTOWNER);
        for (int i = 0; i < N; i++)
            if (i != busy) {
                conf_comes_free(s.other[i].lock);
            }
        OK(hf_lock_release(s.other[busy].lock, E));
    }
    OK(take_all(s.mine, WAIT_LONG_MS));
    OK(hf_lock_release_all(s.mine, N, E));
}

struct multi_taker {
    struct set *s;
    hf_cancel cancel;
    int rc;
};

static void take_all_body(void *arg)
{
    struct multi_taker *t = arg;
    hf_acquire_options opt = ACQUIRE_OPTIONS(.cancel = &t->cancel);

    t->rc = hf_lock_acquire_all(t->s->mine, N, &opt, NULL);
}

CONF_CASE(test_multi_takes_none_if_cancelled, CONF_EACH)
{
    struct set s = begin();
    struct multi_taker t = {.s = &s};
    struct conf_thread thread;

    hf_cancel_init(&t.cancel);
    OK(hf_lock_acquire(s.other[2].lock, NULL, E));
    conf_thread_start(&thread, take_all_body, &t);
    conf_thread_asleep(&thread);
    hf_cancel_fire(&t.cancel);
    conf_thread_join(&thread);
    EXPECT(HF_ECANCELED, t.rc);
    OK(take_all(s.other, WAIT_LONG_MS)); /* one is already held */
    OK(hf_lock_release_all(s.other, N, E));
    OK(hf_lock_release(s.other[2].lock, E));
}

/* If the thread already has one of the holds, hf_lock_acquire_all() adds one to
 * that hold's count; a failed call does not release that hold. */
CONF_CASE(test_multi_counts_reentry, CONF_EACH)
{
    unsigned count = 0;
    struct set s = begin();

    OK(hf_lock_acquire(s.mine[1].lock, NULL, E));
    OK(take_all(s.mine, 0));
    OK(hf_lock_count(s.mine[1].lock, &count));
    assert_int_equal(count, 2);
    OK(hf_lock_release_all(s.mine, N, E));
    OK(hf_lock_check(s.mine[1].lock));
    OK(hf_lock_timed(s.other[3].lock, WAIT_LONG_MS, E));
    EXPECT(HF_EBUSY, take_all(s.mine, 0));
    OK(hf_lock_count(s.mine[1].lock, &count));
    assert_int_equal(count, 1);
    OK(hf_lock_release(s.other[3].lock, E));
    OK(hf_lock_release(s.mine[1].lock, E));
}

CONF_CASE(test_multi_release_goes_on_after_a_failure, CONF_EACH)
{
    struct set s = begin();

    OK(take_all(s.mine, 0));
    OK(hf_lock_release(s.mine[1].lock, E));
    EXPECT(HF_ENOTOWNER, hf_lock_release_all(s.mine, N, E));
    all_are(s.mine, HF_ENOTOWNER);
    OK(take_all(s.other, WAIT_LONG_MS));
    OK(hf_lock_release_all(s.other, N, E));
}

/* If one of the holds ends while the call waits for the last lock, the call
 * acquires none. */
CONF_CASE(test_multi_takes_none_if_one_is_lost_meanwhile,
          CONF_EACH | CONF_LEASE)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    struct conf_taker t = {0};
    hf_lock *last = NULL;
    int rc;
    struct set s = begin();

    for (int i = 0; i < N; i++)
        if (s.name[i][strlen(s.name[i]) - 1] == '0' + N - 1)
            last = s.other[i].lock;
    assert_non_null(last);
    conf_taker_start(&t, last);
    COMES(conf_taker_has(&t));
    opt.lease_ms = 200;
    opt.wait_ms = 600;
    rc = hf_lock_acquire_all(s.mine, N, &opt, E);
    assert_true(rc == HF_ELOST || rc == HF_ETIMEDOUT);
    conf_taker_ends(&t, 0);
    for (int i = 0; i < N; i++) { /* no hold and no loss must be left */
        EXPECT(HF_ENOTOWNER, hf_lock_check(s.mine[i].lock));
        conf_comes_free(s.mine[i].lock);
    }
}

CONF_CASE(test_multi_bad_arguments, CONF_EACH)
{
    hf_part holes[2] = {0};
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    struct set s = begin();

    holes[0] = s.mine[0];
    EXPECT(HF_EINVAL, hf_lock_acquire_all(NULL, 2, NULL, E));
    EXPECT(HF_EINVAL, hf_lock_acquire_all(s.mine, 0, NULL, E));
    EXPECT(HF_EINVAL, hf_lock_acquire_all(holes, 2, NULL, E));
    EXPECT(HF_EINVAL, hf_lock_release_all(NULL, 2, E));
    EXPECT(HF_EINVAL, hf_lock_release_all(s.mine, 0, E));
    EXPECT(HF_EINVAL, hf_lock_release_all(holes, 2, E));
    opt.wait_ms = -2;
    EXPECT(HF_EINVAL, hf_lock_acquire_all(s.mine, N, &opt, E));
    opt.wait_ms = INT64_MAX;
    EXPECT(HF_EINVAL, hf_lock_acquire_all(s.mine, N, &opt, E));
    all_are(s.mine, HF_ENOTOWNER);
}

struct philosopher {
    struct conf_thread t;
    hf_part locks[N];
    int done, rc;
};

static void dine(void *arg)
{
    struct philosopher *p = arg;

    for (p->done = 0; p->done < 60 && !p->rc; p->done++) {
        p->rc = hf_lock_acquire_all(p->locks, N, NULL, NULL);
        if (!p->rc)
            p->rc = hf_lock_release_all(p->locks, N, NULL);
    }
}

CONF_CASE(test_multi_opposite_orders_in_threads, CONF_EACH)
{
    struct philosopher p[4] = {0};
    struct set s = begin();

    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < N; i++)
            p[k].locks[i] = (k % 2 ? s.mine : s.other)[k < 2 ? i : N - 1 - i];
        conf_thread_start(&p[k].t, dine, &p[k]);
    }
    for (int k = 0; k < 4; k++) {
        conf_thread_join(&p[k].t);
        OK(p[k].rc);
        assert_int_equal(p[k].done, 60);
    }
}

static void puppet_with(struct proc *p, struct set *s)
{
    *p = conf_puppet(s->name[0], 0);
    for (unsigned i = 1; i < N; i++) {
        struct proc_cmd cmd = {
            .op = PROC_NEW, .slot = i, .fairness = conf.fairness};
        struct proc_reply r;

        cmd.name_len = strlen(s->name[i]);
        memcpy(cmd.name, s->name[i], cmd.name_len);
        assert_int_equal(proc_do(p, &cmd, &r), 0);
        OK(r.rc);
    }
}

CONF_CASE(test_multi_opposite_orders_in_processes, CONF_EACH)
{
    static const unsigned orders[3] = {0x3210, 0x0123, 0x1302};
    struct proc p[3];
    struct proc_shared *shared;
    char path[256];
    struct set s = begin();

    snprintf(path, sizeof(path), "%s/multi-%s", conf.dir, s.name[0]);
    shared = proc_shared_map(path);
    assert_non_null(shared);
    for (int k = 0; k < 3; k++) {
        struct proc_cmd cmd = {
            .op = PROC_ALL, .slot = N, .times = 60, .flags = orders[k]};

        puppet_with(&p[k], &s);
        snprintf(cmd.text, sizeof(cmd.text), "%s", path);
        assert_int_equal(proc_send(&p[k], &cmd), 0);
    }
    for (int k = 0; k < 3; k++) {
        struct proc_reply r;

        conf_puppet_answer(&p[k], &r);
        OK(r.rc);
        assert_int_equal(proc_end(&p[k]), 0);
    }
    assert_int_equal(shared->counter, 180);
    assert_int_equal(shared->violations, 0);
    proc_shared_unmap(shared);
    unlink(path);
}

/* Two callers that each take some permits and then more could deadlock.
 * Therefore a semaphore may be listed only once. */
CONF_CASE(test_multi_semaphore_is_there_once, CONF_SEMAPHORE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock_of(c, name, HF_SEMAPHORE, 5, 0);
    hf_lock *two = conf_lock_of(c, name, HF_SEMAPHORE, 5, 0);
    hf_part parts[] = {{one, HF_WRITE, 2}, {two, HF_WRITE, 3}};

    EXPECT(HF_EINVAL, hf_lock_acquire_all(parts, 2, NULL, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(one));
    OK(hf_lock_acquire_all(parts, 1, NULL, E));
    OK(hf_lock_release_all(parts, 1, E));
}

CONF_CASE(test_multi_writes_before_it_reads, CONF_RWLOCK)
{
    hf_lock *lock = conf_lock_of(conf_open(), conf_name(), HF_RWLOCK, 0, 0);
    hf_part parts[] = {{lock, HF_READ, 0}, {lock, HF_WRITE, 0}};

    OK(hf_lock_acquire_all(parts, 2, NULL, E));
    OK(hf_lock_release_all(parts, 2, E));
    EXPECT(HF_ENOTOWNER, hf_lock_check(lock));
}
