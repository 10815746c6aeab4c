/*
 * The verbs: cli_NAME is defined in cmd_NAME.c, with its options and its help.
 * main.c lists them in the order of `holdfast help`.
 */
#ifndef HF_CLI_VERBS_H
#define HF_CLI_VERBS_H

#include "shared/verb.h"

extern const struct cli_verb cli_run, cli_hold;
extern const struct cli_verb cli_ls, cli_show, cli_break, cli_ask, cli_watch;
extern const struct cli_verb cli_latch;
extern const struct cli_verb cli_doctor, cli_bench, cli_lab;

#endif
