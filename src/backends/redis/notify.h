/*
 * Programs that listen, that is, have an event handler
 * (hf_client_options.on_event). This unit keeps the list of the holds of such a
 * client. Messages on the client's own channel say which of these holds other
 * clients want, and which were broken. Unless redis.listens is set, the list
 * stays empty, and nothing is reported.
 *
 * lock.c and renew.c report what is held, subscribe.c passes the messages here,
 * and same_server.c decides when they are trusted. Only the locks of a program
 * that listens are of struct rd_held, which extends struct rd_lock, so that
 * other programs use no memory for the list.
 */
#ifndef HF_REDIS_NOTIFY_H
#define HF_REDIS_NOTIFY_H

#include "lock.h"

/* How often the helper thread checks a connection that is being established. */
#define RD_CONNECT_POLL_MS 20

/* The state of a lock (remote->impl) if the program listens. */
struct rd_held {
    struct rd_lock lock;         /* must be first: remote->impl is cast */
    struct rd_held *next, *prev; /* in redis.held, if hold_id is set */
    uint64_t hold_id, token;     /* both 0 if there is no hold */
};

/* Returns the size of the struct at remote->impl. */
size_t hf__rd_lock_size(const struct redis *);
/* Adds the hold of a granted attempt. */
void hf__rd_held(struct redis *, const struct hf__req *, hf__time now);
/* Removes the hold, which was released or lost. If hold_id is 0, removes
 * whatever hold the lock has. */
void hf__rd_held_end(struct redis *, const struct hf__remote *,
                     uint64_t hold_id);
/* Moves the hold of a DOWNGRADE from its old remote to the new one. */
void hf__rd_held_move(struct redis *, const struct hf__query *);
/* Reports to the program that another client asks for the hold with this id. If
 * the hold is not known yet, keeps the wish until the hold is added. */
void hf__rd_wished(struct redis *, const char *number);
/* Notes that another client has broken the hold with this id and token. */
void hf__rd_broken(struct redis *, const char *numbers);
/* Reports the latest broken hold if it is still in the list and messages on
 * this connection are trusted now. */
void hf__rd_held_check(struct redis *);
/* Returns whether the hold of this grant was broken before the reply with the
 * grant was read. */
bool hf__rd_was_broken(const struct redis *, const struct hf__req *);

#endif
