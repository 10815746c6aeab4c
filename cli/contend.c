/*
 * Runs processes of contenders and sums up what they counted. They report
 * ready on one pipe and start, all at once, when another is closed; the first
 * pipe closes when the last of them is gone.
 */
#include "contend.h"
#include "cli.h"
#include "crew.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 200,     /* for the dead, while nobody says anything */
    FINISH_MS = 60000, /* who does not end after that is stuck */
};

static void close_pipe(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static void arena_fini(struct arena *arena)
{
    close_pipe(arena->ready);
    close_pipe(arena->go);
    if (arena->shared)
        munmap(arena->shared, arena->size);
}

static int arena_init(struct arena *arena)
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
    /* Each size is a multiple of a line. */
    arena->shared = (struct shared *)memory;
    arena->cells = (struct cell *)(memory + sizeof(struct shared));
    arena->counts = (struct counts *)(memory + sizeof(struct shared) + cells);
    return HF_OK;
}

static unsigned start_crews(struct arena *arena, pid_t *pids)
{
    unsigned n = 0;

    for (; n < arena->contend->procs; n++) {
        pids[n] = fork();
        if (pids[n] == 0)
            crew_main(arena, n);
        if (pids[n] < 0) {
            crew_fail(arena, HF_ENOMEM,
                      &(hf_error){.text = "no more processes can be started"});
            break;
        }
    }
    close(arena->ready[1]);
    close(arena->go[0]);
    arena->ready[1] = arena->go[0] = -1;
    return n;
}

/* Somebody is gone before it was let go. */
static bool has_one_died(const pid_t *pids, unsigned n)
{
    siginfo_t gone = {0};

    for (unsigned i = 0; i < n && !gone.si_pid; i++)
        if (waitid(P_PID, (id_t)pids[i], &gone, WEXITED | WNOHANG | WNOWAIT))
            return true;
    return gone.si_pid;
}

/* Until each has said that it is ready, or somebody has failed: who fails says
 * something, too, and who dies is looked for. */
static void wait_until_ready(struct arena *arena, const pid_t *pids, unsigned n)
{
    struct pollfd polled = {arena->ready[0], POLLIN, 0};
    char bytes[256];
    size_t ready = 0;
    ssize_t len;
    int rc;

    while (ready < arena->contenders && !atomic_load(&arena->shared->failed)) {
        rc = poll(&polled, 1, LOOK_MS);
        if (rc == 0 && has_one_died(pids, n))
            break;
        if (rc <= 0)
            continue;
        len = read(arena->ready[0], bytes, sizeof bytes);
        if (len <= 0)
            break;
        ready += (size_t)len;
    }
    if (ready < arena->contenders)
        crew_fail(arena, HF_EBACKEND,
                  &(hf_error){.text = "a contender has died"});
}

static void wait_until_ended(struct arena *arena, const pid_t *pids, unsigned n)
{
    struct pollfd polled = {arena->ready[0], POLLIN, 0};
    bool stuck = false;
    int rc, status;
    char byte;

    do {
        rc = poll(&polled, 1, FINISH_MS);
        stuck = rc == 0;
    } while (rc < 0 || (!stuck && read(arena->ready[0], &byte, 1) > 0));
    if (stuck)
        crew_fail(arena, HF_ETIMEDOUT,
                  &(hf_error){.text = "a contender does not come to its end"});
    for (unsigned i = 0; i < n; i++) {
        if (stuck)
            kill(pids[i], SIGKILL);
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
            crew_fail(arena, HF_EBACKEND,
                      &(hf_error){.text = "a contender has died"});
    }
}

static void sum_up(const struct arena *arena, struct contend_result *result)
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
    /* An increment that got lost: two were inside. */
    if (contend->kind != HF_SEMAPHORE && contend->mode == HF_WRITE)
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

/* Whether the backend is there, and what it makes of the fairness: better
 * learnt here once than by each contender. */
static int probe(struct arena *arena, struct contend_result *result)
{
    const struct contend *contend = arena->contend;
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;
    struct crew crew = {.arena = arena, .names = 1};
    hf_error *err = &result->error;
    hf_info *info = NULL;
    char name[64];
    int rc;

    how.mode = contend->mode;
    result->fair = contend->fairness == HF_FAIR;
    rc = crew_open(&crew, err);
    if (rc == HF_OK)
        rc = hf_lock_acquire(crew.locks[0], &how, err);
    if (rc == HF_OK) {
        crew_name(arena, 0, name);
        if (contend->fairness == HF_FAIR_DEFAULT &&
            hf_inspect(crew.client, name, HF_CSTRING, &info, NULL) == HF_OK) {
            result->fair = info->fairness == HF_FAIR;
            hf_info_free(info);
        }
        rc = hf_lock_release(crew.locks[0], err);
    }
    crew_close(&crew);
    return rc;
}

static int run_in(struct arena *arena, pid_t *pids,
                  struct contend_result *result)
{
    int64_t run_ms = arena->contend->run_ms, start;
    struct timespec nap = {run_ms / 1000, run_ms % 1000 * 1000000};
    unsigned n = start_crews(arena, pids);
    int rc;

    wait_until_ready(arena, pids, n);
    start = cli_now_ns(CLOCK_MONOTONIC);
    close(arena->go[1]);
    arena->go[1] = -1;
    if (!atomic_load(&arena->shared->failed))
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
    atomic_store(&arena->shared->stop, true);
    result->seconds = (double)(cli_now_ns(CLOCK_MONOTONIC) - start) / 1e9;
    wait_until_ended(arena, pids, n);
    rc = atomic_load(&arena->shared->failed);
    if (rc == HF_OK)
        sum_up(arena, result);
    else
        result->error = arena->shared->error;
    return rc;
}

int contend_run(const struct contend *contend, struct contend_result *result)
{
    struct arena arena = {.contend = contend,
                          .owner = getpid(),
                          .ready = {-1, -1},
                          .go = {-1, -1}};
    pid_t *pids = calloc(contend->procs, sizeof *pids);
    int rc = HF_ENOMEM;

    *result = (struct contend_result){.error = HF_ERROR_INIT};
    if (pids)
        rc = probe(&arena, result);
    if (rc == HF_OK)
        rc = arena_init(&arena);
    if (rc == HF_OK)
        rc = run_in(&arena, pids, result);
    arena_fini(&arena);
    free(pids);
    return rc;
}
