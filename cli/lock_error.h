/*
 * Failures of one lock, in words. Each function prints one message for the verb
 * and returns the exit status for it.
 */
#ifndef HF_CLI_LOCK_ERROR_H
#define HF_CLI_LOCK_ERROR_H

#include "shared/verb.h"

#include <holdfast.h>
#include <stdbool.h>

/* Prints the library's error for the lock, and returns the exit status. Adds
 * the name only if the error's text does not contain it. */
int cli_failed_on(const struct cli_verb *verb, const char *name, int code,
                  const hf_error *err);

/* Returns whether the URL is a Redlock URL. Redlock cannot inspect, break or
 * ask. */
bool cli_is_redlock(const char *url);
/* Prints that the lock is not held, and returns the exit status. */
int cli_not_held(const struct cli_verb *verb, const char *name);
/* Prints that a request about the name failed, and returns the exit status.
 * With Redlock, which cannot answer such requests, prints what to do
 * instead. */
int cli_lock_failed(const struct cli_verb *verb, const char *url,
                    const char *name, int rc, const hf_error *err);

#endif
