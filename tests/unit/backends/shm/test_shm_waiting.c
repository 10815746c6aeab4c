/* Ways of waiting in shared memory: with futex_waitv and without, asynchronous,
 * and many at a time. */
#include "shm_fixture.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

/* Clients of one process exclude each other as those of several processes
 * do. */
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
        free_lock(locks[i]);
        close_client(clients[i]);
    }
}

CASE_HERE(test_contended_with_waitv_and_without)
{
    const char *url = text_of("%s?waitv=no", p->url);

    contend(p->url, true);
    contend(p->url, false);
    contend(url, true);
    contend(url, false);
}

static hf_lock *make_async(hf_client *client, const char *name)
{
    return make_lock_of(client, name, KIND(HF_MUTEX, .flags = HF_OWNER_HANDLE));
}

static void async_wait(const char *url)
{
    pid_t pid = child_with_lock(url, true, 0, wait_for_ever);
    hf_client *client = open_client(url), *other = open_client(url);
    struct async a = {0, -1};
    hf_lock *lock = make_async(client, "x"), *held;
    hf_error err = HF_ERROR_INIT;

    OK(hf_lock_acquire_async(lock, NULL, on_done, &a, &err));
    nap_ms(30);
    assert_int_equal(a.calls, 0);
    kill(pid, SIGKILL);
    assert_in_range(dispatch_until(client, &a, 1), 0, DEATH_MS);
    waitpid(pid, NULL, 0);
    assert_int_equal(a.result, 0);
    OK(hf_lock_release(lock, &err));

    held = make_lock(other, "x", true);
    OK(hf_lock_acquire(held, NULL, NULL));
    OK(hf_lock_acquire_async(lock, NULL, on_done, &a, &err));
    nap_ms(30);
    OK(hf_lock_release(held, NULL));
    assert_in_range(dispatch_until(client, &a, 2), 0, DEATH_MS);
    assert_int_equal(a.result, 0);
    OK(hf_lock_release(lock, &err));
    free_lock(held);
    free_lock(lock);
    close_client(other);
    close_client(client);
}

CASE_HERE(test_async_waits_with_waitv_and_without)
{
    async_wait(p->url);
    async_wait(text_of("%s?waitv=no", p->url));
}

/* The client waits for more holders than its helper thread can watch in one
 * sleep. */
CASE_HERE(test_many_async_waits)
{
    enum { MANY = 150 };
    hf_client *client = open_client(p->url);
    hf_lock *held[MANY], *wanted[MANY];
    struct async a = {0, -1};

    for (int i = 0; i < MANY; i++) {
        const char *name = text_of("n%d", i);

        held[i] = make_lock(open_client(p->url), name, true);
        OK(hf_lock_acquire(held[i], NULL, NULL));
        wanted[i] = make_async(client, name);
        OK(hf_lock_acquire_async(wanted[i], NULL, on_done, &a, NULL));
    }
    for (int i = 0; i < MANY; i++)
        OK(hf_lock_release(held[i], NULL));
    assert_in_range(dispatch_until(client, &a, MANY), 0, 1000);
    for (int i = 0; i < MANY; i++)
        OK(hf_lock_release(wanted[i], NULL));
}

static void cancel(hf_client *client, hf_lock *lock, struct async *a)
{
    int calls = a->calls;

    OK(hf_lock_cancel(lock));
    dispatch_until(client, a, calls + 1);
    assert_int_equal(a->result, HF_ECANCELED);
}

/* A thread sleeps on behalf of all waiters of its client for x. When the first
 * of these waiters, which has requested a lease, gives up, their place in the
 * queue changes, and the thread must watch the new place. */
