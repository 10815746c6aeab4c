/*
 * Processes that use shared memory die or are stopped: waiters are woken within
 * the time of the contract, and no waiter is held up. tests/faults kills
 * processes at random and at every step.
 */
#include "shm_fixture.h"

#include <sys/file.h>

static int may_exec[2]; /* a pipe */

static void become_another_program(void)
{
    char byte;

    if (read(may_exec[0], &byte, 1) == 1)
        execlp("sleep", "sleep", "600", (char *)NULL);
}

static void death_is_noticed(const char *url, bool fair)
{
    pid_t pid = child_with_lock(url, fair, 0, wait_for_ever);
    hf_client *client = open_client(url);
    struct waiter w;
    int64_t at;

    waiter_start(&w, make_lock(client, "x", fair));
    nap_ms(120);
    at = now_ms();
    kill(pid, SIGKILL); /* not reaped yet: a zombie */
    waiter_end(&w, at, 0, DEATH_MS);
    waitpid(pid, NULL, 0);
    close_client(client);
}

CASE_HERE(test_killed_holder_is_noticed)
{
    const char *url = text_of("%s?waitv=no", p->url);

    death_is_noticed(p->url, true);
    death_is_noticed(p->url, false);
    death_is_noticed(url, true);
    death_is_noticed(url, false);
}

/* Forks a process that holds y0, y1 ... and then acquires x or waits for it. */
static pid_t child_with_many(const char *url, int many)
{
    pid_t pid = fork_until_ready();

    if (!pid) {
        hf_client *client = open_client(url);

        for (int i = 0; i < many; i++)
            if (hf_lock_acquire(make_lock(client, text_of("y%d", i), true),
                                NULL, NULL))
                _exit(1);
        say_ready();
        hf_lock_acquire(make_lock(client, "x", true), NULL, NULL);
        wait_for_ever();
    }
    nap_ms(30);
    return pid;
}

/* Starts waiters for y0, y1 ..., each with its own client. */
static void start_many(struct waiter *w, const char *url, int many)
{
    for (int i = 0; i < many; i++)
        waiter_start(&w[i],
                     make_lock(open_client(url), text_of("y%d", i), true));
}

/* The kernel wakes one of the threads that wait for locks of a dead process,
 * and that thread wakes the others. */
CASE_HERE(test_one_death_is_told_to_all)
{
    enum { MANY = 24 };
    pid_t pid = child_with_many(p->url, MANY);
    struct waiter w[MANY];
    int64_t at;

    start_many(w, p->url, MANY);
    nap_ms(100);
    at = now_ms();
    kill(pid, SIGKILL);
    waiters_end(w, MANY, at, 0, DEATH_MS);
    waitpid(pid, NULL, 0);
}

/* The process that dies holds y0, for which a second client waits. The process
 * also waits for x, and a third client queues for x behind the process. */
CASE_HERE(test_death_of_a_waiter_that_holds_another)
{
    hf_lock *x = make_lock(open_client(p->url), "x", true);
    struct waiter w[2];
    int64_t at;
    pid_t pid;

    OK(hf_lock_acquire(x, NULL, NULL));
    pid = child_with_many(p->url, 1);
    for (int i = 0; i < 2; i++) {
        waiter_start(&w[i],
                     make_lock(open_client(p->url), i ? "y0" : "x", true));
        nap_ms(20);
    }
    at = now_ms();
    kill(pid, SIGKILL);
    waiter_end(&w[1], at, 0, DEATH_MS);
    at = now_ms();
    OK(hf_lock_release(x, NULL));
    waiter_end(&w[0], at, 0, DEATH_MS);
    waitpid(pid, NULL, 0);
}

/* The holder dies while one of the waiters that watch it is stopped: the other
 * waiters notice nevertheless, whether the kernel wakes them or they poll. */
static void death_beside_a_stopped_one(const char *url, int many)
{
    pid_t pid = child_with_many(url, many), stopped;
    struct waiter w[16];
    int64_t at;

    stopped = fork();
    if (!stopped) {
        hf_lock_acquire(make_lock(open_client(url), "x", true), NULL, NULL);
        wait_for_ever();
    }
    nap_ms(50);
    start_many(w, url, many);
    nap_ms(50);
    kill(stopped, SIGSTOP);
    nap_ms(450); /* each of the others has polled at least once */
    at = now_ms();
    kill(pid, SIGKILL);
    waiters_end(w, many, at, 0, DEATH_MS);
    end_child(stopped);
    waitpid(pid, NULL, 0);
}

CASE_HERE(test_death_while_a_waiter_is_stopped)
{
    death_beside_a_stopped_one(p->url, 1);
    death_beside_a_stopped_one(p->url, 16);
}

