/*
 * Holders that listen (hf_client_options.on_event): which holds this client
 * has, and which of them are wanted or were broken, as messages on its own
 * channel say. Does nothing unless redis.listens.
 *
 * lock.c and renew.c report what is held; subscribe.c passes the messages on,
 * and same_server.c says when they can be trusted. The state begins with that
 * of lock.c (struct rd_held), so that a lock costs no more where nobody
 * listens.
 */
#ifndef HF_REDIS_NOTIFY_H
#define HF_REDIS_NOTIFY_H

#include "lock.h"

/* How often the helper thread checks the connection while it is being made.
 */
#define RD_CONNECT_POLL_MS 20

/* What is kept of each line of the core if the program listens. */
struct rd_held {
    struct rd_lock lock;         /* must be first: remote->impl is cast */
    struct rd_held *next, *prev; /* redis.held, if it holds something */
    uint64_t hold_id, token;     /* 0: it holds nothing */
};

/* Of what remote->impl points to. */
size_t hf__rd_lock_size(const struct redis *);
/* The attempt is granted. */
void hf__rd_held(struct redis *, const struct hf__req *, hf__time now);
/* It is let go; 0: whatever is held. */
void hf__rd_held_end(struct redis *, const struct hf__remote *,
                     uint64_t hold_id);
/* DOWNGRADE. */
void hf__rd_held_move(struct redis *, const struct hf__query *);
/* Somebody asks for it. */
void hf__rd_wished(struct redis *, const char *number);
/* Somebody took it away. */
void hf__rd_broken(struct redis *, const char *numbers);
/* What is said can be believed from now on. */
void hf__rd_held_check(struct redis *);
/* The grant with that token was taken away before it was known here. */
bool hf__rd_was_broken(const struct redis *, const struct hf__req *);

#endif
