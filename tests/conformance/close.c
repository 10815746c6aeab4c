/* Closing a client: waits end with HF_ECLOSED, holds are released, and
 * further calls on the client's handles return HF_ECLOSED. */
#include "conf.h"

#include <sched.h>

CONF_CASE(test_close_releases_what_is_held, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_acquire(lock, NULL, E));
    conf_close(a);
    OK(hf_lock_try(other, E));
    OK(hf_lock_release(other, E));
}

CONF_CASE(test_close_releases_many, CONF_EACH)
{
    enum { MANY = 200 };
    static hf_lock *lock[MANY], *other[MANY];
    hf_client *a = conf_open(), *b = conf_open();

    for (int i = 0; i < MANY; i++) {
        const char *name = conf_name();

        lock[i] = conf_lock(a, name);
        other[i] = conf_lock(b, name);
        OK(hf_lock_acquire(lock[i], NULL, E));
    }
    conf_close(a);
    for (int i = 0; i < MANY; i++) {
        OK(hf_lock_try(other[i], E));
        conf_free(lock[i]);
    }
    conf_close(b);
}

CONF_CASE(test_close_after_release_without_waiting, CONF_EACH)
{
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *lock = conf_lock(a, name), *other = conf_lock(b, name);

    OK(hf_lock_acquire(lock, NULL, E));
    OK(hf_lock_release_nowait(lock, E));
    conf_close(a);
    OK(hf_lock_try(other, E)); /* the release had been sent */
    OK(hf_lock_release(other, E));
}

CONF_CASE(test_close_ends_waits, CONF_EACH)
{
    enum { N = 6 };
    const char *name = conf_name();
    hf_client *a = conf_open(), *b = conf_open();
    hf_lock *held = conf_lock(a, name), *wanted = conf_lock(b, name);
    struct conf_taker t[N] = {0};
    int64_t closed;

    OK(hf_lock_acquire(held, NULL, E));
    for (int i = 0; i < N; i++) {
        if (i % 2) {
            t[i].opt = (hf_acquire_options)HF_ACQUIRE_OPTIONS_INIT;
            t[i].opt.wait_ms = 1000000;
        }
        conf_taker_start(&t[i], wanted);
        conf_thread_asleep(&t[i].t);
    }
    closed = wait_fair();
    conf_close(b);
    assert_true(wait_within(closed, 5000 + 1000));
    for (int i = 0; i < N; i++) {
        conf_taker_ends(&t[i], HF_ECLOSED);
    }
    OK(hf_lock_check(held));
    OK(hf_lock_release(held, E));
    COMES(hf_lock_try(held, NULL) == 0); /* the waiters have left the queue */
    OK(hf_lock_release(held, E));
}

/* The lock is held by one thread of the client, and others wait for it. */
CONF_CASE(test_close_ends_waits_for_a_hold_of_its_own, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    struct conf_taker t[3] = {0};

    OK(hf_lock_acquire(lock, NULL, E));
    for (int i = 0; i < 3; i++) {
        conf_taker_start(&t[i], lock);
        conf_thread_asleep(&t[i].t);
    }
    conf_close(c);
    for (int i = 0; i < 3; i++) {
        conf_taker_ends(&t[i], HF_ECLOSED);
    }
}

static void done(void *arg, hf_lock *lock, int result)
{
}

