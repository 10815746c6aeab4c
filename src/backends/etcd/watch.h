/*
 * One stream of watches for the whole client. Its events ring the bell of a
 * lock that waits, report the loss of a hold whose entry was deleted, and
 * notify holders that are asked to release (hf_ask). Other events are passed to
 * changes.c. If the guard was deleted, which normally happens with the lease,
 * the connection is ended. Watches may be lost at any time; the repeated
 * attempts of waiters (lock.c) and the renewals find out what was missed.
 */
#ifndef HF_ETCD_WATCH_H
#define HF_ETCD_WATCH_H

#include "net/grpc/grpc.h"

struct etcd;
struct et_changes;
struct et_lock;
struct et_watch;

extern const struct grpc_method hf__et_watch; /* the stream of watches */

enum et_wait {
    ET_GONE,    /* the key is deleted */
    ET_WRITTEN, /* the key is deleted or written */
    ET_PAIR,    /* the key or its mark is deleted or written */
    ET_BELOW,   /* a key with this prefix is deleted */
    ET_ALL,     /* a key with this prefix is deleted or written */
};

/* ---- a lock that waits --------------------------------------------------- */

/* Makes the lock QUEUED, and rings the core's bell once this event happens to
 * the key after revision `view`. If the key cannot be watched, the next
 * repeated attempt of the core detects the event. */
void hf__et_wait(struct et_lock *, enum et_wait, const char *key, size_t len,
                 int64_t view);
void hf__et_ring(struct et_lock *);
/* Ends all watches of the lock. */
void hf__et_unwatch(struct et_lock *);
/* If the program listens to events, watches the entry of a held lock, so that
 * the core is notified at once if another client deletes the entry. */
void hf__et_watch_own(struct et_lock *);

/* ---- changes ------------------------------------------------------------- */

/* Callbacks of changes.c. */
struct et_watch_events {
    void (*confirmed)(struct etcd *, struct et_changes *);
    /* Reports that a key was written or deleted. */
    void (*written)(struct etcd *, struct et_changes *, const char *key,
                    size_t len);
    void (*refused)(struct etcd *, struct et_changes *, const char *why);
};

/* Watches all keys with that prefix. Sets *place to the watch, or leaves it
 * NULL if the watch cannot be created; *place becomes NULL again when the watch
 * has ended. */
void hf__et_watch_changes(struct etcd *, const struct et_watch_events *,
                          struct et_changes *, struct et_watch **place,
                          const char *key, size_t len);
void hf__et_watch_end(struct etcd *, struct et_watch *);

/* ---- the client ---------------------------------------------------------- */

/* Returns true if missing watches must be created now. Then the caller creates
 * the watches of listeners and calls hf__et_watch_all(), which creates the
 * watches of the client and of holds. */
bool hf__et_watch_is_due(struct etcd *, hf__time now);
void hf__et_watch_all(struct etcd *);
hf__time hf__et_watch_timeout(const struct etcd *);
/* Notes that the client has received the writes of hf_ask up to this
 * revision. */
void hf__et_heard(struct etcd *, int64_t revision);
/* Does the same after a keep-alive that was answered at that revision: if the
 * ask_watch has existed since the previous keep-alive, the writes up to the
 * revision of the previous keep-alive were received. */
void hf__et_heard_all(struct etcd *, int64_t revision);
/* Handles the end of the stream: forgets all watches, and rings the bells of
 * waiting locks. */
void hf__et_watches_down(struct etcd *);

#endif
