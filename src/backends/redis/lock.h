/*
 * The verbs, of every kind: from a request to what is sent, and from the answer
 * to an outcome. The first five functions are slots of the backend's table;
 * cmd.c passes the answers on. struct rd_lock is what is kept of each line of
 * the core (remote->impl): one per name and kind, often many thousand, so it is
 * small.
 */
#ifndef HF_REDIS_LOCK_H
#define HF_REDIS_LOCK_H

#include "flights.h"

#define RD_LEASE_BITS 23 /* 2.3 h; a longer one counts as that */
#define RD_LEASE_MOST ((1u << RD_LEASE_BITS) - 1)

/* With a shorter lease, or a fixed one, a lock is not handed over: the lease
 * would count from an attempt long ago. */
#define RD_HAND_MIN_MS 6000
/* Of one hold: each is a command in a script, for which everybody waits. */
#define RD_PERMITS_MAX 4095 /* and of all that one script renews */

struct rd_chan;

/* What is kept of each line of the core (remote->impl). */
struct rd_lock {
    struct hf__remote *remote;
    struct rd_chan *chan; /* NULL: has not waited lately */
    struct rd_lock *next; /* of the same chan */
    uint64_t attempt_id;  /* the last hold id that was tried */
    union {
        uint64_t token; /* it was handed to us; 0: it was not */
        uint64_t round; /* latch: which one is waited for; 0: not known */
    };
    hf__time sent_at; /* of the attempt that was answered last */
    uint32_t seen_ms; /* the low bits of the server's clock then */
    /* The shortest that was wanted under attempt_id, or less. */
    uint32_t lease_ms : RD_LEASE_BITS;
    uint32_t polls : 3;  /* string dialect: how often, up to a bound */
    bool sent : 1;       /* something of it went out */
    bool attempting : 1; /* its attempt is with us */
    bool waits : 1;
    bool rang : 1;     /* while the attempt was under way */
    bool own : 1;      /* fair mutex: its own channel is subscribed */
    bool notified : 1; /* by a message, and has not tried since */
};

/* Of a handle's 512 bytes. */
_Static_assert(sizeof(struct rd_lock) <= 56, "every name has one");

int hf__rd_attach(void *, struct hf__remote *);
void hf__rd_detach(void *, struct hf__remote *);
int hf__rd_attempt(void *, struct hf__req *);
int hf__rd_release(void *, struct hf__req *);
int hf__rd_abandon(void *, struct hf__req *);

/* The answers: 0, or HF_EPROTO. */
int hf__rd_verb_reply(struct redis *, const struct rd_flight *,
                      const struct rd_node *, hf__time now);
/* The attempt is granted: its token is set. */
void hf__rd_grant(struct redis *, struct hf__req *, hf__time now);

#endif
