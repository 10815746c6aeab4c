/*
 * Checks that the connection for commands and the one for messages end at the
 * same server. Messages are trusted only after that proof. subscribe.c begins a
 * proof when it has subscribed, cmd.c when it has connected; each ends the
 * proof when it loses its connection. Called with the client's mutex held.
 */
#ifndef HF_REDIS_SAME_SERVER_H
#define HF_REDIS_SAME_SERVER_H

#include "backends/backend.h"

struct redis;

/*
 * The proof that both connections end at one server (same_server.c).
 *
 *   state     at                    how it is left
 *   NONE      -                     both connections are up: SENT
 *   SENT      the proof fails then  heard: HEARD; counted: COUNTED
 *   HEARD     the same              counted: proved, NONE
 *   COUNTED   the same              heard: proved, NONE
 *   PAUSING   end of the pause      put_off: SENT; else a new connection
 *
 * The loss of either connection leads to NONE. The first failure of a proof
 * breaks the connection; further ones, and temporary refusals, lead to PAUSING,
 * a permanent refusal to NONE. A proof sets rd_chans.state to LIVE.
 */
enum rd_proof {
    RD_PROOF_NONE,
    RD_PROOF_SENT,
    RD_PROOF_HEARD,   /* the number has come back as a message */
    RD_PROOF_COUNTED, /* the server of the commands has counted our channel */
    RD_PROOF_PAUSING,
};

struct rd_pair {
    uint64_t number; /* the number that the latest proof has published */
    hf__time at;
    enum rd_proof state;
    bool put_off;  /* in any state: the latest proof was refused temporarily */
    uint8_t apart; /* number of failed proofs in a row, capped */
};

/* Starts a proof if both connections are up. Called when a connection or a
 * subscription has come up. */
void hf__rd_pair_begin(struct redis *);
/* Ends the proof, and the trust in messages. Called when one of the connections
 * was lost. */
void hf__rd_pair_end(struct redis *);
/* Returns whether the state is SENT, HEARD or COUNTED. */
bool hf__rd_pair_is_under_way(const struct redis *);
void hf__rd_pair_heard(struct redis *, const char *number);
/* Drives the proof. Returns whether the caller must make a new connection for
 * messages. */
bool hf__rd_pair_move(struct redis *, hf__time now);
hf__time hf__rd_pair_timeout(const struct redis *);

#endif
