/*
 * The latch. hf__zk_latch_attempt() lets a lock wait for it; lock.c calls that
 * function through zookeeper.c's table of kinds. hf__zk_latch_query() executes
 * HF__LATCH_SET, DOWN and GET, and returns an outcome or PENDING.
 */
#ifndef HF_ZK_LATCH_H
#define HF_ZK_LATCH_H

#include "lock.h"

zk_attempt_fn hf__zk_latch_attempt;

int hf__zk_latch_query(struct zk *, struct hf__query *);

#endif
