/*
 * Workers: processes, or threads of some processes, that all begin at the same
 * moment and repeat one piece of work as fast as they can; and the measurement
 * of that work.
 */
#ifndef HF_LAB_WORKERS_H
#define HF_LAB_WORKERS_H

#include "../runner/place.h"
#include "../runner/report.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

enum { WORKERS_PLACES = 4, WORKERS_SHARED = 4096 };

struct worker {
    unsigned number;
    const void *arg;
    void *mine;       /* what begin() returned */
    void *process;    /* what begin_process() returned, for all threads of a
                         process */
    void *shared;     /* WORKERS_SHARED zeroed bytes, shared by all workers */
    uint64_t retries; /* a counter that the work increments */
    uint64_t done;    /* successes so far */
    bool first;       /* this is its first attempt */
    bool arrived, awaited; /* see worker_meet() */
    bool was_alone;        /* no other worker arrived during the pause */
    struct workers *workers;
};

enum work {
    WORK_DONE,    /* counts as done; its time is kept */
    WORK_NOTHING, /* an attempt without success, such as sold out */
    WORK_STOP,    /* as WORK_NOTHING; also, no worker begins another attempt */
};

struct workers_plan {
    unsigned workers;
    bool threads;       /* workers are threads, instead of processes */
    unsigned processes; /* number of processes that the threads are divided
                           among; 0 means one */
    uint64_t attempts;  /* of all workers together; 0: until run_ms has passed,
                           but at least one by each worker */
    int64_t run_ms;
    bool spans; /* keep the first spans of worker_span(), for the timeline */
    void *(*begin_process)(const void *arg); /* may be NULL */
    void (*end_process)(void *process);      /* may be NULL */
    void *(*begin)(struct worker *worker); /* may be NULL: opens connections */
    enum work (*work)(struct worker *worker);
    void (*end)(struct worker *worker); /* may be NULL */
    const void *arg;
    /* servers whose CPU is counted */
    const struct lab_place *places[WORKERS_PLACES];
};

struct workers_result {
    uint64_t attempts, done, retries;
    double seconds;        /* from the end of the pause (worker_meet()), or from
                              the start if there was no pause, until the last
                              success */
    double per_s;          /* successes per second in that time */
    double p50_us, p99_us; /* durations of these successes; per_s, p50_us and
                              p99_us leave out a worker's first attempt if the
                              worker paused in that attempt */
    double cpu_ms;         /* CPU time of the workers, from the start */
    double server_cpu_ms; /* CPU time of the servers of `places'; negative if it
                             is not known for all of them */
    uint64_t least, most; /* successes of the worker with the fewest, and with
                             the most */
    unsigned char shared[WORKERS_SHARED]; /* `shared' at the end */
};

/* Runs the workers; dies if one fails. Adds their spans to the row, unless row
 * is NULL. */
void workers_run(struct lab *lab, const struct workers_plan *plan,
                 struct workers_result *result, struct lab_row *row);

/* Sets the fields per_s, p50_us, p99_us and cpu_ms of the row, and
 * server_cpu_ms if it is known. */
void workers_report(const struct workers_result *result, struct lab_row *row);

/*
 * A pause that makes a race certain. worker_arrive() reports that the worker
 * has reached the point where workers can race. worker_await() waits until a
 * second worker has arrived there, for at most limit_ms. If the strategy keeps
 * other workers out, this pause costs limit_ms once per run. After a worker's
 * first attempt both functions do nothing.
 */
void worker_arrive(struct worker *worker);
void worker_await(struct worker *worker, int64_t limit_ms);
/* Calls worker_arrive() and worker_await(). */
void worker_meet(struct worker *worker, int64_t limit_ms);
/* Waits until *count, a counter in `shared', has reached at_least, for at most
 * limit_ms. Returns whether *count has reached at_least. The measurement begins
 * when the last of these pauses in the run ends. */
bool worker_pause(struct worker *worker, const _Atomic unsigned *count,
                  unsigned at_least, int64_t limit_ms);
/* Adds a span to the timeline: the worker believed that it was inside from
 * `begin' until now. Adds none in a first attempt if no other worker arrived
 * during the pause. */
void worker_span(struct worker *worker, int64_t begin);

#endif
