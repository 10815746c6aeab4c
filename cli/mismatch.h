/*
 * Explains HF_EMISMATCH: the name is in use as another kind of lock.
 */
#ifndef HF_CLI_MISMATCH_H
#define HF_CLI_MISMATCH_H

#include "lock_options.h"

#include <holdfast.h>
#include <stdbool.h>

/* After HF_EMISMATCH, prints as which kind of lock the name is in use, and
 * which options select that kind. Returns false, without printing, if the
 * server does not say so. */
bool mismatch_say(const struct lock_options *options, hf_client *client,
                  const char *name);

#endif
