/*
 * How a request ends: its result is reported, and a refusal becomes a code with
 * a text that tells people why (core->why). Called by all files that answer the
 * core.
 */
#ifndef HF_ZK_OUTCOME_H
#define HF_ZK_OUTCOME_H

#include "node.h"

/* Reports this result of a lock's attempt, or of any other request. */
void hf__zk_finish(struct zk *, struct hf__req *, int result);

/* HF_EMISMATCH, with what that child of the name's node is an entry of, and
 * which lock was wanted; NULL: a latch. */
int hf__zk_used_as(struct zk *, const char *name, size_t len,
                   const struct hf__remote *wanted, const char *child);
/* The code for a call that was refused, with its text; that right is needed for
 * it: "READ", "CREATE below" ... the path. */
int hf__zk_denied(struct zk *, int rc, const char *right, const char *path);
/* The code for a name that hf__zk_path() refuses; `what' it is: "name". */
int hf__zk_bad_name(struct zk *, const char *what, const char *name,
                    size_t len);
/* The code for a node that could not be made. */
int hf__zk_not_made(const struct zk_node *);

#endif
