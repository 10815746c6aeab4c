/* Two holders never overlap, and tokens rise from holder to holder: threads,
 * clients, processes, and all of them at once. */
#include "conf.h"

#include <stdio.h>

#define ROUNDS 200

static char path[256];

static struct proc_shared *open_shared(void)
{
    struct proc_shared *s;

    snprintf(path, sizeof(path), "%s/%s", conf.dir, conf_name());
    s = proc_shared_map(path);
    assert_non_null(s);
    return s;
}

static void close_shared(struct proc_shared *s, long expected)
{
    assert_int_equal(s->violations, 0);
    assert_int_equal(s->counter, expected);
    proc_shared_unmap(s);
    unlink(path);
}

struct worker {
    struct conf_thread t;
    hf_lock *lock;
    struct proc_shared *shared;
    uint64_t last; /* token */
    int rounds, rc, backwards;
};

static void work(void *arg)
{
    struct worker *w = arg;

    for (int i = 0; i < w->rounds && !w->rc; i++) {
        uint64_t token = 0;

        w->rc = hf_lock_acquire(w->lock, NULL, NULL);
        if (w->rc)
            return;
        hf_lock_token(w->lock, &token);
        w->backwards += token <= w->last;
        w->last = token;
        proc_shared_bump(w->shared);
        w->rc = i % 2 ? hf_lock_release(w->lock, NULL)
                      : hf_lock_release_nowait(w->lock, NULL);
    }
}

static void start(struct worker *w, hf_lock *lock, struct proc_shared *s,
                  int rounds)
{
    *w = (struct worker){.lock = lock, .shared = s, .rounds = rounds};
    conf_thread_start(&w->t, work, w);
}

static void finish(struct worker *w)
{
    conf_thread_join(&w->t);
    OK(w->rc);
    assert_int_equal(w->backwards, 0);
}

static void test_exclusion_between_threads(void)
{
    struct proc_shared *s = open_shared();
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    struct worker w[8];

    for (int i = 0; i < 8; i++)
        start(&w[i], lock, s, ROUNDS);
    for (int i = 0; i < 8; i++)
        finish(&w[i]);
    conf_free(lock);
    OK(hf_close(c));
    close_shared(s, 8L * ROUNDS);
}

/* What the lock guards needs nothing else: not even for a sanitizer that
 * looks for races. */
static long plain;

static void add_plainly(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        if (hf_lock_acquire(arg, NULL, NULL))
            return;
        plain++;
        hf_lock_release_nowait(arg, NULL);
    }
}

static void test_exclusion_orders_memory_between_threads(void)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    struct conf_thread t[4];

    plain = 0;
    for (int i = 0; i < 4; i++)
        conf_thread_start(&t[i], add_plainly, lock);
    for (int i = 0; i < 4; i++)
        conf_thread_join(&t[i]);
    assert_int_equal(plain, 4 * ROUNDS);
    conf_free(lock);
    OK(hf_close(c));
}

static void test_exclusion_between_clients(void)
{
    struct proc_shared *s = open_shared();
    const char *name = conf_name();
    hf_client *c[4];
    hf_lock *lock[4];
    struct worker w[4];

    for (int i = 0; i < 4; i++) {
        c[i] = conf_open();
        lock[i] = conf_lock(c[i], name);
    }
    for (int i = 0; i < 4; i++)
        start(&w[i], lock[i], s, ROUNDS);
    for (int i = 0; i < 4; i++)
        finish(&w[i]);
    for (int i = 0; i < 4; i++) {
        conf_free(lock[i]);
        OK(hf_close(c[i]));
    }
    close_shared(s, 4L * ROUNDS);
}

static void send_loop(struct proc *p, unsigned times)
{
    struct proc_cmd cmd = {.op = PROC_LOOP, .times = times};

    snprintf(cmd.text, sizeof(cmd.text), "%s", path);
    assert_int_equal(proc_send(p, &cmd), 0);
}

static void test_exclusion_between_processes(void)
{
    struct proc_shared *s = open_shared();
    const char *name = conf_name();
    struct proc p[4];
    struct proc_reply r;

    for (int i = 0; i < 4; i++)
        conf_puppet(&p[i], name, 0);
    for (int i = 0; i < 4; i++)
        send_loop(&p[i], ROUNDS);
    for (int i = 0; i < 4; i++) {
        conf_puppet_answer(&p[i], &r);
        OK(r.rc);
        assert_int_equal(r.count, ROUNDS);
        assert_int_equal(proc_end(&p[i]), 0);
    }
    close_shared(s, 4L * ROUNDS);
}

