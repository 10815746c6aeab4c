/* The read-write lock: holds and waits that end without a release (death,
 * leases, cancels, breaks), the verbs that do not block, and what hf_inspect()
 * shows. */
#include "conf.h"

#define TTL_MS 900

static void take_async(hf_lock *lock, enum hf_mode mode, struct conf_call *call)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    *call = (struct conf_call){0, 0};
    opt.mode = mode;
    OK(hf_lock_acquire_async(lock, &opt, conf_note, call, E));
}

/* A reader dies; its hold ends, and the other readers keep theirs. */
CONF_CASE(test_rwlock_dead_reader_lets_go, CONF_EACH | CONF_RWLOCK)
{
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);
    struct proc p = conf_puppet_of(g.name, TTL_MS, HF_RWLOCK, 0);

    OK(conf_puppet_take_as(&p, HF_READ, 0, WAIT_LONG_MS));
    OK(conf_take(g.l[0], HF_READ, 0, 0));
    proc_kill(&p);
    EXPECT(HF_ETIMEDOUT, conf_take(g.l[1], HF_WRITE, 0, conf_death_ms(TTL_MS)));
    OK(hf_lock_check(g.l[0]));
    OK(hf_lock_release(g.l[0], E));
    OK(conf_take_within(g.l[1], HF_WRITE, 0, 1000));
    OK(hf_lock_release(g.l[1], E));
}

CONF_CASE(test_rwlock_dead_writer_lets_go, CONF_EACH | CONF_RWLOCK)
{
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);
    struct proc p = conf_puppet_of(g.name, TTL_MS, HF_RWLOCK, 0);

    OK(conf_puppet_take_as(&p, HF_WRITE, 0, WAIT_LONG_MS));
    proc_kill(&p);
    OK(conf_take_within(g.l[0], HF_READ, 0, conf_death_ms(TTL_MS)));
    OK(conf_take_within(g.l[1], HF_READ, 0, 1000));
    OK(hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[1], E));
}

/* A writer dies while it waits, with readers queued after it. */
CONF_CASE(test_rwlock_dead_waiting_writer_holds_nobody_up,
          CONF_FAIR | CONF_RWLOCK)
{
    /* A TTL long enough for the writer to be still in the queue when the reader
     * tries. */
    enum { LONG_MS = 3000 };
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);
    struct proc p = conf_puppet_of(g.name, LONG_MS, HF_RWLOCK, 0);

    OK(conf_take(g.l[0], HF_READ, 0, 0));
    conf_puppet_wait_as(&p, HF_WRITE, 0);
    conf_await_queue(g.c[0], g.name, 1);
    EXPECT(HF_EBUSY, conf_take(g.l[1], HF_READ, 0, 0));
    proc_kill(&p);
    OK(conf_take_within(g.l[1], HF_READ, 0, conf_death_ms(LONG_MS)));
    OK(hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[1], E));
}

CONF_CASE(test_rwlock_lease_of_a_reader_is_its_own,
          CONF_EACH | CONF_RWLOCK | CONF_LEASE)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);

    opt.mode = HF_READ;
    opt.lease_ms = 200;
    OK(hf_lock_acquire(g.l[0], &opt, E));
    OK(conf_take(g.l[1], HF_READ, 0, 0));
    COMES(hf_lock_check(g.l[0]) == HF_ELOST);
    OK(hf_lock_check(g.l[1])); /* it has been renewed */
    EXPECT(HF_EBUSY, conf_take(g.l[2], HF_WRITE, 0, 0));
    EXPECT(HF_ELOST, hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[1], E));
    OK(conf_take(g.l[2], HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[2], E));
}

struct room {
    size_t used; /* atomic */
};

static void *give(void *ctx, size_t size)
{
    struct room *room = ctx;

    __atomic_add_fetch(&room->used, 1, __ATOMIC_RELAXED);
    return malloc(size);
}

static void take_back(void *ctx, void *p)
{
    struct room *room = ctx;

    __atomic_sub_fetch(&room->used, 1, __ATOMIC_RELAXED);
    free(p);
}

/* Acquires for reading with a lease, loses the hold, and does not release. */
static void lose_in_thread(void *arg)
{
    hf_acquire_options opt =
        ACQUIRE_OPTIONS(.mode = HF_READ, .lease_ms = HF_LEASE_MIN_MS);

    if (!hf_lock_acquire(arg, &opt, NULL))
        WAIT_FOR(hf_lock_check(arg) == HF_ELOST);
}

static void lose_in_handle(hf_client *c, const char *name)
{
    hf_lock *lock = conf_lock_of(c, name, HF_RWLOCK, 0, HF_OWNER_HANDLE);

    lose_in_thread(lock);
    EXPECT(HF_ELOST, hf_lock_check(lock));
    conf_free(lock);
}

/* Once a lost hold can no longer be released, because its thread has exited or
 * its handle was freed, it must not use memory. */
CONF_CASE(test_rwlock_lost_holds_of_the_gone_are_forgotten,
          CONF_EACH | CONF_RWLOCK | CONF_LEASE)
{
    struct room room = {0};
    hf_hooks hooks = {.ctx = &room, .alloc = give, .free = take_back};
    hf_client_options opt = CLIENT_OPTIONS(.hooks = &hooks);
    const char *name = conf_name();
    size_t used = 0;
    hf_client *c;
    hf_lock *lock;

    c = conf_open_with(&opt);
    lock = conf_lock_of(c, name, HF_RWLOCK, 0, 0);
    for (int i = 0; i < 20; i++) {
        struct conf_thread t;

        conf_thread_start(&t, lose_in_thread, lock);
        conf_thread_join(&t);
        lose_in_handle(c, name);
        if (i == 4)
            used = __atomic_load_n(&room.used, __ATOMIC_RELAXED);
    }
    /* The 30 holds lost since `used` was read would have kept at least one
     * block each. */
    assert_true(__atomic_load_n(&room.used, __ATOMIC_RELAXED) < used + 15);
    conf_free(lock);
    conf_close(c);
    assert_int_equal(room.used, 0);
}

