/*
 * Read-write locks, semaphores and latches in shared memory, especially limits,
 * many holders, deaths and stopped processes. The conformance suite tests what
 * every backend must do; tests/faults kills and stops processes at every
 * step.
 */
#include "shm_fixture.h"

/* Creates the lock x. */
static hf_lock *make_kind(hf_client *client, enum hf_kind kind, uint32_t size)
{
    return make_lock_of(client, "x", KIND(kind, .permits = size));
}

static void await_waiters(hf_client *client, size_t n)
{
    COMES(waiters(client) == n);
}

/* Forks a process that holds x as a reader, or waits for that, until it is
 * killed. */
static pid_t child_reads(const char *url, int64_t lease_ms, bool waits)
{
    pid_t pid = fork_until_ready();

    if (!pid) {
        hf_lock *lock = make_kind(open_client(url), HF_RWLOCK, 0);

        if (waits)
            say_ready();
        if (hf_lock_acquire(
                lock, HOW(HF_FOREVER, .mode = HF_READ, .lease_ms = lease_ms),
                NULL))
            _exit(1);
        if (!waits)
            say_ready();
        wait_for_ever();
    }
    return pid;
}

/* Starts a waiter that wants to write or wants a permit. Returns when x has
 * `waiting` waiters. */
static void start_waiter(struct waiter *w, hf_client *client, hf_lock *lock,
                         size_t waiting)
{
    waiter_start(w, lock);
    await_waiters(client, waiting);
}

/* A writer waits for n readers, which die one after the other. The writer may
 * be unable to watch all of them at once. */
static void readers_die(const char *url, int n)
{
    hf_client *client = open_client(url);
    struct waiter w;
    pid_t pid[64];
    int64_t at = 0;

    for (int i = 0; i < n; i++)
        pid[i] = child_reads(url, 0, false);
    start_waiter(&w, client, make_kind(client, HF_RWLOCK, 0), 1);
    for (int i = 0; i < n; i++) {
        assert_false(waiter_has_it(&w));
        at = now_ms();
        end_child(pid[i]);
    }
    waiter_end(&w, at, 0, DEATH_MS);
    close_client(client);
}

CASE_HERE(test_many_readers_die_before_a_writer)
{
    readers_die(p->url, 3);
    readers_die(p->url, 9);
    readers_die(p->url, 40);
    readers_die(text_of("%s?waitv=no", p->url), 3);
}

/* Forks a process that takes one of `size` permits, or waits for one. */
static pid_t child_takes(const char *url, uint32_t size)
{
    pid_t pid = fork();

    if (!pid) {
        hf_lock_acquire(make_kind(open_client(url), HF_SEMAPHORE, size), NULL,
                        NULL);
        wait_for_ever();
    }
    return pid;
}

static void await_used(struct shm_file *f, unsigned permits)
{
    COMES(shm_used(atomic_load(&f->entry[0].word)) >= permits);
}

/* Processes that hold one permit each are killed: all permits become free. */
CASE_HERE(test_permits_of_many_dead_come_back)
{
    enum { N = 20 };
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_kind(client, HF_SEMAPHORE, N);
    struct shm_file *f = map(p);
    pid_t pid[N];

    for (int i = 0; i < N; i++)
        pid[i] = child_takes(p->url, N);
    await_used(f, N);
    EXPECT(HF_EBUSY, hf_lock_try(lock, NULL));
    for (int i = 0; i < N; i++) {
        end_child(pid[i]);
    }
    takes_it_soon(lock, HOW(HF_FOREVER, .permits = N));
    OK(hf_lock_release(lock, NULL));
    assert_int_equal(shm_used(atomic_load(&f->entry[0].word)), 0);
}

/* The first waiter is granted a permit. The next one, which is now first, must
 * watch the current holders, which include the previous first waiter. */
CASE_HERE(test_next_in_the_queue_watches_all_holders)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_kind(client, HF_SEMAPHORE, 2);
    struct shm_file *f = map(p);
    struct waiter w;
    pid_t holds = child_takes(p->url, 2), waits;
    int64_t at;

    await_used(f, 1);
    OK(hf_lock_try(lock, NULL));
    waits = child_takes(p->url, 2);
    await_waiters(client, 1);
    start_waiter(&w, client, make_kind(other, HF_SEMAPHORE, 2), 2);
    nap_ms(50);
    OK(hf_lock_release(lock, NULL));
    await_waiters(client, 1);
    nap_ms(50);
    at = now_ms();
    kill(holds, SIGKILL);
    waiter_end(&w, at, 0, DEATH_MS);
    end_child(waits);
    waitpid(holds, NULL, 0);
}

