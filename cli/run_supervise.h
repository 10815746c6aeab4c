/*
 * Supervises the command of `holdfast run` while it runs: passes signals on,
 * keeps the deadline of the locks, and ends the command if they are lost.
 * Nothing in it blocks but the wait for the next event.
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

    bool ended;         /* the command, and was waited for */
    bool lost;          /* and said so */
    int64_t deadline;   /* the first of all, as last seen */
    int64_t span;       /* a lease at its beginning */
    int64_t kill_at;    /* after TERM was sent, else HF_NO_DEADLINE */
    int signals, timer; /* descriptors */
};

/* Before the command starts: the guardian learns the deadline. CLI_OK or
 * CLI_OSERR. */
int supervise_init(struct supervision *supervision);
void supervise_fini(struct supervision *supervision);
/* Returns when the command has ended; command->status is set, and
 * supervision->lost. */
void supervise_wait(struct supervision *supervision);

#endif