/* A downgraded hold is still renewed. */
CONF_CASE(test_rwlock_down_is_renewed, CONF_EACH | CONF_RWLOCK)
{
    const char *name = conf_name();
    hf_lock *lock =
        conf_lock_of(conf_open_ttl(CONF_KEPT_TTL_MS), name, HF_RWLOCK, 0, 0);
    hf_lock *other = conf_lock_of(conf_open(), name, HF_RWLOCK, 0, 0);
    int64_t began;

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_downgrade(lock, E));
    began = wait_now();
    COMES(wait_ms_since(began) > CONF_KEPT_MS);
    OK(hf_lock_check(lock));
    EXPECT(HF_EBUSY, conf_take(other, HF_WRITE, 0, 0));
    OK(hf_lock_renew(lock, 0, E));
    OK(hf_lock_release(lock, E));
}

CONF_CASE(test_rwlock_async, CONF_EACH | CONF_RWLOCK)
{
    struct conf_call one, two, write;
    struct conf_group g = conf_group(HF_RWLOCK, 0, HF_OWNER_HANDLE);

    take_async(g.l[0], HF_READ, &one);
    COMES(conf_called(g.c[0], &one));
    take_async(g.l[1], HF_READ, &two);
    COMES(conf_called(g.c[1], &two));
    OK(one.result);
    OK(two.result);
    take_async(g.l[2], HF_WRITE, &write);
    OK(hf_lock_release(g.l[0], E));
    assert_false(conf_called(g.c[2], &write));
    two = (struct conf_call){0};
    OK(hf_lock_release_async(g.l[1], conf_note, &two, E));
    COMES(conf_called(g.c[1], &two));
    conf_calls_back(g.c[2], &write, 0);
    EXPECT(HF_EBUSY, conf_take(g.l[0], HF_READ, 0, 0));
    OK(hf_lock_downgrade(g.l[2], E));
    OK(conf_take(g.l[0], HF_READ, 0, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[0], E));
    OK(hf_lock_release(g.l[2], E));
}

CONF_CASE(test_rwlock_async_cancel, CONF_EACH | CONF_RWLOCK)
{
    struct conf_call call;
    struct conf_group g = conf_group(HF_RWLOCK, 0, HF_OWNER_HANDLE);

    for (int held = HF_WRITE; held <= HF_READ; held++)
        for (int wanted = HF_WRITE; wanted <= HF_READ; wanted++) {
            if (held == HF_READ && wanted == HF_READ)
                continue; /* a reader does not wait for readers */
            OK(conf_take(g.l[0], (enum hf_mode)held, 0, WAIT_LONG_MS));
            take_async(g.l[1], (enum hf_mode)wanted, &call);
            assert_false(conf_called(g.c[1], &call));
            OK(hf_lock_cancel(g.l[1]));
            conf_calls_back(g.c[1], &call, HF_ECANCELED);
            OK(hf_lock_release(g.l[0], E));
        }
    OK(conf_take(g.l[2], HF_WRITE, 0, WAIT_LONG_MS));
    OK(hf_lock_release(g.l[2], E));
}

static void sees(struct conf_group *g, size_t holders, enum hf_mode mode)
{
    hf_info *info = conf_inspect(g->c[2], g->name);

    assert_int_equal(info->kind, HF_RWLOCK);
    assert_int_equal(info->holders_len, holders);
    for (size_t i = 0; i < holders; i++) {
        assert_int_equal(info->holders[i].pid, getpid());
        assert_int_equal(info->holders[i].mode, mode);
    }
}

CONF_CASE(test_rwlock_inspect_shows_all_readers,
          CONF_EACH | CONF_RWLOCK | CONF_INSPECT)
{
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);

    OK(conf_take(g.l[0], HF_READ, 0, 0));
    sees(&g, 1, HF_READ);
    OK(conf_take(g.l[1], HF_READ, 0, 0));
    sees(&g, 2, HF_READ);
    OK(hf_lock_release(g.l[0], E));
    sees(&g, 1, HF_READ);
    OK(hf_lock_release(g.l[1], E));
    OK(conf_take(g.l[1], HF_WRITE, 0, WAIT_LONG_MS));
    sees(&g, 1, HF_WRITE);
    OK(hf_lock_downgrade(g.l[1], E));
    sees(&g, 1, HF_READ);
    OK(hf_lock_release(g.l[1], E));
}

CONF_CASE(test_rwlock_break_takes_it_from_all,
          CONF_EACH | CONF_RWLOCK | CONF_INSPECT)
{
    struct conf_group g = conf_group(HF_RWLOCK, 0, 0);

    OK(conf_take(g.l[0], HF_READ, 0, 0));
    OK(conf_take(g.l[1], HF_READ, 0, 0));
    OK(hf_break(g.c[2], g.name, HF_CSTRING, E));
    OK(conf_take(g.l[2], HF_WRITE, 0, WAIT_LONG_MS));
    EXPECT(HF_ELOST, hf_lock_renew(g.l[0], 0, E));
    EXPECT(HF_ELOST, hf_lock_release(g.l[0], E));
    EXPECT(HF_ELOST, hf_lock_release(g.l[1], E));
    OK(hf_lock_check(g.l[2])); /* acquired after the break, so it is not lost */
    OK(hf_lock_release(g.l[2], E));
}
