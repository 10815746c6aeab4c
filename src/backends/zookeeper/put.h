/*
 * The query HF__PUT. Returns an outcome, or PENDING.
 */
#ifndef HF_ZK_PUT_H
#define HF_ZK_PUT_H

#include "zookeeper.h"

int hf__zk_put_query(struct zk *, struct hf__query *);

#endif
