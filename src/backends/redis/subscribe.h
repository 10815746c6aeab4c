/*
 * The connection for messages, and the waits that need it. lock.c reports when
 * a lock of this client begins and ceases to wait. This unit subscribes, and
 * rings the waiting locks for which a message is meant (core->bell), so that
 * they attempt again. A lock may be rung too often but never too rarely: a
 * message that arrives before the reply to its attempt is kept (struct
 * rd_early) until hf__rd_was_called() looks for it.
 */
#ifndef HF_REDIS_SUBSCRIBE_H
#define HF_REDIS_SUBSCRIBE_H

#include "pipe.h"

struct redis;
struct rd_lock;

/* A subscription is kept for this long after its last wait. A lock that has
 * waited will probably wait again, and a SUBSCRIBE costs the server as much as
 * an acquire. */
#define RD_LINGER_MS 5000

/* Interval of PINGs on the connection for messages while it is needed. */
#define RD_SUB_PING_MS 30000

/* The pipe callbacks of r->sub. */
extern const struct rd_owner hf__rd_sub;

/* Notes that the lock waits, or continues to wait. `foreign` says that a client
 * of another library holds the lock or, for a fair mutex, waits for it too.
 * Returns 0 or HF_ENOMEM. */
int hf__rd_wait(struct redis *, struct hf__remote *, bool foreign);

/* Notes that the lock no longer waits. */
void hf__rd_wait_end(struct redis *, struct hf__remote *, hf__time now);
/* Applies an early message for this hold id, if one was kept: sets lock->rang,
 * and also lock->token if the message hands the lock over on the basis of the
 * latest reply (the same seen_ms). */
void hf__rd_was_called(struct redis *, struct rd_lock *, uint64_t hold_id);

/* Ends the wait of the lock, and removes the lock from its chan. */
void hf__rd_chan_drop(struct redis *, struct hf__remote *);

/* Parts of the backend's advance() and next_timeout(). */
void hf__rd_sub_move(struct redis *, hf__time now);
hf__time hf__rd_sub_timeout(const struct redis *);
void hf__rd_sub_fini(struct redis *);

#endif