CONF_CASE(test_close_handles_answer_so_afterwards, CONF_EACH)
{
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, conf_name());
    hf_lock *handle = conf_lock_flags(c, conf_name(), HF_OWNER_HANDLE);
    hf_part both[2] = {{.lock = lock}, {.lock = handle}};

    OK(hf_lock_acquire(lock, NULL, E));
    conf_close(c);
    EXPECT(HF_ECLOSED, hf_lock_acquire(lock, NULL, E));
    EXPECT(HF_ECLOSED, hf_lock_try(lock, E));
    EXPECT(HF_ECLOSED, hf_lock_timed(lock, 10, E));
    EXPECT(HF_ECLOSED, hf_lock_release(lock, E));
    EXPECT(HF_ECLOSED, hf_lock_release_nowait(lock, E));
    EXPECT(HF_ECLOSED, hf_lock_renew(lock, 0, E));
    EXPECT(HF_ECLOSED, hf_lock_check(lock));
    EXPECT(HF_ECLOSED, hf_lock_token(lock, &(uint64_t){0}));
    EXPECT(HF_ECLOSED, hf_lock_deadline(lock, &(int64_t){0}));
    EXPECT(HF_ECLOSED, hf_lock_count(lock, &(unsigned){0}));
    EXPECT(HF_ECLOSED, hf_lock_fd(lock));
    EXPECT(HF_ECLOSED, hf_lock_upgrade(lock, E));
    EXPECT(HF_ECLOSED, hf_lock_downgrade(lock, E));
    EXPECT(HF_ECLOSED, hf_lock_cancel(handle));
    EXPECT(HF_ECLOSED, hf_lock_acquire_async(handle, NULL, done, NULL, E));
    EXPECT(HF_ECLOSED, hf_lock_release_async(handle, done, NULL, E));
    EXPECT(HF_ECLOSED, hf_lock_acquire_all(both, 2, NULL, E));
    EXPECT(HF_ECLOSED, hf_lock_release_all(both, 2, E));
}

/* Threads use a client while it is closed; each call returns a result, and
 * nothing crashes. */
struct user {
    struct conf_thread t;
    hf_lock *lock;
    int (*const *ways)(hf_lock *);
    int number, rc;
    long rounds;
};

static int use_plainly(hf_lock *lock)
{
    int rc = hf_lock_acquire(lock, NULL, NULL);

    return rc ? rc : hf_lock_release(lock, NULL);
}

static int use_with_renewal(hf_lock *lock)
{
    int rc = hf_lock_acquire(lock, NULL, NULL);

    if (!rc)
        rc = hf_lock_renew(lock, 0, NULL);
    if (!rc)
        rc = hf_lock_token(lock, &(uint64_t){0});
    return rc ? rc : hf_lock_release(lock, NULL);
}

static int use_with_lease(hf_lock *lock)
{
    hf_acquire_options opt =
        ACQUIRE_OPTIONS(.lease_ms = 60000, .wait_ms = 60000);
    int rc;

    rc = hf_lock_acquire(lock, &opt, NULL);
    if (!rc)
        rc = hf_lock_renew(lock, 60000, NULL);
    if (!rc)
        rc = hf_lock_check(lock);
    return rc ? rc : hf_lock_release_nowait(lock, NULL);
}

static int use_by_trying(hf_lock *lock)
{
    int rc = hf_lock_try(lock, NULL);

    if (rc == HF_EBUSY)
        rc = hf_lock_timed(lock, 1, NULL);
    if (rc == HF_ETIMEDOUT)
        return 0;
    return rc ? rc : hf_lock_release_nowait(lock, NULL);
}

static int use_to_read(hf_lock *lock)
{
    hf_acquire_options opt = ACQUIRE_OPTIONS(.mode = HF_READ);
    int rc;

    rc = hf_lock_acquire(lock, &opt, NULL);
    return rc ? rc : hf_lock_release(lock, NULL);
}

static int use_to_write_and_read(hf_lock *lock)
{
    int rc = hf_lock_acquire(lock, NULL, NULL);

    if (!rc)
        rc = hf_lock_downgrade(lock, NULL);
    return rc ? rc : hf_lock_release_nowait(lock, NULL);
}

/* A user that never releases: the client keeps collecting holds until it is
 * closed. */
static int use_by_hoarding(hf_lock *lock)
{
    int rc = hf_lock_acquire(lock, NULL, NULL);

    sched_yield();
    return rc;
}

static int (*const as_mutex[])(hf_lock *) = {use_plainly, use_with_renewal,
                                             use_with_lease, use_by_trying};
static int (*const as_rwlock[])(hf_lock *) = {
    use_to_read, use_to_write_and_read, use_to_read, use_by_trying};
