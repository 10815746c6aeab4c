/*
 * Deletes entries. A dropped node belongs to this unit, and the callers (the
 * kinds, lock.c, session.c) must not touch it afterwards. The unit deletes the
 * node's entry at the server as soon as possible, repeats that after each lost
 * connection, and frees the node when the entry is gone and every call of the
 * node was answered. Called with the client's mutex held.
 */
#ifndef HF_ZK_CLEANUP_H
#define HF_ZK_CLEANUP_H

#include "node.h"

/* Takes the node and its siblings from their lock and deletes their entries.
 * Completes the request let_go, if it is not NULL, when the last entry is
 * gone. */
void hf__zk_node_drop(struct zk_node *, struct hf__req *let_go);
/* Drops a node whose entry does not exist at the server, or belongs to another
 * session. */
void hf__zk_node_vanished(struct zk_node *);
/* Deletes a node at the server that is no entry of a lock, such as the mark of
 * a latch. Like the delete of an entry, this delete is repeated after a
 * failure. */
void hf__zk_node_of_nobody(struct zk *, const char *path, uint8_t form);
/* Reports the loss of the lock's hold to the core and deletes the entries of
 * the hold, one of which is missing. Called only from advance(). */
void hf__zk_taken_away(struct zk_lock *);
/* Deletes each of the nodes `locks` and `leases` below `path` if it is empty.
 * An idle semaphore leaves these two nodes. */
void hf__zk_sweep_semaphore(struct zk *, const char *path);

/* Must be called when a call of the node was answered: decrements `calls`, then
 * calls hf__zk_node_end_step(). */
void hf__zk_node_called(struct zk_node *);
/* Must be called after `calls` was decremented. If the node has no lock, takes
 * its next step, which may free the node. */
void hf__zk_node_end_step(struct zk_node *);
/* Takes the next step of the deletion if that is possible now. */
void hf__zk_node_sweep(struct zk_node *);
/* Schedules the next step of the deletion for later. */
void hf__zk_node_sweep_later(struct zk_node *);

/* For each node whose step was scheduled and is due, takes that step. */
void hf__zk_nodes_sweep(struct zk *, hf__time now);
/* Handles the end of the session, which has removed all its entries: reports
 * all holds as lost and frees all nodes. `why` is a message for the user. */
void hf__zk_nodes_lost(struct zk *, const char *why);
void hf__zk_nodes_fini(struct zk *);

#endif
