/*
 * Holders hear that they are wanted, or that their hold was taken away, by a
 * watch on the hold's own entry. Called when a hold begins (lock.c, renew.c)
 * and when the connection is there again (session.c). With the client's mutex
 * held.
 */
#ifndef HF_ZK_NOTIFY_H
#define HF_ZK_NOTIFY_H

#include "node.h"

/* The node is held: its holder wants to hear if it is asked for, or if one of
 * its siblings goes. */
void hf__zk_notify_listen(struct zk_node *);
/* It was granted unseen: is it there? If not, its holder hears of it. */
void hf__zk_notify_confirm(struct zk_node *);
/* The session is over. */
void hf__zk_notify_fini(struct zk *);

#endif
