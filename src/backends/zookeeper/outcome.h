/*
 * The end of a request: reports its result, and turns a refusal into a code and
 * an error message that explains it (core->why). Called by all units that
 * answer the core, with the client's mutex held.
 */
#ifndef HF_ZK_OUTCOME_H
#define HF_ZK_OUTCOME_H

#include "node.h"

/* Reports the result of a request to the core. If the request is the attempt of
 * a lock, the lock no longer refers to it. */
void hf__zk_finish(struct zk *, struct hf__req *, int result);

/* Sets the error message for a name that is in use as another kind of lock, and
 * returns HF_EMISMATCH. The message names the kind of lock that `child` is an
 * entry of, and the kind that was wanted. If `wanted` is NULL, a latch was
 * wanted. */
int hf__zk_used_as(struct zk *, const char *name, size_t len,
                   const struct hf__remote *wanted, const char *child);
/* Sets the error message for a call that the server refused with the code rc,
 * and returns HF_EAUTH, HF_EMISMATCH or HF_EBACKEND. `right` names the right
 * that the call needs: "READ", "CREATE below" ... */
int hf__zk_denied(struct zk *, int rc, const char *right, const char *path);
/* Sets the error message for a name that hf__zk_path() refuses, and returns
 * HF_EINVAL. `what` is "name" or "key". */
int hf__zk_bad_name(struct zk *, const char *what, const char *name,
                    size_t len);
/* Sets the error message for an entry that could not be created, and returns
 * the code, as hf__zk_denied() does. */
int hf__zk_not_made(const struct zk_node *);

#endif
