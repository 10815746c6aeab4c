/*
 * Queries: inspect, list, break, ask, downgrade; those of a latch and diagnoses
 * pass through. hf__rd_query() is the slot of the backend's table. A query may
 * need several commands; it is finished with the last answer.
 */
#ifndef HF_REDIS_QUERY_H
#define HF_REDIS_QUERY_H

#include "reply.h"

struct redis;

int hf__rd_query(void *, struct hf__query *);

int hf__rd_query_encode(struct redis *, struct hf__query *);

int hf__rd_query_reply(struct redis *, struct hf__query *,
                       const struct rd_node *);

#endif
