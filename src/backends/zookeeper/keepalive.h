/*
 * Sends the requests that keep the session alive, and the writes that prove
 * that it lives (session_proof.h). session.c calls hf__zk_keepalive_move() and
 * hf__zk_keepalive_timeout() for the driver; the kinds call
 * hf__zk_keepalive_prove() before a grant. Called with the client's mutex held.
 */
#ifndef HF_ZK_KEEPALIVE_H
#define HF_ZK_KEEPALIVE_H

#include "zookeeper.h"

void hf__zk_keepalive_move(struct zk *, hf__time now);
hf__time hf__zk_keepalive_timeout(const struct zk *);
/* Sends a write, unless another one is unanswered or zk.proved is recent
 * enough. For a fixed lease zk.proved is never recent enough, because the lease
 * begins with the write. */
void hf__zk_keepalive_prove(struct zk *, const struct hf__req *);

#endif