static int (*const as_semaphore[])(hf_lock *) = {
    use_by_hoarding, use_by_hoarding, use_plainly, use_with_lease};

static void use(void *arg)
{
    struct user *u = arg;

    while (!u->rc) {
        u->rc = u->ways[u->number % 4](u->lock);
        __atomic_add_fetch(&u->rounds, 1, __ATOMIC_RELEASE);
    }
}

static bool is_well_under_way(struct user *u)
{
    long rounds = __atomic_load_n(&u->rounds, __ATOMIC_ACQUIRE);

    if (rounds && u->rc)
        fail_msg("user %d: %s", u->number, hf_error_text(u->rc));
    return rounds > 3;
}

/* Opens a client for acquiring all permits at once. That takes thousands of
 * requests, for which a busy machine may need longer than the usual
 * op_timeout. */
static hf_client *open_patiently(void)
{
    hf_client_options opt = CLIENT_OPTIONS(.op_timeout_ms = 3 * WAIT_LONG_MS);

    return conf_open_with(&opt);
}

/* Half of the threads share one name. Each of the others has a name of its own,
 * and so waits for no other thread. */
static void close_under_use(enum hf_kind kind, uint32_t size,
                            int (*const *ways)(hf_lock *))
{
    enum { N = 8 };
    const char *name = conf_name();
    hf_client *a = open_patiently(), *b = open_patiently();
    hf_lock *other = conf_lock_of(b, name, kind, size, 0);
    struct user u[N];

    for (int i = 0; i < N; i++) {
        u[i] = (struct user){.number = i, .ways = ways};
        u[i].lock =
            conf_lock_of(a, i < N / 2 ? name : conf_name(), kind, size, 0);
    }
    for (int i = 0; i < N; i++)
        conf_thread_start(&u[i].t, use, &u[i]);
    for (int i = 0; i < N; i++)
        COMES(is_well_under_way(&u[i]));
    conf_close(a);
    for (int i = 0; i < N; i++) {
        conf_thread_join(&u[i].t);
        EXPECT(HF_ECLOSED, u[i].rc);
    }
    OK(conf_take(other, HF_WRITE, size, 3 * WAIT_LONG_MS)); /* all permits */
    OK(hf_lock_release(other, E));
}

CONF_CASE(test_close_under_use, CONF_EACH)
{
    for (int round = 0; round < 10; round++)
        close_under_use(HF_MUTEX, 0, as_mutex);
}

CONF_CASE(test_close_under_use_by_readers_and_writers, CONF_EACH | CONF_RWLOCK)
{
    for (int round = 0; round < 10; round++)
        close_under_use(HF_RWLOCK, 0, as_rwlock);
}

CONF_CASE(test_close_under_use_of_permits, CONF_EACH | CONF_SEMAPHORE)
{
    for (int round = 0; round < 10; round++)
        close_under_use(HF_SEMAPHORE, 4000, as_semaphore);
}

CONF_CASE(test_close_in_any_order_of_freeing, CONF_EACH)
{
    hf_client *c = conf_open();
    const char *name = conf_name();
    hf_lock *one = conf_lock(c, name), *two = conf_lock(c, name);

    OK(hf_lock_acquire(one, NULL, E));
    assert_true(hf_lock_fd(two) >= 0);
    conf_free(two);
    conf_close(c);
    conf_free(one);
    c = conf_open();
    conf_close(c); /* a client that never had a handle */
}

/* Runs last: every other case has released its locks, so the server must be
 * empty. */
CONF_CASE(test_close_leaves_nothing_at_the_server, CONF_FRESH)
{
    hf_client *c = conf_open();
    hf_names *names = NULL;

    if (conf.caps & HF_CAP_INSPECT) {
        OK(hf_list(c, NULL, &names, E));
        for (size_t i = 0; i < names->len; i++)
            print_error("in use: %s\n", names->names[i].bytes);
        assert_int_equal(names->len, 0);
        hf_names_free(names);
    }
    conf_close(c);
    assert_int_equal(conf_left(), 0);
}
