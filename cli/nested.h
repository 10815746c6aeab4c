/*
 * Finds out whether an ancestor of this process already holds the lock.
 *
 * A command that `run' has started must not wait for a lock that is held on its
 * behalf. `run' therefore lists its locks in the environment variable
 * HOLDFAST_HELD. An entry counts only while the process that wrote it is an
 * ancestor of this process.
 */
#ifndef HF_CLI_NESTED_H
#define HF_CLI_NESTED_H

#include "lock_options.h"

#include <holdfast.h>
#include <stdbool.h>
#include <sys/types.h>

struct nested {
    const char *name; /* the lock that an ancestor holds; NULL: none */
    pid_t pid;        /* the pid of the ancestor */
    bool may_share;   /* both processes are readers, so the lock may be
                         granted */
};

/* Fills in `nested' from the entries of HOLDFAST_HELD that have the same place
 * and name. */
void nested_find(struct nested *nested, const struct lock_options *options);
/* Does the same, but compares the pids of the holders that the server names.
 * This finds an entry even if its process has spelled the URL of the same
 * server in another way. */
void nested_inspect(struct nested *nested, const struct lock_options *options,
                    hf_client *client);
/* Adds the locks to HOLDFAST_HELD for the command of this process. Call it
 * before there are threads. Returns CLI_OK or CLI_OSERR. */
int nested_export(const struct lock_options *options);
/* Returns whether the ancestor still holds the lock, or true if the server does
 * not say who holds it. */
bool nested_is_held(const struct nested *nested, hf_client *client);

#endif
