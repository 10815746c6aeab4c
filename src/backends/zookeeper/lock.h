/*
 * A lock: what is kept for one line of the core (hf__remote.impl), from attach
 * to detach, and what all kinds share: who tries to take it, what is granted,
 * what is let go. zookeeper.c calls the first functions for the core, the kinds
 * (queue.c, semaphore.c, latch.c) the others. A lock has one node at a time, or
 * the first node of a hold, and lets go of it by cleanup.h. With the client's
 * mutex held.
 */
#ifndef HF_ZK_LOCK_H
#define HF_ZK_LOCK_H

#include "node.h"

struct zk_round;
struct zk_watch;

/* hf__remote.impl */
struct zk_lock {
    struct hf__remote *remote;
    struct zk *z;
    struct hf__req *attempt; /* the attempt under way */
    struct zk_node *node;    /* of the present attempt or hold: the first */
    struct zk_watch *watch;
    struct zk_lock *next, *prev; /* of those with the same watch */
    bool queued;                 /* counted in zk.waiting, or waiting_latch */
    bool deleted;                /* what it watched is gone */
    /* Of a try that watches who is before it: what is called instead of the
     * bell, at the latest then; NULL: the bell. */
    void (*passed)(struct zk_lock *);
    hf__time pass_until;
    bool blind; /* of a latch: what it wants to watch may not be read */
    /* The sum of the strangers that are known to last, and are harmless. */
    uint64_t strangers;
    struct zk_round *round; /* of a latch, that it waits for; or NULL */
    size_t path_len;
    char path[]; /* of the lock's node */
};

/* How a kind tries to take its locks. An outcome; or PENDING:
 * hf__zk_lock_answer() will be called; or EUNKNOWN: not connected, it is tried
 * again when it is. */
typedef int zk_attempt_fn(struct zk_lock *, struct hf__req *);

int hf__zk_lock_attach(void *self, struct hf__remote *);
void hf__zk_lock_detach(void *self, struct hf__remote *);
int hf__zk_lock_attempt(const struct zk *, struct hf__req *,
                        zk_attempt_fn *begin);
int hf__zk_lock_release(void *self, struct hf__req *);
int hf__zk_lock_abandon(void *self, struct hf__req *);

/* The node of this attempt; NULL: the lock has none. One of an earlier
 * attempt is dropped. */
struct zk_node *hf__zk_lock_node(struct zk_lock *, const struct hf__req *);
/* The lock's node becomes the hold: GRANTED. QUEUED: not yet, because the
 * session may end too soon; the attempt is to be made again. */
int hf__zk_lock_grant(struct zk_lock *, struct hf__req *);
/* The lock's watch will ring: QUEUED. */
int hf__zk_lock_queued(struct zk_lock *, struct hf__req *);
/* The lock's attempt has come to this outcome, unless it is PENDING. What was
 * refused, or is BUSY, keeps no node; with EUNKNOWN it stays, and the core
 * tries again or abandons it. */
void hf__zk_lock_answer(struct zk_lock *, int rc);
/* Nothing shall ring for it any more. */
void hf__zk_lock_stop_waiting(struct zk_lock *);
/* Its parents, which the server sweeps when they are empty, are missing: they
 * are to be made once more. */
bool hf__zk_lock_parents_again(struct zk_node *);

#endif
