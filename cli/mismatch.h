/*
 * Explains HF_EMISMATCH: the name is in use as another kind of lock.
 */
#ifndef HF_CLI_MISMATCH_H
#define HF_CLI_MISMATCH_H

#include "lock_options.h"

#include <holdfast.h>
#include <stdbool.h>

/* After HF_EMISMATCH: prints what the name is in use as, and which options
 * select that. False: the server does not say, and nothing was printed. */
bool mismatch_say(const struct lock_options *options, hf_client *client,
                  const char *name);

#endif
