/*
 * Computes how long the session is sure to live, from what the leader has
 * acknowledged. Nothing is sent here: call.c reports answers, keepalive.h sends
 * the writes, and grants and renewals use the result. Called with the client's
 * mutex held.
 *
 * The session ends when the leader has not heard of the client for the timeout.
 * A follower reports its clients to the leader with its pings, twice per tick,
 * but not with the requests that it forwards. So an acknowledged write proves
 * only this: the leader knows everything that the follower had heard from the
 * client half a tick before the write was sent. The timeout counts from that
 * point, even if leader and follower are cut off from each other later. The
 * server does not tell its tick. It grants no timeout below two ticks, unless
 * minSessionTimeout was lowered; then the URL must give the tick.
 */
#ifndef HF_ZK_SESSION_PROOF_H
#define HF_ZK_SESSION_PROOF_H

#include "zookeeper.h"

#define ZK_NUDGE (200 * HF__MS) /* an answer that takes longer is late */

/* Begins the proofs of a new connection. The leader has opened the session, or
 * was notified that the client is back, after connect_at. Therefore the timeout
 * may be counted from connect_at. */
void hf__zk_proof_begin(struct zk *);
/* Returns false if the URL gives a tick that is longer than the session's
 * timeout. */
bool hf__zk_proof_fits(const struct zk *);
/* Notes an answered call and when it was sent. `by_leader` is true if the
 * leader acknowledged the call as a write. */
void hf__zk_proof_heard(struct zk *, hf__time sent_at, bool by_leader);

/* Returns the session's timeout divided by `of`. */
hf__time hf__zk_proof_part(const struct zk *, int of);
/* Returns 0 if the session lives long enough for a hold to begin; otherwise the
 * time at which to check again. */
hf__time hf__zk_proof_doubt(const struct zk *);
/* Returns for how many ms the session is sure to live, counted from `since`; at
 * least 1. */
uint32_t hf__zk_proof_ms(const struct zk *, hf__time since);
/* Returns true if zk.proved is recent enough for a hold to begin. */
bool hf__zk_proof_is_good(const struct zk *);

#endif
