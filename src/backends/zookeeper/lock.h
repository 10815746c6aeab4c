/*
 * A lock: what the backend keeps for one line of the core (hf__remote.impl),
 * from attach to detach, and what all kinds share: attempts, grants, releases.
 * zookeeper.c calls the functions from attach to abandon for the core; the
 * kinds (queue.c, semaphore.c, latch.c) call the others. A lock refers to at
 * most one node, with its siblings. Nodes that the lock drops belong to
 * cleanup.h. Called with the client's mutex held.
 */
#ifndef HF_ZK_LOCK_H
#define HF_ZK_LOCK_H

#include "node.h"

struct zk_round;
struct zk_watch;

/* The backend's part of a line: hf__remote.impl. */
struct zk_lock {
    struct hf__remote *remote;
    struct zk *z;
    struct hf__req *attempt; /* the pending attempt; or NULL */
    struct zk_node *node;    /* the first node of the attempt or hold */
    struct zk_watch *watch;
    struct zk_lock *next, *prev; /* locks with the same watch */
    bool queued;                 /* counted in zk.waiting or zk.waiting_latch */
    bool deleted;                /* the watched node is gone */
    /* Set while an attempt that may not queue waits briefly for the turn before
     * its own (semaphore.c). The function is called when the watch on that turn
     * fires, and at pass_until at the latest. If no function is set, a watch
     * that fires makes the core repeat the attempt (core->bell). */
    void (*passed)(struct zk_lock *);
    hf__time pass_until;
    bool blind; /* latch: READ on the round was denied */
    /* Hash of the strangers that are known to be persistent and therefore do
     * not count. */
    uint64_t strangers;
    struct zk_round *round; /* latch: the round this lock waits for; or NULL */
    size_t path_len;
    char path[]; /* path of the name's node */
};

/* Starts or continues an attempt of one kind of lock. Returns an outcome. After
 * PENDING, hf__zk_lock_answer() follows. EUNKNOWN means that there is no
 * connection; the core sends the attempt again after reconnecting. */
typedef int zk_attempt_fn(struct zk_lock *, struct hf__req *);

int hf__zk_lock_attach(void *self, struct hf__remote *);
void hf__zk_lock_detach(void *self, struct hf__remote *);
/* Makes an attempt; `begin` is the function of the lock's kind. */
int hf__zk_lock_attempt(const struct zk *, struct hf__req *,
                        zk_attempt_fn *begin);
int hf__zk_lock_release(void *self, struct hf__req *);
int hf__zk_lock_abandon(void *self, struct hf__req *);

/* Returns the node of this attempt, or NULL. Drops the node of an earlier
 * attempt. */
struct zk_node *hf__zk_lock_node(struct zk_lock *, const struct hf__req *);
/* Turns the lock's node into the hold and returns GRANTED. If the session may
 * end too soon for a hold and the attempt may queue, returns QUEUED; then the
 * attempt must be made again. */
int hf__zk_lock_grant(struct zk_lock *, struct hf__req *);
/* Marks the lock as queued: when its watch fires, the core repeats the attempt
 * (core->bell). Returns QUEUED. */
int hf__zk_lock_queued(struct zk_lock *, struct hf__req *);
/* Ends the lock's attempt with this outcome; does nothing if the outcome is
 * PENDING. An attempt that is refused or BUSY drops its node. After EUNKNOWN
 * the node stays, and the core sends the attempt again or abandons it. */
void hf__zk_lock_answer(struct zk_lock *, int rc);
/* Ends the lock's wait: removes the lock from its watch and from the count of
 * queued locks. */
void hf__zk_lock_stop_waiting(struct zk_lock *);
/* Returns true if the caller may create missing parents once more: the server
 * may have deleted empty parents in the meantime. Returns false if this was
 * done too many times, or if the server refuses to create a parent. */
bool hf__zk_lock_parents_again(struct zk_node *);

#endif
