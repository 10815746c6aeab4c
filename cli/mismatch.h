/*
 * Explains HF_EMISMATCH: the name is in use as another kind of lock.
 */
#ifndef HF_CLI_MISMATCH_H
#define HF_CLI_MISMATCH_H

#include "lock_options.h"

#include <holdfast.h>
#include <stdbool.h>

/* After HF_EMISMATCH, prints the kind of the existing lock, and the options
 * that select that kind. Returns false, without printing, if the server does
 * not report another kind. */
bool mismatch_say(const struct lock_options *options, hf_client *client,
                  const char *name);

#endif
