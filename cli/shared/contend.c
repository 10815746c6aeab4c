/*
 * Runs processes of contenders and adds up their counts. The contenders report
 * on one pipe that they are ready, and all start when another pipe is closed.
 * When the last process has ended, reading from the first pipe returns end of
 * file.
 */
#include "contend.h"

#include "contender.h"
#include "hist.h"
#include "values.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    POLL_MS = 200,     /* how often to look for dead processes, and to report */
    FINISH_MS = 60000, /* a contender that takes longer to end is stuck */
    HURRY_MS = 2000,   /* the limit for their end after a signal */
};

static void contend_close_pipe(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static void contend_arena_fini(struct arena *arena)
{
    contend_close_pipe(arena->ready);
    contend_close_pipe(arena->go);
    if (arena->shared)
        munmap(arena->shared, arena->size);
}

static int contend_arena_init(struct arena *arena)
{
    const struct contend *contend = arena->contend;
    size_t cells = contend->names * sizeof(struct cell);
    char *memory;

    arena->contenders = (size_t)contend->procs * contend->threads;
    arena->size = sizeof(struct shared) + cells +
                  arena->contenders * sizeof(struct counts);
    if (pipe2(arena->ready, O_CLOEXEC) < 0 || pipe2(arena->go, O_CLOEXEC) < 0)
        return HF_ENOMEM;
    memory = mmap(NULL, arena->size, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return HF_ENOMEM;
    /* Each size is a multiple of a cache line. */
    arena->shared = (struct shared *)memory;
    arena->cells = (struct cell *)(memory + sizeof(struct shared));
    arena->counts = (struct counts *)(memory + sizeof(struct shared) + cells);
    return HF_OK;
}

static void contend_cannot_fork(struct arena *arena, unsigned n)
{
    hf_error err = HF_ERROR_INIT;

    snprintf(err.text, sizeof err.text,
             "process %u of %u cannot be started: %s; use fewer --procs, or "
             "raise `ulimit -u'",
             n + 1, arena->contend->procs, strerror(errno));
    contender_fail(arena, HF_ENOMEM, &err);
}

static unsigned contend_start_groups(struct arena *arena, pid_t *pids)
{
    unsigned n = 0;

    for (; n < arena->contend->procs; n++) {
        pids[n] = fork();
        if (pids[n] == 0)
            contender_main(arena, n);
        if (pids[n] < 0) {
            contend_cannot_fork(arena, n);
            break;
        }
    }
    close(arena->ready[1]);
    close(arena->go[0]);
    arena->ready[1] = arena->go[0] = -1;
    return n;
}

/* Returns whether a process has died before the start. */
static bool contend_has_one_died(const pid_t *pids, unsigned n)
{
    siginfo_t gone = {0};

    for (unsigned i = 0; i < n && !gone.si_pid; i++)
        if (waitid(P_PID, (id_t)pids[i], &gone, WEXITED | WNOHANG | WNOWAIT))
            return true;
    return gone.si_pid;
}

/* What contend_wait_for() saw. */
enum event { NOTHING, WORD, END, SIGNAL };

/* Waits at most `ms' for a byte of a contender (WORD), for the end of all
 * contenders (END) or for a signal (SIGNAL). Stores the number of the signal in
 * result->signal. */
static enum event contend_wait_for(const struct arena *arena, int64_t ms,
                                   struct contend_result *result, size_t *words)
{
    struct pollfd polled[] = {{arena->ready[0], POLLIN, 0},
                              {arena->contend->signals, POLLIN, 0}};
    nfds_t n = arena->contend->signals > 0 ? 2 : 1;
    struct signalfd_siginfo info;
    char bytes[256];
    ssize_t len;

    if (poll(polled, n, ms > 0 ? (int)ms : 0) <= 0)
        return NOTHING;
    if (polled[1].revents & POLLIN &&
        read(polled[1].fd, &info, sizeof info) == sizeof info) {
        result->signal = (int)info.ssi_signo;
        atomic_store(&arena->shared->stop, true);
        return SIGNAL;
    }
    if (!polled[0].revents)
        return NOTHING;
    len = read(arena->ready[0], bytes, sizeof bytes);
    if (len > 0 && words)
        *words += (size_t)len;
    return len > 0 ? WORD : END;
}

/* Waits until all contenders are ready, or one has failed. A contender that
 * fails writes a byte, too. A process that dies writes none, so the processes
 * are also checked while no byte arrives. */
static void contend_wait_until_ready(struct arena *arena, const pid_t *pids,
                                     unsigned n, struct contend_result *result)
{
    size_t ready = 0;
    enum event event = NOTHING;

    while (ready < arena->contenders && event != END && event != SIGNAL &&
           !atomic_load(&arena->shared->failed)) {
        event = contend_wait_for(arena, POLL_MS, result, &ready);
        if (event == NOTHING && contend_has_one_died(pids, n))
            break;
    }
    if (ready < arena->contenders && event != SIGNAL)
        contender_fail(arena, HF_EBACKEND,
                       &(hf_error){.text = "a contender has died"});
}

static uint64_t contend_pairs_so_far(const struct arena *arena)
{
    uint64_t pairs = 0;

    for (size_t i = 0; i < arena->contenders; i++)
        pairs += *(const volatile uint64_t *)&arena->counts[i].pairs;
    return pairs;
}

static double contend_seconds_since(int64_t ns)
{
    return (double)(cli_now_ns(CLOCK_MONOTONIC) - ns) / 1e9;
}

/* Waits until the time of the run is over. A signal or a failure ends the wait
 * early. */
static void wait_while_they_contend(const struct arena *arena, int64_t start,
                                    struct contend_result *result)
{
    const struct contend *contend = arena->contend;
    int64_t end = start + contend->run_ms * 1000000, left_ms;

    if (contend->progress)
        contend->progress(contend, 0, contend_pairs_so_far(arena));
    while (!atomic_load(&arena->shared->stop)) {
        left_ms = (end - cli_now_ns(CLOCK_MONOTONIC) + 999999) / 1000000;
        if (left_ms <= 0)
            return;
        if (contend->progress) {
            contend->progress(contend, contend_seconds_since(start),
                              contend_pairs_so_far(arena));
            left_ms = left_ms < POLL_MS ? left_ms : POLL_MS;
        }
        if (contend_wait_for(arena, left_ms < INT32_MAX ? left_ms : INT32_MAX,
                             result, NULL) == END)
            return; /* all have died */
    }
}

/* Waits until all contenders have ended, and returns true. Returns false after
 * a time-out or a second signal. */
static bool contend_wait_until_ended(const struct arena *arena,
                                     struct contend_result *result)
{
    bool hurried = result->signal;
    int64_t end = cli_now_ns(CLOCK_MONOTONIC) +
                  (hurried ? HURRY_MS : FINISH_MS) * INT64_C(1000000),
            left;
    enum event event;

    do {
        left = end - cli_now_ns(CLOCK_MONOTONIC);
        event = contend_wait_for(arena, left / 1000000 + 1, result, NULL);
        if (event == SIGNAL && hurried)
            return false; /* the second signal */
        if (event == SIGNAL) {
            hurried = true;
            end = cli_now_ns(CLOCK_MONOTONIC) + HURRY_MS * INT64_C(1000000);
        }
    } while (event != END && left > 0);
    return event == END;
}

static void contend_bury(struct arena *arena, const pid_t *pids, unsigned n,
                         bool is_killed)
{
    int status = 0;

    for (unsigned i = 0; i < n; i++) {
        if (is_killed)
            kill(pids[i], SIGKILL);
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR) {
        }
        if (status != 0 && !is_killed)
            contender_fail(arena, HF_EBACKEND,
                           &(hf_error){.text = "a contender has died"});
    }
}

static void contend_sum_up(const struct arena *arena, bool have_ended,
                           struct contend_result *result)
{
    const struct contend *contend = arena->contend;
    struct hist *all = calloc(2, sizeof *all);
    uint64_t entries = 0, bumps = 0;
    double squares = 0, pairs;

    for (size_t i = 0; i < arena->contenders; i++) {
        const struct counts *counts = &arena->counts[i];

        result->pairs += counts->pairs;
        result->handovers += counts->handovers;
        result->violations += counts->violations;
        entries += counts->entries;
        squares += (double)counts->pairs * (double)counts->pairs;
        if (all) {
            hist_merge(&all[0], &counts->waits);
            hist_merge(&all[1], &counts->handovers_ns);
        }
    }
    for (unsigned i = 0; i < contend->names; i++)
        bumps += arena->cells[i].entries;
    /* A lost increment means that two holders were inside at once. */
    if (have_ended && contend->kind != HF_SEMAPHORE &&
        contend->mode == HF_WRITE)
        result->violations += entries - bumps;
    pairs = (double)result->pairs;
    if (squares > 0)
        result->jain = pairs * pairs / ((double)arena->contenders * squares);
    if (all) {
        result->p50_us = hist_quantile_us(&all[0], 0.50);
        result->p99_us = hist_quantile_us(&all[0], 0.99);
        result->handover_us = hist_quantile_us(&all[1], 0.50);
    }
    free(all);
}

int contend_probe(const struct contend *contend, struct contend_result *result)
{
    struct arena arena = {.contend = contend, .owner = getpid()};
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;
    struct contender_group group = {.arena = &arena, .names = 1};
    hf_error *err = &result->error;
    hf_info *info = NULL;
    char name[64];
    int rc;

    *result = (struct contend_result){.error = HF_ERROR_INIT};
    how.mode = contend->mode;
    result->fair = contend->fairness == HF_FAIR;
    rc = contender_open(&group, err);
    if (rc == HF_OK)
        rc = hf_lock_acquire(group.locks[0], &how, err);
    if (rc == HF_OK) {
        contender_name(&arena, 0, name);
        if (contend->fairness == HF_FAIR_DEFAULT &&
            hf_inspect(group.client, name, HF_CSTRING, &info, NULL) == HF_OK) {
            result->fair = info->fairness == HF_FAIR;
            hf_info_free(info);
        }
        rc = hf_lock_release(group.locks[0], err);
    }
    contender_close(&group);
    return rc;
}

static int contend_run_in(struct arena *arena, pid_t *pids,
                          struct contend_result *result)
{
    unsigned n = contend_start_groups(arena, pids);
    int64_t start;
    bool have_ended;
    int rc;

    contend_wait_until_ready(arena, pids, n, result);
    start = cli_now_ns(CLOCK_MONOTONIC);
    close(arena->go[1]);
    arena->go[1] = -1;
    wait_while_they_contend(arena, start, result);
    atomic_store(&arena->shared->stop, true);
    result->seconds = contend_seconds_since(start);
    have_ended = contend_wait_until_ended(arena, result);
    if (!have_ended && !result->signal)
        contender_fail(arena, HF_ETIMEDOUT,
                       &(hf_error){.text = "a contender does not end"});
    /* The counts are summed up before contend_bury(), because it may kill a
     * process in a critical section, which would look like a violation. */
    contend_sum_up(arena, have_ended, result);
    contend_bury(arena, pids, n, !have_ended);
    rc = atomic_load(&arena->shared->failed);
    if (rc != HF_OK)
        result->error = arena->shared->error;
    return rc;
}

int contend_measure(const struct contend *contend,
                    struct contend_result *result)
{
    struct arena arena = {.contend = contend,
                          .owner = getpid(),
                          .ready = {-1, -1},
                          .go = {-1, -1}};
    pid_t *pids = calloc(contend->procs, sizeof *pids);
    bool fair = result->fair;
    int rc = HF_ENOMEM;

    *result = (struct contend_result){.fair = fair, .error = HF_ERROR_INIT};
    if (pids)
        rc = contend_arena_init(&arena);
    if (rc == HF_OK)
        rc = contend_run_in(&arena, pids, result);
    contend_arena_fini(&arena);
    free(pids);
    return rc;
}

int contend_run(const struct contend *contend, struct contend_result *result)
{
    int rc = contend_probe(contend, result);

    return rc == HF_OK ? contend_measure(contend, result) : rc;
}
