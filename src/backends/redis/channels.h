/*
 * The names that somebody of this client waits for, or did a moment ago, and
 * the locks of each; and the bells that those waiters get. subscribe.c decides
 * which channels of the server belong to them.
 *
 * A channel (struct rd_chan) is there from the first wait. After the last one
 * it lingers, in the order of its end, and hf__rd_chan_forget() frees it. The
 * state of the subscription itself (struct rd_chans) belongs to subscribe.c,
 * the proof to same_server.c.
 */
#ifndef HF_REDIS_CHANNELS_H
#define HF_REDIS_CHANNELS_H

#include "backends/common/table.h"
#include "same_server.h"

struct redis;
struct rd_lock;

/* A name that somebody of ours waits for, or did a moment ago. */
struct rd_chan {
    struct hf__keyed key;        /* its name */
    struct rd_chan *next, *prev; /* while it lingers */
    struct rd_lock *locks;       /* who waits, or did a moment ago */
    size_t waiting;              /* 0: it lingers */
    hf__time until;              /* lingers until */
    hf__time confirmed_at;       /* its channels; 0: not */
    uint8_t kind;
    bool fair;       /* of the mutex: the others have one channel for both */
    bool joined;     /* SUBSCRIBE was sent for its channels */
    bool ring_later; /* ring when they are confirmed */
};

/* A message for an attempt whose answer has not come yet: both come by
 * connections of their own, in any order. Kept until it is asked for, until all
 * that was under way is answered, or until so many others have come. */
#define RD_EARLY 64
struct rd_early {
    uint64_t hold_id; /* 0: none */
    size_t last;      /* how many answers there are with the last of those */
    uint64_t token;   /* 0: try */
    uint32_t seen_ms; /* the attempt that got it */
};

/*
 * What the messages of r->sub are worth.
 *
 *   state       r->sub      r->cmd   pair.state      messages
 *   NONE        any         any      NONE            none, or not all
 *   CONFIRMED   UP          any      any             a reason to try
 *   LIVE        UP          UP       NONE            trusted
 *
 * NONE becomes CONFIRMED when our own channel is subscribed, and CONFIRMED LIVE
 * by a proof. The loss of r->cmd leads from LIVE to CONFIRMED, that of r->sub
 * to NONE. (A server that confirms our channel a second time makes a proof
 * begin while it is LIVE.) `refused` is apart from this: waiters poll then.
 */
enum rd_sub_state { RD_SUB_NONE, RD_SUB_CONFIRMED, RD_SUB_LIVE };

struct rd_chans {
    struct hf__table table; /* by name, kind and fairness */
    size_t waiting;
    struct rd_chan *oldest, *newest; /* of those that linger */
    enum rd_sub_state state;
    struct rd_pair pair;
    hf__time live_at; /* LIVE since when */
    /* A subscription of this connection was refused: waiters poll. If that may
     * pass, a new connection is made at `again`; 0: it lasts. */
    bool refused;
    hf__time again;
    uint8_t put_off; /* how often in a row it was refused so, up to a bound */
    hf__time early_lost_at; /* one of these had to make room */
    unsigned early_at;      /* the next place */
    struct rd_early early[RD_EARLY];
};

/* NULL: there is none; or (add) out of memory. */
struct rd_chan *hf__rd_chan_find(const struct redis *, const char *name,
                                 size_t len, enum hf_kind, bool fair);
struct rd_chan *hf__rd_chan_add(struct redis *, const struct hf__remote *);
struct rd_chan *hf__rd_chan_next(const struct redis *, const struct rd_chan *);
void hf__rd_chan_linger(struct redis *, struct rd_chan *, hf__time until);
void hf__rd_chan_unlinger(struct redis *, struct rd_chan *);
/* It lingers, and nobody is subscribed by it any more: frees it. */
void hf__rd_chan_forget(struct redis *, struct rd_chan *);
void hf__rd_chan_add_lock(struct rd_chan *, struct rd_lock *);
void hf__rd_chan_remove_lock(struct rd_lock *);

/* A message for one waiter, or for all of a name: whoever waits asks again. */
void hf__rd_ring_one(struct redis *, struct rd_lock *);
void hf__rd_ring(struct redis *, struct rd_chan *);

/* All waiters try again. */
void hf__rd_ring_all(struct redis *);

/* No messages are to be had from the server: logs why, and all waiters try
 * again. */
void hf__rd_no_messages(struct redis *, const char *verb, const char *text);

#endif
