/*
 * Supervises the command of `holdfast run`: passes signals on, enforces the
 * deadline of the locks, and ends the command if they are lost. It blocks only
 * to wait for the next event.
 */
#ifndef HF_CLI_RUN_SUPERVISE_H
#define HF_CLI_RUN_SUPERVISE_H

#include "held_locks.h"
#include "run_metrics.h"
#include "start_command.h"

#include <stdbool.h>
#include <stdint.h>

struct supervision {
    struct command *command;
    struct run_metrics *metrics;
    const struct held_locks *held;
    bool only_warn; /* --on-lost warn */

    bool ended;         /* the command ended, and was waited for */
    bool lost;          /* a lock is or will be lost; this was printed */
    int64_t deadline;   /* the earliest deadline, as last read */
    int64_t span;       /* time to the deadline at the start */
    int64_t kill_at;    /* when KILL is due after TERM, or HF_NO_DEADLINE */
    int signals, timer; /* descriptors */
};

/* Opens the descriptors, and gives the guardian the deadline. Call it before
 * the command starts. Returns CLI_OK or CLI_OSERR. */
int supervise_init(struct supervision *supervision);
/* Closes the descriptors. */
void supervise_fini(struct supervision *supervision);
/* Waits until the command has ended, and sets command->status and
 * supervision->lost. */
void supervise_wait(struct supervision *supervision);

#endif
