/*
 * Sends what keeps the session alive, and the writes that prove that it is
 * (session_proof.h). session.c calls move and timeout from the driver; the
 * kinds call prove before a grant. Called with the client's mutex held.
 */
#ifndef HF_ZK_KEEPALIVE_H
#define HF_ZK_KEEPALIVE_H

#include "zookeeper.h"

void hf__zk_keepalive_move(struct zk *, hf__time now);
hf__time hf__zk_keepalive_timeout(const struct zk *);
/* Sends a write unless zk.proved is good enough. A fixed lease always needs
 * one, because it begins with it. */
void hf__zk_keepalive_prove(struct zk *, const struct hf__req *);

#endif
