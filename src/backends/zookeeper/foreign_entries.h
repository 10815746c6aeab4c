/*
 * Children of a lock's node that are of no known form: whether they count.
 * Called by queue.c and semaphore.c for each list of children.
 */
#ifndef HF_ZK_FOREIGN_ENTRIES_H
#define HF_ZK_FOREIGN_ENTRIES_H

#include "node.h"

/* Sees to those below the lock's path, for its node. 0: they are known, and
 * hf__zk_child_stats_known() tells which are ephemeral. PENDING: they were
 * requested, and are known to whoever lists again now. Or a code. */
int hf__zk_foreign_entries_check(struct zk_node *,
                                 const struct String_vector *children,
                                 enum zk_rule, int64_t seq);

#endif
