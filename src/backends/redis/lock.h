/*
 * The verbs of every kind: from a request to the command, and from the reply to
 * an outcome. The first five functions are slots of the backend's table; cmd.c
 * passes replies on. A client may have many thousand struct rd_lock, so keep it
 * small.
 */
#ifndef HF_REDIS_LOCK_H
#define HF_REDIS_LOCK_H

#include "flights.h"

#define RD_LEASE_BITS 23 /* 2.3 h; longer ones count as this */
#define RD_LEASE_MOST ((1u << RD_LEASE_BITS) - 1)

/* A lock with a shorter or a fixed lease is not handed over: the lease would
 * count from an attempt that is already old. */
#define RD_HAND_MIN_MS 6000
/* Per hold, because each permit is a command inside a script, which blocks all
 * clients of the server. */
#define RD_PERMITS_MAX 4095 /* also the limit of one renewal script */

struct rd_chan;

/* The backend's state of a line (remote->impl). */
struct rd_lock {
    struct hf__remote *remote;
    struct rd_chan *chan; /* NULL: has not waited lately */
    struct rd_lock *next; /* on the same chan */
    uint64_t attempt_id;  /* hold id of the latest attempt */
    union {
        uint64_t token; /* set if the lock was handed over to this line */
        uint64_t round; /* latch: the round that is waited for; 0: unknown */
    };
    hf__time sent_at; /* when the latest attempt that was answered was sent */
    uint32_t seen_ms; /* low bits of the server's clock in that reply */
    /* A lower bound of the leases requested under attempt_id. */
    uint32_t lease_ms : RD_LEASE_BITS;
    uint32_t polls : 3;  /* string dialect: number of polls, capped */
    bool sent : 1;       /* the server may know attempt_id */
    bool attempting : 1; /* its attempt is under way */
    bool waits : 1;
    bool rang : 1;     /* a message came during the attempt */
    bool own : 1;      /* fair mutex: subscribed to its own channel */
    bool notified : 1; /* a message came, and no attempt since */
};

/* A handle has 512 bytes. */
_Static_assert(sizeof(struct rd_lock) <= 56, "every name has one");

int hf__rd_attach(void *, struct hf__remote *);
void hf__rd_detach(void *, struct hf__remote *);
int hf__rd_attempt(void *, struct hf__req *);
int hf__rd_release(void *, struct hf__req *);
int hf__rd_abandon(void *, struct hf__req *);

/* Handles the reply to an attempt, a release or an abandon. 0, HF_EPROTO. */
int hf__rd_verb_reply(struct redis *, const struct rd_flight *,
                      const struct rd_node *, hf__time now);
/* Reports the attempt as granted. req->token must be set. */
void hf__rd_grant(struct redis *, struct hf__req *, hf__time now);

#endif
