/*
 * The names that locks of this client wait for or have waited for lately, the
 * locks of each name, and the functions that ring these locks, that is, make a
 * waiting lock attempt again (core->bell). subscribe.c decides which channels
 * of the server belong to a name.
 *
 * A chan (struct rd_chan) exists from the first wait for its name. When the
 * last lock has stopped waiting for the name, the chan lingers: its channels
 * stay subscribed until rd_chan.until. Lingering chans form a list, ordered by
 * `until`; hf__rd_chan_forget() frees them. subscribe.c owns the state of the
 * subscription (struct rd_chans). same_server.c owns the state of the proof
 * that the connections r->cmd and r->sub lead to the same server (struct
 * rd_pair).
 */
#ifndef HF_REDIS_CHANNELS_H
#define HF_REDIS_CHANNELS_H

#include "backends/common/table.h"
#include "same_server.h"

struct redis;
struct rd_lock;

/* A name that a lock waits for, or has waited for lately. */
struct rd_chan {
    struct hf__keyed key;        /* the name of the lock */
    struct rd_chan *next, *prev; /* in the list of chans that linger */
    struct rd_lock *locks; /* locks that wait for this name, or have waited */
    size_t waiting;        /* number of `locks` that wait now; 0 if lingering */
    hf__time until;        /* when the chan stops lingering */
    hf__time confirmed_at; /* when all channels were confirmed, or 0 */
    uint8_t kind;
    bool fair;       /* for fair mutexes, which have a separate chan */
    bool joined;     /* SUBSCRIBE was sent */
    bool ring_later; /* ring its locks when the channels are confirmed */
};

/* An early message: a message for an attempt whose reply has not arrived yet.
 * Message and reply use different connections, so either may arrive first. The
 * message is kept until hf__rd_was_called() takes it, until all commands that
 * were under way at its arrival have been answered, or until RD_EARLY newer
 * messages have arrived. */
#define RD_EARLY 64
struct rd_early {
    uint64_t hold_id; /* of the attempt; 0 if this slot is free */
    size_t last;      /* number of the last command sent before its arrival */
    uint64_t token;   /* token of the hold; 0 if the message only says "try" */
    uint32_t seen_ms; /* <seen> of the message: the message counts only together
                         with the reply that has the same lock.seen_ms */
};

/*
 * How far the messages of r->sub are trusted.
 *
 *   state       r->sub      r->cmd   pair.state      messages
 *   NONE        any         any      NONE            some may be missing
 *   CONFIRMED   UP          any      any             only make waiters try
 *   LIVE        UP          UP       NONE            trusted
 *
 * The state changes from NONE to CONFIRMED when the server has confirmed our
 * own channel, and from CONFIRMED to LIVE after a proof. Losing r->cmd leads
 * from LIVE to CONFIRMED, losing r->sub to NONE. There is one exception to the
 * table: if a server confirms our channel a second time, another proof begins,
 * so pair.state is not NONE although the state is still LIVE. `refused` is
 * independent of the state and makes waiters poll.
 */
enum rd_sub_state { RD_SUB_NONE, RD_SUB_CONFIRMED, RD_SUB_LIVE };

struct rd_chans {
    struct hf__table table; /* by name, kind and fairness */
    size_t waiting;
    struct rd_chan *oldest, *newest; /* lingering chans */
    enum rd_sub_state state;
    struct rd_pair pair;
    hf__time live_at; /* when the state became LIVE */
    /* Set if the server refused a subscription of this connection, so that
     * waiters poll. `again` is when to try a new connection, or 0 if the
     * refusal is permanent. */
    bool refused;
    hf__time again;
    uint8_t put_off;        /* number of temporary refusals in a row, capped */
    hf__time early_lost_at; /* when a message in `early` was last overwritten */
    unsigned early_at;      /* next slot of `early` */
    struct rd_early early[RD_EARLY];
};

/* Returns NULL if there is no such chan. */
struct rd_chan *hf__rd_chan_find(const struct redis *, const char *name,
                                 size_t len, enum hf_kind, bool fair);

/* Returns NULL if there is no memory. */
struct rd_chan *hf__rd_chan_add(struct redis *, const struct hf__remote *);

/* Returns the chan after the given one, or the first chan if NULL is given.
 * Returns NULL after the last one. */
struct rd_chan *hf__rd_chan_next(const struct redis *, const struct rd_chan *);
void hf__rd_chan_linger(struct redis *, struct rd_chan *, hf__time until);
void hf__rd_chan_unlinger(struct redis *, struct rd_chan *);
/* Frees a chan that lingers. Its subscriptions must have ended. */
void hf__rd_chan_forget(struct redis *, struct rd_chan *);
void hf__rd_chan_add_lock(struct rd_chan *, struct rd_lock *);
void hf__rd_chan_remove_lock(struct rd_lock *);

/* Rings one waiting lock, which then attempts again. */
void hf__rd_ring_one(struct redis *, struct rd_lock *);

/* Rings the waiting locks of one name. */
void hf__rd_ring(struct redis *, struct rd_chan *);

/* Rings the waiting locks of all names. */
void hf__rd_ring_all(struct redis *);

/* Logs why the server sends no messages, and rings all waiters, which poll from
 * now on. `verb` is the command or the step that failed, `text` the error
 * message. */
void hf__rd_no_messages(struct redis *, const char *verb, const char *text);

#endif
