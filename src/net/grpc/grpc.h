/*
 * gRPC calls over one HTTP/2 connection, by libnghttp2. It knows nothing of
 * locks, of etcd, or of protobuf: a message is bytes.
 *
 * Files: grpc.c the connection: session, pings, GOAWAY; call.c calls, from
 * start to end; answer.c what the server says about a call.
 *
 * The connection is a net_link: TLS (with ALPN "h2"), reconnecting, the next
 * address and the pauses are that link's. It is up once the server's SETTINGS
 * have come and, if the owner has a hello(), hf__grpc_up() was called.
 *
 * A call is a struct of the caller's, which may be used again when it is over:
 * its buffers are kept, so that a unary call allocates nothing here once they
 * have grown. (nghttp2 allocates for each stream.)
 *
 *            start()                answer, reset, limit, loss
 *     IDLE ----------> OPEN ------------------------------> ENDED
 *      ^ |              |  ^                                  |
 *      | | no token     |  | token()                          | over()
 *      | +---> HELD ----+--+     (refused: the token is old)  |
 *      |         ^------+                                     |
 *      +------------------------------------------------------+
 *      cancel() leads from any state to IDLE, without over()
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

#include <nghttp2/nghttp2.h>

/* Of the codes of gRPC, those that are named here. */
#define GRPC_OK 0
#define GRPC_UNKNOWN 2
#define GRPC_RESOURCE_EXHAUSTED 8
#define GRPC_UNAUTHENTICATED 16

struct grpc;
struct grpc_call;

/* How a call has ended. */
enum grpc_end {
    GRPC_ANSWERED, /* the server's status is in `status`, its text in `text` */
    GRPC_UNSENT,   /* the server has done nothing for it: it can be repeated */
    GRPC_LOST,     /* no answer, and none will come: the server may have done
                      it, or may yet */
    GRPC_LATE,     /* the same, because its time limit has passed; a server that
                      answers no call is left after a few */
    GRPC_ODD,      /* the same, because the answer cannot be understood */
};

struct grpc_method {
    const char *path; /* "/etcdserverpb.KV/Txn" */
    bool is_stream;   /* any number of messages in both directions */
    bool is_greeting; /* may be started before the connection is up; waits for
                         no token */
    bool is_bare;     /* carries no token */
    bool is_secret;   /* what it sends and hears is wiped afterwards; over()
                         does not free it */
    uint32_t most;    /* bytes of a message of the server; a longer one ends
                         the call as ODD */
    /* Of a stream: a message has come. Its bytes are gone afterwards. 0, or a
     * code that ends the connection. */
    int (*message)(struct grpc_call *, const uint8_t *, size_t, hf__time now);
    /* It has ended, as `end` says. Unary, ANSWERED with status 0: the message
     * is hf__grpc_answer(). The call is IDLE: it may be started again or freed.
     * 0, or a code that ends the connection (ignored if it is down). */
    int (*over)(struct grpc_call *, hf__time now);
};

struct grpc_buf {
    uint8_t *data;
    size_t from, len, cap;
    bool is_secret;
};

enum grpc_state { GRPC_IDLE, GRPC_HELD, GRPC_OPEN, GRPC_ENDED };

struct grpc_list {
    struct grpc_call *first, *last;
};

/* The caller reads `at`, and what over() says; the rest is grpc's. */
struct grpc_call {
    struct grpc_call *next, *prev;
    struct grpc_list *in; /* NULL: IDLE */
    struct grpc *g;
    const struct grpc_method *method;
    void *owner; /* the caller's */

    enum grpc_state state;
    enum grpc_end end;
    int status;     /* gRPC's code; ODD: what comes nearest */
    char text[200]; /* for people; "" if the server gave none */

    hf__time at;       /* when it was started */
    hf__time until;    /* its limit; HF__NEVER: none */
    uint32_t limit_ms; /* the same; 0: none */
    bool is_local;     /* the caller's: an answer does not show that the server
                          can do more than answer that */
    int32_t id;        /* of the HTTP/2 stream */
    uint64_t start;    /* where it begins in stream.written */
    uint32_t token;    /* which token it carries */
    bool is_begun;     /* `start` is set */
    bool is_repeated;  /* it was refused for its token once */
    bool is_whole;     /* unary: its message has come */
    bool is_closing;   /* stream: no more is sent */
    int http;          /* HTTP's status; 0: not yet */
    bool is_grpc;      /* its content type is right */
    int said;          /* grpc-status; -1: not yet, or no number */
    struct grpc_buf out, in_buf;
};

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
    hf__time asked_at;        /* since when calls are open */
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
    bool is_settled;          /* the server's SETTINGS have come */
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
#define GRPC_BACKLOG 4 /* times its limit a call may wait behind others */

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
/* Calls carry this token from now on, and those that were held go on; NULL:
 * none can be had, and those end as they were refused; new ones that were held
 * end UNSENT with that status and text. 0, HF_ENOMEM (the same as NULL). To be
 * called from callbacks only. */
