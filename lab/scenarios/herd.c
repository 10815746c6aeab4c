/*
 * The herd of the documents (tutorials; see lab/README.md): ten thousand
 * processes wait for one lock, a release wakes all of them, and one of them
 * gets the lock. A fair lock wakes only the next waiter. Two ways to wait are
 * measured. In the first, each waiter is a client in its own process, so the
 * server knows all of them. In the second, the waiters are asynchronous waits
 * of a few processes, and each process is one waiter at the server.
 *
 * Wake-ups are counted from outside. A process that sleeps has no context
 * switches. Therefore a process was woken if its number of voluntary switches
 * (/proc/PID/task/TID/status) changes between a release and the time when all
 * processes are quiet again. A director, the first of the workers, repeatedly
 * makes the holder release. What clients occasionally do by themselves (pings;
 * helper threads of clients that all began at the same moment) can only add to
 * the count, so the row shows the lowest count of all releases.
 */
#include "../../cli/shared/exit_code.h"
#include "../actors/proc_stat.h"
#include "../actors/workers.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/client.h"
#include "../servers/places.h"
#include "../servers/servers.h"

#include <errno.h>
#include <holdfast.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    CLIENTS = 100,      /* waiters in processes of their own */
    GIVEN_CLIENTS = 40, /* for servers given by a URL, because ZooKeeper's
                           default limit for one host is 60 connections */
    PROCESSES = 20,     /* processes with asynchronous waits */
    RELEASES = 5,       /* at least this many */
    MANY_RELEASES = 20, /* the limit, if each release so far woke many */
    LEAST = PROCESSES,  /* the smallest number of waiters */
    FEW = 5,
    POLL_MS = 20, /* between two checks whether all is quiet */
    QUIET_CHECKS = 2,
    STUCK_MS = 100000,
    TTL_MS = 300000 /* so long that clients hardly send any pings */
};

/* What the waiters and the director share. */
struct board {
    _Atomic int queued;   /* processes whose waits have begun */
    _Atomic int holder;   /* number of the holder; 0 from the order to release
                             to the next grant */
    _Atomic bool rejoin;  /* the next ring means "wait again", not "release" */
    _Atomic int answered; /* rings of `bells' that were answered so far */
    _Atomic bool over;
    _Atomic pid_t pids[CLIENTS + 2]; /* by number of the worker, from 1 */
    double woken, cpu_us;            /* the lowest values of any release */
};

/* One row. */
struct plan {
    struct lab *lab;
    const struct lab_place *backend;
    enum hf_fairness fairness;
    unsigned processes;
    unsigned waiters; /* not including the holder */
    char name[96];
    struct board *board;
    int *bells; /* by number of the process: an eventfd for orders of the
                   director */
};

struct waiter {
    const struct plan *plan;
    unsigned number;
    bool over;
    hf_client *client;
    hf_lock *held, *released;
};

static void herd_granted(void *arg, hf_lock *lock, int result)
{
    struct waiter *waiter = arg;

    if (waiter->over)
        return; /* the client is being closed */
    lab_check(result, "acquire", NULL);
    waiter->held = lock;
    atomic_store(&waiter->plan->board->holder, (int)waiter->number);
}

static void herd_join_queue(struct waiter *waiter, hf_lock *lock)
{
    hf_error err = HF_ERROR_INIT;

    lab_check(hf_lock_acquire_async(lock, NULL, herd_granted, waiter, &err),
              "wait", &err);
}

static void herd_answer_bell(struct waiter *waiter)
{
    struct board *board = waiter->plan->board;
    hf_error err = HF_ERROR_INIT;

    if (atomic_load(&board->rejoin)) {
        herd_join_queue(waiter, waiter->released);
    } else {
        waiter->released = waiter->held;
        lab_check(hf_lock_release(waiter->held, &err), "release", &err);
    }
    atomic_fetch_add(&board->answered, 1);
}

static void herd_ring(const struct plan *plan, unsigned number)
{
    uint64_t one = 1;

    if (write(plan->bells[number], &one, sizeof one) != sizeof one)
        lab_die(CLI_OSERR, "eventfd: %s", strerror(errno));
}

/* Sleeps until the client has something to do or the director has written to
 * the eventfd of this process (its bell), and does what is necessary. Repeats
 * this until the run is over. */
