/*
 * Runs workers; see crew.h. They report ready on one pipe and begin, all at
 * once, when another is closed; the first pipe closes when the last of them is
 * gone.
 */
#include "workers.h"
#include "../../cli/shared/hist.h"
#include "../runner/frame.h"
#include "../servers/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 50,
    STUCK_MS = 180000, /* longer is a defect, or a server that hangs */
    SPANS = 24,
};

struct counts {
    uint64_t attempts, done, retries;
    uint64_t timed; /* done, and their time is known */
    int64_t last_done, cpu_ns;
    struct hist took;
};

struct common {
    struct lab_death death;
    _Atomic int64_t next; /* attempts still to be made */
    _Atomic bool stop;
    _Atomic unsigned begun;       /* workers that have begun to work */
    _Atomic unsigned met;         /* workers that have come to the pause */
    _Atomic unsigned inside;      /* spans that were kept */
    _Atomic int64_t paused_until; /* the end of the pause */
    int64_t began;
    struct lab_span spans[SPANS];
    _Alignas(64) unsigned char shared[CREW_SHARED];
    struct counts counts[]; /* of each worker */
};

struct crew {
    struct lab *lab;
    const struct crew_plan *plan;
    struct common *common;
    size_t size;
    int ready[2], go[2];
    pid_t *pids;
    unsigned processes;
    int64_t cpu_began; /* of this process, when all began */
};

/* ---- in the worker ------------------------------------------------------- */

struct hand { /* a thread */
    struct crew *crew;
    struct worker worker;
    bool leads; /* the first thread of its process */
    pthread_t thread;
};

void worker_arrive(struct worker *worker)
{
    if (!worker->first || worker->arrived)
        return;
    worker->arrived = true;
    atomic_fetch_add(&worker->crew->common->met, 1);
}

void worker_await(struct worker *worker, int64_t limit_ms)
{
    struct common *common = worker->crew->common;
    int64_t until = lab_now() + limit_ms * 1000000, none = 0;

    if (!worker->first || worker->awaited)
        return;
    worker->awaited = true;
    while (worker->crew->plan->workers > 1 && atomic_load(&common->met) < 2 &&
           lab_now() < until)
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
    atomic_store(&worker->crew->common->paused_until, lab_now());
    return atomic_load(count) >= at_least;
}

void worker_meet(struct worker *worker, int64_t limit_ms)
{
    worker_arrive(worker);
    worker_await(worker, limit_ms);
}

