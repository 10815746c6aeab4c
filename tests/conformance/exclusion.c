/* Holds never overlap, and tokens rise from holder to holder: among threads,
 * clients, processes, and all of these together. */
#include "conf.h"

#define ROUNDS 200

/* Threads and processes, each of which is an owner, and the record of what they
 * did. */
struct crew {
    struct record *record;
    struct history history;
    char path[256];
    uint32_t owners;
};

static void begin(struct crew *c)
{
    *c = (struct crew){0};
    snprintf(c->path, sizeof(c->path), "%s/%s", conf.dir, conf_name());
    c->record = record_map(c->path);
    assert_non_null(c->record);
    history_init(&c->history);
}

static void end(struct crew *c, uint64_t writes)
{
    assert_int_equal(record_writes(c->record), writes);
    conf_check_record(c->record, &c->history, 30000);
    record_unmap(c->record);
    history_fini(&c->history);
    unlink(c->path);
}

struct worker {
    struct conf_thread t;
    struct record_owner o;
    int rounds, rc;
};

static void work(void *arg)
{
    const hf_acquire_options forever = HF_ACQUIRE_OPTIONS_INIT;
    struct worker *w = arg;

    for (int i = 0; i < w->rounds && !w->rc; i++)
        w->rc = record_round(&w->o, &forever);
}

/* Starts an owner. `process` is a number that represents the owner's client. */
static void start(struct crew *c, struct worker *w, hf_lock *lock,
                  uint32_t process, int rounds)
{
    *w = (struct worker){.rounds = rounds};
    w->o = (struct record_owner){.record = c->record,
                                 .lock = lock,
                                 .owner = c->owners++,
                                 .process = process,
                                 .op_timeout_ms = conf_op_ms()};
    conf_thread_start(&w->t, work, w);
}

static void finish(struct worker *w)
{
    conf_thread_join(&w->t);
    OK(w->rc);
}

CONF_CASE(test_exclusion_between_threads, CONF_EACH)
{
    struct crew crew;
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    struct worker w[8];

    begin(&crew);
    for (int i = 0; i < 8; i++)
        start(&crew, &w[i], lock, 0, ROUNDS);
    for (int i = 0; i < 8; i++)
        finish(&w[i]);
    conf_free(lock);
    conf_close(c);
    end(&crew, 8UL * ROUNDS);
}

/* A variable that is guarded only by the lock. A race detector must report
 * nothing. */
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

CONF_CASE(test_exclusion_orders_memory_between_threads, CONF_EACH)
{
    hf_lock *lock = conf_lock(conf_open(), conf_name());
    struct conf_thread t[4];

    plain = 0;
    for (int i = 0; i < 4; i++)
        conf_thread_start(&t[i], add_plainly, lock);
    for (int i = 0; i < 4; i++)
        conf_thread_join(&t[i]);
    assert_int_equal(plain, 4 * ROUNDS);
}

CONF_CASE(test_exclusion_between_clients, CONF_EACH)
{
    struct crew crew;
    const char *name = conf_name();
    hf_client *c[4];
    hf_lock *lock[4];
    struct worker w[4];

    begin(&crew);
    for (int i = 0; i < 4; i++) {
        c[i] = conf_open();
        lock[i] = conf_lock(c[i], name);
    }
    for (uint32_t i = 0; i < 4; i++)
        start(&crew, &w[i], lock[i], i, ROUNDS);
    for (int i = 0; i < 4; i++)
        finish(&w[i]);
    for (int i = 0; i < 4; i++) {
        conf_free(lock[i]);
        conf_close(c[i]);
    }
    end(&crew, 4UL * ROUNDS);
}

static void send_loop(struct crew *c, struct proc *p, uint32_t process)
{
    struct proc_cmd cmd = {.op = PROC_LOOP,
                           .times = ROUNDS,
                           .owner = c->owners++,
                           .process = process,
                           .wait_ms = 5000};

    snprintf(cmd.text, sizeof(cmd.text), "%s", c->path);
    assert_int_equal(proc_send(p, &cmd), 0);
}

static void loop_ended(struct proc *p)
{
    struct proc_reply r;

    conf_puppet_answer(p, &r);
    OK(r.rc);
    assert_int_equal(r.count, ROUNDS);
    assert_int_equal(proc_end(p), 0);
}

CONF_CASE(test_exclusion_between_processes, CONF_EACH)
{
    struct crew crew;
    const char *name = conf_name();
    struct proc p[4];

    begin(&crew);
    for (int i = 0; i < 4; i++)
        p[i] = conf_puppet(name, 0);
    for (uint32_t i = 0; i < 4; i++)
        send_loop(&crew, &p[i], i);
    for (int i = 0; i < 4; i++)
        loop_ended(&p[i]);
    end(&crew, 4UL * ROUNDS);
}

