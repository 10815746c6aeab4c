/*
 * A diagnosis: what the server says of itself, as findings (core->find). One
 * command after the other; query->count says which one was sent last.
 */
#ifndef HF_REDIS_DIAGNOSE_H
#define HF_REDIS_DIAGNOSE_H

#include "reply.h"

struct redis;

int hf__rd_diagnose_encode(struct redis *, struct hf__query *);
/* What becomes of the answer, which may be an error: a code; RD_AGAIN: the
 * caller sends the query again, which is another command now. */
int hf__rd_diagnosed(struct redis *, struct hf__query *,
                     const struct rd_node *);

#endif
