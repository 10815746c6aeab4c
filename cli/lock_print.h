/*
 * Describes a lock in words and as JSON, from what hf_inspect() returned, for
 * ls, show, break and watch. Names and labels come from other programs; they
 * are printed so that they cannot control a terminal.
 */
#ifndef HF_CLI_LOCK_PRINT_H
#define HF_CLI_LOCK_PRINT_H

#include <holdfast.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Returns "mutex", "rwlock", "semaphore" or "latch", or NULL if the name is not
 * in use. */
const char *lock_kind_name(const hf_info *info);
/* Returns whether the lock is held or waited for, or the latch is set. */
bool lock_is_used(const hf_info *info);

/* An age in the format of kubectl: "5s", "3m20s", "25m", "12h", "4d". */
struct lock_age {
    char text[24];
};
/* Formats an age. */
struct lock_age lock_age(int64_t ms);
/* Formats the time that has passed since unix_ms; "" if unix_ms is 0, which
 * means unknown. */
struct lock_age lock_age_since(int64_t unix_ms);

/* Prints the state, such as "held by process 4711 on host (label), token 12, 2
 * waiting". */
void lock_print_state(FILE *out, const hf_info *info);
/* Writes the members of a JSON object: "name" and all of hf_info. */
void lock_print_json(const void *name, size_t len, const hf_info *info);

#endif
