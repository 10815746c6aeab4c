/*
 * Deaths in shared memory that go unnoticed at first, because the first waiter
 * is stopped or the kernel has not marked the dead process. Other waiters
 * notice when they poll, every 2 s.
 */
#include "shm_fixture.h"

/* A lock that several clients can hold at once. An acquire with `all` excludes
 * all other holders; one with `some` does not. */
struct sharing {
    hf_lock_options lock;
    hf_acquire_options all, some;
};

static struct sharing sharing_of(int kind)
{
    struct sharing k = {HF_LOCK_OPTIONS_INIT, HF_ACQUIRE_OPTIONS_INIT,
                        HF_ACQUIRE_OPTIONS_INIT};

    k.lock.kind = (enum hf_kind)kind;
    if (kind == HF_SEMAPHORE) {
        k.lock.permits = k.all.permits = 2;
    } else {
        k.some.mode = HF_READ;
    }
    return k;
}

static pid_t child_that_takes(const char *url, const struct sharing *k,
                              const hf_acquire_options *how)
{
    pid_t pid = fork();

    if (!pid) {
        hf_lock_acquire(make_lock_of(open_client(url), "x", &k->lock), how,
                        NULL);
        wait_for_ever();
    }
    return pid;
}

/* The first waiter is stopped. Then the holder dies or, if it has a lease, is
 * stopped. The next waiter, which could share the lock with the first waiter,
 * must not wait for the stopped waiter. */
static void a_stopped_first_one(const char *url, int kind, int64_t lease_ms)
{
    struct sharing k = sharing_of(kind);
    hf_client *client = open_client(url), *other = open_client(url);
    pid_t holder, first;
    struct waiter next;

    k.some.wait_ms = 20000;
    k.all.lease_ms = lease_ms;
    holder = child_that_takes(url, &k, &k.all);
    COMES(holders(other) > 0);
    first = child_that_takes(url, &k, &k.some);
    COMES(waiters(other) == 1);
    waiter_start_how(&next, make_lock_of(client, "x", &k.lock), &k.some);
    COMES(waiters(other) == 2);
    assert_true(wait_asleep(first, first));
    kill(first, SIGSTOP);
    nap_ms(50); /* the next waiter has polled, and sleeps */
    kill(holder, lease_ms ? SIGSTOP : SIGKILL);
    COMES_MS(waiter_has_it(&next), lease_ms + 3000);
    pthread_join(next.thread, NULL);
    OK(next.rc);
    end_child(first);
    end_child(holder);
    free_lock(next.lock);
    close_client(client);
    close_client(other);
}

CASE_HERE(test_a_stopped_first_one_holds_nobody_up)
{
    a_stopped_first_one(p->url, HF_RWLOCK, 0);
    a_stopped_first_one(p->url, HF_SEMAPHORE, 0);
    a_stopped_first_one(p->url, HF_RWLOCK, 4000);
}

static void takes_it_at_a_look(hf_lock *lock)
{
    int64_t began = wait_fair();

    OK(hf_lock_timed(lock, WAIT_LONG_MS, NULL));
    assert_true(wait_within(began, 4000));
    OK(hf_lock_release(lock, NULL));
}

/* Kills the process and removes the mark of its death. The kernel sets no mark
 * if it runs out of memory and reclaims the memory of the process first. */
static void kill_unmarked(struct shm_file *f, pid_t pid, unsigned slot)
{
    shm_u32 *alive = &f->slot[slot].alive;
    uint32_t tid = atomic_load(alive) & FUTEX_TID_MASK;
    siginfo_t info;

    kill(pid, SIGKILL);
    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT); /* still a zombie */
    atomic_store(alive, tid);
}

static unsigned slot_of_process(struct shm_file *f, pid_t pid)
{
    for (unsigned i = 1; i < SHM_SLOTS; i++)
        if (atomic_load(&f->slot[i].state) == SHM_SLOT_USED &&
            atomic_load(&f->slot[i].pid) == (uint32_t)pid)
            return i;
    fail_msg("process %d has no slot", (int)pid);
    return 0;
}

CASE_HERE(test_an_unmarked_death_is_found_by_who_waits)
{
    struct sharing k = sharing_of(HF_RWLOCK);
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);
    hf_lock *lock = make_lock(client, "x", true);
    pid_t pid = child_with_lock(p->url, true, 0, wait_for_ever);

    kill_unmarked(f, pid, slot_of_process(f, pid));
    takes_it_at_a_look(lock);
    free_lock(lock);
    pid = child_that_takes(p->url, &k, &k.all);
    COMES(holders(client) > 0);
    kill_unmarked(f, pid, slot_of_process(f, pid));
    lock = make_lock_of(client, "x", &k.lock);
    takes_it_at_a_look(lock);
}

static void death_found_by_who_opens(struct locks_place *p, bool is_reaped)
{
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);
    pid_t pid = child_with_lock(p->url, true, 0, wait_for_ever);
    unsigned slot = slot_of_process(f, pid);
    hf_lock *lock;

    kill_unmarked(f, pid, slot);
    if (is_reaped)
        waitpid(pid, NULL, 0);
    close_client(open_client(p->url));
    assert_int_equal(atomic_load(&f->slot[slot].state), SHM_SLOT_FREE);
    lock = make_lock(client, "x", true);
    OK(hf_lock_try(lock, NULL));
    OK(hf_lock_release(lock, NULL));
    free_lock(lock);
    close_client(client);
    waitpid(pid, NULL, 0);
}

CASE_HERE(test_an_unmarked_death_is_found_by_who_opens)
{
    death_found_by_who_opens(p, true);
    death_found_by_who_opens(p, false);
}

CASE_HERE(test_an_unmarked_death_in_the_tables_is_found)
{
    hf_client *client = open_client(p->url);
    struct shm_file *f = map(p);
    pid_t pid = fork();

    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
    atomic_store(&f->header.tables, (uint32_t)pid);
    free_lock(make_lock(client, "x", true));
    atomic_store(&f->header.tables, (uint32_t)pid);
    close_client(open_client(p->url));
}

CASES_MAIN(NULL, NULL);
