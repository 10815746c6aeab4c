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
/* Handles the reply to a step, which may be an error. Returns RD_AGAIN if the
 * caller must encode the query again, which sends the next step; 0 after the
 * last step; or an error code. */
int hf__rd_diagnosed(struct redis *, struct hf__query *,
                     const struct rd_node *);

#endif
