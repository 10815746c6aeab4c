/*
 * A query: a request about a name, which takes several calls in steps. All
 * calls of a step are sent together; when all are answered, the next step
 * follows. The first failure counts, and ends the query after its step. A query
 * is in zk.queries until hf__zk_query_end() or _free() frees it, and owns its
 * calls. Called with the client's mutex held.
 */
#ifndef HF_ZK_QUERY_H
#define HF_ZK_QUERY_H

#include "backends/common/arena.h"
#include "call.h"
#include "path.h"

struct zk_lock;

struct zk_query {
    struct zk_query *next, *prev; /* zk.queries */
    struct zk *z;
    struct hf__query *q;  /* the core's query, or NULL: */
    struct zk_lock *lock; /* the lock that asks; NULL: it was detached */
    void (*step)(struct zk_query *); /* runs when the calls are answered */
    struct hf__arena memory;         /* freed with the query */
    unsigned calls;                  /* unanswered calls of this step */
    int rc;
    char path[ZK_WHOLE_MAX]; /* of the name's node */
};

/* A new query of that size, zeroed, with its path. NULL and *rc: EINVAL or
 * ENOMEM. */
void *hf__zk_query_new(struct zk *, struct hf__query *, size_t size, int *rc);
/* A query of a lock's own, for the lock's path, without a hf__query. NULL: out
 * of memory. */
void *hf__zk_query_of(struct zk_lock *, size_t size);

/* Counts a call; rc is the code of sending it. */
void hf__zk_query_sent(struct zk_query *, int rc);
/* One call is answered; rc is 0 or a code of holdfast's. Must be the last thing
 * that a completion does. */
void hf__zk_query_back(struct zk_query *, int rc);
/* Ends a step after its calls were sent. PENDING; the step may already have
 * run, and freed the query, if no call was sent. */
int hf__zk_query_wait(struct zk_query *, void (*step)(struct zk_query *));
/* True if the caller of the query no longer waits, so nothing must be written
 * for it. */
bool hf__zk_query_is_over(const struct zk_query *);

/* Reports the result and frees the query. */
void hf__zk_query_end(struct zk_query *, int result);
void hf__zk_query_free(struct zk_query *);
/* The code for an answer: 0 for ZOK and for ZNONODE, which is not an error;
 * EUNKNOWN if there was no answer; else the code of the refusal, with its text.
 * The second form names the right that the call needs (hf__zk_denied). */
int hf__zk_query_code(struct zk_query *, int rc);
int hf__zk_query_refusal(struct zk_query *, int rc, const char *right);

void hf__zk_queries_fini(struct zk *);
/* Detaches the queries of a lock. */
void hf__zk_queries_leave(struct zk *, const struct zk_lock *);

#endif
