/*
 * Queries about a name: a few transactions (or other calls), one after the
 * other. Each can be sent again if its answer does not come: it says the same
 * then, or finds that it was done. A kind of query is a struct et_play, whose
 * functions say what is sent and what an answer means; this unit sends,
 * repeats, and reports the result to the core.
 */
#ifndef HF_ETCD_QUERY_H
#define HF_ETCD_QUERY_H

#include "etcd.h"
#include "txn.h"

struct et_query {
    struct grpc_call call;        /* first: callbacks cast it back */
    struct et_query *next, *prev; /* etcd.queries */
    struct etcd *e;
    struct hf__query *q;
    const struct et_play *play;
    size_t len; /* of key, and of end: of a range of what is below it */
    char key[ET_KEY_MAX], end[ET_KEY_MAX];
};

struct et_play {
    size_t size; /* of the whole, which begins with a struct et_query */
    void (*send)(struct et_query *, struct et_txn *); /* puts it together */
    /* The result; HF__PENDING: something more is to be sent. */
    int (*answered)(struct et_query *, const Etcd__TxnAnswer *);
    void (*fini)(struct et_query *); /* may be NULL */
    /* If it is made of other calls than transactions: packs the next one.
     * 0, HF_ENOMEM; and reads what it says, as answered(). */
    int (*pack)(struct et_query *);
    int (*read)(struct et_query *, const uint8_t *, size_t len);
    int (*refused)(struct et_query *, int code); /* its result; may be NULL */
};

/* For other calls: /service/Method, as the query's txn. */
int hf__et_query_over(struct grpc_call *, hf__time now);

/* Of zeroed memory, with its key: ROOT, the name, and that behind it. NULL and
 * *rc: ENOMEM, or EINVAL. */
void *hf__et_query_new(struct etcd *, struct hf__query *,
                       const struct et_play *, const char *behind, int *rc);
/* A range of what is below its key, the oldest first, from that create revision
 * on. */
Etcd__Range *hf__et_range_below(struct et_query *, struct et_txn *,
                                int64_t from, int64_t limit);
/* Where the page behind one with that last key begins. What is longer than keys
 * of ours can be is skipped. */
void hf__et_behind(char key[ET_KEY_MAX], size_t *len,
                   const ProtobufCBinaryData *last);
/* Begins it. PENDING, or why not; then it is gone. */
int hf__et_query_begin(struct et_query *);

void hf__et_queries_fini(struct etcd *);

#endif
