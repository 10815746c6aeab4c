/* Ways of waiting in shared memory: with futex_waitv and without, asynchronous,
 * many at a time. */
#include "shm_fixture.h"

static void *lock_often(void *arg)
{
    hf_lock *lock = arg;

    for (int i = 0; i < 2000; i++) {
        if (hf_lock_timed(lock, 10000, NULL))
            return NULL;
        sched_yield();
        if (hf_lock_release(lock, NULL))
            return NULL;
    }
    return lock;
}

/* Clients of one process are strangers to each other. */
static void contend(const char *url, bool fair)
{
    hf_client *clients[4];
    hf_lock *locks[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        clients[i] = open_client(url);
        locks[i] = make_lock(clients[i], "x", fair);
    }
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, lock_often, locks[i]);
    for (int i = 0; i < 4; i++) {
        void *done = NULL;

        pthread_join(threads[i], &done);
        assert_non_null(done);
        hf_lock_free(locks[i]);
        hf_close(clients[i]);
    }
}

static void test_contended_with_waitv_and_without(void **state)
{
    struct place *p = *state;
    char url[200];

    contend(p->url, true);
    contend(p->url, false);
    snprintf(url, sizeof(url), "%s?waitv=no", p->url);
    contend(url, true);
    contend(url, false);
}

static void async_wait(const char *url)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    pid_t pid = child_with_lock(url, true, 0, wait_for_ever);
    hf_client *client = open_client(url), *other = open_client(url);
    struct async a = {0, -1};
    hf_lock *lock, *held;
    hf_error err = HF_ERROR_INIT;

    opt.flags = HF_OWNER_HANDLE;
    opt.fairness = HF_FAIR;
    assert_int_equal(hf_lock_new(client, "x", 1, &opt, &lock, &err), 0);
    assert_int_equal(hf_lock_acquire_async(lock, NULL, on_done, &a, &err), 0);
    nap_ms(30);
    assert_int_equal(a.calls, 0);
    kill(pid, SIGKILL);
    assert_in_range(dispatch_until(client, &a, 1), 0, DEATH_MS);
    waitpid(pid, NULL, 0);
    assert_int_equal(a.result, 0);
    assert_int_equal(hf_lock_release(lock, &err), 0);

    held = make_lock(other, "x", true);
    assert_int_equal(hf_lock_acquire(held, NULL, NULL), 0);
    assert_int_equal(hf_lock_acquire_async(lock, NULL, on_done, &a, &err), 0);
    nap_ms(30);
    assert_int_equal(hf_lock_release(held, NULL), 0);
    assert_in_range(dispatch_until(client, &a, 2), 0, DEATH_MS);
    assert_int_equal(a.result, 0);
    assert_int_equal(hf_lock_release(lock, &err), 0);
    hf_lock_free(held);
    hf_lock_free(lock);
    hf_close(other);
    hf_close(client);
}

static void test_async_waits_with_waitv_and_without(void **state)
{
    struct place *p = *state;
    char url[200];

    async_wait(p->url);
    snprintf(url, sizeof(url), "%s?waitv=no", p->url);
    async_wait(url);
}

/* More holders than the keeper can watch in one sleep. */
static void test_many_async_waits(void **state)
{
    enum { MANY = 150 };
    struct place *p = *state;
    hf_client *holders[MANY], *client = open_client(p->url);
    hf_lock *held[MANY], *wanted[MANY];
    struct async a = {0, -1};
    char name[16];

    for (int i = 0; i < MANY; i++) {
        hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

        snprintf(name, sizeof(name), "n%d", i);
        holders[i] = open_client(p->url);
        held[i] = make_lock(holders[i], name, true);
        assert_int_equal(hf_lock_acquire(held[i], NULL, NULL), 0);
        opt.flags = HF_OWNER_HANDLE;
        assert_int_equal(
            hf_lock_new(client, name, HF_CSTRING, &opt, &wanted[i], NULL), 0);
        assert_int_equal(
            hf_lock_acquire_async(wanted[i], NULL, on_done, &a, NULL), 0);
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hf_lock_release(held[i], NULL), 0);
    assert_in_range(dispatch_until(client, &a, MANY), 0, 1000);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(hf_lock_release(wanted[i], NULL), 0);
        hf_lock_free(wanted[i]);
        hf_lock_free(held[i]);
        hf_close(holders[i]);
    }
    hf_close(client);
}

