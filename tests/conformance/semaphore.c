/* The semaphore: clients never hold more permits than it has, and the permits
 * of dead clients become free. */
#include "conf.h"

#define SIZE 3
#define TTL_MS 1500

static int try_for(hf_lock *lock, uint32_t permits)
{
    return conf_take(lock, HF_WRITE, permits, 0);
}

static void granted_and_back(struct conf_taker *t)
{
    COMES(conf_taker_has(t));
    conf_taker_end(t);
    assert_int_equal(t->rc, 0);
    assert_int_equal(t->release_rc, 0);
}

static struct conf_group open_three(void)
{
    return conf_group(HF_SEMAPHORE, SIZE, 0);
}

/* Asserts that no permit is held: one owner can take them all. */
static void all_are_back(struct conf_group *g)
{
    OK(conf_take(g->l[0], HF_WRITE, SIZE, WAIT_LONG_MS));
    EXPECT(HF_EBUSY, try_for(g->l[1], 1));
    OK(hf_lock_release(g->l[0], E));
}

CONF_CASE(test_semaphore_k_of_n, CONF_EACH | CONF_SEMAPHORE)
{
    struct conf_group g = open_three();

    OK(try_for(g.l[0], 2));
    EXPECT(HF_EBUSY, try_for(g.l[1], 2));
    OK(try_for(g.l[1], 0)); /* 0 permits mean 1 */
    EXPECT(HF_EBUSY, try_for(g.l[2], 1));
    EXPECT(HF_ETIMEDOUT, conf_take(g.l[2], HF_WRITE, 1, 50));
    OK(hf_lock_release(g.l[0], E)); /* releases both permits */
    OK(try_for(g.l[2], 2));
    EXPECT(HF_EBUSY, try_for(g.l[0], 1));
    OK(hf_lock_release(g.l[1], E));
    OK(hf_lock_release(g.l[2], E));
    EXPECT(HF_ENOTOWNER, hf_lock_release(g.l[2], E));
    all_are_back(&g);
}

/* An acquire of permits is never a reentry: each acquire takes further
 * permits. */
CONF_CASE(test_semaphore_each_acquire_takes_more, CONF_EACH | CONF_SEMAPHORE)
{
    struct conf_group g = open_three();

    for (int i = 0; i < SIZE; i++)
        OK(try_for(g.l[0], 1));
    EXPECT(HF_EBUSY, try_for(g.l[0], 1));
    EXPECT(HF_EBUSY, try_for(g.l[1], 1));
    for (int i = 0; i < SIZE; i++) {
        OK(hf_lock_release(g.l[0], E));
        OK(conf_take(g.l[1], HF_WRITE, 1, WAIT_LONG_MS));
    }
    EXPECT(HF_ENOTOWNER, hf_lock_release(g.l[0], E));
    for (int i = 0; i < SIZE; i++)
        OK(hf_lock_release(g.l[1], E));
    all_are_back(&g);
}

CONF_CASE(test_semaphore_wrong_numbers, CONF_EACH | CONF_SEMAPHORE)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock_of(c, name, HF_SEMAPHORE, SIZE, 0), *none;
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    EXPECT(HF_EINVAL, try_for(lock, SIZE + 1));
    EXPECT(HF_EINVAL, try_for(lock, UINT32_MAX));
    EXPECT(HF_EINVAL, conf_take(lock, HF_READ, 1, 0));
    opt.kind = HF_SEMAPHORE;
    EXPECT(HF_EINVAL, hf_lock_new(c, name, HF_CSTRING, &opt, &none, E));
    assert_null(none);
    EXPECT(HF_ENOTOWNER, hf_lock_downgrade(lock, E));
    OK(try_for(lock, SIZE));
    EXPECT(HF_ENOTSUP, hf_lock_downgrade(lock, E));
    EXPECT(HF_ENOTSUP, hf_lock_upgrade(lock, E));
    OK(hf_lock_release(lock, E));
}

/* A handle with another size is refused. A client that already has a handle of
 * that name refuses it without a request. For another client the server refuses
 * it, when the handle is created or when it is used. */
