/*
 * Watches, which notify a waiting lock that its turn may have come. The lock's
 * bell rings once (or zk_lock.passed is called) when the watched node changes
 * or disappears or its list of children changes, and at once if the node does
 * not exist. A lock has one watch at a time. A path has one watch of each kind,
 * for all locks that wait for that path. This unit owns the memory; the end of
 * the session frees all watches. Called by the kinds and by session.c, with the
 * client's mutex held.
 *
 * A watch is kept until it fires, even if no lock waits for it, so that a
 * client that tries the same path repeatedly leaves only one watch at the
 * server. A watch reports what happens after the server has answered the
 * request that set it, and its event arrives before any later answer. So if a
 * lock sees a node in a list and there is a watch on that node already, the
 * lock can rely on that watch.
 *
 * In case an event is lost, the client polls each node that a lock waits for
 * every 1.5 to 2 s, with one small request however many locks wait. (A watch on
 * a list of children, which the first turn of a semaphore has, is not polled:
 * the bell rings instead.) If a follower of version 3.8 has delayed a commit,
 * the poll also makes it carry out that commit.
 */
#ifndef HF_ZK_WATCH_H
#define HF_ZK_WATCH_H

#include "zookeeper.h"

struct zk_lock;

enum zk_watch_kind { ZK_WATCH_NODE, ZK_WATCH_CHILDREN };

/* Makes the lock wait for the path, instead of what it waited for before.
 * Returns 0, or an error code if the lock waits for nothing now. */
int hf__zk_watch(struct zk *, struct zk_lock *, enum zk_watch_kind,
                 const char *path);
/* Ends the lock's wait; the watch stays at the server. */
void hf__zk_unwatch(struct zk_lock *);
/* Starts the safety polls, because a lock is about to wait. */
void hf__zk_watches_begin(struct zk *);

/* Handles the loss of the connection: rings the bells of all waiting locks, so
 * that they try again when the connection is back. Otherwise a lock that only
 * waits would never notice the loss. */
void hf__zk_watches_down(struct zk *);
/* Sends the safety polls that are due, and calls `passed` of locks whose
 * pass_until has come (semaphore.c). */
void hf__zk_watches_move(struct zk *, hf__time now);
hf__time hf__zk_watches_timeout(const struct zk *);
/* Fires all watches, because the session has ended. */
void hf__zk_watches_lost(struct zk *);

#endif
