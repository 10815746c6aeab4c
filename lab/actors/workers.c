/*
 * Workers report on one pipe that they are ready. All of them begin when the
 * runner closes another pipe. The first pipe reaches its end when the last
 * worker has ended.
 */
#include "workers.h"

#include "../../cli/shared/exit_code.h"
#include "../../cli/shared/hist.h"
#include "../../cli/shared/values.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/memory.h"
#include "../runner/progress.h"
#include "../servers/client.h"
#include "../servers/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    POLL_MS = 50,
    STUCK_MS = 180000, /* a longer run is a defect, or a server that hangs */
    SPANS = 24,
};

struct counts {
    uint64_t attempts, done, retries;
    uint64_t timed; /* successes whose times are in `took' */
    int64_t last_done, cpu_ns;
    struct hist took;
};

struct common {
    struct die_words words;
    _Atomic int64_t next; /* attempts still to be made */
    _Atomic bool stop;
    _Atomic unsigned begun;       /* workers that have begun to work */
    _Atomic unsigned met;         /* workers that have reached the pause */
    _Atomic unsigned inside;      /* spans that were kept */
    _Atomic int64_t paused_until; /* the end of the pause */
    int64_t began;
    struct lab_span spans[SPANS];
    _Alignas(64) unsigned char shared[WORKERS_SHARED];
    struct counts counts[]; /* one for each worker */
};

struct workers {
    struct lab *lab;
    const struct workers_plan *plan;
    struct common *common;
    size_t size;
    int ready[2], go[2];
    pid_t *pids;
    unsigned processes;
    int64_t cpu_began; /* CPU time of this process when the workers began */
};

/* The thread of one worker. The functions from here to workers_process_main()
 * run in workers, those after it in the runner. */
struct hand {
    struct workers *workers;
    struct worker worker;
    bool leads; /* the main thread of its process */
    pthread_t thread;
};

void worker_arrive(struct worker *worker)
{
    if (!worker->first || worker->arrived)
        return;
    worker->arrived = true;
    atomic_fetch_add(&worker->workers->common->met, 1);
}

void worker_await(struct worker *worker, int64_t limit_ms)
{
    struct common *common = worker->workers->common;
    int64_t until = lab_now() + limit_ms * 1000000, none = 0;

    if (!worker->first || worker->awaited)
        return;
    worker->awaited = true;
    while (worker->workers->plan->workers > 1 &&
           atomic_load(&common->met) < 2 && lab_now() < until)
        lab_sleep_ms(1);
    worker->was_alone = atomic_load(&common->met) < 2;
    atomic_compare_exchange_strong(&common->paused_until, &none, lab_now());
}

bool worker_pause(struct worker *worker, const _Atomic unsigned *count,
                  unsigned at_least, int64_t limit_ms)
{
    int64_t until = lab_now() + limit_ms * 1000000;

    worker->awaited = true;
    while (atomic_load(count) < at_least && lab_now() < until)
        lab_sleep_ms(1);
    atomic_store(&worker->workers->common->paused_until, lab_now());
    return atomic_load(count) >= at_least;
}

void worker_meet(struct worker *worker, int64_t limit_ms)
{
    worker_arrive(worker);
    worker_await(worker, limit_ms);
}

void worker_span(struct worker *worker, int64_t begin)
{
    struct common *common = worker->workers->common;
    struct lab_span *span;
    unsigned i;

    if (!worker->workers->plan->spans || (worker->first && worker->was_alone) ||
        atomic_load(&common->inside) >= SPANS)
        return;
    i = atomic_fetch_add(&common->inside, 1);
    if (i >= SPANS)
        return;
    span = &common->spans[i];
    snprintf(span->lane, sizeof span->lane, "worker %u", worker->number + 1);
    span->kind = LAB_HOLDS;
    span->from = begin;
    span->to = lab_now();
}

