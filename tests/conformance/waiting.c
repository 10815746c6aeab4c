/* A waiter takes hardly any CPU time: it polls rarely and, if the backend
 * notifies waiters, is not notified before its turn. */
#include "conf.h"

#include <dirent.h>

static long number_in(const char *path, const char *format)
{
    FILE *f = fopen(path, "re");
    char line[128];
    long n = 0;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, format, &n) == 1)
            break;
    if (f)
        fclose(f);
    return n;
}

/* Returns whether the thread is the waiting thread or the library's helper, not
 * one that a sanitizer has started. */
static bool is_ours(pid_t pid, const char *tid)
{
    char path[320], comm[32] = "";
    FILE *f;

    if (atoi(tid) == pid)
        return true;
    snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, tid);
    f = fopen(path, "re");
    if (f && !fgets(comm, sizeof(comm), f))
        comm[0] = '\0';
    if (f)
        fclose(f);
    return !strcmp(comm, "hf-helper\n");
}

/* Returns how often the waiting thread and the helper thread have gone to sleep
 * so far. */
static long sleeps_of(pid_t pid)
{
    char path[320];
    struct dirent *e;
    long sum = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    d = opendir(path);
    assert_non_null(d);
    while ((e = readdir(d))) {
        if (!is_ours(pid, e->d_name))
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/status", (int)pid,
                 e->d_name);
        sum += number_in(path, "voluntary_ctxt_switches: %ld");
    }
    closedir(d);
    return sum;
}

/* Returns whether the process sleeps for 300 ms without interruption, which
 * shows that it has nothing left to do before it waits. */
static bool has_settled(pid_t pid)
{
    long before = sleeps_of(pid);
    int64_t begun = wait_now();

    COMES(wait_ms_since(begun) > 300);
    return sleeps_of(pid) == before;
}

/* Returns whether for 3 s no waiter wakes more often than allowed. Where
 * waiters are notified, each polls about every 2 s and renews nothing;
 * elsewhere a waiter polls again after an eighth of the time that it has
 * waited. */
static bool sleep_well(const struct proc *p, int n)
{
    long before[8], most = conf.looks ? 240 : 12;
    int64_t begun = wait_now();
    bool well = true;

    for (int i = 0; i < n; i++)
        before[i] = sleeps_of(p[i].pid);
    COMES(wait_ms_since(begun) > 3000);
    for (int i = 0; i < n; i++) {
        long woken = sleeps_of(p[i].pid) - before[i];
        int64_t ms = wait_ms_since(begun); /* longer if the machine stalled */

        if (woken <= most * ms / 3000)
            continue;
        print_message("a waiter woke %ld times in %d ms\n", woken, (int)ms);
        well = false;
    }
    return well;
}

/* A late server on a busy machine may wake waiters more often, so one good
 * period of three is enough. */
CONF_CASE(test_waiting_is_sleeping, CONF_EACH)
{
    enum { N = 3 };
    const char *name = conf_name();
    hf_lock *lock = conf_lock(conf_open(), name);
    struct proc p[N];
    struct proc_reply r;

    OK(hf_lock_acquire(lock, NULL, E));
    for (int i = 0; i < N; i++) {
        p[i] = conf_puppet(name, 0);
        conf_puppet_wait(&p[i]);
    }
    for (int i = 0; i < N && !conf.looks; i++)
        COMES(has_settled(p[i].pid));
    assert_true(sleep_well(p, N) || sleep_well(p, N) || sleep_well(p, N));
    OK(hf_lock_release(lock, E));
    for (int left = N; left;)
        for (int i = 0; i < N; i++)
            if (p[i].pid && proc_ready(&p[i], 1)) {
                conf_puppet_answer(&p[i], &r);
                OK(r.rc);
                assert_int_equal(proc_end(&p[i]), 0);
                left--;
            }
}

/* A release wakes only the next waiter. The other waiters only poll, not more
 * often than every 1.5 s. */
CONF_CASE(test_waiting_release_wakes_one, CONF_FAIR)
{
    enum { N = 6, TURNS = 3, OTHERS = N - TURNS - 1 };
    const char *name = conf_name();
    hf_client *c = conf_open();
    hf_lock *lock = conf_lock(c, name);
    struct proc p[N];
    struct proc_reply r;
    long before[N], woken = 0, most = 2L * OTHERS;
    int64_t begun;

    OK(hf_lock_acquire(lock, NULL, E));
    for (int i = 0; i < N; i++) {
        p[i] = conf_puppet(name, 0);
        conf_puppet_wait(&p[i]);
        conf_await_queue(c, name, (size_t)i + 1);
    }
    for (int i = TURNS + 1; i < N && !conf.looks; i++)
        COMES(has_settled(p[i].pid));
    begun = wait_now();
    for (int i = TURNS + 1; i < N; i++)
        before[i] = sleeps_of(p[i].pid);
    OK(hf_lock_release(lock, E));
    for (int i = 0; i < TURNS; i++) {
        conf_puppet_answer(&p[i], &r);
        OK(r.rc);
        OK(conf_puppet_do(&p[i], PROC_GIVE, NULL));
    }
    conf_puppet_answer(&p[TURNS], &r);
    for (int i = TURNS + 1; i < N; i++)
        woken += sleeps_of(p[i].pid) - before[i];
    most += most * wait_ms_since(begun) / 1500;
    if (woken > most)
        print_error("%d hand-overs woke others %ld times\n", TURNS + 1, woken);
    assert_true(woken <= most);
    OK(conf_puppet_do(&p[TURNS], PROC_GIVE, NULL));
    for (int i = TURNS + 1; i < N; i++) {
        conf_puppet_answer(&p[i], &r);
        OK(conf_puppet_do(&p[i], PROC_GIVE, NULL));
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(proc_end(&p[i]), 0);
}
