/*
 * The connection for messages, and the waits that need it. lock.c says who
 * waits and who has stopped; this unit subscribes, and rings those that a
 * message is for. A request that was answered "not yet" is rung at most once
 * too often, never once too few: a message that comes before its answer is kept
 * (struct rd_early) until hf__rd_was_called() asks for it.
 */
#ifndef HF_REDIS_SUBSCRIBE_H
#define HF_REDIS_SUBSCRIBE_H

#include "pipe.h"

struct redis;
struct rd_lock;

/* A subscription outlives its last waiter by this: who waits once will wait
 * again, and each SUBSCRIBE costs the server as much as an acquire. */
#define RD_LINGER_MS 5000

/* Is the subscription connection still there? Asked while somebody waits. */
#define RD_SUB_PING_MS 30000

/* The owner of r->sub. */
extern const struct rd_owner hf__rd_sub;

/* The remote waits (again). HF_ENOMEM. */
int hf__rd_wait(struct redis *, struct hf__remote *, bool foreign);
void hf__rd_wait_end(struct redis *, struct hf__remote *, hf__time now);
/* Was this one called already? Then it says so: token, if the message is about
 * the attempt that was answered last, and rang. */
void hf__rd_was_called(struct redis *, struct rd_lock *, uint64_t hold_id);
void hf__rd_chan_drop(struct redis *, struct hf__remote *);

void hf__rd_sub_move(struct redis *, hf__time now);
hf__time hf__rd_sub_timeout(const struct redis *);
void hf__rd_sub_fini(struct redis *);

#endif