CASE_HERE(test_stopped_reader_loses_its_lease)
{
    enum { LEASE_MS = 1500 };
    hf_client *client = open_client(p->url);
    int64_t before = now_ms(), at, begun;
    pid_t pid = child_reads(p->url, LEASE_MS, false);
    struct waiter w;

    at = now_ms();
    kill(pid, SIGSTOP);
    waiter_start(&w, make_kind(client, HF_RWLOCK, 0));
    begun = now_ms();
    waiter_end(&w, at, 0, begun - at + LEASE_MS + DEATH_MS);
    assert_true(w.granted_at - before >= LEASE_MS - 1);
    end_child(pid);
}

/* A stopped waiter is granted the lock, and loses it for good when its lease
 * ends: it does not return to the queue. */
CASE_HERE(test_stopped_waiter_with_a_lease_holds_nobody_up)
{
    enum { LEASE_MS = 1500 }; /* time to see that the waiter holds it */
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_kind(client, HF_RWLOCK, 0);
    struct waiter w;
    int64_t at;
    pid_t pid;

    OK(hf_lock_try(lock, NULL));
    pid = child_reads(p->url, LEASE_MS, true);
    await_waiters(client, 1);
    kill(pid, SIGSTOP);
    start_waiter(&w, client, make_kind(other, HF_RWLOCK, 0), 2);
    at = now_ms();
    OK(hf_lock_release(lock, NULL));
    waiter_end(&w, at, LEASE_MS - 50, LEASE_MS + DEATH_MS);
    kill(pid, SIGCONT); /* the child acquires the lock again */
    COMES(holders(client) > 0);
    end_child(pid);
}

enum { MANY = 500 };

struct many {
    hf_client *client;
    hf_lock *lock[MANY];
    int granted, failed;
};

static void count(void *arg, hf_lock *lock, int result)
{
    struct many *m = arg;

    m->granted += !result;
    m->failed += result != 0;
}

/* Starts many readers that wait. Holds with a time limit are not shared, which
 * is why each one has its own cell. */
static void many_wait(struct many *m, const char *url)
{
    *m = (struct many){.client = open_client(url)};
    for (int i = 0; i < MANY; i++) {
        m->lock[i] = make_lock_of(
            m->client, "x",
            KIND(HF_RWLOCK, .flags = HF_OWNER_HANDLE, .max_hold_ms = 60000));
        OK(hf_lock_acquire_async(m->lock[i], HOW(HF_FOREVER, .mode = HF_READ),
                                 count, m, NULL));
    }
}

static void dispatch_many(struct many *m, int granted)
{
    struct pollfd fd = {hf_client_fd(m->client), POLLIN, 0};
    int64_t until = wait_now() + WAIT_LONG_MS * INT64_C(1000000);

    while (m->granted < granted && wait_now() < until) {
        poll(&fd, 1, 100);
        hf_client_dispatch(m->client);
    }
    assert_int_equal(m->granted, granted);
    assert_int_equal(m->failed, 0);
}

CASE_HERE(test_waiting_readers_are_let_in_in_one_go)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_kind(client, HF_RWLOCK, 0);
    struct shm_file *f;
    struct many m;
    struct waiter w;

    OK(hf_lock_try(lock, NULL));
    many_wait(&m, p->url);
    assert_int_equal(waiters(client), MANY);
    f = map(p);
    OK(hf_lock_release(lock, NULL));
    /* All readers hold the lock before any of them has woken. */
    assert_int_equal(shm_used(atomic_load(&f->entry[0].word)), MANY);
    dispatch_many(&m, MANY);
    start_waiter(&w, client, make_kind(client, HF_RWLOCK, 0), 1);
    for (int i = 0; i < MANY; i++) {
        assert_false(waiter_has_it(&w));
        OK(hf_lock_release(m.lock[i], NULL));
    }
    waiter_end(&w, 0, 0, INT64_MAX / 2);
}

static unsigned cells_taken(struct shm_file *f)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SHM_CELLS; i++)
        n += atomic_load(&f->cell[i].owner) != 0;
    return n;
}

/* Idle lines keep only a few cells, and no cells once their handles are
 * freed. */
