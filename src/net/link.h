/*
 * A link: a connection to a server, which is established again whenever it
 * fails. It knows nothing about the protocol: its owner greets, reads and
 * writes.
 *
 *     OFF <-- stop() -- any state
 *      | start()
 *      v          timer                 connected, TLS agreed
 *   PAUSING ----------------> CONNECTING --------------------> GREETING
 *      ^                          |                               | up()
 *      |      failure, timer      |                               v
 *      +--------------------------+----------------------------- UP
 *                 (from UP also: the server does not answer in time)
 *
 * With stream.tls_later the TLS handshake is part of GREETING: the owner starts
 * it.
 *
 * A round has failed when every address was tried. Then comes a pause, which
 * grows, and in some rounds a new lookup of the name. After the loss of a
 * connection that was up for a while, the link connects again at once. Any
 * error ends the connection, and the next one starts from a clean state.
 *
 * The client's mutex is held. The owner is called only from ready(), advance()
 * and fail(), so never inside a function of the backend that sends: if that
 * fails, the next advance() notices it. The owner sets the fields that are
 * marked as its own, writes to stream.out, and reads the rest. It must not stop
 * or fail a link from inside that link's greet(), data() or secured(): these
 * return a code instead.
 */
#ifndef HF_NET_LINK_H
#define HF_NET_LINK_H

#include "endpoint.h"

enum net_state {
    NET_OFF,        /* stopped */
    NET_PAUSING,    /* waits until `timer` to connect */
    NET_CONNECTING, /* connects, until `timer` at most */
    NET_GREETING,   /* greet() was called; lasts until `timer` at most */
    NET_UP,
};

/* The functions of the owner. greet(), data() and secured() return 0, or a code
 * that ends the connection. Such a function sets the text of the failure by
 * hf__link_why(); without that the text is "out of memory" for HF_ENOMEM, else
 * "an answer we do not understand". */
struct net_talk {
    /* The link has connected. The owner writes its first request, if any, to
     * stream.out; the link flushes. */
    int (*greet)(void *owner, hf__time now);
    /* These bytes have arrived, in GREETING or UP. The owner sets `awaits`. */
    int (*data)(void *owner, const char *, size_t, hf__time now);
    /* The connection was lost (was_up) or could not be made; `text` says why.
     * The stream is closed, but stream.written is still valid. The owner may
     * stop the link here. */
    void (*down)(void *owner, int code, bool was_up, hf__time now);
    /* The handshake of hf__link_secure() is complete. The owner writes its next
     * request, as in greet(). NULL if it does not call hf__link_secure(). */
    int (*secured)(void *owner, hf__time now);
};

struct net_link {
    /* Set by the owner once. */
    const struct net_talk *talk;
    void *owner;
    struct net_endpoint *peer;
    uint32_t *tags;    /* the last tag (core->watch()) of this client; each
                          connection takes the next */
    const char *lost;  /* what to log after a loss: "redis: lost the
                          connection"; NULL: nothing */
    const char *doubt; /* added to the text of a failure before any answer was
                          understood: "; is it Redis?"; or NULL */
    /* Set by the owner at any time. */
    uint32_t connect_ms; /* the time for one round over all addresses */
    uint32_t silence_ms; /* the time for an answer that is due */
    uint32_t hurry_ms;   /* a limit for both times; 0: none */
    uint32_t pause_ms;   /* the longest pause */
    bool goes_round; /* true: after a loss the round begins at the next address;
                        false: at the first */
    bool awaits;     /* UP: an answer is due */
    bool understood; /* an answer was one of the expected kind of server */
    bool lasts;      /* true if the failure to connect is permanent */
    bool explained;  /* true if hf__link_why() has set the text with which this
                        connection will end, perhaps later */
    hf__time refused_at; /* when the server refused this attempt to connect;
                            HF__NEVER: it has not */
    struct net_stream stream;

    enum net_state state;
    bool securing; /* GREETING: the TLS handshake is in progress */
    struct net_walk walk;
    hf__time timer;
    hf__time up_at;    /* when the link last became UP; 0: never */
    hf__time heard_at; /* when the last byte came, or an answer became due */
    int open_code;     /* the code of the last failed round; 0: none */
    char where[80];    /* host:port, or a path */
    char text[720];    /* why the link is not up; begins with `where` */
};

/* Must be called before the owner sets its fields. */
void hf__link_init(struct net_link *, const struct hf__core *, hf_client *);
void hf__link_fini(struct net_link *);
/* Starts a link that is OFF: advance() connects. */
void hf__link_start(struct net_link *, hf__time now);
void hf__link_stop(struct net_link *);

/* Must be called when the owner has completed the greeting. */
void hf__link_up(struct net_link *, hf__time now);
/* Starts TLS; to be called in data(), in GREETING with stream.tls_later. After
 * data() has returned, the out buffer is sent in plain, then the handshake
 * begins, and secured() is called at its end. The owner must refuse bytes that
 * follow those which made it call this: an attacker may have written them. */
void hf__link_secure(struct net_link *);
/* Sets the text of a failure; the text must not contain secrets. Returns
 * code. */
int hf__link_why(struct net_link *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns `doubt` if no answer was understood yet, else "". */
const char *hf__link_doubt(const struct net_link *);
/* Closes the connection and connects again later. The text must be set. */
void hf__link_fail(struct net_link *, int code, hf__time now);

/* Returns whether the link is up, for a function that wants to send. Detects an
 * idle connection that the server has closed: a request sent on it would end as
 * EUNKNOWN. If the server refused the last attempt to connect, the link tries
 * again soon. */
bool hf__link_wanted(struct net_link *);
/* Records that an answer is due: silence_ms begins now, unless one was due
 * already. */
void hf__link_await(struct net_link *, hf__time now);
/* Limits the time for an answer, and for a connection, even if that is being
 * made now, to `ms`; 0: no limit. */
void hf__link_hurry(struct net_link *, uint32_t ms, hf__time now);
/* Starts a lookup, because the server may have another address. The next
 * connection waits for the result, but for connect_ms at most. */
void hf__link_look_up(struct net_link *, hf__time now);

/* For the backend's slots. opened() returns HF__DONE, HF__PENDING, or a code
 * whose text is set. ready() returns false if the event is not for this
 * link. */
int hf__link_opened(const struct net_link *);
bool hf__link_ready(struct net_link *, uint32_t tag, uint32_t events,
                    hf__time now);
void hf__link_advance(struct net_link *, hf__time now);
hf__time hf__link_timeout(const struct net_link *);

#endif