CONF_CASE(test_semaphore_size_is_that_of_the_first, CONF_EACH | CONF_SEMAPHORE)
{
    hf_client *a = conf_open(), *b = conf_open();
    const char *name = conf_name();
    hf_lock *lock = conf_lock_of(a, name, HF_SEMAPHORE, SIZE, 0);
    hf_lock_options opt =
        LOCK_OPTIONS(.kind = HF_SEMAPHORE, .permits = SIZE + 1,
                     .fairness = conf.fairness);
    hf_lock *none = lock, *other;
    int rc;

    EXPECT(HF_EMISMATCH, hf_lock_new(a, name, HF_CSTRING, &opt, &none, E));
    assert_null(none);
    OK(try_for(lock, 1));
    rc = hf_lock_new(b, name, HF_CSTRING, &opt, &other, E);
    EXPECT(rc ? HF_EMISMATCH : 0, rc);
    if (other) {
        EXPECT(HF_EMISMATCH, try_for(other, 1));
        EXPECT(HF_EMISMATCH, conf_take(other, HF_WRITE, 1, HF_FOREVER));
    }
    OK(hf_lock_check(lock));
    OK(hf_lock_release(lock, E));
    conf_free(lock);
    if (!other) /* now no client uses the old size */
        OK(hf_lock_new(b, name, HF_CSTRING, &opt, &other, E));
    conf_keep_lock(other);
}

CONF_CASE(test_semaphore_waits_for_enough, CONF_EACH | CONF_SEMAPHORE)
{
    struct conf_taker t;
    struct conf_group g = open_three();

    OK(try_for(g.l[0], 1));
    OK(try_for(g.l[1], 1));
    conf_taker_wait(&t, g.l[2], HF_WRITE, SIZE);
    OK(hf_lock_release(g.l[0], E));
    conf_thread_asleep(&t.t); /* two permits are not enough */
    assert_false(conf_taker_has(&t));
    OK(hf_lock_release(g.l[1], E));
    granted_and_back(&t);
    all_are_back(&g);
}

/* A waiter that wants many permits is granted them before a later waiter that
 * wants few. */
CONF_CASE(test_semaphore_fair_many_are_not_starved, CONF_FAIR | CONF_SEMAPHORE)
{
    struct conf_taker many, few;
    struct conf_group g = open_three();

    OK(try_for(g.l[0], 1));
    conf_taker_wait(&many, g.l[1], HF_WRITE, SIZE);
    conf_await_queue(g.c[0], g.name, 1);
    /* Two permits are free, but another client is next. */
    EXPECT(HF_EBUSY, try_for(g.l[2], 1));
    conf_taker_wait(&few, g.l[2], HF_WRITE, 1);
    OK(hf_lock_release(g.l[0], E));
    COMES(conf_taker_has(&many));
    assert_false(conf_taker_has(&few));
    granted_and_back(&many);
    granted_and_back(&few);
}

/* When a waiter gives up, those queued after it are granted the permits. */
CONF_CASE(test_semaphore_cancelled_wait_holds_nobody_up,
          CONF_EACH | CONF_SEMAPHORE)
{
    struct conf_taker many = {.opt = HF_ACQUIRE_OPTIONS_INIT}, few;
    hf_cancel cancel = HF_CANCEL_INIT;
    struct conf_group g = open_three();

    OK(try_for(g.l[0], 1));
    many.opt.permits = SIZE;
    many.opt.cancel = &cancel;
    conf_taker_start(&many, g.l[1]);
    conf_thread_asleep(&many.t);
    few = (struct conf_taker){.opt = HF_ACQUIRE_OPTIONS_INIT};
    conf_taker_start(&few, g.l[2]);
    hf_cancel_fire(&cancel);
    conf_taker_ends(&many, HF_ECANCELED);
    granted_and_back(&few);
    OK(hf_lock_release(g.l[0], E));
    all_are_back(&g);
}

struct user {
    struct conf_thread t;
    hf_lock *lock;
    int *out; /* atomic */
    int number, rc, too_many;
};

