/*
 * Runs the contenders of `holdfast bench` on locks that are broken on purpose,
 * because a counter of violations can be trusted only if it has been seen to
 * count. This program has its own locks instead of the library's.
 */
#include "../../cli/shared/contend.h"
#include "../../cli/shared/hist.h"

#include "../unit/cases.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum fault {
    NONE,
    GRANTS_ALL,
    FAVOURS_ONE,
    FAILS,
    NO_FORK,
    SIGNALLED,
    STUCK,
    LAST_FAILS,
    LAST_DIES
};
enum { FORKS = 3 }; /* with NO_FORK, the number of forks that succeed */

static struct stage {
    enum fault fault;
    _Atomic unsigned acquires;
    _Atomic pid_t favourite; /* the first process to acquire once ready */
    _Atomic bool favourite_left;
    _Atomic unsigned forks;
    pid_t parent;
    unsigned last; /* the number, from 0, of the acquire with which the last
                      contender becomes ready; acquire 0 is a probe */
    pthread_mutex_t mutex; /* shared by the processes */
} * stage;

struct hf_client {
    int unused;
};
struct hf_lock {
    int unused;
};

int hf_open(const char *url, const hf_client_options *opt, hf_client **out,
            hf_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? HF_OK : HF_ENOMEM;
}

int hf_close(hf_client *client)
{
    if (stage->favourite == getpid())
        stage->favourite_left = true;
    free(client);
    return HF_OK;
}

int hf_lock_new(hf_client *client, const void *name, size_t name_len,
                const hf_lock_options *opt, hf_lock **out, hf_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? HF_OK : HF_ENOMEM;
}

int hf_lock_free(hf_lock *lock)
{
    free(lock);
    return HF_OK;
}

pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
    if (stage->fault == NO_FORK && ++stage->forks > FORKS) {
        errno = EAGAIN;
        return -1;
    }
    return __real_fork();
}

/* Sends SIGTERM to the parent after 1000 acquires that follow the start of all
 * contenders. With STUCK, every later acquire blocks for ever. */
static void signal_the_parent(unsigned acquires)
{
    if (acquires == stage->last + 1000)
        kill(stage->parent, SIGTERM);
    while (stage->fault == STUCK && acquires > stage->last + 1000)
        pause();
}

/* Makes the last contender late: the others are ready and wait for it. */
static void be_the_last(void)
{
    poll(NULL, 0, 50);
    if (stage->fault == LAST_DIES)
        raise(SIGKILL);
}

/* Lets each contender acquire once, to become ready. Afterwards makes all
 * contenders except the favourite wait until the favourite has closed its
 * client. */
static void be_favoured_or_wait(void)
{
    static _Thread_local bool is_ready;
    pid_t none = 0;

    if (is_ready &&
        !atomic_compare_exchange_strong(&stage->favourite, &none, getpid())) {
        while (none != getpid() && !stage->favourite_left)
            poll(NULL, 0, 1);
    }
    is_ready = true;
}

int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *opt, hf_error *err)
{
    static _Thread_local int calls;

    unsigned acquires = atomic_fetch_add(&stage->acquires, 1);
    bool is_last = acquires == stage->last;

    if (stage->fault == FAVOURS_ONE)
        be_favoured_or_wait();
    if (stage->fault == SIGNALLED || stage->fault == STUCK)
        signal_the_parent(acquires);
    if (stage->fault >= LAST_FAILS && is_last)
        be_the_last();
    if ((stage->fault == FAILS && ++calls > 100) ||
        (stage->fault == LAST_FAILS && is_last)) {
        strcpy(err->text, "fake: no more");
        return HF_EBACKEND;
    }
    if (stage->fault != GRANTS_ALL)
        pthread_mutex_lock(&stage->mutex);
    return HF_OK;
}

int hf_lock_release(hf_lock *lock, hf_error *err)
{
    if (stage->fault != GRANTS_ALL)
        pthread_mutex_unlock(&stage->mutex);
    return HF_OK;
}

int hf_lock_release_nowait(hf_lock *lock, hf_error *err)
{
    return hf_lock_release(lock, err);
}

int hf_inspect(hf_client *client, const void *name, size_t name_len,
               hf_info **out, hf_error *err)
{
    return HF_ENOTSUP;
}

void hf_info_free(hf_info *info)
{
}

const char *hf_error_text(int code)
{
    return "fake";
}

static double seconds_reported;
static uint64_t pairs_reported;

static void keep_progress(const struct contend *how, double seconds,
                          uint64_t pairs)
{
    seconds_reported = seconds;
    pairs_reported = pairs;
}

static int contend_for(enum fault fault, unsigned procs, unsigned threads,
                       int64_t ms, int signals, struct contend_result *result)
{
    struct contend how = {.url = "fake:",
                          .kind = HF_MUTEX,
                          .names = 1,
                          .procs = procs,
                          .threads = threads,
                          .progress = keep_progress,
                          .signals = signals,
                          .run_ms = ms};

    stage->fault = fault;
    stage->acquires = 0;
    stage->favourite = 0;
    stage->favourite_left = false;
    stage->last = procs * threads;
    stage->forks = 0;
    stage->parent = getpid();
    return contend_run(&how, result);
}

