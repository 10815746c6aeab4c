/*
 * etcd: the lock of Go's concurrency.Mutex and of `etcdctl lock`.
 *
 * The layers, from the top; a file calls those below it:
 *
 *   etcd.c                        the table, open and close
 *   session.c                     the connection, its greeting
 *   inspect.c list.c put.c latch.c diagnose.c, on query.c; changes.c, renew.c
 *   answer.c                      what requests about entries come to
 *   lock.c                        the lock's state machine
 *   slot.c, watch.c, batch.c, lease.c
 *   lock_state.c, entry_request.c
 *   exchange.c, txn.c, message.c, refusal.c, entry.c
 *
 * A client has one lease, whose id it has chosen at random. Under it are
 *
 *   ROOT holdfast:client/LEASE   the guard: it says who the client is
 *   ROOT NAME/LEASE              its entry in the queue of NAME, as Go's; those
 *                                of other kinds of locks are in entry.h
 *   ROOT holdfast:ask            if it was the last one to ask holders to let
 *                                go: their tokens. All who listen watch it
 *
 * where LEASE is the id in hexadecimal. Entries are ordered by their create
 * revision: the oldest holds the lock, and its create revision is the token.
 * Of what is below NAME/ only that counts which could be an entry, so that
 * NAME/OTHER is a lock of its own.
 *
 * What makes lost answers harmless. A request that was not answered in time may
 * be done much later, and requests overtake each other.
 * - ENTER makes the entry only if there is none and if the guard has not been
 *   written since (its mod revision is compared). CONFIRM writes the guard
 *   again, so that no earlier ENTER can still succeed.
 * - READ_QUEUE, DROP and the checks of a renewal are about one create
 *   revision. An entry that was made anew has another one.
 * - All ends with the lease. Its deadline counts from sending what the server
 *   has confirmed.
 * - At most one request of an attempt or a release is under way for an entry.
 *   What comes meanwhile waits in the lock, and a release waits for what the
 *   holder writes.
 *
 * Everything runs with the client's mutex held.
 */
#ifndef HF_ETCD_H
#define HF_ETCD_H

#include "backends/common/latch_requests.h"
#include "backends/common/table.h"
#include "net/grpc/grpc.h"

#include "entry.h"
#include "etcd.pb-c.h"

#include <stddef.h>

#define ET_CALL_MS 1500       /* of a request: then the same is sent again */
#define ET_ANSWER (4u << 20)  /* no answer of ours is longer, */
#define ET_MEMORY (16u << 20) /* nor needs more memory when it is read */
#define ET_WISHES 336 /* no text of tokens that are asked for is longer */
#define ET_CHECKS 32  /* entries that are checked in a transaction */
#define ET_ROOM 512   /* for answers, in max_align_t */
#define ET_KEPT 8     /* keep-alives under way */

struct et_changes;
struct et_lock;
struct et_query;
struct et_request;
struct et_watch;

struct etcd {
    const struct hf__core *core;
    hf_client *client;
    struct net_endpoint peer;
    struct grpc g;
    uint32_t tags;
    char *root;    /* "", or "a/b/" */
    char *ask_key; /* what is written to it asks holders to let go */
    char *user, *password;
    uint32_t ttl_s;
    uint32_t op_timeout_ms;
    char about[160];
    ProtobufCAllocator memory; /* for an answer, while it is read */
    bool is_short;             /* there was none */
    struct et_room {
        size_t used, parts; /* parts: elsewhere, too */
        size_t bytes;       /* of all of them */
        max_align_t data[ET_ROOM];
    } room;

    /* The session. */
    int64_t lease;          /* 0: none */
    bool is_granted;        /* the server has it */
    uint32_t term_ms;       /* what the server granted */
    hf__time proved;        /* when that was sent by which it lives */
    hf__time grant_sent_at; /* when the last of these was sent */
    int64_t guard;          /* the guard's mod revision */
    size_t guard_len;
    char guard_key[ET_KEY_MAX];
    struct grpc_call sign_in, get_version, grant, put_guard, keep, watch;
    bool is_guarded;           /* this greeting has come so far */
    hf__time keep_at;          /* when to send the next keep-alive */
    hf__time kept_at[ET_KEPT]; /* when those that are under way were */
    unsigned kept_len;
    struct hf__table watches; /* by their ids */
    int64_t watch_ids;
    struct et_watch *guard_watch; /* NULL: to be made */
    struct et_watch *ask_watch;   /* the same, if the program hears of events */
    int64_t heard;                /* what is asked later is to be heard */
    int64_t kept_rev;             /* of the cluster, at the last keep-alive */
    bool lacks_watch;             /* changes have none, or ask_watch is NULL */
    hf__time watch_at;            /* then */
    hf__time stream_at;           /* no stream of watches is opened before */

    struct et_lock *locks;
    struct et_query *queries;
    struct et_changes *changes;
    struct et_request *requests; /* under way */
    /* Their answers; answer.h. */
    int (*answered)(struct grpc_call *, hf__time now);
    size_t drops;              /* of these delete an entry */
    struct et_request *spare;  /* their memory, with its buffers */
    struct hf__batch *batches; /* renewals that wait for a keep-alive */
    bool put_doubt;            /* a value may yet be written */
    struct hf__latch_requests latch_requests;
    bool put_off; /* a slot has said LATER: we owe a go_on() */
    bool was_up;  /* ever */
    bool listens; /* the program hears of events */
    bool is_closing;
};

#endif