static void herd_wait_on(struct waiter *waiter)
{
    const struct plan *plan = waiter->plan;
    struct pollfd polled[2] = {{hf_client_fd(waiter->client), POLLIN, 0},
                               {plan->bells[waiter->number], POLLIN, 0}};
    uint64_t rung;
    int rc;

    while (!atomic_load(&plan->board->over)) {
        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            lab_die(CLI_OSERR, "poll: %s", strerror(errno));
        if (polled[1].revents && read(polled[1].fd, &rung, sizeof rung) > 0 &&
            !atomic_load(&plan->board->over))
            herd_answer_bell(waiter);
        rc = hf_client_dispatch(waiter->client);
        if (rc < 0)
            lab_check(rc, "dispatch", NULL);
    }
}

static unsigned herd_share_of(const struct plan *plan, unsigned number)
{
    unsigned all = plan->waiters + 1; /* including the holder */

    return number * all / plan->processes -
           (number - 1) * all / plan->processes;
}

static enum work herd_wait_in_queue(struct worker *worker)
{
    struct waiter *waiter = worker->mine;
    const struct plan *plan = worker->arg;
    unsigned n = herd_share_of(plan, waiter->number);
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    hf_lock **locks = lab_alloc(n * sizeof(hf_lock *));

    options.fairness = plan->fairness;
    options.flags = HF_OWNER_HANDLE;
    for (unsigned i = 0; i < n; i++) {
        locks[i] = lab_lock(waiter->client, plan->name, &options);
        herd_join_queue(waiter, locks[i]);
    }
    atomic_fetch_add(&plan->board->queued, 1);
    herd_wait_on(waiter);
    waiter->over = true;
    hf_close(waiter->client);
    for (unsigned i = 0; i < n; i++)
        hf_lock_free(locks[i]);
    free(locks);
    return WORK_DONE;
}

/* Returns the largest number of processes that a release may wake without
 * counting as a herd. */
static unsigned herd_few(const struct plan *plan)
{
    return plan->processes / 10 > FEW ? plan->processes / 10 : FEW;
}

static void herd_note_all(const struct plan *plan, struct proc_stat *stats)
{
    for (unsigned i = 1; i <= plan->processes; i++)
        proc_stat_note(&stats[i]);
}

/* Returns how many processes were woken since herd_note_all(). The process with
 * the number `ordered' was woken in any case, because it was ordered to
 * release, so it counts only if it has the lock again. Sets *busy if any of the
 * processes runs. */
static unsigned herd_count_woken(const struct plan *plan,
                                 const struct proc_stat *stats,
                                 unsigned ordered, bool *busy)
{
    unsigned woken = 0;

    for (unsigned i = 1; i <= plan->processes; i++) {
        bool was_woken = proc_stat_was_woken(&stats[i], busy);

        woken += i == ordered
                     ? atomic_load(&plan->board->holder) == (int)ordered
                     : was_woken;
    }
    return woken;
}

/* Waits until no process runs, hardly any process wakes up, and the server is
 * idle. Returns how many processes were woken. */
static unsigned herd_await_quiet(const struct plan *plan,
                                 const struct proc_stat *stats,
                                 unsigned ordered)
{
    pid_t server = plan->backend->pid; /* 0: a given server, which cannot be
                                          watched */
    unsigned woken = 0, before, quiet = 0;

    while (quiet < QUIET_CHECKS) {
        bool busy = false;

        lab_sleep_ms(POLL_MS);
        before = woken;
        woken = herd_count_woken(plan, stats, ordered, &busy);
        busy = busy || (server && proc_stat_runs(server)) ||
               woken > before + plan->processes / 20;
        quiet = busy ? 0 : quiet + 1;
    }
    return woken;
}

static double herd_cpu_us(const struct plan *plan,
                          const struct proc_stat *stats)
{
    double server =
        plan->backend->engine == LAB_SHM ? 0 : lab_place_cpu_ms(plan->backend);
    double all = server > 0 ? server * 1e3 : 0;

    for (unsigned i = 1; i <= plan->processes; i++)
        all += proc_stat_cpu_us(&stats[i]);
    return all;
}

