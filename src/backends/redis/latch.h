/*
 * The commands of a latch, and the answers to those that count: whether it is 0
 * is an attempt of its lock (lock.c), all else is a query by its name
 * (query.c).
 */
#ifndef HF_REDIS_LATCH_H
#define HF_REDIS_LATCH_H

#include "reply.h"

struct redis;

/* ATTEMPT. */
int hf__rd_latch_encode(struct redis *, struct hf__req *);

/* LATCH_SET, LATCH_DOWN, LATCH_GET. What becomes of the answer: a code;
 * RD_AGAIN: the caller sends the query again, as it is now; HF_EPROTO. */
int hf__rd_count_encode(struct redis *, struct hf__query *);
int hf__rd_count_reply(struct redis *, struct hf__query *,
                       const struct rd_node *);

#endif
