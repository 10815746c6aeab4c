/*
 * The query for the names in use (HF__LIST). Returns an outcome, or PENDING.
 */
#ifndef HF_ZK_LIST_H
#define HF_ZK_LIST_H

#include "zookeeper.h"

int hf__zk_list_query(struct zk *, struct hf__query *);

#endif
