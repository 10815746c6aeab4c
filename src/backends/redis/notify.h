/*
 * Programs that listen (hf_client_options.on_event): which holds their clients
 * have, and which of these are wanted or were broken, as messages on the
 * client's own channel say. Does nothing unless redis.listens is set.
 *
 * lock.c and renew.c report what is held, subscribe.c passes the messages on,
 * and same_server.c decides when they are trusted. struct rd_held extends
 * struct rd_lock, so that other programs pay nothing for it.
 */
#ifndef HF_REDIS_NOTIFY_H
#define HF_REDIS_NOTIFY_H

#include "lock.h"

/* How often the helper thread checks a connection that is being made. */
#define RD_CONNECT_POLL_MS 20

/* The backend's state of a line if the program listens. */
struct rd_held {
    struct rd_lock lock;         /* must be first: remote->impl is cast */
    struct rd_held *next, *prev; /* in redis.held, if hold_id is set */
    uint64_t hold_id, token;     /* 0: no hold */
};

/* Size of the struct at remote->impl. */
size_t hf__rd_lock_size(const struct redis *);
/* The attempt was granted. */
void hf__rd_held(struct redis *, const struct hf__req *, hf__time now);
/* The hold was let go. hold_id 0: any hold of this line. */
void hf__rd_held_end(struct redis *, const struct hf__remote *,
                     uint64_t hold_id);
/* A DOWNGRADE moves the hold to another line. */
void hf__rd_held_move(struct redis *, const struct hf__query *);
/* Another client asks for the hold with this number. */
void hf__rd_wished(struct redis *, const char *number);
/* Another client broke the hold with this id and token. */
void hf__rd_broken(struct redis *, const char *numbers);
/* Messages on this connection are trusted from now on. */
void hf__rd_held_check(struct redis *);
/* True if the hold of this grant was broken before its reply was read. */
bool hf__rd_was_broken(const struct redis *, const struct hf__req *);

#endif
