/*
 * The latch: a key whose value is the count, deleted when the count reaches 0.
 * A round of the latch lasts from a set until the count reaches 0; the create
 * revision of the key identifies the round.
 *
 * A set or a count-down is one transaction, which also creates a mark: a key of
 * this client and this request. If the answer is lost and the transaction is
 * sent again, the mark shows that the request was counted. The client deletes
 * the mark after the answer, unless it has sent the transaction more than once:
 * a transaction that is carried out late must find the mark. The mark is
 * deleted with the lease. After that it is unknown whether a request whose
 * answer was lost was counted.
 */
#include "latch.h"

#include "entry.h"
#include "entry_request.h"
#include "etcd.h"
#include "query.h"
#include "txn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define OTHERS 1000

struct count {
    struct et_query base;
    bool is_sent;     /* an unanswered transaction was sent */
    bool is_repeated; /* sent twice: the first one may be carried out late */
    bool is_known;    /* the latch and its mark were read */
    bool is_marked;   /* the mark exists: the request was counted */
    bool is_written;  /* SET: this client has set the latch */
    bool has_others;  /* SET: the name is in use as a lock */
    bool undoes;      /* SET: deletes the latch, because the name is in use as a
                         lock */
    size_t from_len;  /* SET: length of `from`; 0 for the first page */
    char from[ET_KEY_MAX]; /* SET: key at which the next page begins */
    int64_t created;       /* create revision of the latch, or 0 */
    int64_t revision;      /* mod revision of the latch, or 0 */
    uint64_t left;
    size_t mark_len, dir_len;
    char mark[ET_KEY_MAX], value[ET_VALUE_MAX];
};

static bool latch_counts(const struct count *c)
{
    return c->base.q->req.op != HF__LATCH_GET;
}

/* ---- reading ------------------------------------------------------------- */

/* Adds a read of one page of the keys below NAME/. Entries of other names may
 * be among these keys, so there may be many pages. */
static void latch_add_others(struct count *c, struct et_txn *t,
                             enum et_branch branch)
{
    struct et_query *x = &c->base;
    Etcd__Range *r = hf__et_range(t, branch, c->from_len ? c->from : x->key,
                                  c->from_len ? c->from_len : c->dir_len);

    memcpy(x->end, x->key, c->dir_len);
    x->end[c->dir_len - 1]++;
    r->range_end.data = (uint8_t *)x->end;
    r->range_end.len = c->dir_len;
    r->limit = OTHERS;
}

static void latch_add_read(struct count *c, struct et_txn *t,
                           enum et_branch branch)
{
    hf__et_range(t, branch, c->base.key, c->base.len)->keys_only = false;
    if (latch_counts(c))
        hf__et_range(t, branch, c->mark, c->mark_len);
    if (c->base.q->req.op == HF__LATCH_SET)
        latch_add_others(c, t, branch);
}

/* Returns true if the name was in use as a lock before the latch was set. An
 * entry that was created later does not count, because its own client will find
 * the latch and end the attempt as EMISMATCH. */
static bool latch_has_entries(const struct count *c, const Etcd__RangeAnswer *r)
{
    for (size_t i = 0; i < r->n_kvs; i++) {
        const ProtobufCBinaryData *key = &r->kvs[i]->key;
        enum et_form form = key->len > c->dir_len
                                ? hf__et_form((char *)key->data + c->dir_len,
                                              key->len - c->dir_len, NULL, NULL)
                                : ET_FORM_NONE;

        if (form != ET_FORM_NONE && form != ET_FORM_LATCH &&
            (!c->created || r->kvs[i]->create_revision < c->created))
            return true;
    }
    return false;
}

/* Reads a page of keys below NAME/. Returns true if another page must be
 * read. */
static bool latch_read_others(struct count *c, const Etcd__RangeAnswer *r)
{
    const ProtobufCBinaryData *last =
        r->more && r->n_kvs ? &r->kvs[r->n_kvs - 1]->key : NULL;

    c->has_others = latch_has_entries(c, r);
    c->from_len = 0;
    if (!last || c->has_others)
        return false;
    hf__et_behind(c->from, &c->from_len, last);
    return true;
}

static int latch_mismatch(struct etcd *e, const char *text)
{
    return e->core->why(e->client, HF_EMISMATCH, "%s", text);
}

/* Reads the answer to latch_add_read(). Returns 0, PENDING if another page must
 * be read, or an error code. */
static int latch_take_in(struct count *c, const Etcd__TxnAnswer *t)
{
    struct etcd *e = c->base.e;
    const Etcd__RangeAnswer *latch = hf__et_ranged(t, 0),
                            *mark = hf__et_ranged(t, 1),
                            *others = hf__et_ranged(t, 2);
    bool is_set = c->base.q->req.op == HF__LATCH_SET;

    if (!latch || (latch_counts(c) && !mark) || (is_set && !others))
        return HF_EPROTO;
    c->revision = c->created = 0;
    c->left = 0;
    if (latch->n_kvs) {
        const Etcd__KeyValue *kv = latch->kvs[0];

        if (!hf__et_count_parse((char *)kv->value.data, kv->value.len,
                                &c->left))
            return latch_mismatch(
                e, "the key \"latch\" of this name was not made by "
                   "holdfast");
        c->revision = kv->mod_revision;
        c->created = kv->create_revision;
    }
    c->is_marked = latch_counts(c) && mark->n_kvs;
    c->is_known = true;
    return is_set && latch_read_others(c, others) ? HF__PENDING : 0;
}

