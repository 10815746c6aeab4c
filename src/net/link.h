/*
 * A connection to a server, from nothing to up and back, again and again. It
 * knows nothing about what is said: its owner greets, reads and writes.
 *
 *     OFF <-- stop() -- any state
 *      | start()
 *      v          timer                 connected, TLS agreed
 *   PAUSING ----------------> CONNECTING --------------------> GREETING
 *      ^                          |                               | up()
 *      |      failure, timer      |                               v
 *      +--------------------------+----------------------------- UP
 *                 (UP: the server is silent although it is asked)
 *
 * With stream.tls_later TLS is agreed on in GREETING, when the owner says so.
 *
 * Every address gets its turn before a round counts as failed; then comes a
 * pause, which grows, and now and then the name is looked up anew. A connection
 * that has lived for a while is made anew at once. A connection is used once:
 * whatever is odd about what comes ends it, and the next one starts clean.
 *
 * Everything is called with the client's mutex held. The owner is called from
 * ready(), advance() and fail() alone, so never inside of a slot that sends:
 * what fails there is found by advance(). Of a link the owner sets what is
 * marked as its own, writes to stream.out, and reads the rest. It must not
 * stop or fail a link from inside that link's greet() or data(): these return
 * a code instead.
 */
#ifndef HF_NET_LINK_H
#define HF_NET_LINK_H

#include "endpoint.h"

enum net_state {
    NET_OFF,        /* not wanted */
    NET_PAUSING,    /* until timer */
    NET_CONNECTING, /* until timer at most */
    NET_GREETING,   /* connected, greet() was called; the same */
    NET_UP,
};

/* What its owner does. greet(), data() and secured() return 0, or a code that
 * ends the connection. If none of them has set a text by hf__link_why(), it is
 * that of HF_ENOMEM, or that the answer is not understood. */
struct net_talk {
    /* Connected: says hello. Whatever is written to stream.out is sent. */
    int (*greet)(void *owner, hf__time now);
    /* These bytes have come, GREETING or UP. Sets `awaits` to whether more
     * answers are due. */
    int (*data)(void *owner, const char *, size_t, hf__time now);
    /* It is lost (was_up), or was not made; text says why. The stream is
     * closed, stream.written is still that of then. The last that fail() does:
     * the link may be stopped. */
    void (*down)(void *owner, int code, bool was_up, hf__time now);
    /* What hf__link_secure() began is over: TLS is spoken from here on. As
     * greet(). NULL: the owner does not begin it. */
    int (*secured)(void *owner, hf__time now);
};

struct net_link {
    /* The owner's, set once. */
    const struct net_talk *talk;
    void *owner;
    struct net_endpoint *peer;
    uint32_t *tags;    /* counts the descriptors of this client */
    const char *lost;  /* for the log: "redis: lost the connection"; NULL:
                          nothing is said */
    const char *doubt; /* behind a failure before anything was understood: "; is
                          it Redis?"; NULL: nothing */
    /* The owner's, at any time. */
    uint32_t connect_ms; /* for one round over all addresses */
    uint32_t silence_ms; /* an answer that is due may take so long */
    uint32_t hurry_ms;   /* the most that is waited for either; 0: no such */
    uint32_t pause_ms;   /* the longest pause */
    bool goes_round;     /* one that was lost is followed by one to the next
                            address, where a round begins; else to the first */
    bool awaits;         /* UP: an answer is due */
    bool understood;     /* it has said something that our server would say */
    bool lasts;          /* this failure does not pass by itself */
    bool explained;      /* text is about the present failure */
    hf__time refused_at; /* when the server has answered this attempt to
                            connect by a refusal; HF__NEVER: it has not */
    struct net_stream stream;

    enum net_state state;
    bool securing; /* GREETING: TLS is being agreed on */
    struct net_walk walk;
    hf__time timer;
    hf__time up_at;    /* since when it is, or was last; 0: never */
    hf__time heard_at; /* the last byte, or since when we listen */
    int open_code;     /* a round has failed: why; 0: none has */
    char where[80];    /* host:port, or a path */
    char text[720];    /* why it is not up, with `where` in front */
};

/* To be called before the owner sets its fields. */
void hf__link_init(struct net_link *, const struct hf__core *, hf_client *);
void hf__link_fini(struct net_link *);
/* It is OFF: advance() connects. */
void hf__link_start(struct net_link *, hf__time now);
void hf__link_stop(struct net_link *);

/* The greeting is over. */
void hf__link_up(struct net_link *, hf__time now);
/* For data(), GREETING, with stream.tls_later: once it has returned, all that
 * was written goes out in plain, then TLS begins; secured() is called in the
 * end. Bytes that have come behind those that made the owner call this may be
 * anybody's: the owner must refuse them. */
void hf__link_secure(struct net_link *);
/* The text of a failure, for people, without secrets. Returns code. */
int hf__link_why(struct net_link *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* `doubt`, if there is reason to; else "". */
const char *hf__link_doubt(const struct net_link *);
/* Closes, and tries again later. The text is set. */
void hf__link_fail(struct net_link *, int code, hf__time now);

/* For a slot that wants to send: is it up? If it was idle it may have been
 * closed meanwhile, and what is sent would be EUNKNOWN. If the server refused
 * us when we last connected, it is asked again soon. */
bool hf__link_wanted(struct net_link *);
/* Something is written whose answer is due: silence begins here, unless one
 * was due already. */
void hf__link_await(struct net_link *, hf__time now);
/* No more than so long is waited for a connection or an answer; 0: as long as
 * usual. Holds for one that is being made, too. */
void hf__link_hurry(struct net_link *, uint32_t ms, hf__time now);
/* The server may be elsewhere: who connects next waits for a lookup, a while.
 */
void hf__link_look_up(struct net_link *, hf__time now);

/* For the backend's slots. opened(): DONE, PENDING, or a code whose text is
 * set. ready(): false if the event is not of this link. */
int hf__link_opened(const struct net_link *);
bool hf__link_ready(struct net_link *, uint32_t tag, uint32_t events,
                    hf__time now);
void hf__link_advance(struct net_link *, hf__time now);
hf__time hf__link_timeout(const struct net_link *);

#endif