CONF_CASE(test_exclusion_between_threads_clients_and_processes, CONF_EACH)
{
    struct crew crew;
    const char *name = conf_name();
    hf_client *c[2] = {conf_open(), conf_open()};
    hf_lock *lock[2] = {conf_lock(c[0], name), conf_lock(c[1], name)};
    struct worker w[6];
    struct proc p[2];

    begin(&crew);
    for (int i = 0; i < 2; i++)
        p[i] = conf_puppet(name, 0);
    for (uint32_t i = 0; i < 2; i++)
        send_loop(&crew, &p[i], 2 + i);
    for (uint32_t i = 0; i < 6; i++)
        start(&crew, &w[i], lock[i % 2], i % 2, ROUNDS / 2);
    for (int i = 0; i < 6; i++)
        finish(&w[i]);
    for (int i = 0; i < 2; i++) {
        loop_ended(&p[i]);
        conf_free(lock[i]);
        conf_close(c[i]);
    }
    end(&crew, 2UL * ROUNDS + 6UL * (ROUNDS / 2));
}

struct mixed {
    struct worker w;
    unsigned number;
};

static void work_mixed(void *arg)
{
    struct mixed *m = arg;

    for (int i = 0; i < m->w.rounds && !m->w.rc; i++)
        m->w.rc = record_any_round(&m->w.o, m->number++);
}

/* The lock is used by two clients of this process, with three threads each, and
 * by another process. */
static void mix(enum hf_kind kind, uint32_t size)
{
    struct crew crew;
    const char *name = conf_name();
    hf_client *c[2] = {conf_open(), conf_open()};
    hf_lock *lock[6]; /* a semaphore's owner is the handle, not the thread */
    struct mixed m[6];
    struct proc p;
    struct proc_cmd cmd = {.op = PROC_LOOP,
                           .kind = kind,
                           .permits = size,
                           .process = 2,
                           .wait_ms = 5000};
    struct proc_reply r;

    begin(&crew);
    for (uint32_t i = 0; i < 6; i++) {
        lock[i] = conf_lock_of(c[i % 2], name, kind, size, 0);
        m[i] = (struct mixed){.number = 7 * i, .w.rounds = ROUNDS};
        m[i].w.o = (struct record_owner){.record = crew.record,
                                         .lock = lock[i],
                                         .owner = crew.owners++,
                                         .process = i % 2,
                                         .op_timeout_ms = conf_op_ms(),
                                         .kind = kind,
                                         .size = size};
        conf_thread_start(&m[i].w.t, work_mixed, &m[i]);
    }
    cmd.owner = crew.owners++;
    p = conf_puppet_of(name, 0, kind, size);
    snprintf(cmd.text, sizeof(cmd.text), "%s", crew.path);
    assert_int_equal(proc_send(&p, &cmd), 0);
    COMES(record_grants(crew.record, cmd.owner) > ROUNDS / 4);
    for (int i = 0; i < 6; i++)
        finish(&m[i].w);
    record_over(crew.record);
    conf_puppet_answer(&p, &r);
    OK(r.rc);
    assert_int_equal(proc_end(&p), 0);
    for (int i = 0; i < 6; i++)
        conf_free(lock[i]);
    for (int i = 0; i < 2; i++)
        conf_close(c[i]);
    assert_true(kind == HF_SEMAPHORE || record_writes(crew.record) > 0);
    end(&crew, record_writes(crew.record));
}

CONF_ROW(test_exclusion_of_readers_and_writers, CONF_EACH | CONF_RWLOCK,
         mix(HF_RWLOCK, 0));
CONF_ROW(test_exclusion_by_permits, CONF_EACH | CONF_SEMAPHORE,
         mix(HF_SEMAPHORE, 3));

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

CONF_CASE(test_exclusion_tokens_rise_from_holder_to_holder, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *c[2] = {conf_open(), conf_open()};
    hf_lock *lock[2] = {conf_lock(c[0], name), conf_lock(c[1], name)};
    uint64_t last = 0, token;
    struct proc p = conf_puppet(name, 0);

    for (int i = 0; i < 30; i++) {
        token = i % 3 < 2 ? take_token(lock[i % 3]) : puppet_token(&p);
        assert_true(token > last);
        last = token;
    }
    assert_int_equal(proc_end(&p), 0);
}

/* The server, or the shared file, keeps the token counter, so tokens rise even
 * if no client uses the name between two grants. */
CONF_CASE(test_exclusion_tokens_rise_when_nobody_is_left, CONF_EACH)
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
        conf_close(c);
    }
}

CONF_CASE(test_exclusion_tokens_rise_across_a_crash, CONF_EACH)
{
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    uint64_t last = take_token(lock);

    for (int i = 0; i < 3; i++) {
        struct proc p;
        struct proc_reply r;

        p = conf_puppet(name, 500);
        OK(conf_puppet_take(&p, WAIT_LONG_MS, 0, &r));
        assert_true(r.token > last);
        proc_kill(&p);
        last = take_token(lock);
        assert_true(last > r.token);
    }
}
