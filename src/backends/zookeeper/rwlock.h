/*
 * A write hold becomes a read hold: HF__DOWNGRADE, and its repetition by the
 * next renewal (renew.c) if the answer was lost.
 */
#ifndef HF_ZK_RWLOCK_H
#define HF_ZK_RWLOCK_H

#include "node.h"

int hf__zk_downgrade_query(struct zk *, struct hf__query *);

/* Tells (again) that the node, which is LOWERING, is one for reading now. */
int hf__zk_lower(struct zk_node *node, zk_done_fn *done, void *owner);
/* What the answer means: DONE, ENOTOWNER, EUNKNOWN ... */
int hf__zk_lower_result(struct zk_node *, int rc);

#endif
