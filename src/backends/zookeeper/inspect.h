/*
 * The queries HF__INSPECT, HF__BREAK and HF__ASK. They return an outcome, or
 * PENDING.
 */
#ifndef HF_ZK_INSPECT_H
#define HF_ZK_INSPECT_H

#include "zookeeper.h"

int hf__zk_inspect_query(struct zk *, struct hf__query *);
int hf__zk_break_query(struct zk *, struct hf__query *);
int hf__zk_ask_query(struct zk *, struct hf__query *);

#endif
