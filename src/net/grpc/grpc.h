/*
 * gRPC calls over one HTTP/2 connection, by libnghttp2. This folder is
 * independent of locks, of etcd and of protobuf: a message is bytes.
 *
 * This file is the connection: session, GOAWAY, driving. Calls are in call.h,
 * what the server says about them in answer.h, PINGs in ping.h.
 *
 * The connection is a net_link, which does TLS (with ALPN "h2"), connects again
 * after a failure, tries the next address, and pauses. It is up once the
 * server's SETTINGS have arrived and, if the owner has a hello(), hf__grpc_up()
 * was called.
 *
 * Everything runs with the client's mutex held. The owner's callbacks run
 * inside hf__grpc_ready(), hf__grpc_advance() and hf__link_fail() on g->link,
 * never inside a function that starts, cancels or flushes. They may start and
 * cancel any call, but must not stop or fail the link: to end the connection
 * they set a message by hf__link_why() and return an error code.
 */
#ifndef HF_NET_GRPC_H
#define HF_NET_GRPC_H

#include "net/link.h"

#include "call.h"
#include "ping.h"

#include <nghttp2/nghttp2.h>

/* Callbacks of the owner of the connection. down() must be set, and renew() if
 * is_stale() is set; the others may be NULL. */
struct grpc_owner {
    /* Starts the greeting, after the server has spoken HTTP/2. When the
     * greeting is complete, the owner calls hf__grpc_up(). If this is NULL, the
     * connection is up at once. Returns 0, or an error code that ends the
     * connection. */
    int (*hello)(struct grpc *, hf__time now);
    /* Called when calls can be started. */
    void (*up)(struct grpc *, hf__time now);
    /* See down() of struct net_talk. Before down(), over() was called for all
     * calls. */
    void (*down)(struct grpc *, int code, bool was_up, hf__time now);
    /* Returns whether the server has refused this call because of its token. */
    bool (*is_stale)(struct grpc *, const struct grpc_call *);
    /* Gets a new token; calls are held until the owner calls hf__grpc_token().
     * Returns 0, HF_EAUTH if the owner cannot get a token, or an error code
     * that ends the connection. */
    int (*renew)(struct grpc *, hf__time now);
};

struct grpc_header {
    const char *name, *value;
};

struct grpc {
    struct net_link link; /* the owner sets what link.h says, except talk,
                             owner, awaits and understood */
    const struct grpc_owner *type;
    void *owner;
    /* The owner may set these at any time. */
    const struct grpc_header *headers; /* sent with every call; names in lower
                                          case */
    size_t headers_len;                /* GRPC_HEADERS at most */
    const char *token_name;            /* name of the header with the token */
    uint32_t ping_ms; /* if calls are open and the server is silent for this
                         long, a PING is sent (ping.h); 0 for no PINGs */

    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    nghttp2_session *session; /* the session of this connection */
    struct grpc_list calls;   /* HELD or OPEN, the oldest first */
    struct grpc_list ended;   /* ENDED, but over() was not called yet */
    size_t open;              /* calls that are OPEN */
    size_t unary;             /* how many of the open calls are unary */
    hf__time begun_at;        /* since when at least one call is open */
    hf__time first_limit;     /* no call's time limit passes before this */
    unsigned late;            /* late unary calls in a row */
    hf__time late_at;         /* when the last late call ended */
    hf__time answered_at;     /* when a unary call was last answered */
    hf__time slowest;         /* how long the slowest recent answer took */
    hf__time slowest_at;      /* when the slowest recent answer came */
    hf__time now; /* the time that the last ready() or advance() was given */
    char *token;  /* the token that calls carry, or NULL */
    uint32_t token_no; /* number of the token: raised with each new one */
    bool is_renewing;  /* renew() is getting a new token */
    bool is_reading;   /* nghttp2_session_mem_recv() is running */
    bool is_short;     /* an allocation by nghttp2 has failed */
    bool has_settings; /* the server's SETTINGS have arrived */
    bool is_pinging;   /* our PING is not answered yet */
    bool may_ping;     /* the server has sent headers or data since it answered
                          our last PING */
    bool owes_ack;     /* grpc-go's PING, which it sends with answers, is not
                          acknowledged yet */
    hf__time pinged_at;
    hf__time leaves_at; /* if not HF__NEVER, no further call is started, and
                           open unary calls may last until this time */
    char away[128];     /* why the connection must end */
    int failed;         /* the code with which the connection will end, or 0 */
};

#define GRPC_HEADERS 4

/* Initializes the struct, whose fields the owner must set afterwards. Returns 0
 * or HF_ENOMEM. */
int hf__grpc_init(struct grpc *, const struct hf__core *, hf_client *,
                  const struct grpc_owner *, void *owner);
/* Frees everything; all calls become IDLE. May also be called after a failed
 * init(), or if the memory is zeroed and only `link` was initialized. */
void hf__grpc_fini(struct grpc *);
/* Ends the connection without any callback. All calls become IDLE. */
void hf__grpc_stop(struct grpc *);

/* Ends the greeting. Must be called in hello() or in a callback of a greeting
 * call. */
void hf__grpc_up(struct grpc *, hf__time now);
/* For callbacks of the owner: ends the connection once the open unary calls
 * were answered, or after a second. Until then no other call is started.
 * Returns 0 or, if the connection is not up, an error code that the callback
 * must return. */
int hf__grpc_leave(struct grpc *, const char *why);

/* The functions of the backend with the same names call these. The backend's
 * opened() calls hf__link_opened(). */
bool hf__grpc_ready(struct grpc *, uint32_t tag, uint32_t events, hf__time now);
void hf__grpc_advance(struct grpc *, hf__time now);
hf__time hf__grpc_timeout(const struct grpc *);
/* Sends the calls that were started. hf__grpc_advance() also does this. */
void hf__grpc_flush(struct grpc *);

#endif
