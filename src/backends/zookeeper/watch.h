/*
 * Watches, which notify a waiting lock that its turn may have come. When the
 * watched node changes or disappears or its list of children changes, this unit
 * makes the core repeat the lock's attempt (core->bell), or calls
 * zk_lock.passed, once; if the node does not exist, it does so at once. A lock
 * has one watch at a time. A path has one watch of each kind, for all locks
 * that wait for that path. This unit owns the memory; the end of the session
 * frees all watches. Called by the kinds and by session.c, with the client's
 * mutex held.
 *
 * A watch is kept until it fires, even if no lock waits for it, so that a
 * client that tries the same path repeatedly leaves only one watch at the
 * server. A watch reports what happens after the server has answered the
 * request that set it, and its event arrives before any later answer. So if a
 * lock sees a node in a list and there is a watch on that node already, the
 * lock can rely on that watch.
 *
 * In case an event is lost, the client polls every node for which a lock waits,
 * at intervals of 1.5 to 2 s, with one small request per node however many
 * locks wait. (A watch on a list of children, which the first turn of a
 * semaphore has, is not polled: the lock's attempt is repeated instead.) If a
 * follower of version 3.8 has delayed a commit, the poll also makes the
 * follower carry out that commit.
 */
#ifndef HF_ZK_WATCH_H
#define HF_ZK_WATCH_H

#include "zookeeper.h"

struct zk_lock;

enum zk_watch_kind { ZK_WATCH_NODE, ZK_WATCH_CHILDREN };

/* Makes the lock wait for the path, instead of what it waited for before.
 * Returns 0 or an error code. After an error, the lock waits for nothing. */
int hf__zk_watch(struct zk *, struct zk_lock *, enum zk_watch_kind,
                 const char *path);
/* Ends the lock's wait; the watch stays at the server. */
void hf__zk_unwatch(struct zk_lock *);
/* Starts the safety polls, because a lock is about to wait. */
void hf__zk_watches_begin(struct zk *);

/* Handles the loss of the connection: rings the bells (core->bell) of all
 * waiting locks, so that they try again when the connection is back. Otherwise
 * a lock that only waits would never notice the loss. */
void hf__zk_watches_down(struct zk *);
/* Sends the safety polls that are due, and calls `passed` of locks whose
 * pass_until has come (semaphore.c). */
void hf__zk_watches_move(struct zk *, hf__time now);
hf__time hf__zk_watches_timeout(const struct zk *);
/* Fires all watches, because the session has ended. */
void hf__zk_watches_lost(struct zk *);

#endif