/* ---- writing ------------------------------------------------------------- */

static void latch_send_count(struct et_query *x, struct et_txn *t)
{
    struct count *c = (struct count *)x;
    bool is_set = x->q->req.op == HF__LATCH_SET;
    size_t len;

    if (!c->is_known) {
        latch_add_read(c, t, ET_THEN);
        return;
    }
    if (c->from_len) {
        latch_add_others(c, t, ET_THEN);
        return;
    }
    if (c->undoes) {
        hf__et_if_created(t, x->key, x->len, c->created);
        hf__et_delete(t, ET_THEN, x->key, x->len);
        return;
    }
    c->is_repeated = c->is_repeated || c->is_sent;
    c->is_sent = true;
    len = hf__et_count_text(c->value, is_set ? x->q->count : c->left - 1);
    hf__et_if_changed(t, x->key, x->len, c->revision);
    hf__et_if_created(t, c->mark, c->mark_len, 0);
    hf__et_put(t, ET_THEN, c->mark, c->mark_len, "", 0, x->e->lease);
    if (is_set || c->left > 1)
        hf__et_put(t, ET_THEN, x->key, x->len, c->value, len, 0);
    else
        hf__et_delete(t, ET_THEN, x->key, x->len);
    if (is_set)
        latch_add_others(c, t, ET_THEN);
    latch_add_read(c, t, ET_ELSE);
}

static int latch_done(struct count *c, int rc, uint64_t left)
{
    struct et_query *x = &c->base;

    x->q->count = left;
    if (latch_counts(c) && rc != HF_EUNKNOWN && !c->is_repeated)
        hf__et_wipe(x->e, c->mark, c->mark_len);
    return rc;
}

/* Handles a latch that this client has set: ends the query, or deletes the
 * latch if the name was in use as a lock before the set. */
static int latch_is_set_by_us(struct count *c)
{
    if (!c->has_others || !c->created)
        return latch_done(c, HF__DONE, c->left);
    c->undoes = true;
    return HF__PENDING;
}

/* Chooses the next step. Returns the result, or PENDING if another transaction
 * is needed. */
static int latch_decide(struct count *c)
{
    struct etcd *e = c->base.e;

    switch (c->base.q->req.op) {
    case HF__LATCH_GET:
        return latch_done(c, HF__DONE, c->left);
    case HF__LATCH_DOWN:
        return c->is_marked || !c->revision ? latch_done(c, HF__DONE, c->left)
                                            : HF__PENDING;
    default:
        if (c->is_marked || c->is_written)
            return latch_is_set_by_us(c);
        if (c->revision)
            return latch_done(c, HF_EBUSY, c->left);
        if (c->has_others)
            return latch_done(
                c,
                latch_mismatch(e, "the name is in use as another kind of lock"),
                0);
        return HF__PENDING;
    }
}

static int latch_written(struct count *c, const Etcd__TxnAnswer *t)
{
    const struct hf__query *q = c->base.q;
    const Etcd__RangeAnswer *others = hf__et_ranged(t, 2);

    if (q->req.op == HF__LATCH_DOWN)
        return latch_done(c, HF__DONE, c->left - 1);
    if (!others)
        return HF_EPROTO;
    c->is_written = true;
    c->created = t->header->revision;
    c->left = q->count;
    return latch_read_others(c, others) ? HF__PENDING : latch_is_set_by_us(c);
}

static int latch_read_page(struct count *c, const Etcd__TxnAnswer *t)
{
    const Etcd__RangeAnswer *others = hf__et_ranged(t, 0);

    if (!others)
        return HF_EPROTO;
    return latch_read_others(c, others) ? HF__PENDING : latch_decide(c);
}

static int latch_answered(struct et_query *x, const Etcd__TxnAnswer *t)
{
    struct count *c = (struct count *)x;
    int rc;

    if (c->from_len)
        return latch_read_page(c, t);
    c->is_sent = false;
    if (c->undoes)
        return latch_done(
            c,
            latch_mismatch(x->e, "the name is in use as another kind of lock"),
            0);
    if (c->is_known && t->succeeded)
        return latch_written(c, t);
    rc = latch_take_in(c, t);
    return rc ? rc : latch_decide(c);
}

/* ---- all three ----------------------------------------------------------- */

int hf__et_latch(struct etcd *e, struct hf__query *q)
{
    static const struct et_play play = {.size = sizeof(struct count),
                                        .send = latch_send_count,
                                        .answered = latch_answered};
    enum hf__latch_sending sending = HF__LATCH_FIRST;
    struct count *c;
    int rc;

    if (q->req.op != HF__LATCH_GET)
        sending = hf__latch_request(&e->latch_requests, e->lease, q->request);
    if (sending == HF__LATCH_IN_DOUBT) {
        q->request = 0;
        return e->core->why(e->client, HF_EUNKNOWN,
                            "the lease ended before the answer came");
    }
    c = hf__et_query_new(e, q, &play, "/latch", &rc);
    if (!c)
        return rc;
    c->is_repeated = sending == HF__LATCH_AGAIN;
    c->dir_len = c->base.len - strlen("latch");
    c->mark_len = (size_t)snprintf(c->mark, sizeof(c->mark),
                                   "%s" ET_OURS "mark/%" PRIx64 "-%" PRIu64,
                                   e->root, e->lease, q->request);
    return hf__et_query_begin(&c->base);
}
