#include "query.h"

#include "base/list.h"

#include "etcd.h"
#include "exchange.h"
#include "lease.h"
#include "lock_state.h"
#include "slot.h"
#include "txn.h"

#include <string.h>

static const struct grpc_method txn = {.path = "/etcdserverpb.KV/Txn",
                                       .most = ET_ANSWER,
                                       .over = hf__et_query_over};

static void query_free(struct et_query *x)
{
    struct etcd *e = x->e;

    if (x->play->fini)
        x->play->fini(x);
    hf__list_remove(e->queries, x);
    hf__grpc_call_fini(&x->call);
    e->core->free(e->client, x);
}

void hf__et_queries_fini(struct etcd *e)
{
    while (e->queries)
        query_free(e->queries);
}

void *hf__et_query_new(struct etcd *e, struct hf__query *q,
                       const struct et_play *play, const char *behind, int *rc)
{
    struct et_query *x = e->core->alloc(e->client, play->size);
    size_t root = strlen(e->root), more = strlen(behind);

    *rc = HF_ENOMEM;
    if (!x)
        return NULL;
    if (root + q->name_len + more > ET_KEY_MAX) {
        e->core->free(e->client, x);
        *rc = e->core->why(e->client, HF_EINVAL,
                           "the key has %zu bytes with the path; it must have "
                           "at most %d",
                           root + q->name_len + more, ET_KEY_MAX);
        return NULL;
    }
    x->e = e;
    x->q = q;
    x->play = play;
    memcpy(x->key, e->root, root);
    memcpy(x->key + root, q->name, q->name_len);
    memcpy(x->key + root + q->name_len, behind, more);
    x->len = root + q->name_len + more;
    hf__grpc_call_init(&x->call, &e->g, &txn, x);
    hf__list_add(e->queries, x);
    return x;
}

Etcd__Range *hf__et_range_below(struct et_query *x, struct et_txn *t,
                                int64_t from, int64_t limit)
{
    Etcd__Range *r = hf__et_range(t, ET_THEN, x->key, x->len);

    memcpy(x->end, x->key, x->len);
    x->end[x->len - 1]++;
    r->range_end.data = (uint8_t *)x->end;
    r->range_end.len = x->len;
    r->sort_order = ETCD__RANGE__ORDER__ASCEND;
    r->sort_target = ETCD__RANGE__TARGET__CREATE;
    r->min_create_revision = from;
    r->limit = limit;
    return r;
}

void hf__et_behind(char key[ET_KEY_MAX], size_t *len,
                   const ProtobufCBinaryData *last)
{
    bool is_long = last->len >= ET_KEY_MAX;

    *len = is_long ? ET_KEY_MAX - 1 : last->len;
    memcpy(key, last->data, *len);
    key[(*len)++] = is_long ? '\xff' : '\0';
}

static int query_pack_txn(struct et_query *x)
{
    struct et_txn t;

    hf__et_txn(&t);
    x->play->send(x, &t);
    return hf__et_pack(&x->call, &t.m);
}

static int query_submit(struct et_query *x)
{
    int rc = x->play->pack ? x->play->pack(x) : query_pack_txn(x);

    return rc ? rc : hf__grpc_start(&x->call, ET_CALL_MS);
}

int hf__et_query_begin(struct et_query *x)
{
    struct etcd *e = x->e;
    struct hf__req *req = &x->q->req;
    int rc = query_submit(x);

    if (rc) {
        query_free(x);
        e->put_off = e->put_off || rc == HF__LATER;
        return rc;
    }
    hf__et_sent(e, req);
    return HF__PENDING;
}

static void query_end(struct et_query *x, int result)
{
    struct etcd *e = x->e;
    struct hf__query *q = x->q;

    query_free(x);
    hf__et_finish(e, &q->req, result);
}

/* Sends the next call, or the same call again. Ends the query if its caller no
 * longer waits. */
static void query_go_on(struct et_query *x)
{
    struct etcd *e = x->e;
    int rc =
        e->core->now() < x->q->req.meant_until ? query_submit(x) : HF_EUNKNOWN;

    if (rc)
        query_end(x, rc == HF__LATER ? HF_EUNKNOWN : rc);
}

static int query_read_txn(struct et_query *x)
{
    Etcd__TxnAnswer *t = hf__et_txn_read(&x->call);
    int rc = t ? x->play->answered(x, t) : HF_EPROTO;

    hf__et_txn_free(&x->call, t);
    return rc;
}

/* Returns true for a query that only reads or can be repeated. If memory for
 * its answer runs out, only the query fails, with ENOMEM. With any other query
 * the connection ends, too. */
static bool query_may_fail(const struct et_query *x)
{
    int op = x->q->req.op;

    return op == HF__INSPECT || op == HF__LIST || op == HF__BREAK ||
           op == HF__ASK || op == HF__LATCH_GET || op == HF__DIAGNOSE;
}

static int query_answered(struct et_query *x)
{
    size_t len;
    const uint8_t *p = hf__grpc_answer(&x->call, &len);
    int rc = x->play->read ? x->play->read(x, p, len) : query_read_txn(x);

    if (rc == HF_EPROTO)
        return rc;
    if (rc == HF__PENDING)
        query_go_on(x);
    else
        query_end(x, rc);
    return 0;
}

static int query_failed(struct grpc_call *c, int code, bool can_repeat)
{
    struct et_query *x = (struct et_query *)c;
    struct etcd *e = x->e;

    if (code == HF_ENOTOWNER) {
        query_end(x, x->q->line ? HF_ENOTOWNER : HF_EUNKNOWN);
        return hf__et_lease_over(e, "the server ended the client's lease");
    }
    if (can_repeat) {
        query_go_on(x);
        return 0;
    }
    if (hf__et_has_answer(c)) { /* the answer cannot be read */
        bool is_over = code == HF_ENOMEM && query_may_fail(x);

        query_end(x, is_over ? HF_ENOMEM : HF_EUNKNOWN);
        return is_over ? 0 : code;
    }
    if (code != HF_EUNKNOWN && x->play->refused)
        code = x->play->refused(x, code);
    query_end(x, code);
    return 0;
}

int hf__et_query_over(struct grpc_call *c, hf__time now)
{
    int rc =
        hf__et_has_answer(c) ? query_answered((struct et_query *)c) : HF_EPROTO;

    (void)now;
    return rc == HF_EPROTO ? hf__et_failed(c, query_failed) : rc;
}
