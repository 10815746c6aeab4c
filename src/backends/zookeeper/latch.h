/*
 * The latch: attempts that wait for it, which lock.c calls through
 * zookeeper.c's table of kinds, and the queries HF__LATCH_SET, DOWN and GET,
 * which return an outcome or PENDING.
 */
#ifndef HF_ZK_LATCH_H
#define HF_ZK_LATCH_H

#include "lock.h"

zk_attempt_fn hf__zk_latch_attempt;

int hf__zk_latch_query(struct zk *, struct hf__query *);

#endif
