/*
 * From a request for a mutex, a read-write lock or a semaphore to its command,
 * in both dialects: which script, which keys and words. Encodes only; lock.c
 * decides what is sent, and reads the answer.
 */
#ifndef HF_REDIS_KINDS_H
#define HF_REDIS_KINDS_H

#include "reply.h"
#include "scripts.h"

struct redis;

/* Encode into the out buffer: 0 or HF_ENOMEM. */
int hf__rd_verb_encode(struct redis *, struct hf__req *);

enum rd_script hf__rd_script_of(const struct redis *, const struct hf__remote *,
                                enum hf__op);

/* LATCH_SET, LATCH_DOWN, LATCH_GET. What becomes of the answer: a code;
 * RD_AGAIN: the caller sends the query again, as it is now; HF_EPROTO. */
int hf__rd_count_encode(struct redis *, struct hf__query *);
int hf__rd_count_reply(struct redis *, struct hf__query *,
                       const struct rd_node *);

#endif
