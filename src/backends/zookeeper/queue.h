/*
 * The attempts of a mutex and of both sides of a read-write lock. lock.c calls
 * them through zookeeper.c's table of kinds.
 *
 * An attempt creates an entry and lists the children of the name's node, in one
 * packet. The entry has the lock if no entry before it excludes it. Otherwise
 * the client watches the last of the entries that exclude it. An entry is
 * watched only by the next waiter or, if it is a writer's, by all readers that
 * follow, so a release wakes no others.
 *
 * The unfair mutex has no queue. The client that creates the node <path>/lock
 * has the lock; all others watch that node, and try again when it is deleted.
 * All holders use the same node, but a client whose lock was taken away must
 * not delete the node of the next holder. Therefore each holder creates a
 * second node, whose name is unique, in the same transaction, and deletes both
 * in one transaction, too. The second node is the entry.
 *
 * A repeated attempt finds the entry of the first attempt by its uuid, or
 * creates a new entry.
 */
#ifndef HF_ZK_QUEUE_H
#define HF_ZK_QUEUE_H

#include "lock.h"

zk_attempt_fn hf__zk_queue_attempt;

#endif
