/*
 * Reports changes of a name to programs that listen to it (HF__LISTEN,
 * unlisten). session.c calls hf__zk_changes_move() and hf__zk_changes_lost().
 * All functions are called with the client's mutex held.
 *
 * A listener watches the children of the name's node (or the creation of the
 * node, if it does not exist), the children of `locks` and `leases`, and the
 * data of `latch`. A watch fires once. After each event all watches are set
 * again, and the change is reported only when the server has answered. A
 * program that then inspects the name therefore also sees what happened while
 * no watch was set.
 *
 * The library keeps one watch per watcher and path across all connections of a
 * session, but does not reliably remove it. Therefore a listener that has ended
 * stays in memory until the session ends, and is reused for the same name. A
 * listener uses the memory of the query that began it.
 */
#ifndef HF_ZK_CHANGES_H
#define HF_ZK_CHANGES_H

#include "zookeeper.h"

/* Starts the listener of the query. Returns PENDING, or an error code. */
int hf__zk_changes_listen(struct zk *, struct hf__query *);
/* Ends a listener; the slot unlisten of the backend's table. */
void hf__zk_changes_unlisten(void *self, struct hf__listener *);
/* Sets the watches that are due. While the connection is down, marks the
 * watches of all listeners as due. */
void hf__zk_changes_move(struct zk *);
/* Handles the end of the session: frees the listeners that the program no
 * longer uses. */
void hf__zk_changes_lost(struct zk *);

#endif