CASE_HERE(test_who_sleeps_for_another_follows_it_to_another_place)
{
    hf_client *other = open_client(p->url), *third = open_client(p->url);
    hf_client *client = open_client(p->url);
    hf_lock *x = make_lock(other, "x", true), *y = make_lock(third, "y", true);
    hf_lock *want_x = make_async(client, "x"),
            *want_y = make_async(client, "y");
    struct async a = {0, -1};
    struct waiter w;
    int64_t at;

    OK(hf_lock_acquire(x, NULL, NULL));
    OK(hf_lock_acquire(y, NULL, NULL));
    OK(hf_lock_acquire_async(want_y, NULL, on_done, &a, NULL));
    OK(hf_lock_acquire_async(want_x, HOW(HF_FOREVER, .lease_ms = 5000), on_done,
                             &a, NULL));
    waiter_start(&w, make_lock(client, "x", true));
    nap_ms(50); /* the waiter sleeps */
    cancel(client, want_y, &a);
    cancel(client, want_x, &a);
    nap_ms(50);
    at = now_ms();
    OK(hf_lock_release(x, NULL));
    waiter_end(&w, at, 0, DEATH_MS);
    OK(hf_lock_release(y, NULL));
}

/* A thread sleeps on behalf of all waiters of its client for x. The first of
 * these waiters is granted the lock and releases it, after which it is another
 * client's turn. The place of the remaining waiter in the queue changes. */
CASE_HERE(test_who_sleeps_for_another_is_told_when_that_has_had_it)
{
    hf_client *other = open_client(p->url), *third = open_client(p->url);
    hf_client *fourth = open_client(p->url), *client = open_client(p->url);
    hf_lock *x = make_lock(other, "x", true), *y = make_lock(third, "y", true);
    hf_lock *want_x = make_async(client, "x"),
            *want_y = make_async(client, "y"), *next = make_async(fourth, "x");
    struct async a = {0, -1}, b = {0, -1};
    struct waiter w;
    int64_t at;

    OK(hf_lock_acquire(x, NULL, NULL));
    OK(hf_lock_acquire(y, NULL, NULL));
    OK(hf_lock_acquire_async(want_y, NULL, on_done, &a, NULL));
    OK(hf_lock_acquire_async(want_x, HOW(HF_FOREVER, .lease_ms = 60000),
                             on_done, &a, NULL));
    OK(hf_lock_acquire_async(next, NULL, on_done, &b, NULL));
    waiter_start(&w, make_lock(client, "x", true));
    nap_ms(50);                 /* the waiter sleeps */
    cancel(client, want_y, &a); /* frees a cell for the waiter's new place */
    OK(hf_lock_release(x, NULL));
    dispatch_until(client, &a, 2);
    OK(a.result);
    OK(hf_lock_release(want_x, NULL));
    dispatch_until(fourth, &b, 1);
    OK(b.result);
    COMES(waiters(other) == 1);
    nap_ms(50);
    at = now_ms();
    OK(hf_lock_release(next, NULL));
    waiter_end(&w, at, 0, DEATH_MS);
    OK(hf_lock_release(y, NULL));
}

/* Returns how often the thread has gone to sleep. */
static long sleeps_of(const struct waiter *w)
{
    static const char what[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    const char *at;

    wait_read(text_of("/proc/self/task/%d/status", (int)waiter_tid(w)), text,
              sizeof(text));
    at = strstr(text, what);
    assert_non_null(at);
    return strtol(at + sizeof(what) - 1, NULL, 10);
}

/* Threads of one client queue for a semaphore: they need not watch for each
 * other's death, and poll only every 2 s. */
CASE_HERE(test_threads_that_wait_for_a_semaphore_sleep)
{
    enum { MANY = 3, MS = 700 };
    hf_client *other = open_client(p->url), *client = open_client(p->url);
    const hf_lock_options *how = KIND(HF_SEMAPHORE, .permits = 1);
    hf_lock *held = make_lock_of(other, "x", how);
    struct waiter w[MANY];
    long sleeps = 0;
    int64_t at;

    OK(hf_lock_acquire(held, NULL, NULL));
    for (size_t i = 0; i < MANY; i++) {
        waiter_start(&w[i], make_lock_of(client, "x", how));
        COMES(waiters(other) == i + 1);
    }
    for (int i = 0; i < MANY; i++) {
        assert_true(wait_asleep(getpid(), waiter_tid(&w[i])));
        sleeps -= sleeps_of(&w[i]);
    }
    at = now_ms();
    nap_ms(MS);
    for (int i = 0; i < MANY; i++)
        sleeps += sleeps_of(&w[i]);
    assert_in_range(sleeps, 0, MANY * 2 * (1 + (now_ms() - at) / 1000));
    OK(hf_lock_release(held, NULL));
    waiters_end(w, MANY, 0, 0, INT64_MAX / 2);
}

enum { NO_FILTERS = 77 };

/* Installs a seccomp filter that makes futex_waitv fail with an unusual error,
 * like a filter that was written before this system call existed. */
static void forbid_waitv(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 449, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                &filter))
        _exit(NO_FILTERS);
}

