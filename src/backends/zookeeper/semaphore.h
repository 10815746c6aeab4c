/*
 * The attempts of a semaphore. lock.c calls them through zookeeper.c's table of
 * kinds.
 *
 * The semaphore is Curator's SemaphoreV2. Only the client whose *turn* (its
 * entry in <path>/locks) is first may create leases below <path>/leases, one
 * per permit, if enough permits are free. The queue is fair: a client that
 * wants many permits stays first until there are enough.
 *
 * A *visit* lists everything in one packet. The turn is created with the first
 * visit, the leases with the last; they are the siblings of the turn. The names
 * of the leases contain the uuid of the hold id and a number that the client
 * chooses, so a lease is found again after a lost answer. The turn is
 * lock->node until the grant, which deletes the turn; then the leases are the
 * hold.
 *
 * The size is in the data of `leases`. The client whose turn is first writes
 * its own size there if `leases` has no data, or has a different size while no
 * other client has a permit.
 */
#ifndef HF_ZK_SEMAPHORE_H
#define HF_ZK_SEMAPHORE_H

#include "lock.h"

zk_attempt_fn hf__zk_semaphore_attempt;

#endif
