/*
 * Workers: processes (or threads of one) that repeat one piece of work as fast
 * as they can, all begun at the same moment, and what that took.
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
    void *mine;       /* what begin() made */
    void *process;    /* what begin_process() made: of all threads of one */
    void *shared;     /* WORKERS_SHARED zeroed bytes of all workers */
    uint64_t retries; /* to be counted by the work */
    uint64_t done;    /* successes so far */
    bool first;       /* this is its first attempt */
    bool arrived, awaited; /* see worker_meet() */
    bool was_alone;        /* and nobody else came */
    struct workers *workers;
};

enum work {
    WORK_DONE,    /* counts as done, and its time is kept */
    WORK_NOTHING, /* an attempt without success: sold out */
    WORK_STOP,    /* the same, and no worker begins another one */
};

struct workers_plan {
    unsigned workers;
    bool threads;       /* of one process, instead of processes */
    unsigned processes; /* over which threads are spread; 0: one */
    uint64_t attempts;  /* in all; 0: until run_ms is over, but at least one by
                           each worker */
    int64_t run_ms;
    bool spans; /* keep the first of worker_span(), for the timeline */
    void *(*begin_process)(const void *arg); /* may be NULL */
    void (*end_process)(void *process);      /* may be NULL */
    void *(*begin)(struct worker *worker);   /* may be NULL: connects */
    enum work (*work)(struct worker *worker);
    void (*end)(struct worker *worker); /* may be NULL */
    const void *arg;
    const struct lab_place *places[WORKERS_PLACES]; /* whose CPU is counted */
};

struct workers_result {
    uint64_t attempts, done, retries;
    double seconds;        /* from the pause (worker_meet), else the beginning,
                              to the last that was done */
    double per_s;          /* done in that time */
    double p50_us, p99_us; /* of those; what a worker does first is left out
                              of all three if it has paused */
    double cpu_ms;         /* of the workers, once all have begun */
    double server_cpu_ms;  /* of the places that are temporary servers, or
                              Redis; negative: not known */
    uint64_t least, most;  /* done by one worker */
    unsigned char shared[WORKERS_SHARED]; /* as it is at the end */
};

/* Runs it; dies if a worker fails. row may be NULL: the spans go there. */
void workers_run(struct lab *lab, const struct workers_plan *plan,
                 struct workers_result *result, struct lab_row *row);

/* Rate, times and CPU, into the columns of these names. */
void workers_report(const struct workers_result *result, struct lab_row *row);

/* ---- in the worker ------------------------------------------------------- */

/*
 * The pause that makes a race certain. A worker says that it has come between
 * the two steps in question, and waits there until another one has come there
 * too, for at most limit_ms. Where something keeps the others out, that is the
 * limit, once in a run. After a worker's first attempt both do nothing.
 */
void worker_arrive(struct worker *worker);
void worker_await(struct worker *worker, int64_t limit_ms);
/* Both. */
void worker_meet(struct worker *worker, int64_t limit_ms);
/* A pause until *count, in `shared', is at_least that, for at most limit_ms.
 * Returns whether it came to be. What is measured begins after the last one. */
bool worker_pause(struct worker *worker, const _Atomic unsigned *count,
                  unsigned at_least, int64_t limit_ms);
/* From begin until now this worker was inside, by its own belief. A pause in
 * which nobody else came is not worth showing. */
void worker_span(struct worker *worker, int64_t begin);

#endif