static hf_lock *make_async(hf_client *client, const char *name)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    opt.flags = HF_OWNER_HANDLE;
    return make_lock_of(client, name, &opt);
}

static void cancel(hf_client *client, hf_lock *lock, struct async *a)
{
    int calls = a->calls;

    OK(hf_lock_cancel(lock));
    dispatch_until(client, a, calls + 1);
    assert_int_equal(a->result, HF_ECANCELED);
}

/* A thread sleeps for all of its client who want x. When the first of them, who
 * wanted a lease, gives up, the place in the queue is another. */
static void
test_who_sleeps_for_another_follows_it_to_another_place(void **state)
{
    struct place *p = *state;
    hf_client *other = open_client(p->url), *third = open_client(p->url);
    hf_client *client = open_client(p->url);
    hf_lock *x = make_lock(other, "x", true), *y = make_lock(third, "y", true);
    hf_lock *want_x = make_async(client, "x"),
            *want_y = make_async(client, "y");
    hf_acquire_options leased = HF_ACQUIRE_OPTIONS_INIT;
    struct async a = {0, -1};
    struct waiter w;
    int64_t at;

    leased.lease_ms = 5000;
    OK(hf_lock_acquire(x, NULL, NULL));
    OK(hf_lock_acquire(y, NULL, NULL));
    OK(hf_lock_acquire_async(want_y, NULL, on_done, &a, NULL));
    OK(hf_lock_acquire_async(want_x, &leased, on_done, &a, NULL));
    waiter_start(&w, make_lock(client, "x", true));
    nap_ms(50); /* it sleeps */
    cancel(client, want_y, &a);
    cancel(client, want_x, &a);
    nap_ms(50);
    at = now_ms();
    OK(hf_lock_release(x, NULL));
    waiter_end(&w, at, 0, DEATH_MS);
    OK(hf_lock_release(y, NULL));
    OK(hf_lock_free(want_x));
    OK(hf_lock_free(want_y));
    OK(hf_lock_free(x));
    OK(hf_lock_free(y));
    OK(hf_close(client));
    OK(hf_close(third));
    OK(hf_close(other));
}

static void crowd_member(const char *url, int ready)
{
    hf_client *client = open_client(url);
    hf_lock *lock = make_lock(client, "x", true);
    int rc;

    if (write(ready, "", 1) != 1)
        _exit(1);
    rc = hf_lock_acquire(lock, NULL, NULL);
    if (!rc)
        rc = hf_lock_release(lock, NULL);
    hf_lock_free(lock);
    hf_close(client);
    _exit(rc ? 1 : 0);
}

static void test_1000_waiting_processes(void **state)
{
    enum { CROWD = 1000 };
    struct place *p = *state;
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    int fds[2], status, bad = 0;
    char byte;

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(hf_lock_acquire(lock, NULL, NULL), 0);
    for (int i = 0; i < CROWD; i++)
        if (!fork())
            crowd_member(p->url, fds[1]);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_true(WAIT_FOR_MS(waiters(client) == CROWD, 5 * WAIT_LONG_MS));
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    while (wait(&status) > 0)
        bad += status != 0;
    assert_int_equal(bad, 0);
    close(fds[0]);
    close(fds[1]);
    hf_lock_free(lock);
    hf_close(client);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_contended_with_waitv_and_without),
        TEST(test_async_waits_with_waitv_and_without),
        TEST(test_many_async_waits),
        TEST(test_who_sleeps_for_another_follows_it_to_another_place),
        TEST(test_1000_waiting_processes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
