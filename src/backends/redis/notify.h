/*
 * Programs that listen, that is, have an event handler
 * (hf_client_options.on_event). Keeps the list of holds of such a client, and
 * learns from messages on the client's own channel which of these holds other
 * clients want, and which were broken. Does nothing unless redis.listens is
 * set.
 *
 * lock.c and renew.c report what is held, subscribe.c passes the messages on,
 * and same_server.c decides when they are trusted. The list needs struct
 * rd_held, which extends struct rd_lock, so that programs without a handler use
 * no memory for it.
 */
#ifndef HF_REDIS_NOTIFY_H
#define HF_REDIS_NOTIFY_H

#include "lock.h"

/* How often the helper thread checks a connection while it is being made. */
#define RD_CONNECT_POLL_MS 20

/* The state of a lock (remote->impl) if the program listens. */
struct rd_held {
    struct rd_lock lock;         /* must be first: remote->impl is cast */
    struct rd_held *next, *prev; /* in redis.held, if hold_id is set */
    uint64_t hold_id, token;     /* 0: no hold */
};

/* Returns the size of the struct at remote->impl. */
size_t hf__rd_lock_size(const struct redis *);
/* Adds the hold of an attempt that was granted. */
void hf__rd_held(struct redis *, const struct hf__req *, hf__time now);
/* Removes the hold, which was let go. hold_id 0 means whatever hold the lock
 * has. */
void hf__rd_held_end(struct redis *, const struct hf__remote *,
                     uint64_t hold_id);
/* Moves the hold of a DOWNGRADE to its new remote. */
void hf__rd_held_move(struct redis *, const struct hf__query *);
/* Reports that another client asks for the hold with this id. */
void hf__rd_wished(struct redis *, const char *number);
/* Notes that another client has broken the hold with this id and token. */
void hf__rd_broken(struct redis *, const char *numbers);
/* Reports a broken hold that is still held, if messages on this connection are
 * trusted now. */
void hf__rd_held_check(struct redis *);
/* Returns whether the hold of this grant was broken before the reply with the
 * grant was read. */
bool hf__rd_was_broken(const struct redis *, const struct hf__req *);

#endif