static unsigned herd_await_holder(const struct plan *plan)
{
    int64_t until = lab_now() + STUCK_MS * 1000000LL;
    int holder;

    while ((holder = atomic_load(&plan->board->holder)) == 0) {
        if (lab_now() > until)
            lab_die(CLI_FAILED, "no waiter gets the lock");
        lab_sleep_ms(1);
    }
    return (unsigned)holder;
}

/* Orders a process to release, or to wait again if `rejoin', by writing to its
 * eventfd. Returns when the process has obeyed. */
static void herd_order(const struct plan *plan, unsigned number, bool rejoin)
{
    struct board *board = plan->board;
    int64_t until = lab_now() + STUCK_MS * 1000000LL;
    int answered = atomic_load(&board->answered);

    atomic_store(&board->rejoin, rejoin);
    herd_ring(plan, number);
    while (atomic_load(&board->answered) == answered) {
        if (lab_now() > until)
            lab_die(CLI_FAILED, "a waiter does not answer");
        lab_sleep_ms(1);
    }
}

static void herd_await_queue(const struct plan *plan, struct proc_stat *stats)
{
    do
        herd_note_all(plan, stats);
    while (herd_await_quiet(plan, stats, 0) > plan->processes / 20 + 1);
}

/* Makes the holder release, measures until all is quiet, and makes the former
 * holder wait again. */
static void herd_have_released(const struct plan *plan, struct proc_stat *stats)
{
    struct board *board = plan->board;
    unsigned ordered = herd_await_holder(plan);
    double cpu = herd_cpu_us(plan, stats);

    herd_note_all(plan, stats);
    atomic_store(&board->holder, 0);
    herd_order(plan, ordered, false);
    herd_await_holder(plan);
    board->woken = fmin(board->woken, herd_await_quiet(plan, stats, ordered));
    board->cpu_us = fmin(board->cpu_us, herd_cpu_us(plan, stats) - cpu);
    herd_order(plan, ordered, true);
    herd_await_queue(plan, stats);
}

static enum work herd_direct(struct worker *worker)
{
    const struct plan *plan = worker->arg;
    struct board *board = plan->board;
    struct proc_stat *stats = lab_alloc((plan->processes + 1) * sizeof *stats);

    for (unsigned i = 1; i <= plan->processes; i++)
        proc_stat_open(&stats[i], atomic_load(&board->pids[i]));
    while (atomic_load(&board->queued) < (int)plan->processes)
        lab_sleep_ms(1);
    herd_await_queue(plan, stats);
    board->woken = board->cpu_us = INFINITY;
    for (unsigned i = 0;
         i < RELEASES || (i < MANY_RELEASES && board->woken > herd_few(plan));
         i++)
        herd_have_released(plan, stats);
    atomic_store(&board->over, true);
    for (unsigned i = 1; i <= plan->processes; i++)
        herd_ring(plan, i);
    free(stats); /* the descriptors are closed with the process */
    return WORK_DONE;
}

static void *herd_begin(struct worker *worker)
{
    const struct plan *plan = worker->arg;
    struct waiter *waiter;

    if (worker->number == 0)
        return NULL; /* the director */
    waiter = lab_alloc(sizeof *waiter);
    waiter->plan = plan;
    waiter->number = worker->number;
    waiter->client = lab_open(plan->backend, TTL_MS);
    atomic_store(&plan->board->pids[worker->number], getpid());
    return waiter;
}

static enum work herd_work(struct worker *worker)
{
    return worker->number == 0 ? herd_direct(worker)
                               : herd_wait_in_queue(worker);
}

static int *herd_make_bells(unsigned n)
{
    int *bells = lab_alloc(n * sizeof *bells);

    for (unsigned i = 0; i < n; i++) {
        bells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (bells[i] < 0)
            lab_die(CLI_OSERR, "eventfd: %s", strerror(errno));
    }
    return bells;
}

static void herd_run_workers(struct plan *plan)
{
    struct workers_plan workers = {.workers = plan->processes + 1,
                                   .attempts = plan->processes + 1,
                                   .begin = herd_begin,
                                   .work = herd_work,
                                   .arg = plan};
    struct workers_result *result = lab_alloc(sizeof *result);

    plan->bells = herd_make_bells(plan->processes + 1);
    workers_run(plan->lab, &workers, result, NULL);
    for (unsigned i = 0; i <= plan->processes; i++)
        close(plan->bells[i]);
    free(plan->bells);
    free(result);
}

