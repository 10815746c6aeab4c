/*
 * The verbs of every kind: from a request to the command, and from the reply to
 * an outcome. The first five functions are slots of the backend's table; cmd.c
 * passes replies here. A client may have many thousand struct rd_lock, so keep
 * this struct small.
 */
#ifndef HF_REDIS_LOCK_H
#define HF_REDIS_LOCK_H

#include "flights.h"

#define RD_LEASE_BITS 23 /* in ms: 2.3 h; longer leases count as 2.3 h */
#define RD_LEASE_MOST ((1u << RD_LEASE_BITS) - 1)

/* A lock is not handed over to a waiter whose hold will not be renewed
 * (hf__req.fixed), or whose TTL is shorter than this. The TTL would count from
 * the waiter's latest attempt, which may be seconds old, so too little of a
 * short TTL might be left. */
#define RD_HAND_MIN_MS 6000
/* How many permits one hold may have at most, and how many permits one script
 * may renew at most. Each permit is a command inside a script, and a script
 * blocks all clients of the server. */
#define RD_PERMITS_MAX 4095

struct rd_chan;

/* The backend's state of a lock of this client (remote->impl). */
struct rd_lock {
    struct hf__remote *remote;
    struct rd_chan *chan; /* NULL if the lock has not waited lately */
    struct rd_lock *next; /* the next lock of the same chan */
    uint64_t attempt_id;  /* hold id of the latest attempt */
    union {
        uint64_t token; /* of a hold that was handed over, or 0 */
        uint64_t round; /* of a latch: number of its latest setting
                           (wait_latch.lua), or 0 */
    };
    hf__time sent_at; /* when the latest answered attempt was sent */
    uint32_t seen_ms; /* low bits of the server's time in the latest reply */
    /* The shortest TTL requested under attempt_id, in ms. */
    uint32_t lease_ms : RD_LEASE_BITS;
    uint32_t polls : 3;  /* number of polls without messages, capped */
    bool sent : 1;       /* the server may know attempt_id */
    bool attempting : 1; /* an attempt of this lock is under way */
    bool waits : 1;
    bool rang : 1;     /* a message came during the attempt */
    bool own : 1;      /* fair mutex: subscribed to this waiter's own channel */
    bool notified : 1; /* a message has arrived since the latest attempt */
};

/* Kept small, because a program may have many names, and each costs about 500
 * bytes in all. */
_Static_assert(sizeof(struct rd_lock) <= 56, "every name has one");

int hf__rd_attach(void *, struct hf__remote *);
void hf__rd_detach(void *, struct hf__remote *);
int hf__rd_attempt(void *, struct hf__req *);
int hf__rd_release(void *, struct hf__req *);
int hf__rd_abandon(void *, struct hf__req *);

/* Handles the reply to an attempt, a release or an abandon. Returns 0 or
 * HF_EPROTO. */
int hf__rd_verb_reply(struct redis *, const struct rd_flight *,
                      const struct rd_node *, hf__time now);
/* Reports the attempt as granted. req->token must be set. */
void hf__rd_grant(struct redis *, struct hf__req *, hf__time now);

#endif
