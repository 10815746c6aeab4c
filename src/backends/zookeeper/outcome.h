/*
 * How a request ends: its result is reported, and a refusal becomes a code with
 * a text that explains it (core->why). Called by all files that answer the
 * core, with the client's mutex held.
 */
#ifndef HF_ZK_OUTCOME_H
#define HF_ZK_OUTCOME_H

#include "node.h"

/* Reports the result of a request; for an attempt, the lock forgets it. */
void hf__zk_finish(struct zk *, struct hf__req *, int result);

/* HF_EMISMATCH. The text says which kind of lock the child is an entry of, and
 * which one was wanted (NULL: a latch). */
int hf__zk_used_as(struct zk *, const char *name, size_t len,
                   const struct hf__remote *wanted, const char *child);
/* The code and text for a refused call. `right` says what the call needs:
 * "READ", "CREATE below" ... */
int hf__zk_denied(struct zk *, int rc, const char *right, const char *path);
/* The code and text for a name that hf__zk_path() refuses; `what` is "name" or
 * "key". */
int hf__zk_bad_name(struct zk *, const char *what, const char *name,
                    size_t len);
/* The code and text for a node that could not be created. */
int hf__zk_not_made(const struct zk_node *);

#endif
