/*
 * Workers: processes (or threads of one process) that repeat one piece of work
 * as fast as they can, and all begin at the same moment; and how long that
 * took.
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
    uint64_t retries; /* a counter that the work raises */
    uint64_t done;    /* successes so far */
    bool first;       /* this is its first attempt */
    bool arrived, awaited; /* see worker_meet() */
    bool was_alone;        /* no other worker came during the pause */
    struct workers *workers;
};

enum work {
    WORK_DONE,    /* counts as done; its time is kept */
    WORK_NOTHING, /* an attempt without success: sold out */
    WORK_STOP,    /* the same, and no worker begins another attempt */
};

struct workers_plan {
    unsigned workers;
    bool threads;       /* threads of one process, instead of processes */
    unsigned processes; /* over which threads are spread; 0: one */
    uint64_t attempts;  /* in all; 0: until run_ms has passed, but at least one
                           by each worker */
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
    double seconds; /* from the pause (worker_meet) or else the beginning, to
                       the last success */
    double per_s;   /* successes in that time */
    double p50_us, p99_us; /* of those; if the workers paused, all three leave
                              out each worker's first attempt */
    double cpu_ms;         /* of the workers, once all have begun */
    double server_cpu_ms; /* of the places that are temporary servers, or Redis;
                             negative: not known */
    uint64_t least, most; /* done by one worker */
    unsigned char shared[WORKERS_SHARED]; /* `shared', as it is at the end */
};

/* Runs the workers; dies if one fails. The spans go to row, which may be
 * NULL. */
void workers_run(struct lab *lab, const struct workers_plan *plan,
                 struct workers_result *result, struct lab_row *row);

/* Puts rate, times and CPU into the columns of these names. */
void workers_report(const struct workers_result *result, struct lab_row *row);

/*
 * A pause that makes a race certain. A worker reports that it is between the
 * two steps in question, and waits there until another worker is there too, for
 * at most limit_ms. If the others are kept out, it waits for that limit, once
 * per run. After a worker's first attempt both functions do nothing.
 */
void worker_arrive(struct worker *worker);
void worker_await(struct worker *worker, int64_t limit_ms);
/* Both. */
void worker_meet(struct worker *worker, int64_t limit_ms);
/* Pauses until *count, in `shared', is at_least that, for at most limit_ms.
 * Returns whether it is. Measurement begins after the last pause. */
bool worker_pause(struct worker *worker, const _Atomic unsigned *count,
                  unsigned at_least, int64_t limit_ms);
/* This worker believed to be inside from `begin' until now. A pause into which
 * no other worker came is not shown. */
void worker_span(struct worker *worker, int64_t begin);

#endif
