/*
 * Do the command connection and the one for messages end at one server?
 * Messages are trusted only after a proof (same_server.c). subscribe.c begins
 * one when it has subscribed, cmd.c when it has connected; both end it when
 * they lose their connection. Called with the client's mutex held.
 */
#ifndef HF_REDIS_SAME_SERVER_H
#define HF_REDIS_SAME_SERVER_H

#include "backends/backend.h"

struct redis;

/* A proof that both connections end at one server (same_server.c). */
struct rd_pair {
    uint64_t number; /* of the last one */
    hf__time until;  /* it has to be over then; 0: none is under way */
    hf__time again;  /* the next one is due then; 0: none is */
    bool heard, counted;
    bool put_off;  /* the last one was refused for now */
    uint8_t apart; /* how many have failed in a row, up to a bound */
};

/* A connection has come, or a subscription: proves it, if both are there. */
void hf__rd_pair_begin(struct redis *);
/* One of both has gone. */
void hf__rd_pair_end(struct redis *);
void hf__rd_pair_heard(struct redis *, const char *number);
/* True: a new connection for messages is to be made. */
bool hf__rd_pair_move(struct redis *, hf__time now);
hf__time hf__rd_pair_timeout(const struct redis *);

#endif
