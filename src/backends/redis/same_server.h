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

/*
 * A proof that both connections end at one server (same_server.c).
 *
 *   state     at                    how it is left
 *   NONE      -                     when both connections are there: SENT
 *   SENT      the proof fails then  heard: HEARD; counted: COUNTED
 *   HEARD     the same              counted: proved, NONE
 *   COUNTED   the same              heard: proved, NONE
 *   PAUSING   the pause is over     put_off: SENT; else a new connection
 *
 * Each goes to NONE when either connection is lost. A proof that is refused, or
 * fails again, leads to PAUSING (the first failure breaks the connection), or
 * to NONE if it is refused for good. What was proved is in rd_chans.state.
 */
enum rd_proof {
    RD_PROOF_NONE,
    RD_PROOF_SENT,
    RD_PROOF_HEARD,   /* the number has come back as a message, */
    RD_PROOF_COUNTED, /* the server of the commands counts our channel */
    RD_PROOF_PAUSING,
};

struct rd_pair {
    uint64_t number; /* of the last one */
    hf__time at;
    enum rd_proof state;
    bool put_off;  /* the last one was refused for now, in any state */
    uint8_t apart; /* how many have failed in a row, up to a bound */
};

/* A connection has come, or a subscription: proves it, if both are there. */
void hf__rd_pair_begin(struct redis *);
/* One of both has gone. */
void hf__rd_pair_end(struct redis *);
/* SENT, HEARD or COUNTED. */
bool hf__rd_pair_is_under_way(const struct redis *);
void hf__rd_pair_heard(struct redis *, const char *number);
/* True: a new connection for messages is to be made. */
bool hf__rd_pair_move(struct redis *, hf__time now);
hf__time hf__rd_pair_timeout(const struct redis *);

#endif
