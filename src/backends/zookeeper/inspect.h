/*
 * HF__INSPECT. An outcome, or PENDING.
 */
#ifndef HF_ZK_INSPECT_H
#define HF_ZK_INSPECT_H

#include "zookeeper.h"

int hf__zk_inspect_query(struct zk *, struct hf__query *);

#endif
