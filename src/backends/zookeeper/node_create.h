/*
 * Creates an entry at the server, and finds it again after a lost answer. The
 * kinds call this unit for the node of their attempt. The answers change the
 * node's state. If a node is no longer wanted when its answer arrives,
 * cleanup.c takes it over. Functions return 0 or an error code unless noted.
 * Called with the client's mutex held.
 */
#ifndef HF_ZK_NODE_CREATE_H
#define HF_ZK_NODE_CREATE_H

#include "node.h"

/* Sends the create; if `parents` is true, sends creates of the missing parents
 * first. The answer to the create is not reported. Instead, the caller sends a
 * list: when the list is answered, the node is THERE, UNSURE or GONE. */
int hf__zk_node_create(struct zk_node *, bool parents);
/* Lists the children of the entry's parent; returns PENDING or an error code.
 * When the answer arrives, the zk_done_fn is called with the node, unless a
 * later list was sent or the node is no longer wanted. */
int hf__zk_node_list(struct zk_node *, zk_done_fn *);
/* Sends the create and the list together; returns PENDING or an error code. */
int hf__zk_node_enter(struct zk_node *, bool parents, zk_done_fn *listed);

/* Requests the czxid; the answer makes the node THERE or GONE. */
int hf__zk_node_check(struct zk_node *);
/* Looks for an UNSURE node in a list. If the list contains its entry, requests
 * the czxid and returns true. Otherwise makes the node GONE and returns
 * false. */
bool hf__zk_node_find(struct zk_node *, const struct String_vector *children);

/* Writes the data of the entry again, for inspections: its fixed lease begins
 * now. */
void hf__zk_node_date(struct zk_node *);
/* Writes the data of all entries of the hold again, with a fixed lease of this
 * length that begins now. */
void hf__zk_node_lease(struct zk_node *, uint32_t lease_ms);

#endif
