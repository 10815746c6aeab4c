/*
 * Changes of a name, for programs that listen to it (HF__LISTEN, unlisten).
 * session.c calls move and lost. Called with the client's mutex held.
 *
 * A name has watches on everything that hf__zk_parties_read() reads: the
 * children of its node (or its creation), the children of `locks` and `leases`,
 * and the data of `latch`. A watch fires once. After each event all watches are
 * set again, and the change is reported only when the server has answered. So a
 * program that then inspects the name also sees what happened while no watch
 * was set.
 *
 * The library keeps one watch per watcher and path over all connections of a
 * session, but does not reliably remove it. So a listener that has ended stays
 * in memory until the session ends, and is reused for the same name. Its memory
 * is that of the query that began it.
 */
#ifndef HF_ZK_CHANGES_H
#define HF_ZK_CHANGES_H

#include "zookeeper.h"

/* Returns PENDING, or a code at once. unlisten() is a slot of the backend's
 * table. */
int hf__zk_changes_listen(struct zk *, struct hf__query *);
void hf__zk_changes_unlisten(void *self, struct hf__listener *);
/* Sets the watches that are due; after a lost connection, all. */
void hf__zk_changes_move(struct zk *);
/* The session has ended: frees the listeners that the program no longer
 * uses. */
void hf__zk_changes_lost(struct zk *);

#endif