static int64_t cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Runs in a child: the wait must time out without using the processor. */
static void wait_in_vain(const char *url)
{
    hf_client *client = open_client(url);
    hf_lock *lock = make_lock(client, "x", true);
    int64_t before;
    int rc;

    forbid_waitv();
    before = cpu_ms();
    rc = hf_lock_timed(lock, 500, NULL);
    _exit(rc != HF_ETIMEDOUT ? 1 : cpu_ms() - before > 100 ? 2 : 0);
}

/* Runs in a child: the waiter must acquire the lock soon after its release. */
static void wait_without_a_thread(const char *url)
{
    hf_client *client = open_client(url);
    hf_lock *lock = make_async(client, "x");
    struct pollfd poll_fd = {hf_client_fd(client), POLLIN, 0};
    struct async a = {0, -1};

    forbid_waitv();
    if (hf_lock_acquire_async(lock, NULL, on_done, &a, NULL))
        _exit(1);
    while (!a.calls && poll(&poll_fd, 1, WAIT_LONG_MS) == 1)
        hf_client_dispatch(client);
    _exit(a.result ? 2 : 0);
}

static pid_t child_that(void (*waits)(const char *), const char *url)
{
    pid_t pid = fork();

    if (!pid)
        waits(url);
    return pid;
}

static void ends_well(pid_t pid)
{
    int status;

    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), NO_FILTERS);
    assert_int_equal(WEXITSTATUS(status), 0);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
           info.si_pid;
}

CASE_HERE(test_waitv_that_a_filter_forbids)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    int64_t at;
    pid_t pid;

    OK(hf_lock_acquire(lock, NULL, NULL));
    ends_well(child_that(wait_in_vain, p->url));
    pid = child_that(wait_without_a_thread, p->url);
    COMES(waiters(client) == 1 || has_ended(pid));
    nap_ms(30); /* the helper has noticed that the call is forbidden */
    at = wait_fair();
    OK(hf_lock_release(lock, NULL));
    ends_well(pid);
    assert_true(wait_within(at, 1000));
}

static void crowd_member(const char *url)
{
    int tries = 50, rc;
    hf_client *client;
    hf_lock *lock;

    /* With this many processes, the process that holds the lock of the tables
     * may get no processor for longer than the others wait. */
    while ((rc = hf_open(url, NULL, &client, NULL)) == HF_EBACKEND && --tries)
        ;
    if (rc)
        _exit(1);
    while (
        (rc = hf_lock_new(client, "x", 1, KIND(HF_MUTEX, .fairness = HF_FAIR),
                          &lock, NULL)) == HF_EBACKEND &&
        --tries)
        ;
    if (rc)
        _exit(1);
    say_ready();
    rc = hf_lock_acquire(lock, NULL, NULL);
    if (!rc)
        rc = hf_lock_release(lock, NULL);
    free_lock(lock);
    close_client(client);
    _exit(rc ? 1 : 0);
}

CASE_HERE(test_1000_waiting_processes)
{
    enum { CROWD = 1000 };
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    int status, bad = 0;
    char byte;

    OK(pipe(ready));
    OK(hf_lock_acquire(lock, NULL, NULL));
    for (int i = 0; i < CROWD; i++)
        if (!fork())
            crowd_member(p->url);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(read(ready[0], &byte, 1), 1);
    COMES_MS(waiters(client) == CROWD, 5 * WAIT_LONG_MS);
    OK(hf_lock_release(lock, NULL));
    while (wait(&status) > 0)
        bad += status != 0;
    assert_int_equal(bad, 0);
    close(ready[0]);
    close(ready[1]);
}

CASES_MAIN(NULL, NULL);
