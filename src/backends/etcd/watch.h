/*
 * One stream of watches for the whole client. It reports events to a lock that
 * waits (the core gets a bell), to a hold whose entry was deleted (it is lost),
 * to holders that are asked to release (hf_ask), to changes.c, and to the
 * client itself, whose guard goes with its lease. Watches may be lost at any
 * time; the looks of waiters (lock.c) and renewals find what was missed.
 */
#ifndef HF_ETCD_WATCH_H
#define HF_ETCD_WATCH_H

#include "net/grpc/grpc.h"

struct etcd;
struct et_changes;
struct et_lock;
struct et_watch;

extern const struct grpc_method hf__et_watch; /* of the stream */

enum et_wait {
    ET_GONE,    /* the key is deleted */
    ET_WRITTEN, /* the key is deleted or written */
    ET_PAIR,    /* the key or its mark is deleted or written */
    ET_BELOW,   /* a key with this prefix is deleted */
    ET_ALL,     /* a key with this prefix is deleted or written */
};

/* ---- a lock that waits --------------------------------------------------- */

/* Sets the lock QUEUED, and rings the core's bell once this event happens to
 * the key after revision `view`. If the key cannot be watched, the core's next
 * attempt finds out. */
void hf__et_wait(struct et_lock *, enum et_wait, const char *key, size_t len,
                 int64_t view);
void hf__et_ring(struct et_lock *);
/* Ends all watches of the lock. */
void hf__et_unwatch(struct et_lock *);
/* Watches the entry of a held lock, so that the core hears at once if another
 * client deletes it. */
void hf__et_watch_own(struct et_lock *);

/* ---- changes ------------------------------------------------------------- */

/* Callbacks of changes.c. */
struct et_watch_events {
    void (*confirmed)(struct etcd *, struct et_changes *);
    /* That key was written or deleted. */
    void (*written)(struct etcd *, struct et_changes *, const char *key,
                    size_t len);
    void (*refused)(struct etcd *, struct et_changes *, const char *why);
};

/* Watches all keys with that prefix. *place is NULL if the watch cannot be
 * made, and again after it has ended. */
void hf__et_watch_changes(struct etcd *, const struct et_watch_events *,
                          struct et_changes *, struct et_watch **place,
                          const char *key, size_t len);
void hf__et_watch_end(struct etcd *, struct et_watch *);

/* ---- the client ---------------------------------------------------------- */

/* True if missing watches are to be made now: the caller makes those of
 * listeners, and then calls hf__et_watch_all(), which makes those of the client
 * and of holds. */
bool hf__et_watch_is_due(struct etcd *, hf__time now);
void hf__et_watch_all(struct etcd *);
hf__time hf__et_watch_timeout(const struct etcd *);
/* Notes that the requests of hf_ask up to this revision were heard. */
void hf__et_heard(struct etcd *, int64_t revision);
/* A keep-alive was answered at that revision. */
void hf__et_heard_all(struct etcd *, int64_t revision);
/* The stream has ended. */
void hf__et_watches_down(struct etcd *);

#endif
