/*
 * Calls of gRPC, from start to end: unary ones and streams. Whoever has the
 * connection (grpc.h) makes them, and hears how each has ended.
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
 * Everything runs with the client's mutex held. over() and message() are called
 * as grpc.h says, never from a function that starts or cancels.
 */
#ifndef HF_NET_GRPC_CALL_H
#define HF_NET_GRPC_CALL_H

#include "backends/backend.h"

#include <stdbool.h>

struct grpc;
struct grpc_call;

/* Of the codes of gRPC, those that are named here. */
#define GRPC_OK 0
#define GRPC_UNKNOWN 2
#define GRPC_RESOURCE_EXHAUSTED 8
#define GRPC_UNAUTHENTICATED 16

#define GRPC_BACKLOG 4 /* times its limit a call may wait behind others */

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
    int http;          /* HTTP's status; 0: not yet */
    bool is_grpc;      /* its content type is right */
    int said;          /* grpc-status; -1: not yet, or no number */
    struct grpc_buf out, in_buf;
};

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
/* Unary, ANSWERED, status 0: the message, until the call is started again. */
const uint8_t *hf__grpc_answer(const struct grpc_call *, size_t *len);
bool hf__grpc_is_idle(const struct grpc_call *);

/* Calls carry this token from now on, and those that were held go on; NULL:
 * none can be had, and those end as they were refused; new ones that were held
 * end UNSENT with that status and text. 0, HF_ENOMEM (the same as NULL). To be
 * called from callbacks only. */
int hf__grpc_token(struct grpc *, const char *token, int status,
                   const char *text);

/* ---- for the other files of this folder --------------------------------- */

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
/* nghttp2's: the call of that stream; NULL: nobody's. */
struct grpc_call *hf__grpc_find(const struct grpc *, int32_t id);
/* Nothing of the stream is wanted any more. */
void hf__grpc_drop(struct grpc_call *, uint32_t error);
int hf__grpc_reserve(const struct grpc *, struct grpc_buf *, size_t more);

#endif
