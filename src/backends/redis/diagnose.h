/*
 * A diagnosis: what the server says about itself, as findings (core->find). It
 * sends one command after another; query->count is the step that was sent last.
 */
#ifndef HF_REDIS_DIAGNOSE_H
#define HF_REDIS_DIAGNOSE_H

#include "reply.h"

struct redis;

/* Sends the next command. Returns 0 or HF_ENOMEM. */
int hf__rd_diagnose_encode(struct redis *, struct hf__query *);
/* Handles a reply, which may be an error. Returns a code; or RD_AGAIN if the
 * caller must send the query again, which is then the next command. */
int hf__rd_diagnosed(struct redis *, struct hf__query *,
                     const struct rd_node *);

#endif
