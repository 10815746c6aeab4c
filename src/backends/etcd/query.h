/*
 * Queries about a name: each is a few transactions or other calls, one after
 * the other. A call that was not answered can be sent again: the second answer
 * is the same, or tells that the call was carried out before. A struct et_play
 * describes one kind of query: what is sent and what an answer means. This unit
 * sends and repeats the calls and reports the result to the core.
 */
#ifndef HF_ETCD_QUERY_H
#define HF_ETCD_QUERY_H

#include "etcd.h"
#include "txn.h"

struct et_query {
    struct grpc_call call;        /* first: callbacks cast it to et_query */
    struct et_query *next, *prev; /* etcd.queries */
    struct etcd *e;
    struct hf__query *q;
    const struct et_play *play;
    size_t len; /* length of `key`, and of `end` if keys below `key` are read */
    char key[ET_KEY_MAX], end[ET_KEY_MAX];
};

struct et_play {
    size_t size; /* size of the whole struct, which begins with a struct
                    et_query */
    /* Adds the conditions and operations of the next transaction. */
    void (*send)(struct et_query *, struct et_txn *);
    /* Reads the answer. Returns the result of the query, or HF__PENDING to send
     * another transaction. */
    int (*answered)(struct et_query *, const Etcd__TxnAnswer *);
    void (*fini)(struct et_query *); /* frees more; may be NULL */
    /* For calls that are no transactions, instead of send() and answered():
     * pack() packs the next call and returns 0 or HF_ENOMEM; read() reads its
     * answer and returns what answered() would return. */
    int (*pack)(struct et_query *);
    int (*read)(struct et_query *, const uint8_t *, size_t len);
    /* Returns the result of the query after the server has refused a call. May
     * be NULL. */
    int (*refused)(struct et_query *, int code);
};

/* Handles the end of a call. Every struct grpc_method whose calls belong to
 * queries has this function as its `over`. */
int hf__et_query_over(struct grpc_call *, hf__time now);

/* Returns a zeroed query whose key consists of ROOT, the name and `behind`. On
 * failure, returns NULL and sets *rc to ENOMEM or EINVAL. */
void *hf__et_query_new(struct etcd *, struct hf__query *,
                       const struct et_play *, const char *behind, int *rc);
/* Adds to the transaction a read of the keys that begin with the query's key:
 * the oldest first, from the create revision `from` on, at most `limit`
 * keys. */
Etcd__Range *hf__et_range_below(struct et_query *, struct et_txn *,
                                int64_t from, int64_t limit);
/* Writes the key at which the page after the key `last` begins. Keys longer
 * than any of ours are skipped. */
void hf__et_behind(char key[ET_KEY_MAX], size_t *len,
                   const ProtobufCBinaryData *last);
/* Sends the first call. Returns PENDING, or frees the query and returns LATER
 * or an error code. */
int hf__et_query_begin(struct et_query *);

/* Frees all queries, without reporting them. Their calls are cancelled. */
void hf__et_queries_fini(struct etcd *);

#endif
