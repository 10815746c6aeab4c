/*
 * The end of entries. A node that is dropped belongs to this file: it is
 * deleted at the server as soon as that can be said, again after each loss of
 * the connection, and freed when it is gone and no call of it is under way. The
 * callers (the kinds, lock.c, session.c) must not touch it afterwards. With the
 * client's mutex held.
 */
#ifndef HF_ZK_CLEANUP_H
#define HF_ZK_CLEANUP_H

#include "node.h"

/* Takes it and its siblings from their lock: they are deleted, and let_go, if
 * not NULL, reported when the last of them is gone. */
void hf__zk_node_drop(struct zk_node *, struct hf__req *let_go);
/* It is not there, or not ours. */
void hf__zk_node_vanished(struct zk_node *);
/* One that is no entry of a lock's and that nobody wants any more: it is
 * deleted as the others are. */
void hf__zk_node_of_nobody(struct zk *, const char *path, uint8_t form);
/* Of its hold something is not there any more: nothing of it is left, and the
 * core hears of it. From advance() only. */
void hf__zk_taken_away(struct zk_lock *);
/* Deletes what an idle semaphore has left below the node, if it is idle. */
void hf__zk_sweep_semaphore(struct zk *, const char *path);

/* A call is answered that was counted in its `calls`. */
void hf__zk_node_called(struct zk_node *);
/* The same, counted already: if nobody wants it, the next step towards its end
 * is made, and it may be freed. */
void hf__zk_node_end_step(struct zk_node *);
/* The next step towards its end, if one can be made now. */
void hf__zk_node_sweep(struct zk_node *);
/* That step is made later. */
void hf__zk_node_sweep_later(struct zk_node *);

/* Once more, if a step could not be made then. */
void hf__zk_nodes_sweep(struct zk *, hf__time now);
/* The session is over; why, for people. */
void hf__zk_nodes_lost(struct zk *, const char *why);
void hf__zk_nodes_fini(struct zk *);

#endif
