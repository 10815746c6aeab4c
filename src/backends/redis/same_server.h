/*
 * Checks that the connection for commands and the one for messages lead to the
 * same server. Messages are trusted only after that proof. subscribe.c begins a
 * proof when it has subscribed, cmd.c when it has connected; each ends the
 * proof when it loses its connection. All functions are called with the
 * client's mutex held.
 */
#ifndef HF_REDIS_SAME_SERVER_H
#define HF_REDIS_SAME_SERVER_H

#include "backends/backend.h"

struct redis;

/*
 * The proof that both connections lead to the same server (same_server.c).
 *
 *   state     at                    next state
 *   NONE      -                     SENT when both connections are up
 *   SENT      the proof fails then  heard: HEARD; counted: COUNTED
 *   HEARD     the same              counted: proved, NONE
 *   COUNTED   the same              heard: proved, NONE
 *   PAUSING   end of the pause      put_off: SENT; else a new connection
 *
 * The loss of either connection leads to NONE. The first failure of a proof
 * closes the connection for messages; further failures, and temporary refusals,
 * lead to PAUSING, a permanent refusal to NONE. A successful proof sets
 * rd_chans.state to LIVE.
 */
enum rd_proof {
    RD_PROOF_NONE,
    RD_PROOF_SENT,
    RD_PROOF_HEARD,   /* the number has returned as a message */
    RD_PROOF_COUNTED, /* the server of the commands has counted our channel */
    RD_PROOF_PAUSING,
};

struct rd_pair {
    uint64_t number; /* the number that the latest proof published */
    hf__time at;
    enum rd_proof state;
    bool put_off;  /* the latest proof was refused temporarily (in any state) */
    uint8_t apart; /* number of failed proofs in a row, capped */
};

/* Starts a proof if both connections are up. Must be called when a connection
 * or a subscription is established. */
void hf__rd_pair_begin(struct redis *);
/* Ends the proof, and the trust in messages. Must be called when one of the
 * connections is lost. */
void hf__rd_pair_end(struct redis *);
/* Returns whether the state is SENT, HEARD or COUNTED. */
bool hf__rd_pair_is_under_way(const struct redis *);
void hf__rd_pair_heard(struct redis *, const char *number);
/* Performs the steps of the proof that are due. Returns whether the caller must
 * establish a new connection for messages. */
bool hf__rd_pair_move(struct redis *, hf__time now);
hf__time hf__rd_pair_timeout(const struct redis *);

#endif