int hf__grpc_token(struct grpc *, const char *token, int status,
                   const char *text);
/* For callbacks: ends the connection as soon as the unary calls that are open
 * have been answered, or a second later. No other call is started meanwhile. 0,
 * or a code that the callback returns, if the connection is not up. */
int hf__grpc_leave(struct grpc *, const char *why);
/* Asks whether the server is there, unless it would take offence. A silence of
 * link.silence_ms ends the connection then. */
void hf__grpc_ping(struct grpc *, hf__time now);

/* For the backend's slots; hf__link_opened() is used as it is. */
bool hf__grpc_ready(struct grpc *, uint32_t tag, uint32_t events, hf__time now);
void hf__grpc_advance(struct grpc *, hf__time now);
hf__time hf__grpc_timeout(const struct grpc *);
/* Sends what was started or said. advance() does so, too. */
void hf__grpc_flush(struct grpc *);

/* ---- calls -------------------------------------------------------------- */

/* Of zeroed memory, or after fini(). */
void hf__grpc_call_init(struct grpc_call *, struct grpc *,
                        const struct grpc_method *, void *owner);
void hf__grpc_call_fini(struct grpc_call *); /* cancels it; zeroed is fine */

/* Room for a message of that many bytes, which the caller fills in at once;
 * NULL: out of memory. Unary: of an IDLE call, exactly once before start().
 * Stream: any number, before start() or while it lasts; each goes out with the
 * next flush. */
uint8_t *hf__grpc_room(struct grpc_call *, size_t len);
/* 0: over() will be called. HF__LATER: there is no connection; the owner's up()
 * tells of one. HF_ENOMEM. limit_ms: 0 for none; it grows up to GRPC_BACKLOG
 * times while the server is slow with the answers to others. Other than by 0
 * the call stays IDLE, and what was written to its room is gone. */
int hf__grpc_start(struct grpc_call *, uint32_t limit_ms);
/* Whatever its state is: it is IDLE, over() is not called, and its request is
 * taken back if that is possible. */
void hf__grpc_cancel(struct grpc_call *);
/* A stream: no more is said. */
void hf__grpc_close_send(struct grpc_call *);
/* Unary, ANSWERED, status 0: the message, until the call is started again. */
const uint8_t *hf__grpc_answer(const struct grpc_call *, size_t *len);
bool hf__grpc_is_idle(const struct grpc_call *);

/* ---- between the files of this folder ----------------------------------- */

void hf__grpc_list_add(struct grpc_list *, struct grpc_call *);
void hf__grpc_list_remove(struct grpc_call *);
/* Calls over() of all that have ended. 0, or the code of one. */
int hf__grpc_deliver(struct grpc *);
/* From OPEN or HELD to ENDED. */
void hf__grpc_end(struct grpc_call *, enum grpc_end);
/* From OPEN to HELD: it ends UNSENT then, unless it is sent again before. */
void hf__grpc_hold(struct grpc_call *, hf__time until);
/* The connection is gone: what was written is LOST, the rest UNSENT. */
void hf__grpc_end_all(struct grpc *, uint64_t written);
/* Those whose limit has passed. */
void hf__grpc_end_late(struct grpc *, hf__time now);
/* It is reset, because the answer makes no sense: ODD. */
void hf__grpc_odd(struct grpc_call *, int status, const char *text);
/* nghttp2's: the call of that stream; NULL: nobody's. */
struct grpc_call *hf__grpc_find(const struct grpc *, int32_t id);
ssize_t hf__grpc_read_out(nghttp2_session *, int32_t id, uint8_t *buf,
                          size_t size, uint32_t *flags, nghttp2_data_source *,
                          void *g);
void hf__grpc_header(struct grpc_call *, const char *name, size_t name_len,
                     const char *value, size_t len);
int hf__grpc_data(struct grpc_call *, const uint8_t *, size_t);
/* The server has said all that it will. */
void hf__grpc_finished(struct grpc_call *);
/* The stream was reset, by the server or by nghttp2. */
void hf__grpc_was_reset(struct grpc_call *, uint32_t error);
/* Nothing of the stream is wanted any more. */
void hf__grpc_drop(struct grpc_call *, uint32_t error);
int hf__grpc_reserve(const struct grpc *, struct grpc_buf *, size_t more);
/* Text of the server for people: what is not printable becomes '?'. */
void hf__grpc_text(char *to, size_t size, const char *from, size_t len,
                   bool is_encoded);

#endif
