/*
 * The attempts of a semaphore. lock.c calls it by zookeeper.c's table of kinds.
 */
#ifndef HF_ZK_SEMAPHORE_H
#define HF_ZK_SEMAPHORE_H

#include "lock.h"

zk_attempt_fn hf__zk_semaphore_attempt;

#endif
