/*
 * A watch on a hold's own entry notifies the holder that another client wants
 * the lock, or has taken the hold away. Curator's Revoker and hf_ask() ask for
 * the lock by writing __REVOKE__ to the entry's data; deleting the entry takes
 * the hold away. The watch costs one request per grant, so it is set only for
 * programs that listen for events. Called when a hold begins (lock.c, renew.c)
 * and when the connection is back (session.c), with the client's mutex held.
 *
 * Each lease of a semaphore's hold has a zk_notify, but an ask counts only if
 * it is written to the first lease. A zk_notify lives until its watch fires or
 * the session ends; its node may be freed earlier.
 */
#ifndef HF_ZK_NOTIFY_H
#define HF_ZK_NOTIFY_H

#include "node.h"

/* Watches the entry of each node of a hold: this node and its siblings. */
void hf__zk_notify_listen(struct zk_node *);
/* For a hold that was granted without a list: checks that its entry exists. If
 * not, the core is notified of the loss. */
void hf__zk_notify_confirm(struct zk_node *);
/* Frees every zk_notify, because the session has ended. */
void hf__zk_notify_fini(struct zk *);

#endif
