/*
 * Starts the command of `holdfast run` in its own process group, guarded, and
 * only if the locks are still held at that time. There are three processes:
 *
 *   holdfast   holds the locks, passes signals on, waits for the command
 *   guardian   see guardian.h
 *   command    leads the process group
 */
#ifndef HF_CLI_START_COMMAND_H
#define HF_CLI_START_COMMAND_H

#include "guardian.h"
#include "held_locks.h"
#include "shared/verb.h"
#include "terminal.h"

#include <signal.h>
#include <sys/types.h>

struct command {
    const struct cli_verb *verb; /* for messages */
    char **argv;
    pid_t pid; /* also the number of its process group */
    int status;
    struct guardian guardian;
    struct terminal terminal;
    sigset_t mask;        /* signals that were blocked at the start */
    void (*on_pipe)(int); /* the action of SIGPIPE at the start */
};

/* Returns CLI_OK, or the exit status after printing the reason. */
int command_start(struct command *command, const struct held_locks *held);

#endif
