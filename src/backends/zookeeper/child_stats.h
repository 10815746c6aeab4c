/*
 * What is known of children beside an entry, other than their names. It is kept
 * with the node that needs to know (zk_node.child_stats), and requested with it
 * as the owner. Called by queue.c, semaphore.c and foreign_entries.c.
 */
#ifndef HF_ZK_CHILD_STATS_H
#define HF_ZK_CHILD_STATS_H

#include "node.h"

/* For a child that had gone when it was requested: as one that lasts it does
 * not count. No transaction that creates a node has the number 1. */
#define ZK_CHILD_GONE (-1)

/* Asks for a child of the lock's path, if it is not known. 0, or a code. */
int hf__zk_child_stat_request(struct zk_node *, const char *name);
/* Asks for all with the node's own sequence: PENDING, they are known to whoever
 * lists again now; or a code. */
int hf__zk_child_stats_request_tied(struct zk_node *,
                                    const struct String_vector *children);

/* It was requested, and what it is is not known yet. */
bool hf__zk_child_stat_is_open(const struct zk_node *, const char *name);
/* What is known of the children, as hf__zk_place() wants it, to be freed; NULL:
 * nothing. 0, or a code: there is no memory for it, or the server has refused
 * to tell of one of them. Nobody's place is known then. */
int hf__zk_child_stats_known(const struct zk_node *,
                             const struct String_vector *children,
                             int64_t **czxid);

#endif