CASE_HERE(test_cells_are_given_back)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_kind(client, HF_SEMAPHORE, 300);
    struct shm_file *f = map(p);

    for (int i = 0; i < 300; i++)
        OK(hf_lock_try(lock, NULL));
    assert_int_equal(cells_taken(f), 300);
    EXPECT(HF_EBUSY, hf_lock_try(lock, NULL));
    for (int i = 0; i < 300; i++)
        OK(hf_lock_release(lock, NULL));
    assert_in_range(cells_taken(f), 1, 64);
    free_lock(lock);
    assert_int_equal(cells_taken(f), 0);
}

CASE_HERE(test_4096_shared_holds_and_no_more)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_kind(client, HF_SEMAPHORE, 4095);
    struct shm_file *f = map(p);

    for (unsigned i = 0; i < SHM_CELLS; i++) /* taken by a live client */
        atomic_store(&f->cell[i].owner,
                     1 | (atomic_load(&f->slot[1].gen) & 0xff) << 12);
    FAILS_SAYING(HF_EBACKEND, "4096 waits", hf_lock_timed(lock, 100, &err));
    for (unsigned i = 0; i < SHM_CELLS; i++)
        atomic_store(&f->cell[i].owner, 0);
    OK(hf_lock_timed(lock, 100, NULL));
    OK(hf_lock_release(lock, NULL));
}

CASE_HERE(test_a_semaphore_of_more_than_4095_is_refused)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock;

    FAILS_SAYING(HF_EINVAL, "4095",
                 hf_lock_new(client, "x", 1,
                             KIND(HF_SEMAPHORE, .permits = 4096), &lock, &err));
    make_kind(client, HF_SEMAPHORE, 4095);
}

/* One name is used as a lock of each kind in turn. */
CASE_HERE(test_tokens_rise_from_kind_to_kind)
{
    static const enum hf_kind kinds[] = {HF_MUTEX, HF_RWLOCK, HF_SEMAPHORE};
    hf_client *client = open_client(p->url);
    uint64_t last = 0, token;

    for (int i = 0; i < 60; i++) {
        enum hf_kind kind = kinds[i % 3];
        hf_lock *lock = make_kind(client, kind, kind == HF_SEMAPHORE ? 2 : 0);

        for (int k = 0; k < 100; k++) {
            OK(hf_lock_try(lock, NULL));
            OK(hf_lock_token(lock, &token));
            assert_true(kind == HF_SEMAPHORE ? token >= last : token > last);
            last = token;
            OK(hf_lock_release(lock, NULL));
        }
        free_lock(lock);
    }
}

static void *wait_for_latch(void *arg)
{
    return (void *)(intptr_t)hf_latch_wait(arg, 10000, NULL, NULL);
}

/* A latch is set again as soon as it is 0: the waiters of the previous round
 * are not held up by the new round. */
CASE_HERE(test_latch_that_is_set_again_keeps_nobody)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_latch *latch, *waited;
    pthread_t thread;
    void *rc;

    OK(hf_latch_new(client, "x", 1, &latch, NULL));
    OK(hf_latch_new(other, "x", 1, &waited, NULL));
    for (int i = 0; i < 200; i++) {
        OK(hf_latch_set(latch, 1, NULL));
        OK(pthread_create(&thread, NULL, wait_for_latch, waited));
        await_waiters(client, 1);
        OK(hf_latch_down(latch, NULL, NULL));
        OK(hf_latch_set(latch, 1, NULL));
        pthread_join(thread, &rc);
        assert_null(rc);
        OK(hf_latch_down(latch, NULL, NULL));
    }
    OK(hf_latch_free(latch));
    OK(hf_latch_free(waited));
}

/* The name of a latch stays in use while the latch is set, even if no client
 * has it open. It becomes free when the latch is 0 and no client has it
 * open. */
CASE_HERE(test_latch_outlives_its_clients)
{
    hf_client *client = open_client(p->url);
    hf_latch *latch;
    hf_lock *lock;
    uint64_t left;

    OK(hf_latch_new(client, "x", 1, &latch, NULL));
    OK(hf_latch_set(latch, 7, NULL));
    OK(hf_latch_free(latch));
    close_client(client);
    client = open_client(p->url);
    FAILS_SAYING(HF_EMISMATCH, "latch",
                 hf_lock_new(client, "x", 1, NULL, &lock, &err));
    OK(hf_latch_new(client, "x", 1, &latch, NULL));
    OK(hf_latch_get(latch, &left, NULL));
    assert_int_equal(left, 7);
    OK(hf_break(client, "x", 1, NULL));
    OK(hf_latch_get(latch, &left, NULL));
    assert_int_equal(left, 0);
    OK(hf_latch_free(latch));
    make_lock_of(client, "x", NULL);
}

CASES_MAIN(NULL, NULL);