static void use(void *arg)
{
    struct user *u = arg;

    for (int i = 0; i < 100 && !u->rc; i++) {
        hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
        int k = 1 + (i + u->number) % SIZE;

        opt.permits = (uint32_t)k;
        u->rc = hf_lock_acquire(u->lock, &opt, NULL);
        if (u->rc)
            return;
        if (__atomic_add_fetch(u->out, k, __ATOMIC_SEQ_CST) > SIZE)
            u->too_many++;
        __atomic_sub_fetch(u->out, k, __ATOMIC_SEQ_CST);
        u->rc = i % 2 ? hf_lock_release(u->lock, NULL)
                      : hf_lock_release_nowait(u->lock, NULL);
    }
}

CONF_CASE(test_semaphore_never_more_than_there_are, CONF_EACH | CONF_SEMAPHORE)
{
    enum { N = 6 };
    struct user u[N];
    int out = 0;
    struct conf_group g = open_three();

    for (int i = 0; i < N; i++) {
        u[i] = (struct user){.lock = g.l[i % 3], .out = &out, .number = i};
        conf_thread_start(&u[i].t, use, &u[i]);
    }
    for (int i = 0; i < N; i++) {
        conf_thread_join(&u[i].t);
        OK(u[i].rc);
        assert_int_equal(u[i].too_many, 0);
    }
    all_are_back(&g);
}

CONF_CASE(test_semaphore_permits_of_the_dead_come_back,
          CONF_EACH | CONF_SEMAPHORE)
{
    struct conf_group g = open_three();
    struct proc p = conf_puppet_of(g.name, TTL_MS, HF_SEMAPHORE, SIZE);

    OK(conf_puppet_take_as(&p, HF_WRITE, 2, WAIT_LONG_MS));
    OK(try_for(g.l[0], 1));
    EXPECT(HF_EBUSY, try_for(g.l[1], 1));
    proc_kill(&p);
    OK(conf_take_within(g.l[1], HF_WRITE, 2, conf_death_ms(TTL_MS)));
    EXPECT(HF_EBUSY, try_for(g.l[2], 1));
    OK(hf_lock_check(g.l[0])); /* live holders keep their permits */
    OK(hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[1], E));
    all_are_back(&g);
}

CONF_CASE(test_semaphore_async_and_cancel, CONF_EACH | CONF_SEMAPHORE)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    struct conf_call call = {0, 0};
    struct conf_group g = conf_group(HF_SEMAPHORE, SIZE, HF_OWNER_HANDLE);

    opt.permits = 2;
    OK(try_for(g.l[0], 2));
    OK(hf_lock_acquire_async(g.l[1], &opt, conf_note, &call, E));
    assert_false(conf_called(g.c[1], &call));
    OK(hf_lock_cancel(g.l[1]));
    conf_calls_back(g.c[1], &call, HF_ECANCELED);
    call = (struct conf_call){0, 0};
    OK(hf_lock_acquire_async(g.l[1], &opt, conf_note, &call, E));
    OK(hf_lock_release(g.l[0], E));
    conf_calls_back(g.c[1], &call, 0);
    EXPECT(HF_EBUSY, try_for(g.l[2], 2));
    call = (struct conf_call){0, 0};
    OK(hf_lock_release_async(g.l[1], conf_note, &call, E));
    conf_calls_back(g.c[1], &call, 0);
    all_are_back(&g);
}

CONF_CASE(test_semaphore_inspect_and_break,
          CONF_EACH | CONF_SEMAPHORE | CONF_INSPECT)
{
    hf_info *info;
    struct conf_group g = open_three();

    OK(try_for(g.l[0], 2));
    OK(try_for(g.l[1], 1));
    info = conf_inspect(g.c[2], g.name);
    assert_int_equal(info->kind, HF_SEMAPHORE);
    assert_int_equal(info->permits, SIZE);
    assert_int_equal(info->holders_len, 2);
    assert_int_equal(info->holders[0].permits + info->holders[1].permits, SIZE);
    OK(hf_break(g.c[2], g.name, HF_CSTRING, E));
    OK(conf_take(g.l[2], HF_WRITE, SIZE, WAIT_LONG_MS));
    EXPECT(HF_ELOST, hf_lock_release(g.l[0], E));
    EXPECT(HF_ELOST, hf_lock_release(g.l[1], E));
    EXPECT(HF_EBUSY, try_for(g.l[0], 1)); /* late releases free nothing */
    OK(hf_lock_release(g.l[2], E));
    all_are_back(&g);
}