/* The first waiter gives up and leaves the queue: from then on the next one
 * watches the holder, and notices its death. */
CASE_HERE(test_death_after_the_one_before_gave_up)
{
    pid_t pid = child_with_lock(p->url, true, 0, wait_for_ever);
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *first = make_lock_of(
        other, "x",
        KIND(HF_MUTEX, .flags = HF_OWNER_HANDLE, .fairness = HF_FAIR));
    struct async a = {0, -1};
    struct waiter w;
    int64_t at;

    OK(hf_lock_acquire_async(first, NULL, on_done, &a, NULL));
    nap_ms(30);
    waiter_start(&w, make_lock(client, "x", true));
    nap_ms(30);
    OK(hf_lock_cancel(first));
    dispatch_until(other, &a, 1);
    assert_int_equal(a.result, HF_ECANCELED);
    nap_ms(30);
    at = now_ms();
    kill(pid, SIGKILL);
    waiter_end(&w, at, 0, DEATH_MS);
    waitpid(pid, NULL, 0);
}

/* The kernel has marked the holder's helper thread as dead, but the process is
 * alive and may still be writing: its lock is not taken over before the process
 * is dead. */
CASE_HERE(test_a_mark_alone_is_not_a_death)
{
    pid_t pid = child_with_lock(p->url, true, 0, wait_for_ever);
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct shm_file *f = map(p);
    unsigned slot = atomic_load(&f->entry[0].word) & SHM_SLOT_MASK;

    atomic_fetch_or(&f->slot[slot].alive, FUTEX_OWNER_DIED);
    EXPECT(HF_EBUSY, hf_lock_try(lock, NULL));
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(lock, 50, NULL));
    kill(pid, SIGKILL);
    takes_it_soon(lock, NULL);
    waitpid(pid, NULL, 0);
    hf_lock_release(lock, NULL);
}

static void exec_lets_go(const struct locks_place *p)
{
    hf_client *client;
    hf_lock *lock;
    int status;
    pid_t pid;

    OK(pipe(may_exec));
    pid = child_with_lock(p->url, true, 0, become_another_program);
    client = open_client(p->url);
    lock = make_lock(client, "x", true);
    EXPECT(HF_EBUSY, hf_lock_try(lock, NULL));
    assert_int_equal(write(may_exec[1], "", 1), 1);
    OK(hf_lock_timed(lock, WAIT_LONG_MS, NULL));
    OK(kill(pid, SIGKILL));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status)); /* it survived as another program */
    close(may_exec[0]);
    close(may_exec[1]);
    hf_lock_release(lock, NULL);
    free_lock(lock);
    close_client(client);
}

CASE_HERE(test_exec_lets_go)
{
    exec_lets_go(p);
}

static pid_t *grandchild; /* in memory shared with the child */

static void become_another_program_beside_a_child(void)
{
    pid_t pid = fork();

    if (!pid)
        wait_for_ever();
    __atomic_store_n(grandchild, pid, __ATOMIC_RELEASE);
    become_another_program();
}

static bool is_another_program(pid_t pid)
{
    char name[16];

    wait_read(text_of("/proc/%d/comm", (int)pid), name, sizeof(name));
    return !strcmp(name, "sleep\n");
}

static void share_grandchild(void)
{
    grandchild = mmap(NULL, sizeof(*grandchild), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(grandchild != MAP_FAILED);
}

/* A child that was forked before the exec has inherited the descriptor: the
 * lock is held until the child has exited. */
CASE_HERE(test_exec_beside_a_child_lets_go_with_it)
{
    hf_client *client;
    hf_lock *lock;
    pid_t pid;

    OK(pipe(may_exec));
    share_grandchild();
    pid =
        child_with_lock(p->url, true, 0, become_another_program_beside_a_child);
    client = open_client(p->url);
    lock = make_lock(client, "x", true);
    assert_int_equal(write(may_exec[1], "", 1), 1);
    COMES(is_another_program(pid));
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(lock, 200, NULL));
    OK(kill(__atomic_load_n(grandchild, __ATOMIC_ACQUIRE), SIGKILL));
    OK(hf_lock_timed(lock, WAIT_LONG_MS, NULL));
    end_child(pid);
    OK(hf_lock_release(lock, NULL));
    close(may_exec[0]);
    close(may_exec[1]);
    munmap(grandchild, sizeof(*grandchild));
}

/* A child has inherited the descriptor of a client that was closed since then.
 * The child does not affect the next client, which has the same slot. */
