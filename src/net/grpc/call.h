/*
 * gRPC calls, unary ones and streams, from start to end. The owner of the
 * connection (grpc.h) starts the calls; over() reports the end of each.
 *
 * A call is a struct of its caller and can be used again after it has ended.
 * Its buffers are kept, so a unary call allocates nothing here once they have
 * grown. (nghttp2 allocates for each stream.)
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
 * Everything runs with the client's mutex held. grpc.h says where over() and
 * message() are called: never from a function that starts or cancels a call.
 */
#ifndef HF_NET_GRPC_CALL_H
#define HF_NET_GRPC_CALL_H

#include "backends/backend.h"

#include <stdbool.h>

struct grpc;
struct grpc_call;

/* Some status codes of gRPC. */
#define GRPC_OK 0
#define GRPC_UNKNOWN 2
#define GRPC_RESOURCE_EXHAUSTED 8
#define GRPC_UNAUTHENTICATED 16

#define GRPC_BACKLOG 4 /* a call may wait up to this many times its limit */

/* How a call has ended. */
enum grpc_end {
    GRPC_ANSWERED, /* the server's status is in `status`, its message in
                      `text` */
    GRPC_UNSENT,   /* the server has not processed the call, so it can be
                      repeated */
    GRPC_LOST, /* no answer will come; the server may have executed the call, or
                  may do so later */
    GRPC_LATE, /* no answer within the time limit, otherwise like LOST; after a
                  few such calls in a row the connection ends */
    GRPC_ODD,  /* the answer makes no sense; otherwise like LOST */
};

struct grpc_method {
    const char *path; /* "/etcdserverpb.KV/Txn" */
    bool is_stream;   /* any number of messages in either direction */
    bool is_greeting; /* may be started before the connection is up; does not
                         wait for a token */
    bool is_bare;     /* carries no token */
    bool is_secret;   /* the call's buffers are wiped after use; over() must not
                         free the call */
    uint32_t most;    /* the longest allowed message of the server, in bytes; a
                         longer one ends the call as ODD */
    /* For streams: a message has arrived; its bytes are valid until this
     * function returns. Returns 0, or an error code that ends the
     * connection. */
    int (*message)(struct grpc_call *, const uint8_t *, size_t, hf__time now);
    /* The call has ended, as `end` says, and is IDLE: it may be started again
     * or freed. If a unary call was ANSWERED with status 0, hf__grpc_answer()
     * returns the message. Returns 0, or an error code that ends the connection
     * (ignored if it is down). */
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

/* Callers may read `at`, and, in over(), `end`, `status` and `text`. They may
 * set is_local. The rest is private. */
struct grpc_call {
    struct grpc_call *next, *prev;
    struct grpc_list *in; /* the list with this call, or NULL if IDLE */
    struct grpc *g;
    const struct grpc_method *method;
    void *owner; /* for use by the caller */

    enum grpc_state state;
    enum grpc_end end;
    int status;     /* the gRPC status code; for an ODD call, the most similar
                       code */
    char text[200]; /* the message for people, or "" */

    hf__time at;       /* when the call was started */
    hf__time until;    /* when its time limit passes, or HF__NEVER */
    uint32_t limit_ms; /* time limit, or 0 for none */
    bool is_local;     /* set by the caller: the answer does not prove that the
                          server can do anything else */
    int32_t id;        /* number of the HTTP/2 stream */
    uint64_t start;    /* offset of its first byte, counted like
                          stream.written */
    uint32_t token;    /* number of the token that it carries */
    bool is_begun;     /* `start` is set */
    bool is_repeated;  /* it was refused once because of its token */
    bool is_whole;     /* unary: the message is complete */
    int http;          /* HTTP's status, or 0 if there is none yet */
    bool is_grpc;      /* the content type is right */
    int said;          /* grpc-status, or -1 if there is none yet or it is no
                          number */
    struct grpc_buf out, in_buf;
};

/* Initializes a call, which must be zeroed, or have gone through fini(). */
void hf__grpc_call_init(struct grpc_call *, struct grpc *,
                        const struct grpc_method *, void *owner);
/* Cancels the call and frees its buffers. A zeroed call is allowed. */
void hf__grpc_call_fini(struct grpc_call *);

/* Returns room for a message of that many bytes, which the caller must fill in
 * at once, or NULL if out of memory. For a unary call it must be called exactly
 * once, before start(); for a stream any number of times, before start() or
 * later. Each message of a stream is sent with the next flush. */
uint8_t *hf__grpc_room(struct grpc_call *, size_t len);
/* Starts the call. Returns 0 if over() will be called (unless the call is
 * cancelled); HF__LATER if there is no connection (the owner's up() will be
 * called when there is one); or HF_ENOMEM. limit_ms is the time limit, or 0 for
 * none. While the server is slow to answer other calls, the limit is extended,
 * to at most GRPC_BACKLOG times its length. After an error the call is IDLE,
 * and what was written to its room is lost. */
int hf__grpc_start(struct grpc_call *, uint32_t limit_ms);
/* Makes a call in any state IDLE, without over(). The request is withdrawn if
 * that is still possible. */
void hf__grpc_cancel(struct grpc_call *);
/* Returns the message of a unary call that was ANSWERED with status 0. It is
 * valid until the call is started again. */
const uint8_t *hf__grpc_answer(const struct grpc_call *, size_t *len);
bool hf__grpc_is_idle(const struct grpc_call *);

/* Sets the token that calls carry from now on, and sends the calls that were
 * held. If `token` is NULL, there is no token: held calls that the server has
 * refused end with that refusal, and the others end UNSENT with `status` and
 * `text`. Returns 0. If out of memory, returns HF_ENOMEM and acts as if `token`
 * were NULL. Must only be called from callbacks. */
int hf__grpc_token(struct grpc *, const char *token, int status,
                   const char *text);

/* ---- for the other files of this folder ---------------------------------- */

/* Calls over() of the calls that have ended, until one of them returns an error
 * code. Returns that code, otherwise 0. */
int hf__grpc_deliver(struct grpc *);
/* Moves the call from OPEN or HELD to ENDED. A call with an old token may be
 * held or sent again instead. */
void hf__grpc_end(struct grpc_call *, enum grpc_end);
/* Moves the call from OPEN to HELD. The call ends UNSENT at `until`, unless it
 * is sent again before. */
void hf__grpc_hold(struct grpc_call *, hf__time until);
/* Ends all calls, because the connection has ended after `written` bytes were
 * sent. A call becomes LOST if some of its bytes were sent, otherwise
 * UNSENT. */
void hf__grpc_end_all(struct grpc *, uint64_t written);
/* Ends the calls whose time limit has passed. */
void hf__grpc_end_late(struct grpc *, hf__time now);
/* Returns the call of that HTTP/2 stream, or NULL if there is none. */
struct grpc_call *hf__grpc_find(const struct grpc *, int32_t id);
/* Separates the call from its HTTP/2 stream, and resets the stream if
 * necessary. */
void hf__grpc_drop(struct grpc_call *, uint32_t error);
int hf__grpc_reserve(const struct grpc *, struct grpc_buf *, size_t more);

#endif
