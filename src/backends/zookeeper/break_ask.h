/*
 * HF__BREAK and HF__ASK: something is done to holders from outside. An outcome,
 * or PENDING.
 */
#ifndef HF_ZK_BREAK_ASK_H
#define HF_ZK_BREAK_ASK_H

#include "zookeeper.h"

int hf__zk_break_query(struct zk *, struct hf__query *);
int hf__zk_ask_query(struct zk *, struct hf__query *);

#endif
