/*
 * Requests about a name, which take several calls: all of a step are sent
 * together, the next one follows when all are answered. The first failure
 * counts, and ends the query after its step. A query is in zk.queries until
 * it is freed by hf__zk_query_end() or _free(); its memory is the owner of its
 * calls. With the client's mutex held.
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
    struct hf__query *q;             /* that it answers; or */
    struct zk_lock *lock;            /* whose query it is; NULL: it is gone */
    void (*step)(struct zk_query *); /* what follows */
    struct hf__arena memory;         /* what it allocates, freed with it */
    unsigned calls;                  /* of this step, under way */
    int rc;
    char path[ZK_WHOLE_MAX]; /* of the name's node */
};

/* Of that size, zeroed, with its path; NULL and *rc: EINVAL or ENOMEM. */
void *hf__zk_query_new(struct zk *, struct hf__query *, size_t size, int *rc);
/* For what a lock wants to know: no hf__query, its path is the lock's. NULL:
 * ENOMEM. */
void *hf__zk_query_of(struct zk_lock *, size_t size);

/* A call was sent, or not: the code of sending it. */
void hf__zk_query_sent(struct zk_query *, int rc);
/* One of its calls is answered: rc, a code of holdfast's, counts if it is the
 * first failure. The last thing that a completion does. */
void hf__zk_query_back(struct zk_query *, int rc);
/* All of a step are sent. PENDING, or it is over and this is its result. */
int hf__zk_query_wait(struct zk_query *, void (*step)(struct zk_query *));
/* Its caller has left: nothing more is to be written for it. */
bool hf__zk_query_is_over(const struct zk_query *);

/* Reports it and frees it. */
void hf__zk_query_end(struct zk_query *, int result);
void hf__zk_query_free(struct zk_query *);
/* 0, EUNKNOWN, or what the refusal means; that there is no such node is none.
 * Of a query, or of a call that needs that right (hf__zk_denied). */
int hf__zk_query_code(struct zk_query *, int rc);
int hf__zk_query_refusal(struct zk_query *, int rc, const char *right);

void hf__zk_queries_fini(struct zk *);
/* The queries of that lock are for nobody any more. */
void hf__zk_queries_leave(struct zk *, const struct zk_lock *);

#endif
