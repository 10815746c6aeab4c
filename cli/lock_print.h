/*
 * What the operator's verbs (ls, show, break, ask, watch) have in common: a
 * lock in words, and as JSON.
 */
#ifndef HF_CLI_OPS_H
#define HF_CLI_OPS_H

#include "cli.h"

/* "mutex", "rwlock", "semaphore", "latch"; NULL if nobody uses the name. */
const char *ops_kind(const hf_info *info);
/* The lock is held or waited for, or the latch is set. */
bool ops_is_used(const hf_info *info);

/* "5s", "3m20s", "25m", "2h", "4d", as kubectl writes an age. */
struct ops_age {
    char text[24];
};
struct ops_age ops_age(int64_t ms);
/* The age of a moment of the wall clock; "" if the moment is not known (0). */
struct ops_age ops_since(int64_t unix_ms);

/* "held by process 4711 on host (label), token 12, 2 waiting". */
void ops_print_state(FILE *out, const hf_info *info);
/* The members of an object: "name" and all of hf_info. */
void ops_print_json(const void *name, size_t len, const hf_info *info);

bool ops_is_redlock(const char *url); /* which cannot inspect, break or ask */
/* Says so; the exit code. */
int ops_not_held(const struct cli_verb *verb, const char *name);
/* Says that something about the name failed; the exit code. On a backend that
 * cannot be asked it says what to do instead. */
int ops_failed(const struct cli_verb *verb, const char *url, const char *name,
               int rc, const hf_error *err);

#endif
