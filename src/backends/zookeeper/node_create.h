/*
 * Makes an entry at the server, and finds it again if the answer was lost. The
 * kinds call this for the node of their attempt; the answers change the node's
 * state, and what nobody wants any more goes on to cleanup.c. 0 or a code,
 * where it is not said otherwise. With the client's mutex held.
 */
#ifndef HF_ZK_NODE_CREATE_H
#define HF_ZK_NODE_CREATE_H

#include "node.h"

/* Sends the create; the parents before it, if that is wanted. Nobody hears of
 * the answer: afterwards it is THERE, UNSURE or GONE, as a list that was sent
 * after it will find it. */
int hf__zk_node_create(struct zk_node *, bool parents);
/* Sends a list of its siblings: PENDING, or why not. done is called with the
 * node, if it is the last list sent and the node is still wanted. */
int hf__zk_node_list(struct zk_node *, zk_done_fn *);
/* Both, in one go: as the list. */
int hf__zk_node_enter(struct zk_node *, bool parents, zk_done_fn *listed);

/* Asks for its czxid: afterwards it is THERE, or GONE. */
int hf__zk_node_check(struct zk_node *);
/* UNSURE: looks for it in a list. True: found and THERE, its czxid is on the
 * way; else GONE. */
bool hf__zk_node_find(struct zk_node *, const struct String_vector *children);

/* Its fixed lease begins now: for those who inspect it. */
void hf__zk_node_date(struct zk_node *);
/* And anew, for that long: of all entries of the hold. */
void hf__zk_node_lease(struct zk_node *, uint32_t lease_ms);

#endif