static void workers_attempt(struct worker *worker, struct counts *counts)
{
    int64_t begin = lab_now();
    enum work work;

    if (worker->first)
        atomic_fetch_add(&worker->workers->common->begun, 1);
    work = worker->workers->plan->work(worker);
    counts->attempts++;
    if (work == WORK_STOP)
        atomic_store(&worker->workers->common->stop, true);
    if (work == WORK_DONE) {
        worker->done = ++counts->done;
        counts->last_done = lab_now();
        if (!worker->awaited || !worker->first) {
            counts->timed++;
            hist_add(&counts->took, counts->last_done - begin);
        }
    }
    worker->first = false;
}

static bool workers_goes_on(const struct workers *workers)
{
    struct common *common = workers->common;

    if (atomic_load(&common->stop))
        return false;
    return workers->plan->attempts == 0 ||
           atomic_fetch_sub(&common->next, 1) > 0;
}

static void *workers_hand_main(void *arg)
{
    struct hand *hand = arg;
    struct workers *workers = hand->workers;
    struct worker *worker = &hand->worker;
    struct counts *counts = &workers->common->counts[worker->number];
    char end;

    if (workers->plan->begin)
        worker->mine = workers->plan->begin(worker);
    if (write(workers->ready[1], "", 1) != 1)
        _exit(1);
    while (read(workers->go[0], &end, 1) < 0 && errno == EINTR) {
    }
    if (hand->leads)
        workers->cpu_began = cli_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    while (workers_goes_on(workers))
        workers_attempt(worker, counts);
    counts->retries = worker->retries;
    if (workers->plan->end)
        workers->plan->end(worker);
    return NULL;
}

static void workers_run_hands(struct workers *workers, unsigned first,
                              unsigned n)
{
    struct hand *hands = lab_alloc(n * sizeof *hands);
    void *process = NULL;

    if (workers->plan->begin_process)
        process = workers->plan->begin_process(workers->plan->arg);
    for (unsigned i = 0; i < n; i++) {
        hands[i].workers = workers;
        hands[i].worker = (struct worker){.number = first + i,
                                          .arg = workers->plan->arg,
                                          .process = process,
                                          .shared = workers->common->shared,
                                          .first = true,
                                          .workers = workers};
        if (i + 1 < n && pthread_create(&hands[i].thread, NULL,
                                        workers_hand_main, &hands[i]) != 0)
            lab_die(CLI_OSERR, "no more threads can be started");
    }
    hands[n - 1].leads = true;
    workers_hand_main(&hands[n - 1]);
    for (unsigned i = 0; i + 1 < n; i++)
        pthread_join(hands[i].thread, NULL);
    if (workers->plan->end_process)
        workers->plan->end_process(process);
    free(hands);
}

_Noreturn static void workers_process_main(struct workers *workers,
                                           pid_t runner, unsigned number)
{
    unsigned first = number * workers->plan->workers / workers->processes;
    unsigned next = (number + 1) * workers->plan->workers / workers->processes;
    int64_t cpu;

    die_in_child(&workers->common->words, runner);
    progress_hide_after_fork();
    close(workers->ready[0]);
    close(workers->go[1]);
    workers_run_hands(workers, first, next - first);
    cpu = cli_now_ns(CLOCK_PROCESS_CPUTIME_ID) - workers->cpu_began;
    workers->common->counts[first].cpu_ns = cpu;
    _exit(0);
}

static void workers_start(struct workers *workers)
{
    pid_t runner = getpid();

    workers->processes = !workers->plan->threads    ? workers->plan->workers
                         : workers->plan->processes ? workers->plan->processes
                                                    : 1;
    workers->pids = lab_alloc(workers->processes * sizeof *workers->pids);
    if (pipe2(workers->ready, O_CLOEXEC) < 0 ||
        pipe2(workers->go, O_CLOEXEC) < 0)
        lab_die(CLI_OSERR, "pipe: %s", strerror(errno));
    fflush(stdout);
    for (unsigned i = 0; i < workers->processes; i++) {
        workers->pids[i] = fork();
        if (workers->pids[i] < 0)
            lab_die(CLI_OSERR, "cannot fork: %s", strerror(errno));
        if (workers->pids[i] == 0)
            workers_process_main(workers, runner, i);
    }
    close(workers->ready[1]);
    close(workers->go[0]);
}

