/*
 * One stream of watches for all of a client, and who hears of its events: a
 * lock that waits (its core gets a bell), a hold whose entry is deleted (it is
 * lost), holders that are wanted (hf_ask), changes.c, and the client itself,
 * whose guard goes with its lease. Watches may be lost at any time; the looks
 * of those who wait (lock.c) and renewals find what they missed.
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
    ET_GONE,    /* it goes */
    ET_WRITTEN, /* or is written */
    ET_PAIR,    /* or its mark is */
    ET_BELOW,   /* something that begins so goes */
    ET_ALL,     /* or is written */
};

/* ---- a lock that waits -------------------------------------------------- */

/* It is QUEUED, and rings when that happens to the key, as it was at the
 * revision `view`. If the key cannot be watched, the next look finds out. */
void hf__et_wait(struct et_lock *, enum et_wait, const char *key, size_t len,
                 int64_t view);
void hf__et_ring(struct et_lock *);
/* It keeps no watch any more. */
void hf__et_unwatch(struct et_lock *);
/* It is held: the core hears of it if somebody deletes the entry. */
void hf__et_watch_own(struct et_lock *);

/* ---- changes ------------------------------------------------------------ */

/* What is said to the one for whom changes are watched. */
struct et_watch_events {
    void (*confirmed)(struct etcd *, struct et_changes *);
    /* That key was written or deleted. */
    void (*written)(struct etcd *, struct et_changes *, const char *key,
                    size_t len);
    void (*refused)(struct etcd *, struct et_changes *, const char *why);
};

/* Watches all that begins with the key; *place is NULL if that cannot be, and
 * when the watch has ended. */
void hf__et_watch_changes(struct etcd *, const struct et_watch_events *,
                          struct et_changes *, struct et_watch **place,
                          const char *key, size_t len);
void hf__et_watch_end(struct etcd *, struct et_watch *);

/* ---- the client --------------------------------------------------------- */

/* Some watch is to be made now: changes come first, then hf__et_watch_all()
 * makes those of the client and its holds. */
bool hf__et_watch_is_due(struct etcd *, hf__time now);
void hf__et_watch_all(struct etcd *);
hf__time hf__et_watch_timeout(const struct etcd *);
/* What holders were asked up to that revision has been heard. */
void hf__et_heard(struct etcd *, int64_t revision);
/* A keep-alive was answered at that revision. */
void hf__et_heard_all(struct etcd *, int64_t revision);
/* The stream is gone. */
void hf__et_watches_down(struct etcd *);

#endif
