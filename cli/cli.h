/*
 * What the verbs of the command share: exit codes, the verb table, parsing
 * of what people type, and one way to say what went wrong.
 */
#ifndef HF_CLI_H
#define HF_CLI_H

#include <getopt.h>
#include <holdfast.h>
#include <stdbool.h>
#include <stdint.h>

/* sysexits.h where it has one; 79 is ours. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 64,
    CLI_UNAVAILABLE = 69, /* the backend cannot be used */
    CLI_OSERR = 71,       /* this machine is out of something */
    CLI_BUSY = 75,        /* not acquired */
    CLI_NOPERM = 77,      /* the backend refused our credentials */
    CLI_LOST = 79,
    CLI_CANNOT_RUN = 126, /* as shells do */
    CLI_NOT_FOUND = 127,
};

struct cli_verb {
    const char *name;
    const char *summary; /* one line of `holdfast help` */
    const char *usage;   /* all of `holdfast help NAME` */
    int (*main)(int argc, char **argv);
};

extern const struct cli_verb cli_run, cli_bench, cli_lab;

/* "holdfast VERB: text" on standard error. */
void cli_say(const struct cli_verb *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The same and a word on how to get help. Is CLI_USAGE, for all to see. Of a
 * word of the user's, quoted `so', nothing is shown after a colon: it may be a
 * URL in the wrong place, with a password in it. */
#define cli_misuse(...) (cli_misused(__VA_ARGS__), CLI_USAGE)
void cli_misused(const struct cli_verb *verb, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* getopt_long(), whose short options have to begin with a colon (after a +),
 * but it is said here what is wrong with one; '?' then. */
int cli_option(const struct cli_verb *verb, int argc, char **argv,
               const char *brief, const struct option *options);
/* The usage on standard output. Returns CLI_OK. */
int cli_help(const struct cli_verb *verb);

/* Says what holdfast answered; returns the exit code that stands for it. */
int cli_failed(const struct cli_verb *verb, const char *what, int code,
               const hf_error *err);
int cli_exit_of(int code);

/* A decimal number in [min, max]. 0 or -1. */
int cli_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* The URL to use: the option's, else HOLDFAST_URL, else shared memory. */
const char *cli_url(const char *option);
/* What stands before the URL's first colon: safe to print, unlike the rest. */
void cli_scheme(const char *url, char *out, size_t size);

int64_t cli_now_ns(int clock); /* a clockid_t */

#endif
