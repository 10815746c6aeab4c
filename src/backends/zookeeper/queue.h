/*
 * The attempts of a mutex and of both sides of a read-write lock. lock.c calls
 * it through zookeeper.c's table of kinds.
 *
 * An attempt creates an entry and lists its siblings, in one packet. The entry
 * has the lock if nothing is before it that it must not overtake. Otherwise the
 * client watches the last of the entries before it. No other client watches
 * that one, so a release wakes one waiter, or the readers behind a writer.
 *
 * The unfair mutex has no queue. The client that creates the node <path>/lock
 * has the lock; all others watch that node, and all try again when it is
 * deleted. Since every holder has had the same node, a client whose lock was
 * taken away must not delete the node of the next holder. So each holder
 * creates and deletes a second node with a name of its own in the same
 * transaction. That node is the entry.
 *
 * A repeated attempt finds the entry of the first one by its uuid, or creates a
 * new entry.
 */
#ifndef HF_ZK_QUEUE_H
#define HF_ZK_QUEUE_H

#include "lock.h"

zk_attempt_fn hf__zk_queue_attempt;

#endif