static void herd_measure(struct plan *plan, const char *strategy)
{
    /* On these backends all waiters for an unfair lock watch the same key. */
    bool all_wake = (plan->backend->engine == LAB_ZOOKEEPER ||
                     plan->backend->engine == LAB_ETCD) &&
                    plan->fairness == HF_UNFAIR;
    struct lab_row *row = lab_row(plan->lab, all_wake ? LAB_FAILS : LAB_OK);
    const char *order = plan->fairness == HF_FAIR ? "fair" : "unfair";
    char word[64];
    double woken;

    lab_progress(plan->lab, "%s: %u waiters, %s on %s", strategy, plan->waiters,
                 order, plan->backend->name);
    snprintf(word, sizeof word, "herd-%s-%s", strategy, order);
    lab_name(plan->lab, word, plan->name);
    plan->board = lab_share(sizeof *plan->board);
    herd_run_workers(plan);
    woken = plan->board->woken;
    lab_row_text(row, "strategy", "%s", strategy);
    lab_row_text(row, "variant", "%s", order);
    lab_row_text(row, "backend", "%s", plan->backend->name);
    lab_row_number(row, "waiters", plan->waiters);
    lab_row_number(row, "processes", plan->processes);
    lab_row_number(row, "woken", woken);
    lab_row_number(row, "cpu_us", plan->board->cpu_us);
    lab_unshare(plan->board, sizeof *plan->board);
    if (plan->processes > plan->waiters)
        lab_row_done(
            plan->lab, row, woken <= herd_few(plan) ? LAB_OK : LAB_FAILS,
            "a release wakes %.0f of %u waiters", woken, plan->waiters);
    else
        lab_row_done(plan->lab, row,
                     woken <= herd_few(plan) ? LAB_OK : LAB_FAILS,
                     "a release wakes %.0f of %u processes with %u waiters",
                     woken, plan->processes, plan->waiters);
}

static void herd_measure_both(struct plan *plan)
{
    unsigned waiters = (unsigned)lab_settings(plan->lab)->waiters;
    unsigned clients = plan->backend->given ? GIVEN_CLIENTS : CLIENTS;

    plan->waiters = waiters < clients ? waiters : clients;
    plan->processes = plan->waiters + 1;
    herd_measure(plan, "clients");
    plan->waiters = waiters;
    plan->processes = PROCESSES;
    herd_measure(plan, "async");
}

static void herd_run(struct lab *lab)
{
    struct plan plan = {.lab = lab};

    if (lab_settings(lab)->waiters < LEAST)
        lab_die(CLI_USAGE, "--waiters is %llu; herd needs at least %d",
                (unsigned long long)lab_settings(lab)->waiters, LEAST);
    for (size_t i = 0; (plan.backend = lab_backend(lab, i)); i++) {
        int caps = lab_caps(plan.backend, HF_MUTEX);

        if (!(caps & HF_CAP_EVENTS))
            continue; /* clients poll here: a release wakes none of them */
        plan.fairness = HF_FAIR;
        if (caps & HF_CAP_FAIR)
            herd_measure_both(&plan);
        plan.fairness = HF_UNFAIR;
        if (caps & HF_CAP_UNFAIR)
            herd_measure_both(&plan);
    }
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 8, LAB_LEFT}, {"variant", "variant", 7, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},   {"waiters", "waiters", 7, 0},
    {"processes", "processes", 9, 0},      {"woken", "woken", 6, LAB_BAR},
    {"cpu_us", "CPU us/release", 14, 0},   {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_herd = {
    .name = "herd",
    .summary = "how many waiters a release wakes",
    .text =
        "Many waiters want one lock. Its holder releases it, and one of them "
        "gets\n"
        "it. The table shows how many processes one release wakes, and how "
        "much CPU\n"
        "it takes in all processes and the server. `clients': up to 100 "
        "waiters,\n"
        "each a client in a process of its own. `async': --waiters "
        "asynchronous\n"
        "waits in 20 processes, each of which is one waiter at the server.\n",
    .columns = columns,
    .options = LAB_WAITERS,
    .run = herd_run,
};