/* Dies if a worker has died. */
static void workers_check_for_dead(const struct workers *workers)
{
    int status;

    for (unsigned i = 0; i < workers->processes; i++) {
        siginfo_t gone = {0};

        if (waitid(P_PID, (id_t)workers->pids[i], &gone,
                   WEXITED | WNOHANG | WNOWAIT) == 0 &&
            gone.si_pid && (gone.si_code != CLD_EXITED || gone.si_status)) {
            waitpid(workers->pids[i], &status, 0);
            die_of_child(&workers->common->words, "a worker", status);
        }
    }
}

/* Returns how many bytes have arrived, 0 if all workers have ended, or -1 if
 * nothing has arrived within POLL_MS. Dies if a worker has died, or after the
 * time `until'. */
static ssize_t workers_read_ready(struct workers *workers, int64_t until)
{
    struct pollfd polled = {workers->ready[0], POLLIN, 0};
    char bytes[256];

    if (poll(&polled, 1, POLL_MS) > 0)
        return read(workers->ready[0], bytes, sizeof bytes);
    lab_tick(workers->lab);
    workers_check_for_dead(workers);
    if (lab_now() > until)
        lab_die(CLI_FAILED, "the workers did not end in time");
    return -1;
}

static void workers_wait_until_ready(struct workers *workers)
{
    int64_t until = lab_now() + STUCK_MS * 1000000LL;
    unsigned ready = 0;

    while (ready < workers->plan->workers) {
        ssize_t len = workers_read_ready(workers, until);

        if (len == 0) {
            workers_check_for_dead(workers);
            lab_die(CLI_FAILED, "the workers ended too early");
        }
        if (len > 0)
            ready += (unsigned)len;
    }
}

/* Lets the workers run until run_ms has passed and every worker has begun its
 * first attempt, or until a worker stops the run. A worker completes an attempt
 * that it has begun. Therefore every worker makes at least one attempt, however
 * late it is scheduled, unless a worker stops the run. */
static void workers_let_them_run(struct workers *workers)
{
    struct common *common = workers->common;
    int64_t end = common->began + workers->plan->run_ms * 1000000;
    int64_t now = lab_now(), stuck = end + STUCK_MS * 1000000LL;

    while (
        !atomic_load(&common->stop) &&
        (now < end || atomic_load(&common->begun) < workers->plan->workers)) {
        int64_t left = now < end ? end - now : 0;

        lab_sleep_ms(left > 50000000 ? 50 : left / 1000000 + 1);
        lab_tick(workers->lab);
        workers_check_for_dead(workers);
        now = lab_now();
        if (now > stuck)
            lab_die(CLI_FAILED, "only %u of %u workers began within %d seconds",
                    atomic_load(&common->begun), workers->plan->workers,
                    STUCK_MS / 1000);
    }
    atomic_store(&common->stop, true);
}

static void workers_wait_until_ended(struct workers *workers)
{
    int64_t left = 0, until = 0;
    int status = 0;

    if (workers->plan->attempts == 0)
        workers_let_them_run(workers);
    do {
        int64_t next = atomic_load(&workers->common->next);

        if (next != left || !until) /* the workers make progress */
            until = lab_now() + STUCK_MS * 1000000LL;
        left = next;
    } while (workers_read_ready(workers, until) != 0);
    for (unsigned i = 0; i < workers->processes; i++) {
        if (waitpid(workers->pids[i], &status, 0) != workers->pids[i] || status)
            die_of_child(&workers->common->words, "a worker", status);
    }
    close(workers->ready[0]);
}