static void test_exclusion_between_threads_clients_and_processes(void)
{
    struct proc_shared *s = open_shared();
    const char *name = conf_name();
    hf_client *c[2] = {conf_open(), conf_open()};
    hf_lock *lock[2] = {conf_lock(c[0], name), conf_lock(c[1], name)};
    struct worker w[6];
    struct proc p[2];
    struct proc_reply r;

    for (int i = 0; i < 2; i++)
        conf_puppet(&p[i], name, 0);
    for (int i = 0; i < 2; i++)
        send_loop(&p[i], ROUNDS);
    for (int i = 0; i < 6; i++)
        start(&w[i], lock[i % 2], s, ROUNDS / 2);
    for (int i = 0; i < 6; i++)
        finish(&w[i]);
    for (int i = 0; i < 2; i++) {
        conf_puppet_answer(&p[i], &r);
        OK(r.rc);
        assert_int_equal(proc_end(&p[i]), 0);
        conf_free(lock[i]);
        OK(hf_close(c[i]));
    }
    close_shared(s, 2L * ROUNDS + 6L * (ROUNDS / 2));
}

/* ---- tokens ------------------------------------------------------------ */

static uint64_t take_token(hf_lock *lock)
{
    uint64_t token;

    OK(hf_lock_acquire(lock, NULL, E));
    token = conf_token(lock);
    OK(hf_lock_release(lock, E));
    return token;
}

static uint64_t puppet_token(struct proc *p)
{
    struct proc_reply r;

    OK(conf_puppet_take(p, WAIT_LONG_MS, 0, &r));
    OK(conf_puppet_do(p, PROC_GIVE, NULL));
    return r.token;
}

static void test_exclusion_tokens_rise_from_holder_to_holder(void)
{
    const char *name = conf_name();
    hf_client *c[2] = {conf_open(), conf_open()};
    hf_lock *lock[2] = {conf_lock(c[0], name), conf_lock(c[1], name)};
    struct proc p;
    uint64_t last = 0, token;

    conf_puppet(&p, name, 0);
    for (int i = 0; i < 30; i++) {
        token = i % 3 < 2 ? take_token(lock[i % 3]) : puppet_token(&p);
        assert_true(token > last);
        last = token;
    }
    assert_int_equal(proc_end(&p), 0);
    for (int i = 0; i < 2; i++) {
        conf_free(lock[i]);
        OK(hf_close(c[i]));
    }
}

/* The count is the server's or the file's, not the client's: nobody who uses
 * the name is left in between. */
static void test_exclusion_tokens_rise_when_nobody_is_left(void)
{
    const char *name = conf_name();
    uint64_t last = 0, token;

    for (int i = 0; i < 5; i++) {
        hf_client *c = conf_open();
        hf_lock *lock = conf_lock(c, name);

        token = take_token(lock);
        assert_true(token > last);
        last = token;
        conf_free(lock);
        OK(hf_close(c));
    }
}

static void test_exclusion_tokens_rise_across_a_crash(void)
{
    const char *name = conf_name();
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, name);
    uint64_t last = take_token(lock);

    for (int i = 0; i < 3; i++) {
        struct proc p;
        struct proc_reply r;

        conf_puppet(&p, name, 500);
        OK(conf_puppet_take(&p, WAIT_LONG_MS, 0, &r));
        assert_true(r.token > last);
        proc_kill(&p);
        last = take_token(lock);
        assert_true(last > r.token);
    }
    conf_free(lock);
    OK(hf_close(c));
}

const struct conf_case conf_exclusion[] = {
    CONF_CASE(test_exclusion_between_threads, CONF_EACH),
    CONF_CASE(test_exclusion_orders_memory_between_threads, CONF_EACH),
    CONF_CASE(test_exclusion_between_clients, CONF_EACH),
    CONF_CASE(test_exclusion_between_processes, CONF_EACH),
    CONF_CASE(test_exclusion_between_threads_clients_and_processes, CONF_EACH),
    CONF_CASE(test_exclusion_tokens_rise_from_holder_to_holder, CONF_EACH),
    CONF_CASE(test_exclusion_tokens_rise_when_nobody_is_left, CONF_EACH),
    CONF_CASE(test_exclusion_tokens_rise_across_a_crash, CONF_EACH),
    {0},
};
