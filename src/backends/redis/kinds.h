/*
 * Encodes attempts, releases and abandons for every kind of lock, with
 * dialect=redisson and dialect=string, and the requests that read or change the
 * count of a latch: which script is sent, with which keys and arguments. lock.c
 * decides what is sent and reads the replies to attempts, releases and
 * abandons.
 */
#ifndef HF_REDIS_KINDS_H
#define HF_REDIS_KINDS_H

#include "reply.h"
#include "scripts.h"

struct redis;

/* Encodes an attempt, a release or an abandon. Returns 0 or HF_ENOMEM. */
int hf__rd_verb_encode(struct redis *, struct hf__req *);

enum rd_script hf__rd_script_of(const struct redis *, const struct hf__remote *,
                                enum hf__op);

/* Encodes LATCH_SET, LATCH_DOWN or LATCH_GET. Returns 0 or HF_ENOMEM. */
int hf__rd_count_encode(struct redis *, struct hf__query *);

/* Handles the reply to LATCH_SET, LATCH_DOWN or LATCH_GET. Returns the result
 * of the query, HF_EPROTO, or RD_AGAIN if the caller must send the query
 * again. */
int hf__rd_count_reply(struct redis *, struct hf__query *,
                       const struct rd_node *);

#endif
