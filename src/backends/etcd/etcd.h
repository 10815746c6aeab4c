/*
 * The etcd backend, whose mutex is that of Go's concurrency.Mutex and of
 * `etcdctl lock`.
 *
 * The layers, from the top; a file calls only those below it:
 *
 *   etcd.c                        the table, open and close
 *   session.c                     the connection, opened with a *greeting*
 *   inspect.c list.c put.c latch.c diagnose.c, on query.c; changes.c, renew.c
 *   answer.c                      reads the answers to requests about entries
 *   lock.c                        the lock's state machine
 *   slot.c, watch.c, batch.c, lease.c
 *   lock_state.c, entry_request.c
 *   exchange.c, txn.c, refusal.c, entry.c
 *
 * The greeting is the sequence of requests with which the client opens each
 * connection; session.c lists its steps.
 *
 * A client has one lease, whose id it chooses at random. These keys belong to
 * the lease:
 *
 *   ROOT holdfast:client/LEASE   the guard: its value describes the client
 *   ROOT NAME/LEASE              the client's entry in the queue of a mutex, as
 *                                Go writes it; entry.h lists the other kinds,
 *                                of which a latch belongs to no lease
 *   ROOT holdfast:ask            if this client was the last to call hf_ask:
 *                                the tokens of the holders that it asked
 *   ROOT holdfast:mark/...       a request for a latch was counted (latch.c)
 *
 * where LEASE is the id in hexadecimal. Entries are ordered by their create
 * revision: the oldest entry of a mutex holds it. The create revision of a
 * holder's entry is the token.
 * Keys below NAME/ count only if they have the form of an entry, so NAME/OTHER
 * is a lock of its own.
 *
 * Answers may be lost, requests may be carried out long after their time limit,
 * and requests may overtake each other. This does no harm:
 * - ENTER creates the entry only if it does not exist and if the guard has not
 *   been written since (its mod revision is compared). CONFIRM writes the guard
 *   again, so that no earlier ENTER can still succeed.
 * - READ_QUEUE, DROP and the checks of a renewal compare the create revision of
 *   an entry. An entry that was created again has a different create revision.
 * - The server deletes all these keys when the lease ends. The client counts
 *   the deadline of the lease from when the confirmed keep-alive was sent.
 * - At most one request of an attempt or a release is under way for an entry.
 *   Further requests of the core wait in the lock, and a release waits for the
 *   writes of the holder.
 *
 * All functions run with the client's mutex held.
 */
#ifndef HF_ETCD_H
#define HF_ETCD_H

#include "backends/common/latch_requests.h"
#include "backends/common/table.h"
#include "net/grpc/grpc.h"

#include "entry.h"
#include "etcd.pb-c.h"

#include <stddef.h>

#define ET_CALL_MS 1500       /* time limit of a request */
#define ET_ANSWER (4u << 20)  /* largest answer, in bytes */
#define ET_MEMORY (16u << 20) /* largest answer in memory, in bytes */
#define ET_WISHES 336 /* longest list of tokens in one hf_ask, in bytes */
#define ET_CHECKS 32  /* one transaction checks at most this many entries */
#define ET_ROOM 512   /* room for an answer, in units of max_align_t */
#define ET_KEPT 8     /* at most this many keep-alives are under way */

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
    char *root;    /* the path of the URL, as "" or "a/b/" */
    char *ask_key; /* the key to which hf_ask writes tokens */
    char *user, *password;
    uint32_t ttl_s;
    char about[160];
    ProtobufCAllocator memory; /* allocates answers while they are read */
    bool is_short;             /* an allocation has failed */
    struct et_room {
        size_t used, parts; /* parts: number of allocations, including those
                               outside of data */
        size_t bytes;       /* size of all allocations */
        max_align_t data[ET_ROOM];
    } room;

    /* The connection and the lease. */
    int64_t lease;    /* id of the lease, or 0 */
    bool is_granted;  /* the server has certainly granted the lease */
    uint32_t term_ms; /* the lease's TTL, as granted */
    hf__time proved;  /* when the last confirmed grant or keep-alive was sent */
    hf__time grant_sent_at; /* when the last grant was sent */
    int64_t guard;          /* the guard's mod revision */
    size_t guard_len;
    char guard_key[ET_KEY_MAX];
    struct grpc_call sign_in, get_version, grant, put_guard, keep, watch;
    bool is_guarded;           /* the current greeting has written the guard */
    hf__time keep_at;          /* when the next keep-alive is due */
    hf__time kept_at[ET_KEPT]; /* when the unanswered keep-alives were sent */
    unsigned kept_len;
    struct hf__table watches; /* all watches, by their ids */
    int64_t watch_ids;
    struct et_watch *guard_watch; /* NULL if not created yet */
    struct et_watch *ask_watch;   /* NULL if not created yet, or if `listens` is
                                     false */
    int64_t heard;    /* revision up to which writes of ask_key were received */
    int64_t kept_rev; /* the cluster's revision at the last keep-alive */
    bool lacks_watch; /* ask_watch or the watch of a listener is missing */
    hf__time watch_at;  /* when missing watches are created */
    hf__time stream_at; /* no stream of watches is opened before this time */

    struct et_lock *locks;
    struct et_query *queries;
    struct et_changes *changes;
    struct et_request *requests; /* all requests under way */
    /* Called when a request ends; always hf__et_answered(). */
    int (*answered)(struct grpc_call *, hf__time now);
    size_t drops;              /* DROPs and CONFIRMs under way */
    struct et_request *spare;  /* unused requests, with their buffers */
    struct hf__batch *batches; /* renewals that wait for a keep-alive */
    bool put_doubt; /* an earlier hf_lock_put may still be carried out */
    struct hf__latch_requests latch_requests;
    bool put_off; /* LATER was returned, so go_on() must be called */
    bool was_up;  /* the client was connected at least once */
    bool listens; /* the program listens to events */
    bool is_closing;
};

#endif