/* Returns whether the CPU time of places[i] must be left out: because its
 * server is both backend and store and has been counted already, or because the
 * place is shared memory or a file, which has no server. */
static bool workers_is_left_out(const struct workers_plan *plan, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(plan->places[k]->url, plan->places[i]->url) == 0)
            return true;
    return plan->places[i]->engine <= LAB_FILE;
}

static double workers_server_cpu(const struct workers_plan *plan)
{
    double all = 0;

    for (size_t i = 0; i < WORKERS_PLACES && plan->places[i]; i++) {
        double one = workers_is_left_out(plan, i)
                         ? 0
                         : lab_place_cpu_ms(plan->places[i]);

        if (one < 0)
            return -1;
        all += one;
    }
    return all;
}

static void workers_sum_up(const struct workers *workers,
                           struct workers_result *result)
{
    struct hist *took = lab_alloc(sizeof *took);
    int64_t paused = atomic_load(&workers->common->paused_until);
    int64_t began = paused ? paused : workers->common->began;
    int64_t ended = began, cpu = 0;
    uint64_t timed = 0;

    result->least = UINT64_MAX;
    for (unsigned i = 0; i < workers->plan->workers; i++) {
        const struct counts *counts = &workers->common->counts[i];

        result->attempts += counts->attempts;
        result->done += counts->done;
        result->retries += counts->retries;
        if (counts->done < result->least)
            result->least = counts->done;
        if (counts->done > result->most)
            result->most = counts->done;
        if (counts->last_done > ended)
            ended = counts->last_done;
        timed += counts->timed;
        cpu += counts->cpu_ns;
        hist_merge(took, &counts->took);
    }
    result->seconds = (double)(ended - began) / 1e9;
    result->per_s = result->seconds > 0 ? (double)timed / result->seconds : 0;
    result->p50_us = hist_quantile_us(took, 0.50);
    result->p99_us = hist_quantile_us(took, 0.99);
    result->cpu_ms = (double)cpu / 1e6;
    memcpy(result->shared, workers->common->shared, WORKERS_SHARED);
    free(took);
}

static void workers_hand_over(const struct workers *workers,
                              struct lab_row *row)
{
    unsigned n = atomic_load(&workers->common->inside);

    for (unsigned i = 0; i < n && i < SPANS; i++)
        lab_row_span(row, &workers->common->spans[i]);
}

void workers_report(const struct workers_result *result, struct lab_row *row)
{
    lab_row_number(row, "per_s", result->per_s);
    lab_row_number(row, "p50_us", result->p50_us);
    lab_row_number(row, "p99_us", result->p99_us);
    lab_row_number(row, "cpu_ms", result->cpu_ms);
    if (result->server_cpu_ms >= 0)
        lab_row_number(row, "server_cpu_ms", result->server_cpu_ms);
}

void workers_run(struct lab *lab, const struct workers_plan *plan,
                 struct workers_result *result, struct lab_row *row)
{
    struct workers workers = {.lab = lab, .plan = plan};
    double before, after;

    memset(result, 0, sizeof *result);
    workers.size =
        sizeof *workers.common + plan->workers * sizeof(struct counts);
    workers.common = lab_share(workers.size);
    atomic_store(&workers.common->next, (int64_t)plan->attempts);
    for (size_t i = 0; i < WORKERS_PLACES && plan->places[i]; i++)
        lab_warm(lab, plan->places[i]);
    workers_start(&workers);
    workers_wait_until_ready(&workers);
    before = workers_server_cpu(plan);
    workers.common->began = lab_now();
    close(workers.go[1]);
    workers_wait_until_ended(&workers);
    after = workers_server_cpu(plan);
    result->server_cpu_ms = before < 0 || after < 0 ? -1 : after - before;
    workers_sum_up(&workers, result);
    if (row)
        workers_hand_over(&workers, row);
    lab_unshare(workers.common, workers.size);
    free(workers.pids);
}
