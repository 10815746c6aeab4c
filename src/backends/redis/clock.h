/*
 * The server's clock, as its answers say (redis.server_us). A request says
 * until when, by that clock, it is meant, and a server that gets it later
 * refuses it: so an old copy of a request does no harm.
 */
#ifndef HF_REDIS_CLOCK_H
#define HF_REDIS_CLOCK_H

#include "reply.h"

struct redis;

/* Remembers what an answer says about the server's clock. */
bool hf__rd_clock(struct redis *, const struct rd_node *, hf__time sent_at);

/* The server's clock until which a question that is sent now is meant: rather
 * too late than too early, so that no question that is meant is refused. 0: the
 * clock is not known. */
int64_t hf__rd_valid_until(const struct redis *, hf__time now);

/* The same for a query or a renewal, rather too early than too late: one that
 * is refused is asked again by the clock that the refusal tells, if it is meant
 * still. 0: it is always meant. */
int64_t hf__rd_meant_until(const struct redis *, const struct hf__req *);

#endif
