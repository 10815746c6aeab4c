/*
 * How a request comes from the core and how its result goes there. While the
 * command connection is down, or has enough to write, the core keeps what comes
 * (HF__LATER), and learns by go_on() when there is room. Each request that is
 * under way is finished exactly once, here.
 */
#ifndef HF_REDIS_REQUESTS_H
#define HF_REDIS_REQUESTS_H

#include "backends/backend.h"

struct redis;

/* Writes the command of a request: 0, or a code; nothing was written then. */
typedef int rd_encode_fn(struct redis *, struct hf__req *);
/* HF__PENDING: the request is under way; or HF__LATER, or a code. Reports
 * nothing. */
int hf__rd_submit(struct redis *, struct hf__req *, rd_encode_fn *);

/* Writes; and if there is room then, what the core keeps can come. */
void hf__rd_pump(struct redis *);

/* Gives the request back to the core with its result. */
void hf__rd_finish(struct redis *, struct hf__req *, int result);

/* Renewals have come, or may be over: how long the server may take. */
void hf__rd_hurry(struct redis *);

/* A batch is with us, or is kept by the core and still meant. */
bool hf__rd_is_renewing(const struct redis *);

#endif
