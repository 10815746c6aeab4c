/*
 * Parses the command line by the table of a verb, prints what is wrong with it,
 * and prints --help. Every verb calls these functions first. Nothing here needs
 * a client.
 */
#ifndef HF_CLI_ARGS_H
#define HF_CLI_ARGS_H

#include "verb.h"

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the id of the next option, with its value in optarg; '?' after
 * printing what is wrong with the option; -1 at the end, with optind at the
 * first operand. Options may follow operands, unless the verb runs a command.
 * -h and -V print help or version and end the program.
 */
int cli_flag(const struct cli_verb *verb, int argc, char **argv);
/* Does the same for a list of getopt_long(), whose short options, `brief', must
 * begin with a colon. The caller handles -h. */
int cli_option(const struct cli_verb *verb, int argc, char **argv,
               const char *brief, const struct option *options);
extern const struct cli_flag cli_flags_of_all[]; /* -h and -V */
/* Parses all options of a verb that has -b and perhaps --json (json may be
 * NULL). Returns CLI_OK or CLI_USAGE. */
int cli_few_flags(const struct cli_verb *verb, int argc, char **argv,
                  const char **url, bool *json);
/* Parses the value of an option that is a duration. Returns CLI_OK, or
 * CLI_USAGE after printing what is wrong. */
int cli_duration(const struct cli_verb *verb, const char *option,
                 const char *text, int64_t least_ms, int64_t *ms);
/* Prints the text of --help on standard output. */
void cli_help(const struct cli_verb *verb);
_Noreturn void cli_print_version(void);
/* Returns "; did you mean `WORD'?", or "" if no word is similar. */
struct cli_hint {
    char text[64];
};
struct cli_hint cli_similar(const char *typed, const char *before,
                            const char *const *words, size_t n);
/* Flushes standard output. Returns the exit status: CLI_FAILED if that
 * fails. */
int cli_finish(int status);
#endif
