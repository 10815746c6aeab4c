/*
 * etcd: the lock of Go's concurrency.Mutex and of `etcdctl lock`.
 *
 * The layers, from the top; a file calls those below it:
 *
 *   etcd.c                        the table, open and close
 *   session.c                     the connection and its greeting
 *   inspect.c list.c put.c latch.c diagnose.c, on query.c; changes.c, renew.c
 *   answer.c                      reads the answers to requests about entries
 *   lock.c                        the lock's state machine
 *   slot.c, watch.c, batch.c, lease.c
 *   lock_state.c, entry_request.c
 *   exchange.c, txn.c, refusal.c, entry.c
 *
 * A client has one lease, whose id it chooses at random. Under it are
 *
 *   ROOT holdfast:client/LEASE   the guard: its value describes the client
 *   ROOT NAME/LEASE              its entry in the queue of NAME, as Go's; those
 *                                of other kinds of locks are in entry.h
 *   ROOT holdfast:ask            if this client was the last to call hf_ask:
 *                                the tokens of the holders it asked
 *
 * where LEASE is the id in hexadecimal. Entries are ordered by their create
 * revision: the oldest holds the lock, and its create revision is the token.
 * Keys below NAME/ count only if they have the form of an entry, so NAME/OTHER
 * is a lock of its own.
 *
 * Lost answers are harmless, although a request that was not answered in time
 * may be carried out much later, and requests overtake each other:
 * - ENTER makes the entry only if there is none and if the guard has not been
 *   written since (its mod revision is compared). CONFIRM writes the guard
 *   again, so that no earlier ENTER can still succeed.
 * - READ_QUEUE, DROP and the checks of a renewal compare one create revision.
 *   An entry that was made again has another one.
 * - Everything ends with the lease. Its deadline counts from when the confirmed
 *   keep-alive was sent.
 * - At most one request of an attempt or a release is under way for an entry.
 *   Further requests of the core wait in the lock, and a release waits for what
 *   the holder writes.
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

#define ET_CALL_MS 1500       /* limit of a request; then it is sent again */
#define ET_ANSWER (4u << 20)  /* largest answer in bytes */
#define ET_MEMORY (16u << 20) /* largest answer in memory */
#define ET_WISHES 336         /* longest list of tokens of one hf_ask */
#define ET_CHECKS 32          /* entries that one transaction checks */
#define ET_ROOM 512           /* room for an answer, in units of max_align_t */
#define ET_KEPT 8             /* keep-alives under way, at most */

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
    char *ask_key; /* its value: holders that are asked to release */
    char *user, *password;
    uint32_t ttl_s;
    char about[160];
    ProtobufCAllocator memory; /* allocates answers while they are read */
    bool is_short;             /* an allocation has failed */
    struct et_room {
        size_t used, parts; /* parts: also those outside of data */
        size_t bytes;       /* of all parts together */
        max_align_t data[ET_ROOM];
    } room;

    /* The session. */
    int64_t lease;    /* 0: none */
    bool is_granted;  /* the server is known to have the lease */
    uint32_t term_ms; /* its TTL, as granted */
    hf__time proved;  /* when the confirmed grant or keep-alive was sent */
    hf__time grant_sent_at; /* when the last grant was sent */
    int64_t guard;          /* the guard's mod revision */
    size_t guard_len;
    char guard_key[ET_KEY_MAX];
    struct grpc_call sign_in, get_version, grant, put_guard, keep, watch;
    bool is_guarded;           /* this greeting has written the guard */
    hf__time keep_at;          /* when the next keep-alive is due */
    hf__time kept_at[ET_KEPT]; /* when the unanswered ones were sent */
    unsigned kept_len;
    struct hf__table watches; /* by their ids */
    int64_t watch_ids;
    struct et_watch *guard_watch; /* NULL: not made yet */
    struct et_watch *ask_watch;   /* NULL: not made yet, or not `listens` */
    int64_t heard;     /* revision of ask_key up to which requests were heard */
    int64_t kept_rev;  /* the cluster's revision at the last keep-alive */
    bool lacks_watch;  /* ask_watch or the watch of a listener is missing */
    hf__time watch_at; /* when missing watches are made */
    hf__time stream_at; /* before that no stream of watches is opened */

    struct et_lock *locks;
    struct et_query *queries;
    struct et_changes *changes;
    struct et_request *requests; /* under way */
    /* called when a request ends: hf__et_answered() */
    int (*answered)(struct grpc_call *, hf__time now);
    size_t drops;              /* DROPs and CONFIRMs under way */
    struct et_request *spare;  /* unused requests, with their buffers */
    struct hf__batch *batches; /* renewals that wait for a keep-alive */
    bool put_doubt;            /* an earlier put may still be carried out */
    struct hf__latch_requests latch_requests;
    bool put_off; /* LATER was returned: go_on() is due */
    bool was_up;  /* connected at least once */
    bool listens; /* the program listens to events */
    bool is_closing;
};

#endif
