/*
 * Does an ancestor of this process hold the lock already?
 *
 * A command that `run' has started must not wait for a lock that is held on its
 * behalf. `run' exports the locks that it holds in HOLDFAST_HELD; an entry
 * counts only while the process that wrote it is an ancestor of ours.
 */
#ifndef HF_CLI_NESTED_H
#define HF_CLI_NESTED_H

#include "lock_options.h"

#include <holdfast.h>
#include <stdbool.h>
#include <sys/types.h>

struct nested {
    const char *name; /* which of our locks; NULL: no ancestor holds one */
    pid_t pid;        /* of the ancestor */
    bool may_share;   /* both are readers: it may be granted nevertheless */
};

/* Fills in `nested', by the entries of HOLDFAST_HELD for the same place and
 * name. */
void nested_find(struct nested *nested, const struct lock_options *options);
/* The same, by the holders that the server names, because the URL may be
 * written in another way. */
void nested_inspect(struct nested *nested, const struct lock_options *options,
                    hf_client *client);
/* Exports the locks for our own command. Call it before there are threads.
 * Returns CLI_OK or CLI_OSERR. */
int nested_export(const struct lock_options *options);
/* Does the ancestor still hold it? True if the server does not say. */
bool nested_is_held(const struct nested *nested, hf_client *client);

#endif
