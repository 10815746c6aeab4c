/*
 * The attempts of a mutex and of both sides of a read-write lock. lock.c calls
 * it by zookeeper.c's table of kinds.
 */
#ifndef HF_ZK_QUEUE_H
#define HF_ZK_QUEUE_H

#include "lock.h"

zk_attempt_fn hf__zk_queue_attempt;

#endif
