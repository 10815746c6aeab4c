/*
 * The command line of `holdfast run`: the options of the locks, the options of
 * `run` itself, and the command. The struct points into argv.
 */
#ifndef HF_CLI_RUN_OPTIONS_H
#define HF_CLI_RUN_OPTIONS_H

#include "lock_options.h"
#include "shared/verb.h"

#include <stdbool.h>

struct run_options {
    struct lock_options options;
    const char *shell_command;
    const char *metrics; /* a file, or NULL */
    bool only_warn, verbose;
    char **argv;
    char *shell_argv[4];
};

extern const struct cli_flag run_options_flags[];
extern const char run_options_notes[];

/* Returns CLI_OK, or CLI_USAGE after printing the reason. */
int run_options_parse(struct run_options *options, int argc, char **argv);

#endif
