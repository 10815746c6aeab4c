/* The floors on one machine, that is, the least that a lock can cost there: the
 * locks of the kernel and of the C library, called directly. */
#include "ratios.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *share(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        perror("mmap");
    return p == MAP_FAILED ? NULL : p;
}

static void nap(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static int mutex_step(void *arg)
{
    pthread_mutex_t *mutex = arg;

    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
    return 0;
}

double floor_robust_mutex(const char *url)
{
    pthread_mutex_t *mutex = share(sizeof *mutex);
    pthread_mutexattr_t attr;
    double ns;

    (void)url;
    if (!mutex)
        return -1;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attr);
    ns = ns_per_pair(mutex_step, mutex);
    munmap(mutex, sizeof *mutex);
    return ns;
}

static int open_temporary(char path[64])
{
    int fd;

    snprintf(path, 64, "%s", "/tmp/holdfast-floor.XXXXXX");
    fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        perror(path);
    return fd;
}

static int flock_step(void *arg)
{
    const int *fd = arg;

    for (int i = 0; i < 1000; i++) {
        if (flock(*fd, LOCK_EX) < 0 || flock(*fd, LOCK_UN) < 0) {
            perror("flock");
            return -1;
        }
    }
    return 0;
}

double floor_flock(const char *url)
{
    char path[64];
    int fd = open_temporary(path);
    double ns;

    (void)url;
    if (fd < 0)
        return -1;
    ns = ns_per_pair(flock_step, &fd);
    unlink(path);
    close(fd);
    return ns;
}

struct contest {
    _Atomic bool go, stop;
    _Atomic uint64_t pairs;
};

static _Noreturn void flock_contender(struct contest *contest, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint64_t pairs = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!atomic_load(&contest->go))
        sched_yield();
    while (!atomic_load_explicit(&contest->stop, memory_order_relaxed)) {
        if (flock(fd, LOCK_EX) < 0 || flock(fd, LOCK_UN) < 0)
            _exit(1);
        pairs++;
    }
    atomic_fetch_add(&contest->pairs, pairs);
    _exit(0);
}

double floor_flock_four(const char *url)
{
    struct contest *contest = share(sizeof *contest);
    char path[64];
    int fd = open_temporary(path), status;
    pid_t pids[4];
    double per_second = -1;
    int64_t start;

    (void)url;
    if (fd < 0 || !contest)
        return -1;
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            flock_contender(contest, path);
    }
    start = cli_now_ns(CLOCK_MONOTONIC);
    atomic_store(&contest->go, true);
    nap(RUN_MS);
    atomic_store(&contest->stop, true);
    start = cli_now_ns(CLOCK_MONOTONIC) - start;
    for (int i = 0; i < 4; i++)
        waitpid(pids[i], &status, 0);
    per_second = (double)atomic_load(&contest->pairs) / ((double)start / 1e9);
    unlink(path);
    close(fd);
    munmap(contest, sizeof *contest);
    return per_second;
}

/* The hand-over is timed as in contender.c: from just before one process passes
 * the ball until the wait of the other process returns. As in contender.c, each
 * process has its own processor, because two processes on one processor give
 * another figure. */

struct ball {
    _Atomic uint32_t turn; /* 0 or 1: whose turn; 2: the end */
    int64_t passed_at;
    struct hist hist; /* the times that the first player has measured */
};

static void play(struct ball *ball, uint32_t me, bool counts)
{
    uint32_t turn;

    while ((turn = atomic_load(&ball->turn)) != 2) {
        if (turn != me) {
            syscall(SYS_futex, &ball->turn, FUTEX_WAIT, turn, NULL, NULL, 0);
            continue;
        }
        if (counts)
            hist_add(&ball->hist,
                     cli_now_ns(CLOCK_MONOTONIC) - ball->passed_at);
        ball->passed_at = cli_now_ns(CLOCK_MONOTONIC);
        /* Passes the ball, unless the game has ended in the meantime. */
        if (atomic_compare_exchange_strong(&ball->turn, &turn, 1 - me))
            syscall(SYS_futex, &ball->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static pid_t player(struct ball *ball, uint32_t me)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        contender_pin(me);
        play(ball, me, me == 0);
        _exit(0);
    }
    return pid;
}

double floor_futex(const char *url)
{
    struct ball *ball = share(sizeof *ball);
    pid_t pids[2];
    double ns;

    (void)url;
    if (!ball)
        return -1;
    ball->passed_at = cli_now_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < 2; i++)
        pids[i] = player(ball, i);
    nap(RUN_MS);
    atomic_store(&ball->turn, 2);
    syscall(SYS_futex, &ball->turn, FUTEX_WAKE, 2, NULL, NULL, 0);
    for (int i = 0; i < 2; i++)
        waitpid(pids[i], NULL, 0);
    ns = hist_quantile_us(&ball->hist, 0.5) * 1000;
    munmap(ball, sizeof *ball);
    return ns;
}