CASE_HERE(test_exec_lets_go_beside_a_child_of_the_one_before)
{
    hf_client *client = open_client(p->url);
    pid_t child = fork();
    int fd;

    if (!child)
        wait_for_ever();
    close_client(client);
    fd = open(p->file, O_RDWR | O_CLOEXEC);
    OK(flock(fd, LOCK_EX | LOCK_NB)); /* the file looks unused */
    close(fd);
    exec_lets_go(p);
    end_child(child);
}

static void have_a_child(void)
{
    pid_t pid = fork();

    if (pid)
        __atomic_store_n(grandchild, pid, __ATOMIC_RELEASE);
    wait_for_ever();
}

/* A child has inherited the descriptor of a client that was killed: the next
 * client has another slot. */
CASE_HERE(test_exec_lets_go_beside_a_child_of_the_dead)
{
    pid_t pid;

    share_grandchild();
    pid = child_with_lock(p->url, true, 0, have_a_child);
    COMES(__atomic_load_n(grandchild, __ATOMIC_ACQUIRE) > 0);
    end_child(pid);
    exec_lets_go(p);
    kill(*grandchild, SIGKILL);
    munmap(grandchild, sizeof(*grandchild));
}

CASE_HERE(test_stopped_holder_keeps_it_unless_its_lease_ends)
{
    enum { LEASE_MS = 1000 };
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);

    for (int leased = 0; leased < 2; leased++) {
        int64_t before = now_ms();
        pid_t pid =
            child_with_lock(p->url, true, leased ? LEASE_MS : 0, wait_for_ever);

        kill(pid, SIGSTOP);
        if (leased) {
            OK(hf_lock_timed(lock, WAIT_LONG_MS, NULL));
            assert_true(now_ms() - before >= LEASE_MS - 1);
            OK(hf_lock_release(lock, NULL));
        } else {
            EXPECT(HF_ETIMEDOUT, hf_lock_timed(lock, 1500, NULL));
        }
        end_child(pid);
    }
}

/* Returns what is left of the lease of x, in ms. */
static int64_t left_ms(hf_client *client)
{
    hf_info *info;
    int64_t left;

    OK(hf_inspect(client, "x", 1, &info, NULL));
    left = info->holders[0].left_ms;
    hf_info_free(info);
    return left;
}

CASE_HERE(test_a_renewal_never_shortens_the_lease)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);

    OK(hf_lock_acquire(lock, HOW(HF_FOREVER, .lease_ms = 20000), NULL));
    OK(hf_lock_renew(lock, 40000, NULL));
    assert_in_range(left_ms(client), 21000, 40001);
    OK(hf_lock_renew(lock, 10000, NULL));
    assert_in_range(left_ms(client), 21000, 40001);
    OK(hf_lock_release(lock, NULL));
}

/* Starts a process that waits for x and requests a lease, and stops it. */
static pid_t stopped_waiter_with_lease(const struct locks_place *p,
                                       int64_t lease_ms)
{
    struct shm_file *f = map(p);
    pid_t pid = fork();

    if (!pid) {
        hf_lock_acquire(make_lock(open_client(p->url), "x", true),
                        HOW(HF_FOREVER, .lease_ms = lease_ms), NULL);
        wait_for_ever();
    }
    while (!(atomic_load(&f->entry[0].word) & SHM_WAITERS))
        nap_ms(1);
    assert_true(wait_asleep(pid, pid));
    kill(pid, SIGSTOP);
    return pid;
}

/* A stopped waiter is granted the lock: its lease ends all the same, and the
 * next client acquires the lock. */
CASE_HERE(test_stopped_waiter_with_lease_holds_nobody_up)
{
    hf_client *client = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    pid_t pid;

    OK(hf_lock_acquire(lock, NULL, NULL));
    pid = stopped_waiter_with_lease(p, 100);
    OK(hf_lock_release(lock, NULL));
    OK(hf_lock_timed(lock, WAIT_LONG_MS, NULL));
    OK(hf_lock_release(lock, NULL));
    end_child(pid);
}

/* A stopped waiter that is granted the lock does not hold up a waiter that
 * already queues after it, except for the time of its lease. */
CASE_HERE(test_stopped_waiter_with_lease_before_another)
{
    hf_client *client = open_client(p->url), *other = open_client(p->url);
    hf_lock *lock = make_lock(client, "x", true);
    struct waiter w;
    int64_t at;
    pid_t pid;

    OK(hf_lock_acquire(lock, NULL, NULL));
    pid = stopped_waiter_with_lease(p, 300);
    waiter_start(&w, make_lock(other, "x", true));
    nap_ms(50);
    at = now_ms();
    OK(hf_lock_release(lock, NULL));
    waiter_end(&w, at, 250, 1000);
    end_child(pid);
}

CASES_MAIN(NULL, NULL);
