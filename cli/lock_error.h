/*
 * Failures of one lock, in words. Each function prints one message for the verb
 * and returns the exit status for it.
 */
#ifndef HF_CLI_LOCK_ERROR_H
#define HF_CLI_LOCK_ERROR_H

#include "shared/verb.h"

#include <holdfast.h>
#include <stdbool.h>

/* Says what holdfast answered about the lock. The name is said once: not by us
 * if the text has it. */
int cli_failed_on(const struct cli_verb *verb, const char *name, int code,
                  const hf_error *err);

bool cli_is_redlock(const char *url); /* which cannot inspect, break or ask */
/* Says so; the exit code. */
int cli_not_held(const struct cli_verb *verb, const char *name);
/* Says that something about the name failed; the exit code. On a backend that
 * cannot be asked it says what to do instead. */
int cli_lock_failed(const struct cli_verb *verb, const char *url,
                    const char *name, int rc, const hf_error *err);

#endif
