/*
 * Deletion of entries. A dropped node belongs to this file, and the callers
 * (the kinds, lock.c, session.c) must not touch it afterwards. It is deleted at
 * the server as soon as possible, again after each lost connection, and freed
 * when it is gone and none of its calls is under way. With the client's mutex
 * held.
 */
#ifndef HF_ZK_CLEANUP_H
#define HF_ZK_CLEANUP_H

#include "node.h"

/* Takes the node and its siblings from their lock and deletes them. let_go, if
 * not NULL, is reported when the last of them is gone. */
void hf__zk_node_drop(struct zk_node *, struct hf__req *let_go);
/* Drops a node that does not exist at the server, or belongs to another
 * session. */
void hf__zk_node_vanished(struct zk_node *);
/* Deletes, in the same way, a node that is no entry of a lock. */
void hf__zk_node_of_nobody(struct zk *, const char *path, uint8_t form);
/* A part of the lock's hold is missing: deletes the rest, and reports the loss
 * to the core. From advance() only. */
void hf__zk_taken_away(struct zk_lock *);
/* Deletes what an idle semaphore has left below the node, if it is idle. */
void hf__zk_sweep_semaphore(struct zk *, const char *path);

/* A call of the node has returned: decrements `calls`, then calls
 * hf__zk_node_end_step(). */
void hf__zk_node_called(struct zk_node *);
/* To be called when `calls` was decremented. A node without a lock makes its
 * next step, and may be freed. */
void hf__zk_node_end_step(struct zk_node *);
/* Makes the next step of the deletion, if that is possible now. */
void hf__zk_node_sweep(struct zk_node *);
/* Makes the next step later. */
void hf__zk_node_sweep_later(struct zk_node *);

/* Makes the steps that were put off and are due. */
void hf__zk_nodes_sweep(struct zk *, hf__time now);
/* The session has ended; why: for people. */
void hf__zk_nodes_lost(struct zk *, const char *why);
void hf__zk_nodes_fini(struct zk *);

#endif
