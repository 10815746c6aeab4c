/*
 * run --metrics FILE. A thread writes the file, because a disk that hangs must
 * not keep `run' from extending the deadline. The thread is never joined and
 * uses the struct until the process ends, so the struct must be static.
 */
#ifndef HF_CLI_RUN_METRICS_H
#define HF_CLI_RUN_METRICS_H

#include "shared/verb.h"

#include <holdfast.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct run_metrics {
    const struct cli_verb *verb; /* for messages */
    const char *file;            /* NULL: no file is written */
    const char *names;
    hf_client *client;

    bool started; /* the thread was started */
    pthread_mutex_t mu;
    pthread_cond_t changed;
    char *text; /* the next text to be written; guarded by mu */
    size_t len;
    bool is_writing; /* guarded by mu */
    bool said;       /* a failure was printed */
};

enum { RUN_METRICS_MS = 15000 }; /* ms between writes by `run' */

/* Reads the counters and has the thread write them. A failure is printed once,
 * and has no other effect. */
void run_metrics_write(struct run_metrics *metrics);
/* Waits until all is written, but at most a second. */
void run_metrics_finish(struct run_metrics *metrics);

#endif
