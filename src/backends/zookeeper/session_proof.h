/*
 * For how long the session is sure to live, by what the leader has
 * acknowledged. Nothing is sent here (keepalive.h does that): call.c reports
 * what was answered, and who grants or renews learns how long that is good for.
 * With the client's mutex held.
 */
#ifndef HF_ZK_SESSION_PROOF_H
#define HF_ZK_SESSION_PROOF_H

#include "zookeeper.h"

#define ZK_NUDGE (200 * HF__MS) /* so long an answer may take */

/* It is connected: the leader has opened the session, or heard of it, after we
 * began to connect. */
void hf__zk_proof_begin(struct zk *);
/* The session is long enough for the servers' tick, if we know that. */
bool hf__zk_proof_fits(const struct zk *);
/* A call that was sent then is answered; by the leader, if it was a write. */
void hf__zk_proof_heard(struct zk *, hf__time sent_at, bool by_leader);

/* That part of the timeout. */
hf__time hf__zk_proof_part(const struct zk *, int of);
/* 0; or it is not sure to live long enough for a hold: when to try again. */
hf__time hf__zk_proof_doubt(const struct zk *);
/* For how long the session is sure to live, from then on. */
uint32_t hf__zk_proof_ms(const struct zk *, hf__time since);
/* zk.proved is good enough for a hold to begin. */
bool hf__zk_proof_is_good(const struct zk *);

#endif
