/*
 * What is known of the children of a lock's node beside their names: when they
 * were made, and whether they are ephemeral. It is kept with the node of the
 * attempt that needs it (zk_node.child_stats), and requested with that node as
 * the owner. Called by queue.c and semaphore.c for each list of children. With
 * the client's mutex held.
 */
#ifndef HF_ZK_CHILD_STATS_H
#define HF_ZK_CHILD_STATS_H

#include "node.h"

/* For a child that had gone when it was requested: as one that lasts it does
 * not count. No transaction that creates a node has the number 1. */
#define ZK_CHILD_GONE (-1)

/* For hf__zk_place(), whose arg is the node. */
zk_czxid_fn hf__zk_child_czxid;
/* 0; or the code, if the server has refused to tell of one of the children: no
 * place among them is known then. */
int hf__zk_child_stats_refused(const struct zk_node *,
                               const struct String_vector *children);

/* Requests all with the node's own sequence. PENDING: list the children again
 * now, and they are known; or a code. */
int hf__zk_child_stats_request_tied(struct zk_node *,
                                    const struct String_vector *children);
/* Requests the strangers among the children of the lock's path. 0: all are
 * known; PENDING: list the children again now; or a code. */
int hf__zk_strangers_check(struct zk_node *,
                           const struct String_vector *children, enum zk_rule,
                           int64_t seq);

#endif
