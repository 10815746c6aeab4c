/* Measures many objects at a time: idle handles, held locks, waiting
 * processes. */
#include "ratios.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    HANDLES = 10000,
    WAITERS = 1000,
    SHORT_TTL_MS = 6000,  /* renewed every third of this time */
    USUAL_TTL_MS = 30000, /* the result is scaled to this TTL */
    WATCHED_MS = 6000,    /* three renewals */
};

/* What the heap uses in addition to the bytes that were requested. */
enum { CHUNK_HEADER = 8 };

static _Atomic long in_use;

static void *count_alloc(void *ctx, size_t size)
{
    void *p = malloc(size);

    (void)ctx;
    if (p)
        in_use += (long)malloc_usable_size(p) + CHUNK_HEADER;
    return p;
}

static void count_free(void *ctx, void *p)
{
    (void)ctx;
    in_use -= (long)malloc_usable_size(p) + CHUNK_HEADER;
    free(p);
}

/* Creates handles of different names, until there are `most' of them or the
 * backend has no room: shared memory has room for 4096 names. */
static size_t make_handles(hf_client *client, hf_lock **locks, size_t most)
{
    hf_error err = HF_ERROR_INIT;
    char name[64];
    size_t n = 0;
    int rc = HF_OK;

    for (; n < most; n++) {
        snprintf(name, sizeof name, "holdfast-scale-%zu", n);
        rc = hf_lock_new(client, name, HF_CSTRING, NULL, &locks[n], &err);
        if (rc != HF_OK)
            break;
    }
    if (n < 1000)
        complain("handles", rc, &err);
    return n;
}

double scale_handle_bytes(const char *url)
{
    static hf_lock *locks[HANDLES];
    hf_hooks hooks = {.alloc = count_alloc, .free = count_free};
    hf_client_options options = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    long before, after;
    size_t n;
    int rc;

    options.hooks = &hooks;
    rc = hf_open(url, &options, &client, &err);
    if (rc != HF_OK) {
        complain("open", rc, &err);
        return -1;
    }
    before = in_use;
    n = make_handles(client, locks, HANDLES);
    after = in_use;
    for (size_t i = 0; i < n; i++)
        hf_lock_free(locks[i]);
    hf_close(client);
    return n < 1000 ? -1 : (double)(after - before) / (double)n;
}

static double cpu_seconds(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void nap(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

double scale_renewal_cpu(const char *url)
{
    static hf_lock *locks[HANDLES];
    hf_client_options options = HF_CLIENT_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    double cpu;
    size_t n, held = 0, lost = 0;
    int rc;

    options.ttl_ms = SHORT_TTL_MS;
    rc = hf_open(url, &options, &client, &err);
    if (rc != HF_OK) {
        complain("open", rc, &err);
        return -1;
    }
    n = make_handles(client, locks, HANDLES);
    for (; held < n && rc == HF_OK; held++)
        rc = hf_lock_acquire(locks[held], NULL, &err);
    if (rc != HF_OK)
        complain("acquire", rc, &err);
    cpu = cpu_seconds();
    nap(WATCHED_MS);
    cpu = cpu_seconds() - cpu;
    for (size_t i = 0; i < held; i++) {
        lost += hf_lock_check(locks[i]) != HF_OK;
        hf_lock_release_nowait(locks[i], NULL);
    }
    for (size_t i = 0; i < n; i++)
        hf_lock_free(locks[i]);
    hf_close(client);
    if (lost || rc != HF_OK || held < 1000) {
        fprintf(stderr, "ratios: %zu of %zu holds were lost\n", lost, held);
        return -1;
    }
    /* Scales to HANDLES and the usual TTL. */
    return cpu / (WATCHED_MS / 1000.0) * 100 * SHORT_TTL_MS / USUAL_TTL_MS *
           HANDLES / (double)held;
}

static _Noreturn void wait_for_it(const char *url)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client;
    hf_lock *lock;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (hf_open(url, NULL, &client, &err) == HF_OK &&
        hf_lock_new(client, "holdfast-crowd", HF_CSTRING, NULL, &lock, &err) ==
            HF_OK)
        hf_lock_acquire(lock, NULL, &err);
    fprintf(stderr, "ratios: a waiter: %s\n", err.text);
    _exit(1);
}

/* Waits until `wanted' clients are in the queue. */
static int wait_for_queue(hf_client *client, size_t wanted)
{
    hf_info *info;
    size_t waiting = 0;

    for (int tries = 0; tries < 600 && waiting < wanted; tries++) {
        nap(100);
        if (hf_inspect(client, "holdfast-crowd", HF_CSTRING, &info, NULL) !=
            HF_OK)
            continue;
        waiting = info->waiters_len;
        hf_info_free(info);
    }
    if (waiting < wanted)
        fprintf(stderr, "ratios: only %zu of %zu wait\n", waiting, wanted);
    return waiting < wanted ? -1 : 0;
}

static double cpu_seconds_of(const pid_t *pids, size_t n)
{
    struct timespec t;
    clockid_t clock;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        if (clock_getcpuclockid(pids[i], &clock) == 0 &&
            clock_gettime(clock, &t) == 0)
            sum += (double)t.tv_sec + (double)t.tv_nsec / 1e9;
    }
    return sum;
}

static double watch_crowd(const char *url, hf_client *client, pid_t *pids)
{
    double percent = -1;
    size_t n = 0;

    for (; n < WAITERS; n++) {
        pids[n] = fork();
        if (pids[n] == 0)
            wait_for_it(url);
        if (pids[n] < 0)
            break;
    }
    if (n < WAITERS)
        fprintf(stderr, "ratios: fork: %s\n", strerror(errno));
    else if (wait_for_queue(client, WAITERS) == 0) {
        nap(1000); /* a second for what a waiter does only when it begins to
                      wait */
        percent = cpu_seconds_of(pids, n);
        nap(WATCHED_MS);
        percent =
            (cpu_seconds_of(pids, n) - percent) / (WATCHED_MS / 1000.0) * 100;
    }
    for (size_t i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
    for (size_t i = 0; i < n; i++)
        waitpid(pids[i], NULL, 0);
    return percent;
}

double scale_waiters_cpu(const char *url)
{
    static pid_t pids[WAITERS];
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_lock *lock = NULL;
    double percent = -1;
    int rc = hf_open(url, NULL, &client, &err);

    if (rc == HF_OK)
        rc = hf_lock_new(client, "holdfast-crowd", HF_CSTRING, NULL, &lock,
                         &err);
    if (rc == HF_OK)
        rc = hf_lock_acquire(lock, NULL, &err);
    if (rc == HF_OK) {
        percent = watch_crowd(url, client, pids);
        hf_lock_release(lock, NULL);
    } else {
        complain("crowd", rc, &err);
    }
    hf_lock_free(lock);
    hf_close(client);
    return percent;
}
