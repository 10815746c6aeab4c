/*
 * The end of a request: reports its result, and turns a refusal into a code
 * with a text that explains it (core->why). Called by all units that answer the
 * core, with the client's mutex held.
 */
#ifndef HF_ZK_OUTCOME_H
#define HF_ZK_OUTCOME_H

#include "node.h"

/* Reports the result of a request to the core. If it is an attempt, its lock
 * forgets it. */
void hf__zk_finish(struct zk *, struct hf__req *, int result);

/* Sets the text for a name in use as another kind of lock, and returns
 * HF_EMISMATCH. The text names the kind of lock that `child` is an entry of,
 * and the kind that was wanted (NULL: a latch). */
int hf__zk_used_as(struct zk *, const char *name, size_t len,
                   const struct hf__remote *wanted, const char *child);
/* Sets the text for a call that the server refused, and returns the code.
 * `right` names the right that the call needs: "READ", "CREATE below" ... */
int hf__zk_denied(struct zk *, int rc, const char *right, const char *path);
/* Sets the text for a name that hf__zk_path() refuses, and returns the code.
 * `what` is "name" or "key". */
int hf__zk_bad_name(struct zk *, const char *what, const char *name,
                    size_t len);
/* Sets the text for an entry that could not be created, and returns the
 * code. */
int hf__zk_not_made(const struct zk_node *);

#endif
