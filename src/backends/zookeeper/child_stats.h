/*
 * What is known of the children of a lock's node beside their names: the czxid,
 * and whether they are ephemeral. It is requested by the node of an attempt,
 * and kept with it (zk_node.child_stats). Called by queue.c and semaphore.c for
 * each list of children, with the client's mutex held.
 *
 * Children with the node's own sequence need it, because at 2^31-1 the server's
 * counter stops and Curator creates entries with the same number: the czxid
 * decides who was first. Strangers (entry.h) need it, because they count only
 * if they are ephemeral: one that lasts is the node of another lock, whose name
 * continues below ours.
 *
 * To avoid a request per stranger in each attempt, the lock remembers a sum
 * over those that were found to last. While the strangers are the same, none is
 * requested. Strangers are requested once for a place in the queue: a child
 * that comes after the first list is behind us. (Names below ours may come and
 * go all the time, so two lists need never be the same.)
 */
#ifndef HF_ZK_CHILD_STATS_H
#define HF_ZK_CHILD_STATS_H

#include "node.h"

/* A child that was gone when it was requested. Like one that lasts it does not
 * count. No transaction that creates a node has the number 1. */
#define ZK_CHILD_GONE (-1)

/* A lookup for hf__zk_place(); arg is the node. */
zk_czxid_fn hf__zk_child_czxid;
/* Returns 0, or a code if the server refuses to tell about one of the children,
 * so that the place is unknown. */
int hf__zk_child_stats_refused(const struct zk_node *,
                               const struct String_vector *children);

/* Requests all children with the node's own sequence. PENDING: list the
 * children again, and they will be known; or a code. */
int hf__zk_child_stats_request_tied(struct zk_node *,
                                    const struct String_vector *children);
/* Requests the strangers among the children. 0: all are known. PENDING: list
 * the children again. Or a code. */
int hf__zk_strangers_check(struct zk_node *,
                           const struct String_vector *children, enum zk_rule,
                           int64_t seq);

#endif
