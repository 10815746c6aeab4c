/*
 * gRPC calls over one HTTP/2 connection, by libnghttp2. This room knows nothing
 * of locks, of etcd or of protobuf: a message is bytes.
 *
 * This file is the connection: session, GOAWAY, driving. Calls are in call.h,
 * what the server says about them in answer.h, PINGs in ping.h.
 *
 * The connection is a net_link, which does TLS (with ALPN "h2"), reconnects,
 * goes to the next address and pauses. It is up once the server's SETTINGS have
 * come and, if the owner has a hello(), hf__grpc_up() was called.
 *
 * Everything runs with the client's mutex held. The owner's callbacks run
 * inside hf__grpc_ready(), hf__grpc_advance() and hf__link_fail() on g->link,
 * never inside a function that starts, cancels or flushes. They may start and
 * cancel any call, but must not stop or fail the link: they return a code
 * instead, whose text hf__link_why() has set.
 */
#ifndef HF_NET_GRPC_H
#define HF_NET_GRPC_H

#include "net/link.h"

#include "call.h"
#include "ping.h"

#include <nghttp2/nghttp2.h>

/* Callbacks of the owner of the connection. All but down() may be NULL. */
struct grpc_owner {
    /* The server speaks HTTP/2. Starts the greeting; at its end the owner calls
     * hf__grpc_up(). NULL: the connection is up at once. Returns what over()
     * returns. */
    int (*hello)(struct grpc *, hf__time now);
    /* Calls can be started. */
    void (*up)(struct grpc *, hf__time now);
    /* Like a link's down(). The ends of all calls were delivered before. */
    void (*down)(struct grpc *, int code, bool was_up, hf__time now);
    /* Has the server refused this call because of its token? */
    bool (*is_stale)(struct grpc *, const struct grpc_call *);
    /* A new token is needed; calls are held until the owner calls
     * hf__grpc_token(). Returns 0, HF_EAUTH if no token can be had, or a code
     * that ends the connection. Required if is_stale is set. */
    int (*renew)(struct grpc *, hf__time now);
};

struct grpc_header {
    const char *name, *value;
};

struct grpc {
    struct net_link link; /* link.h says what the owner sets, except talk,
                             owner, awaits and understood */
    const struct grpc_owner *type;
    void *owner;
    /* The owner may set these at any time. */
    const struct grpc_header *headers; /* of every call; names in lower case */
    size_t headers_len;                /* GRPC_HEADERS at most */
    const char *token_name;            /* name of the header that carries it */
    uint32_t ping_ms; /* after so long a silence while calls are open, the
                         server is asked whether it is there; 0: never */

    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    nghttp2_session *session; /* of this connection */
    struct grpc_list calls;   /* HELD or OPEN, the oldest first */
    struct grpc_list ended;   /* over() is due */
    size_t open;              /* calls that are OPEN */
    size_t unary;             /* how many of them are no streams */
    hf__time begun_at;        /* since when at least one is open */
    hf__time first_limit;     /* no limit passes before */
    unsigned late;            /* late unary calls in a row */
    hf__time late_at;         /* when the last of them ended */
    hf__time answered_at;     /* when a unary call was last answered */
    hf__time slowest;    /* the time that the slowest recent answer took, */
    hf__time slowest_at; /* and when it came */
    hf__time now;        /* of ready() or advance() */
    char *token;         /* "": none */
    uint32_t token_no;   /* its number */
    bool is_renewing;    /* waits for a new token */
    bool is_reading;     /* inside nghttp2_session_mem_recv() */
    bool is_short;       /* an allocation by nghttp2 has failed */
    bool has_settings;   /* the server's SETTINGS have come */
    bool is_pinging;     /* our PING is not answered yet */
    bool may_ping;       /* the server has sent something since our last PING */
    bool owes_ack;       /* of the PING that grpc-go sends with answers */
    hf__time pinged_at;
    hf__time leaves_at; /* no call is started any longer; open calls may last
                           until then */
    char away[128];     /* why the connection is left */
    int failed;         /* a code that will end the connection; 0 */
};

#define GRPC_HEADERS 4

/* 0, HF_ENOMEM. Clears the struct, so the owner sets its fields afterwards. */
int hf__grpc_init(struct grpc *, const struct hf__core *, hf_client *,
                  const struct grpc_owner *, void *owner);
/* May be called after a failed init(), or if only link of zeroed memory was
 * initialized. Calls that are left become IDLE. */
void hf__grpc_fini(struct grpc *);
/* Ends the connection. No callback is called, and calls become IDLE. */
void hf__grpc_stop(struct grpc *);

/* For hello() and callbacks of greetings: the greeting has ended. */
void hf__grpc_up(struct grpc *, hf__time now);
/* For callbacks: ends the connection once the open unary calls were answered,
 * or a second later. Until then no other call is started. Returns 0; or, if the
 * connection is not up, a code that the callback must return. */
int hf__grpc_leave(struct grpc *, const char *why);

/* For the backend's slots. hf__link_opened() serves as `opened`. */
bool hf__grpc_ready(struct grpc *, uint32_t tag, uint32_t events, hf__time now);
void hf__grpc_advance(struct grpc *, hf__time now);
hf__time hf__grpc_timeout(const struct grpc *);
/* Sends what was started. hf__grpc_advance() does so, too. */
void hf__grpc_flush(struct grpc *);

#endif
