/*
 * gRPC calls over one HTTP/2 connection, by libnghttp2. It knows nothing of
 * locks, of etcd, or of protobuf: a message is bytes.
 *
 * This is the connection: session, GOAWAY, driving. Calls are in call.h, what
 * the server says about them in answer.h, PINGs in ping.h.
 *
 * The connection is a net_link: TLS (with ALPN "h2"), reconnecting, the next
 * address and the pauses are that link's. It is up once the server's SETTINGS
 * have come and, if the owner has a hello(), hf__grpc_up() was called.
 *
 * Everything runs with the client's mutex held. The owner is called from
 * hf__grpc_ready(), hf__grpc_advance() and hf__link_fail() on g->link, never
 * from a function that starts, cancels or flushes. Inside of its callbacks the
 * owner may start and cancel any call, but not stop or fail the link: the
 * callbacks return a code instead, whose text hf__link_why() has set.
 */
#ifndef HF_NET_GRPC_H
#define HF_NET_GRPC_H

#include "net/link.h"

#include "call.h"
#include "ping.h"

#include <nghttp2/nghttp2.h>

/* Who has the connection. Each may be NULL but for down(). */
struct grpc_owner {
    /* Connected, the server speaks HTTP/2. Starts greetings, and says
     * hf__grpc_up() when they are over. NULL: it is up at once. As over(). */
    int (*hello)(struct grpc *, hf__time now);
    /* Calls can be started. */
    void (*up)(struct grpc *, hf__time now);
    /* As that of a link. All calls have been told before. */
    void (*down)(struct grpc *, int code, bool was_up, hf__time now);
    /* Does the server refuse this call because of its token? */
    bool (*is_stale)(struct grpc *, const struct grpc_call *);
    /* A new token is needed: until hf__grpc_token() says it, calls are held.
     * 0; HF_EAUTH: none can be had; or a code that ends the connection. Must be
     * set if is_stale is. */
    int (*renew)(struct grpc *, hf__time now);
};

struct grpc_header {
    const char *name, *value;
};

struct grpc {
    struct net_link link; /* the owner's as link.h says, but for talk, owner,
                             awaits and understood */
    const struct grpc_owner *type;
    void *owner;
    /* The owner's, at any time. */
    const struct grpc_header *headers; /* of every call; names in lower case */
    size_t headers_len;                /* GRPC_HEADERS at most */
    const char *token_name;            /* of the header that has the token */
    uint32_t ping_ms; /* with a call open and so long a silence the server is
                         asked whether it is there */

    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    nghttp2_session *session; /* of this connection */
    struct grpc_list calls;   /* HELD or OPEN, the oldest first */
    struct grpc_list ended;   /* over() is due */
    size_t open;              /* calls that are OPEN */
    size_t unary;             /* of these, those that will end by themselves */
    hf__time begun_at;        /* since when calls are open */
    hf__time first_limit;     /* no limit passes before */
    unsigned late;            /* unary calls in a row */
    hf__time late_at;         /* when the last of them ended */
    hf__time answered_at;     /* when a unary call was last answered */
    hf__time slowest;         /* how long one has taken, lately, */
    hf__time slowest_at;      /* and when that was */
    hf__time now;             /* of ready() or advance() */
    char *token;              /* "": none */
    uint32_t token_no;        /* counts them */
    bool is_renewing;         /* a token is awaited */
    bool is_reading;          /* inside of mem_recv */
    bool is_short;            /* nghttp2 had not enough memory */
    bool has_settings;        /* the server's SETTINGS have come */
    bool is_pinging;          /* a PING is not answered */
    bool may_ping;            /* the server has sent something since */
    bool owes_ack; /* of a PING that the server sends with every answer */
    hf__time pinged_at;
    hf__time leaves_at; /* no call is started any more; what is open may last
                           until then */
    char away[128];     /* why */
    int failed;         /* a code: the connection is to be ended */
};

#define GRPC_HEADERS 4

/* 0, HF_ENOMEM. To be called before the owner sets its fields. */
int hf__grpc_init(struct grpc *, const struct hf__core *, hf_client *,
                  const struct grpc_owner *, void *owner);
/* Also after an init() that has failed, or of zeroed memory of which only
 * link was initialized. Calls that are left are IDLE. */
void hf__grpc_fini(struct grpc *);
/* It is not wanted any more: no callback is called, calls are IDLE. */
void hf__grpc_stop(struct grpc *);

/* For hello() and the callbacks of greetings: the greeting is over. */
void hf__grpc_up(struct grpc *, hf__time now);
/* For callbacks: ends the connection as soon as the unary calls that are open
 * have been answered, or a second later. No other call is started meanwhile. 0,
 * or a code that the callback returns, if the connection is not up. */
int hf__grpc_leave(struct grpc *, const char *why);

/* For the backend's slots; hf__link_opened() is used as it is. */
bool hf__grpc_ready(struct grpc *, uint32_t tag, uint32_t events, hf__time now);
void hf__grpc_advance(struct grpc *, hf__time now);
hf__time hf__grpc_timeout(const struct grpc *);
/* Sends what was started or said. advance() does so, too. */
void hf__grpc_flush(struct grpc *);

#endif
