/*
 * Watches: how a lock that waits hears that its turn may have come. Its bell
 * rings (or zk_lock.passed is called) once, when the node changes or goes, or
 * its list of children does; at once if it is not there. A lock has one watch
 * at a time, and a path one of each kind, however many locks wait for it: the
 * memory is this file's. When the session is lost all are forgotten. Called by
 * the kinds and by session.c, with the client's mutex held.
 */
#ifndef HF_ZK_WATCH_H
#define HF_ZK_WATCH_H

#include "zookeeper.h"

struct zk_lock;

enum zk_watch_kind { ZK_WATCH_NODE, ZK_WATCH_CHILDREN };

int hf__zk_watch(struct zk *, struct zk_lock *, enum zk_watch_kind,
                 const char *path);
void hf__zk_unwatch(struct zk_lock *);
/* A lock is about to wait. */
void hf__zk_watches_begin(struct zk *);

/* The connection is lost: who waits tries again when there is another. A wait
 * that sends nothing would never learn that there is none. */
void hf__zk_watches_down(struct zk *);
/* In case a word is lost; and for those who pass (semaphore.c). */
void hf__zk_watches_move(struct zk *, hf__time now);
hf__time hf__zk_watches_timeout(const struct zk *);
/* The session is over: everybody tries anew. */
void hf__zk_watches_lost(struct zk *);

#endif
