/*
 * The options of `run' and `hold' that say which locks to acquire, and how.
 * Parsing has two steps. The first is lock_options_take() for each option and
 * lock_options_name() for an operand. The second is lock_options_check(), which
 * checks whether the options and operands fit together. All three functions
 * print what is wrong. The struct points into argv.
 */
#ifndef HF_CLI_LOCK_OPTIONS_H
#define HF_CLI_LOCK_OPTIONS_H

#include "shared/exit_code.h"
#include "shared/verb.h"

#include <holdfast.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOCKS_MAX = 64 }; /* the largest number of -l options */

struct lock_options {
    const struct cli_verb *verb;
    const char *url, *label;
    const char *names[LOCKS_MAX]; /* as given on the command line */
    size_t len;
    int64_t wait_ms; /* HF_FOREVER: no limit; 0: do not wait */
    int64_t ttl_ms;  /* 0: use the TTL of the URL */
    enum hf_kind kind;
    enum hf_mode mode;
    enum hf_fairness fairness;
    uint32_t permits, of; /* 0: not given */
    int busy_exit;
    bool quiet;
    bool shared, exclusive, nonblock, fair, unfair; /* the option was given */
};

enum {
    LOCK_OPTIONS_FAIR = 256,
    LOCK_OPTIONS_UNFAIR,
    LOCK_OPTIONS_LABEL,
    LOCK_OPTIONS_PERMITS,
    LOCK_OPTIONS_OF,
    LOCK_OPTIONS_OTHERS
};

/* The entries of these options for a table of struct cli_flag. A verb may
 * append its own entries. */
/* clang-format off */
#define LOCK_OPTIONS_FLAGS                                                           \
    CLI_FLAG_BACKEND,                                                          \
    {'l', "lock", "NAME",                                                      \
     "instead of the operand NAME; -l a -l b takes both"},                     \
    {'x', "exclusive", NULL, "write mode of a read-write lock (also -e)"},     \
    {'e', NULL, NULL, NULL},                                                   \
    {'s', "shared", NULL, "read mode; without -x and -s the lock is a mutex"}, \
    {LOCK_OPTIONS_OF, "of", "N", "the lock is a semaphore of N permits"},            \
    {LOCK_OPTIONS_PERMITS, "permits", "K", "take K of the N permits (1)"},           \
    {'n', "nonblock", NULL, "fail at once if the lock is not free"},           \
    {'n', "nb", NULL, NULL},                                                   \
    {'w', "wait", "DURATION",                                                  \
     "fail if the lock is not acquired within this time"},                     \
    {'w', "timeout", "DURATION", NULL},                                        \
    {'t', "ttl", "DURATION",                                                   \
     "how long it stays held if this machine dies (30s)"},                     \
    {LOCK_OPTIONS_FAIR, "fair", NULL, "first come, first served"},                   \
    {LOCK_OPTIONS_UNFAIR, "unfair", NULL, "the quickest client gets the lock"},      \
    {'E', "conflict-exit-code", "CODE", "exit status if not acquired (75)"},   \
    {'q', "quiet", NULL, "print nothing if not acquired or while waiting"},    \
    {LOCK_OPTIONS_LABEL, "label", "TEXT",                                            \
     "shown to others who ask who holds the lock"}

#define LOCK_OPTIONS_INIT(of_verb)                                                   \
    {.verb = (of_verb), .wait_ms = HF_FOREVER, .kind = HF_MUTEX,               \
     .mode = HF_WRITE, .busy_exit = CLI_BUSY}
/* clang-format on */

/* Takes one of LOCK_OPTIONS_FLAGS. Returns CLI_OK; or CLI_USAGE after printing
 * the reason. */
int lock_options_take(struct lock_options *options, int option,
                      const char *value);
/* Takes a NAME. Returns CLI_OK; or CLI_USAGE after printing the reason. */
int lock_options_name(struct lock_options *options, const char *name);
/* Checks whether the options and operands fit together. Call it after all of
 * them have been taken. Returns CLI_OK, or CLI_USAGE after printing the
 * reason. */
int lock_options_check(struct lock_options *options);

#endif
