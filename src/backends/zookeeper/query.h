/*
 * A query: a request that takes several calls, in steps. All calls of a step
 * are sent together; when all are answered, the next step follows. If calls of
 * a step fail, the first failure is the result of the step, and the query ends
 * with that result when the last call of the step is answered. A query is in
 * zk.queries until hf__zk_query_end() or _free() frees it, and owns its calls.
 * Called with the client's mutex held.
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
    struct hf__query *q;             /* the core's query; NULL if `lock` began
                                        it */
    struct zk_lock *lock;            /* NULL if the core began the query, or if
                                        the lock was detached since */
    void (*step)(struct zk_query *); /* runs when all calls are answered */
    struct hf__arena memory;         /* freed with the query */
    unsigned calls;                  /* unanswered calls of this step */
    int rc;
    char path[ZK_WHOLE_MAX]; /* path of the name's node */
};

/* Returns a new query of that size, zeroed, with the path of its name. On
 * failure, returns NULL and sets *rc to EINVAL or ENOMEM. */
void *hf__zk_query_new(struct zk *, struct hf__query *, size_t size, int *rc);
/* Returns a new query that a lock itself begins, for the lock's path and
 * without a hf__query, or NULL if memory is short. */
void *hf__zk_query_of(struct zk_lock *, size_t size);

/* Counts a call of the step. `rc` is the result of sending the call. */
void hf__zk_query_sent(struct zk_query *, int rc);
/* Counts a call of the step as answered. `rc` is 0 or a code of holdfast. A
 * completion must call this last, because it may free the query. */
void hf__zk_query_back(struct zk_query *, int rc);
/* Must be called when the calls of a step were sent: `step` runs when all are
 * answered. Returns PENDING. If no call was sent, `step` has already run and
 * may have freed the query. */
int hf__zk_query_wait(struct zk_query *, void (*step)(struct zk_query *));
/* Returns true if the caller of the query no longer waits. Then the query must
 * not write anything. */
bool hf__zk_query_is_over(const struct zk_query *);

/* Reports the result and frees the query. */
void hf__zk_query_end(struct zk_query *, int result);
void hf__zk_query_free(struct zk_query *);
/* Returns the code for an answer to a call that needs the right READ: 0 for ZOK
 * and for ZNONODE, which is no error; EUNKNOWN if there was no answer;
 * otherwise the code of the refusal, after setting its error message. */
int hf__zk_query_code(struct zk_query *, int rc);
/* Does the same as hf__zk_query_code() for a call that needs the right `right`
 * (hf__zk_denied). */
int hf__zk_query_refusal(struct zk_query *, int rc, const char *right);

void hf__zk_queries_fini(struct zk *);
/* Detaches the queries of a lock, so that their answers are ignored. */
void hf__zk_queries_leave(struct zk *, const struct zk_lock *);

#endif