void worker_span(struct worker *worker, int64_t begin)
{
    struct common *common = worker->crew->common;
    struct lab_span *span;
    unsigned i;

    if (!worker->crew->plan->spans || (worker->first && worker->was_alone) ||
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

static void attempt(struct worker *worker, struct counts *counts)
{
    int64_t begin = lab_now();
    enum work work;

    if (worker->first)
        atomic_fetch_add(&worker->crew->common->begun, 1);
    work = worker->crew->plan->work(worker);
    counts->attempts++;
    if (work == WORK_STOP)
        atomic_store(&worker->crew->common->stop, true);
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

static bool goes_on(const struct crew *crew)
{
    struct common *common = crew->common;

    if (atomic_load(&common->stop))
        return false;
    return crew->plan->attempts == 0 || atomic_fetch_sub(&common->next, 1) > 0;
}

static void *hand_main(void *arg)
{
    struct hand *hand = arg;
    struct crew *crew = hand->crew;
    struct worker *worker = &hand->worker;
    struct counts *counts = &crew->common->counts[worker->number];
    char end;

    if (crew->plan->begin)
        worker->mine = crew->plan->begin(worker);
    if (write(crew->ready[1], "", 1) != 1)
        _exit(1);
    while (read(crew->go[0], &end, 1) < 0 && errno == EINTR) {
    }
    if (hand->leads)
        crew->cpu_began = cli_now_ns(CLOCK_PROCESS_CPUTIME_ID);
    while (goes_on(crew))
        attempt(worker, counts);
    counts->retries = worker->retries;
    if (crew->plan->end)
        crew->plan->end(worker);
    return NULL;
}

static void run_hands(struct crew *crew, unsigned first, unsigned n)
{
    struct hand *hands = lab_alloc(n * sizeof *hands);
    void *process = NULL;

    if (crew->plan->begin_process)
        process = crew->plan->begin_process(crew->plan->arg);
    for (unsigned i = 0; i < n; i++) {
        hands[i].crew = crew;
        hands[i].worker = (struct worker){.number = first + i,
                                          .arg = crew->plan->arg,
                                          .process = process,
                                          .shared = crew->common->shared,
                                          .first = true,
                                          .crew = crew};
        if (i + 1 < n &&
            pthread_create(&hands[i].thread, NULL, hand_main, &hands[i]) != 0)
            lab_die(CLI_OSERR, "no more threads can be started");
    }
    hands[n - 1].leads = true;
    hand_main(&hands[n - 1]);
    for (unsigned i = 0; i + 1 < n; i++)
        pthread_join(hands[i].thread, NULL);
    if (crew->plan->end_process)
        crew->plan->end_process(process);
    free(hands);
}

_Noreturn static void process_main(struct crew *crew, pid_t runner,
                                   unsigned number)
{
    unsigned first = number * crew->plan->workers / crew->processes;
    unsigned next = (number + 1) * crew->plan->workers / crew->processes;
    int64_t cpu;

    death_in_child(&crew->common->death, runner);
    close(crew->ready[0]);
    close(crew->go[1]);
    run_hands(crew, first, next - first);
    cpu = cli_now_ns(CLOCK_PROCESS_CPUTIME_ID) - crew->cpu_began;
    crew->common->counts[first].cpu_ns = cpu;
    _exit(0);
}

/* ---- in the runner ------------------------------------------------------- */

static void start(struct crew *crew)
{
    pid_t runner = getpid();

    crew->processes = !crew->plan->threads    ? crew->plan->workers
                      : crew->plan->processes ? crew->plan->processes
                                              : 1;
    crew->pids = lab_alloc(crew->processes * sizeof *crew->pids);
    if (pipe2(crew->ready, O_CLOEXEC) < 0 || pipe2(crew->go, O_CLOEXEC) < 0)
        lab_die(CLI_OSERR, "pipe: %s", strerror(errno));
    fflush(stdout);
    for (unsigned i = 0; i < crew->processes; i++) {
        crew->pids[i] = fork();
        if (crew->pids[i] < 0)
            lab_die(CLI_OSERR, "cannot fork: %s", strerror(errno));
        if (crew->pids[i] == 0)
            process_main(crew, runner, i);
    }
    close(crew->ready[1]);
    close(crew->go[0]);
}

/* Dies if one of them has. */
static void look_for_the_dead(const struct crew *crew)
{
    int status;

    for (unsigned i = 0; i < crew->processes; i++) {
        siginfo_t gone = {0};

        if (waitid(P_PID, (id_t)crew->pids[i], &gone,
                   WEXITED | WNOHANG | WNOWAIT) == 0 &&
            gone.si_pid && (gone.si_code != CLD_EXITED || gone.si_status)) {
            waitpid(crew->pids[i], &status, 0);
            death_of_child(&crew->common->death, "a worker", status);
        }
    }
}

/* How many bytes have come: 0 at the end of all, -1: none yet. */
static ssize_t hear(struct crew *crew, int64_t until)
{
    struct pollfd polled = {crew->ready[0], POLLIN, 0};
    char bytes[256];

    if (poll(&polled, 1, LOOK_MS) > 0)
        return read(crew->ready[0], bytes, sizeof bytes);
    lab_tick(crew->lab);
    look_for_the_dead(crew);
    if (lab_now() > until)
        lab_die(CLI_FAILED, "the workers do not come to their end");
    return -1;
}

static void wait_until_ready(struct crew *crew)
{
    int64_t until = lab_now() + STUCK_MS * 1000000LL;
    unsigned ready = 0;

    while (ready < crew->plan->workers) {
        ssize_t len = hear(crew, until);

        if (len == 0) {
            look_for_the_dead(crew);
            lab_die(CLI_FAILED, "the workers have ended too early");
        }
        if (len > 0)
            ready += (unsigned)len;
    }
}

/* Until the time is over, and every worker has begun: what it has begun it
 * ends, so each makes an attempt, however late it comes to run. */
static void let_them_run(struct crew *crew)
{
    struct common *common = crew->common;
    int64_t end = common->began + crew->plan->run_ms * 1000000;
    int64_t now = lab_now(), stuck = end + STUCK_MS * 1000000LL;

    while (!atomic_load(&common->stop) &&
           (now < end || atomic_load(&common->begun) < crew->plan->workers)) {
        int64_t left = now < end ? end - now : 0;

        lab_sleep_ms(left > 50000000 ? 50 : left / 1000000 + 1);
        lab_tick(crew->lab);
        look_for_the_dead(crew);
        now = lab_now();
        if (now > stuck)
            lab_die(CLI_FAILED, "%u of %u workers have begun in %d seconds",
                    atomic_load(&common->begun), crew->plan->workers,
                    STUCK_MS / 1000);
    }
    atomic_store(&common->stop, true);
}

static void wait_until_ended(struct crew *crew)
{
    int64_t left = 0, until = 0;
    int status = 0;

    if (crew->plan->attempts == 0)
        let_them_run(crew);
    do {
        int64_t next = atomic_load(&crew->common->next);

        if (next != left || !until) /* they get on */
            until = lab_now() + STUCK_MS * 1000000LL;
        left = next;
    } while (hear(crew, until) != 0);
    for (unsigned i = 0; i < crew->processes; i++) {
        if (waitpid(crew->pids[i], &status, 0) != crew->pids[i] || status)
            death_of_child(&crew->common->death, "a worker", status);
    }
    close(crew->ready[0]);
}

/* A server that is the backend and the store is counted once; shared memory and
 * a file have none. */
static bool is_left_out(const struct crew_plan *plan, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(plan->places[k]->url, plan->places[i]->url) == 0)
            return true;
    return plan->places[i]->engine <= LAB_FILE;
}

static double server_cpu(const struct crew_plan *plan)
{
    double all = 0;

    for (size_t i = 0; i < CREW_PLACES && plan->places[i]; i++) {
        double one =
            is_left_out(plan, i) ? 0 : lab_place_cpu_ms(plan->places[i]);

        if (one < 0)
            return -1;
        all += one;
    }
    return all;
}

static void sum_up(const struct crew *crew, struct crew_result *result)
{
    struct hist *took = lab_alloc(sizeof *took);
    int64_t paused = atomic_load(&crew->common->paused_until);
    int64_t began = paused ? paused : crew->common->began;
    int64_t ended = began, cpu = 0;
    uint64_t timed = 0;

    result->least = UINT64_MAX;
    for (unsigned i = 0; i < crew->plan->workers; i++) {
        const struct counts *counts = &crew->common->counts[i];

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
    memcpy(result->shared, crew->common->shared, CREW_SHARED);
    free(took);
}

static void hand_over(const struct crew *crew, struct lab_row *row)
{
    unsigned n = atomic_load(&crew->common->inside);

    for (unsigned i = 0; i < n && i < SPANS; i++)
        lab_row_span(row, &crew->common->spans[i]);
}

void crew_tell(const struct crew_result *result, struct lab_row *row)
{
    lab_row_number(row, "per_s", result->per_s);
    lab_row_number(row, "p50_us", result->p50_us);
    lab_row_number(row, "p99_us", result->p99_us);
    lab_row_number(row, "cpu_ms", result->cpu_ms);
    if (result->server_cpu_ms >= 0)
        lab_row_number(row, "server_cpu_ms", result->server_cpu_ms);
}

void crew_run(struct lab *lab, const struct crew_plan *plan,
              struct crew_result *result, struct lab_row *row)
{
    struct crew crew = {.lab = lab, .plan = plan};
    double before, after;

    memset(result, 0, sizeof *result);
    crew.size = sizeof *crew.common + plan->workers * sizeof(struct counts);
    crew.common = lab_share(crew.size);
    atomic_store(&crew.common->next, (int64_t)plan->attempts);
    for (size_t i = 0; i < CREW_PLACES && plan->places[i]; i++)
        lab_warm(lab, plan->places[i]);
    start(&crew);
    wait_until_ready(&crew);
    before = server_cpu(plan);
    crew.common->began = lab_now();
    close(crew.go[1]);
    wait_until_ended(&crew);
    after = server_cpu(plan);
    result->server_cpu_ms = before < 0 || after < 0 ? -1 : after - before;
    sum_up(&crew, result);
    if (row)
        hand_over(&crew, row);
    lab_unshare(crew.common, crew.size);
    free(crew.pids);
}
