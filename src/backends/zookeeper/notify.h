/*
 * Holders hear that another client wants the lock, or that their hold was taken
 * away, by a watch on the hold's own entry. __REVOKE__ in its data, written by
 * Curator's Revoker or hf_ask(), asks for the lock; its deletion takes the lock
 * away. The watch costs one request per grant, so it is set only for programs
 * that listen for events. Called when a hold begins (lock.c, renew.c) and when
 * the connection is back (session.c), with the client's mutex held.
 *
 * Each lease of a semaphore hold has a zk_notify; only the first lease can be
 * asked for. A zk_notify lives until its watch fires or the session ends; its
 * node may be freed earlier.
 */
#ifndef HF_ZK_NOTIFY_H
#define HF_ZK_NOTIFY_H

#include "node.h"

/* The node and its siblings are a hold: watches each of them. */
void hf__zk_notify_listen(struct zk_node *);
/* Checks that a node exists that was granted without a list. If not, the core
 * hears of the loss. */
void hf__zk_notify_confirm(struct zk_node *);
/* The session has ended: frees all. */
void hf__zk_notify_fini(struct zk *);

#endif