static int contend(enum fault fault, unsigned procs, unsigned threads,
                   struct contend_result *result)
{
    return contend_for(fault, procs, threads, 200, 0, result);
}

/* Returns whether at least one of several runs saw two contenders hold the lock
 * at once. On a busy machine a single run may have only one active
 * contender. */
static bool violated(unsigned procs, unsigned threads)
{
    struct contend_result result = {0};

    for (int i = 0; i < 20 && !result.violations; i++)
        assert_int_equal(contend(GRANTS_ALL, procs, threads, &result), HF_OK);
    return result.violations > 0;
}

CASE(test_contend_counts_no_violation_of_a_lock)
{
    struct contend_result result;

    assert_int_equal(contend(NONE, 4, 1, &result), HF_OK);
    assert_int_equal(result.violations, 0);
    assert_true(result.pairs > 0);
    assert_true(result.jain > 0 && result.jain <= 1.0001);
}

/* One of four contenders gets every grant. On a busy machine the first runs may
 * end before the first grant. */
CASE(test_contend_tells_how_unfair_a_lock_is)
{
    struct contend_result result = {0};

    for (int i = 0; i < 20 && !result.pairs; i++)
        assert_int_equal(contend(FAVOURS_ONE, 4, 1, &result), HF_OK);
    assert_true(result.pairs > 0);
    assert_true(result.jain > 0.2499 && result.jain < 0.2501);
}

ROW(test_contend_sees_processes_inside_together, assert_true(violated(4, 1)));
ROW(test_contend_sees_threads_inside_together, assert_true(violated(1, 4)));

CASE(test_contend_reports_the_first_error)
{
    struct contend_result result;

    assert_int_equal(contend(FAILS, 2, 2, &result), HF_EBACKEND);
    assert_string_equal(result.error.text, "fake: no more");
}

/* The last contender fails when all others wait for it to be ready. */
CASE(test_contend_does_not_wait_for_who_failed)
{
    static const unsigned procs[] = {4, 1}, threads[] = {1, 4};
    struct contend_result result;

    alarm(30);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(contend(LAST_FAILS, procs[i], threads[i], &result),
                         HF_EBACKEND);
        assert_string_equal(result.error.text, "fake: no more");
    }
    alarm(0);
}

CASE(test_contend_does_not_wait_for_who_died)
{
    struct contend_result result;

    alarm(30);
    assert_int_equal(contend(LAST_DIES, 4, 1, &result), HF_EBACKEND);
    assert_string_equal(result.error.text, "a contender has died");
    alarm(0);
}

/* The processes that were started must have ended when contend() returns. */
CASE(test_contend_ends_if_a_process_cannot_be_started)
{
    struct contend_result result;

    alarm(30);
    assert_int_equal(contend(NO_FORK, 10, 1, &result), HF_ENOMEM);
    assert_non_null(strstr(result.error.text, "process 4 of 10 cannot be "));
    assert_int_equal(stage->forks, FORKS + 1);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    alarm(0);
}

CASE(test_contend_says_how_far_it_is)
{
    struct contend_result result;

    pairs_reported = 0;
    for (int i = 0; i < 20 && !pairs_reported; i++)
        assert_int_equal(contend_for(NONE, 2, 1, 600, 0, &result), HF_OK);
    assert_true(pairs_reported > 0 && pairs_reported <= result.pairs);
    assert_true(seconds_reported > 0 && seconds_reported <= result.seconds);
    assert_int_equal(result.signal, 0);
}

/* A run of one hour must end as soon as the signal arrives, and must keep the
 * results up to then. */
static void end_by_signal(enum fault fault)
{
    struct contend_result result;
    sigset_t set, old;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &set, &old), 0);
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    assert_true(fd > 0);
    alarm(60);
    assert_int_equal(contend_for(fault, 3, 1, 3600000, fd, &result), HF_OK);
    alarm(0);
    assert_int_equal(result.signal, SIGTERM);
    assert_true(result.pairs > 0);
    assert_true(result.seconds > 0 && result.seconds < 60);
    assert_int_equal(result.violations, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    close(fd);
    assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
}

ROW(test_contend_ends_at_a_signal, end_by_signal(SIGNALLED));
ROW(test_contend_kills_contenders_that_are_stuck, end_by_signal(STUCK));

CASE(test_hist_quantiles)
{
    struct hist *hist = calloc(1, sizeof *hist);

    assert_non_null(hist);
    for (int i = 1; i <= 1000; i++)
        hist_add(hist, i * 1000);
    assert_true(hist_quantile_us(hist, 0.50) > 480);
    assert_true(hist_quantile_us(hist, 0.50) < 520);
    assert_true(hist_quantile_us(hist, 0.99) > 960);
    assert_true(hist_quantile_us(hist, 0.99) < 1030);
    hist_add(hist, INT64_MAX);
    hist_add(hist, -1);
    assert_true(hist_quantile_us(hist, 1) > 1e6);
    free(hist);
}

static int set_up(void **state)
{
    pthread_mutexattr_t attr;

    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (stage == MAP_FAILED)
        return -1;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&stage->mutex, &attr);
    return 0;
}

CASES_MAIN(set_up, NULL);
