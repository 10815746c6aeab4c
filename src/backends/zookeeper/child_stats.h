/*
 * What is known of the children of a lock's node at the server in addition to
 * their names: the czxid, and whether they are ephemeral. The struct zk_node of
 * an attempt requests these stats and keeps them (zk_node.child_stats). Called
 * by queue.c and semaphore.c for each list of children, with the client's mutex
 * held.
 *
 * The stats are needed for two groups of children. The first group consists of
 * the children that have the same sequence as our own entry: at 2^31-1 the
 * server's counter stops and all new entries get the same number, so the czxid
 * decides which was first. The second group consists of the strangers
 * (entry.h). They count only if they are ephemeral, because a persistent
 * stranger is the node of another lock, whose name continues below ours.
 *
 * To avoid a request per stranger in each attempt, the lock remembers a hash of
 * the strangers that were found to be persistent. While the strangers are the
 * same, no stat is requested. For one place in the queue, the stats of
 * strangers are requested only once, because a child that appears after the
 * first list comes after that place. (Requesting them until two lists are the
 * same might never end, because nodes of names below ours may appear and
 * disappear at any time.)
 */
#ifndef HF_ZK_CHILD_STATS_H
#define HF_ZK_CHILD_STATS_H

#include "node.h"

/* The czxid of a child that was gone when its stat was requested. It is
 * negative, like that of a persistent child, so the child does not count. No
 * persistent child has this value, because the transaction number 1 creates no
 * node. */
#define ZK_CHILD_GONE (-1)

/* Returns what is known of a child, in the form that hf__zk_place() expects.
 * `arg` is the struct zk_node that has requested the stats. */
zk_czxid_fn hf__zk_child_czxid;
/* Returns 0, or an error code if the server has refused to return the stat of
 * one of the children. In the second case the place of the node's entry is
 * unknown. */
int hf__zk_child_stats_refused(const struct zk_node *,
                               const struct String_vector *children);

/* Requests the stats of all children with the sequence of the node's own entry.
 * Returns PENDING, or an error code. After PENDING, the caller must list the
 * children again; when that list is answered, the stats are known. */
int hf__zk_child_stats_request_tied(struct zk_node *,
                                    const struct String_vector *children);
/* Requests the stats of the strangers among the children. Returns 0 if all are
 * known, PENDING if the caller must list the children again, or an error
 * code. */
int hf__zk_strangers_check(struct zk_node *,
                           const struct String_vector *children, enum zk_rule,
                           int64_t seq);

#endif
