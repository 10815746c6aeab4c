/*
 * Creates an entry at the server, and finds it again after a lost answer. The
 * kinds call this for the node of their attempt. The answers change the node's
 * state; a node that is no longer wanted then goes to cleanup.c. Functions
 * return 0 or a code unless noted. Called with the client's mutex held.
 */
#ifndef HF_ZK_NODE_CREATE_H
#define HF_ZK_NODE_CREATE_H

#include "node.h"

/* Sends the create, with `parents` after creates of the missing parents. The
 * answer is not reported: a list that is sent next finds the node THERE, UNSURE
 * or GONE. */
int hf__zk_node_create(struct zk_node *, bool parents);
/* Sends a list of the siblings; returns PENDING or a code. The function is
 * called with the node if no later list was sent and the node is still
 * wanted. */
int hf__zk_node_list(struct zk_node *, zk_done_fn *);
/* Sends the create and the list together; returns PENDING or a code. */
int hf__zk_node_enter(struct zk_node *, bool parents, zk_done_fn *listed);

/* Requests the czxid; the answer makes the node THERE or GONE. */
int hf__zk_node_check(struct zk_node *);
/* Looks for an UNSURE node in a list. True: it is there and its czxid was
 * requested. False: it is GONE. */
bool hf__zk_node_find(struct zk_node *, const struct String_vector *children);

/* Writes to the entry that its fixed lease begins now, for inspections. */
void hf__zk_node_date(struct zk_node *);
/* The same for all entries of the hold, with a new length. */
void hf__zk_node_lease(struct zk_node *, uint32_t lease_ms);

#endif
