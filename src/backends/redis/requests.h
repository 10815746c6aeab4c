/*
 * How requests come from the core and how their results go back. While the
 * command connection is down or has much to write, the core keeps new requests
 * (HF__LATER), and core->go_on() asks for them when there is room. Each request
 * under way is finished exactly once, here.
 */
#ifndef HF_REDIS_REQUESTS_H
#define HF_REDIS_REQUESTS_H

#include "backends/backend.h"

struct redis;

/* Writes the command of a request. Returns 0, or a code if nothing was
 * written. */
typedef int rd_encode_fn(struct redis *, struct hf__req *);
/* Returns HF__PENDING if the request is under way, HF__LATER if the core must
 * keep it, or an error code. Reports nothing to the core. */
int hf__rd_submit(struct redis *, struct hf__req *, rd_encode_fn *);

/* Writes what is queued, and asks the core for parked requests if there is
 * room. */
void hf__rd_pump(struct redis *);

/* Returns the request to the core with its result. */
void hf__rd_finish(struct redis *, struct hf__req *, int result);

/* Updates the limit on how long the server may be silent. Called when renewals
 * begin or end. */
void hf__rd_hurry(struct redis *);

/* Returns whether a batch is under way, or parked in the core and not
 * expired. */
bool hf__rd_is_renewing(const struct redis *);

#endif
