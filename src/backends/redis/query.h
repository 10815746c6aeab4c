/*
 * Queries: inspect, list, break, ask and downgrade. Requests about the count of
 * a latch are passed to kinds.c, diagnoses to diagnose.c and rights.c.
 * hf__rd_query() is a slot of the backend's table. A query may take several
 * commands; the last reply finishes it.
 */
#ifndef HF_REDIS_QUERY_H
#define HF_REDIS_QUERY_H

#include "reply.h"

struct redis;

int hf__rd_query(void *, struct hf__query *);

/* Encodes the next command of the query. Returns 0, or the error code with
 * which the query ends. */
int hf__rd_query_encode(struct redis *, struct hf__query *);

/* Handles the reply to a command of the query. Returns 0 or HF_EPROTO. */
int hf__rd_query_reply(struct redis *, struct hf__query *,
                       const struct rd_node *);

#endif
