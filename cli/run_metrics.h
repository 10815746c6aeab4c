/*
 * run --metrics FILE. A thread writes the file: a disk that hangs must not keep
 * `run' from moving the deadline on. The thread is never joined, so the struct
 * has to be static.
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
    const char *file;            /* NULL: nothing is written */
    const char *names;
    hf_client *client;

    bool started; /* the thread */
    pthread_mutex_t mu;
    pthread_cond_t changed;
    char *text; /* to be written next; mu */
    size_t len;
    bool is_writing; /* mu */
    bool said;       /* that it cannot be written; the thread's, once started */
};

enum { RUN_METRICS_MS = 15000 }; /* between two while the command runs */

/* Takes the numbers of now and has them written. A failure is said once, and
 * has no other effect. */
void run_metrics_write(struct run_metrics *metrics);
/* Waits until all is written, for a second at most. */
void run_metrics_finish(struct run_metrics *metrics);

#endif
