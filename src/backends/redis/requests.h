/*
 * How requests arrive from the core and how their results return to it. While
 * the command connection is down or has much to write, the core keeps new
 * requests (HF__LATER). When there is room, core->go_on() makes the core submit
 * them. Each request under way is finished exactly once, here.
 */
#ifndef HF_REDIS_REQUESTS_H
#define HF_REDIS_REQUESTS_H

#include "backends/backend.h"

struct redis;

/* Writes the command of a request. Returns 0, or an error code if nothing was
 * written. */
typedef int rd_encode_fn(struct redis *, struct hf__req *);
/* Returns HF__PENDING if the request is under way, HF__LATER if the core must
 * keep it, or an error code. Reports nothing to the core. */
int hf__rd_submit(struct redis *, struct hf__req *, rd_encode_fn *);

/* Writes the queued commands, and makes the core submit parked requests if
 * there is room. */
void hf__rd_pump(struct redis *);

/* Gives the request back to the core with its result. */
void hf__rd_finish(struct redis *, struct hf__req *, int result);

/* Updates the limit on how long the server may be silent. Must be called when
 * renewals begin or end. */
void hf__rd_hurry(struct redis *);

/* Returns whether a batch is under way, or is parked in the core and has not
 * expired. */
bool hf__rd_is_renewing(const struct redis *);

#endif
