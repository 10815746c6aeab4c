/*
 * A link: a connection to a server, which is established again whenever it
 * fails. The link is independent of the protocol: its owner writes the requests
 * and interprets the answers.
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
 * The link tries the addresses of the server in rounds. A round fails when no
 * address is left to try. Then the link pauses, longer after each failed round,
 * and in some rounds looks the hosts up again. After the loss of a connection
 * that was up for a while, the link connects again at once. Any error ends the
 * connection, and the next connection starts from a clean state.
 *
 * The client's mutex is held. The owner is called only from ready(), advance()
 * and fail(), so it is never called while it is sending: if sending fails, the
 * next advance() handles the failure. The owner sets the fields that are marked
 * as its own, and writes to stream.out. It may read the other fields. It must
 * not stop or fail a link from inside that link's greet(), data() or secured():
 * these return an error code instead.
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

/* The functions of the owner. greet(), data() and secured() return 0, or an
 * error code that ends the connection. Before it returns an error code, such a
 * function may set the message of the failure by hf__link_why(). Otherwise the
 * message is "out of memory" for HF_ENOMEM, and "an answer we do not
 * understand" for any other code. */
struct net_talk {
    /* The link has connected. The owner writes its first request, if it has
     * one, to stream.out; the link flushes it. */
    int (*greet)(void *owner, hf__time now);
    /* These bytes have arrived, in GREETING or UP. The owner sets `awaits` to
     * whether another answer is due. */
    int (*data)(void *owner, const char *, size_t, hf__time now);
    /* The connection was lost (was_up) or could not be made; link.text says
     * why. The stream is closed, but stream.written is still valid. The owner
     * may stop the link here. */
    void (*down)(void *owner, int code, bool was_up, hf__time now);
    /* The handshake of hf__link_secure() is complete. The owner writes its next
     * request, as in greet(). NULL if the owner does not call
     * hf__link_secure(). */
    int (*secured)(void *owner, hf__time now);
};

struct net_link {
    /* Set once by the owner. */
    const struct net_talk *talk;
    void *owner;
    struct net_endpoint *peer;
    uint32_t *tags;    /* the last tag (core->watch()) of this client; each
                          connection takes the next */
    const char *lost;  /* what to log after a loss ("redis: lost the
                          connection"), or NULL for nothing */
    const char *doubt; /* added to the message of a failure before any answer
                          was understood ("; is it Redis?"), or NULL */
    /* Set by the owner at any time. */
    uint32_t connect_ms; /* the time for one round over all addresses */
    uint32_t silence_ms; /* the time for an answer that is due */
    uint32_t hurry_ms;   /* a limit for both times, or 0 */
    uint32_t pause_ms;   /* the longest pause */
    bool goes_round;     /* whether the round after a loss begins at the next
                            address instead of the first */
    bool awaits;         /* UP: an answer is due */
    bool understood;     /* an answer came from the expected kind of server */
    bool lasts;          /* the failure to connect is permanent */
    bool explained;      /* hf__link_why() has set the message with which this
                            connection will end, perhaps later */
    hf__time refused_at; /* when the server refused this attempt to connect, or
                            HF__NEVER */
    struct net_stream stream;

    enum net_state state;
    bool securing; /* GREETING: the TLS handshake is in progress */
    struct net_walk walk;
    hf__time timer;
    hf__time up_at;    /* when the link last became UP, or 0 if never */
    hf__time heard_at; /* when the last byte came, or an answer became due */
    int open_code;     /* the code of the last failed round, or 0 */
    char where[80];    /* host:port, or a path */
    char text[720];    /* why the link is not up; begins with `where` */
};

/* Must be called before the owner sets its fields. */
void hf__link_init(struct net_link *, const struct hf__core *, hf_client *);
void hf__link_fini(struct net_link *);
/* Starts a link that is OFF; the next advance() connects. */
void hf__link_start(struct net_link *, hf__time now);
void hf__link_stop(struct net_link *);

/* Must be called when the owner has completed the greeting. */
void hf__link_up(struct net_link *, hf__time now);
/* Begins TLS. Must be called in data(), in GREETING with stream.tls_later.
 * After data() has returned, the out buffer is sent unencrypted; then the
 * handshake begins, and secured() is called at its end. The owner must refuse
 * any bytes that follow the message after which it calls this function: they
 * were not encrypted, so an attacker may have written them. */
void hf__link_secure(struct net_link *);
/* Sets the message of a failure, which must not contain secrets. Returns
 * `code`. */
int hf__link_why(struct net_link *, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns `doubt` during the TLS handshake and the greeting, while no answer
 * was understood; otherwise "". */
const char *hf__link_doubt(const struct net_link *);
/* Closes the connection; the link connects again later. The caller must have
 * set the message by hf__link_why(). */
void hf__link_fail(struct net_link *, int code, hf__time now);

/* Returns whether the link is up, for a function that wants to send. Detects an
 * idle connection that the server has closed, because a request sent on it
 * would end as EUNKNOWN. If the server refused the last attempt to connect,
 * shortens the pause: the link tries again NET_BACKOFF_MS after the refusal. */
bool hf__link_wanted(struct net_link *);
/* Records that an answer is due: silence_ms begins now, unless one was due
 * already. */
void hf__link_await(struct net_link *, hf__time now);
/* Limits the time to wait for an answer and the time to connect, even for a
 * connection that is being made now, to `ms` if that is less than silence_ms or
 * connect_ms. 0 removes this limit. */
void hf__link_hurry(struct net_link *, uint32_t ms, hf__time now);
/* Starts a lookup, because the server may have another address now. The next
 * connection waits for the result, at most for connect_ms. */
void hf__link_look_up(struct net_link *, hf__time now);

/* This function and those below do the work of the backend's slots opened,
 * ready, advance and next_timeout. This function returns HF__DONE, HF__PENDING,
 * or an error code whose message has been set. */
int hf__link_opened(const struct net_link *);
/* Returns false if the event is not for this link. */
bool hf__link_ready(struct net_link *, uint32_t tag, uint32_t events,
                    hf__time now);
void hf__link_advance(struct net_link *, hf__time now);
hf__time hf__link_timeout(const struct net_link *);

#endif
