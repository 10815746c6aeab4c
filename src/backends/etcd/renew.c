/*
 * Renewals. One keep-alive renews the lease, and with it every hold. Beside it
 * a transaction looks whether the entries are still there, as many as fit. A
 * renewal is over when both were answered.
 */
#include "etcd.h"

static void over(struct etcd *e, struct hf__batch *b)
{
    if (--b->chunks)
        return;
    for (size_t i = 0; i < b->len; i++)
        b->item[i].session_ms = e->term_ms;
    hf__et_finish(e, &b->req, HF__DONE);
}

static void lose(struct hf__batch *b, size_t from, size_t len, int code)
{
    for (size_t i = from; i < from + len; i++)
        if (b->item[i].result == HF__DONE)
            b->item[i].result = (int16_t)code;
}

static bool is_there(const struct hf__renewal *item)
{
    const struct et_lock *l = item->remote->impl;

    return l->rev && l->is_held && l->hold_id == item->hold_id;
}

void hf__et_renew_kept(struct etcd *e)
{
    struct hf__req **at = (struct hf__req **)&e->batches, *req;

    while ((req = *at)) {
        if (req->sent_at > e->proved) {
            at = &req->next;
            continue;
        }
        *at = req->next;
        over(e, (struct hf__batch *)req);
    }
}

void hf__et_renew_failed(struct etcd *e, int code)
{
    struct hf__batch *b;

    while ((b = e->batches)) {
        e->batches = (struct hf__batch *)b->req.next;
        lose(b, 0, b->len, code);
        over(e, b);
    }
}

static void take(struct hf__renewal *item)
{
    if (is_there(item))
        hf__et_lock_taken(item->remote->impl);
    item->result = HF_ENOTOWNER;
}

void hf__et_checked(const struct et_request *a, int code, const bool *gone)
{
    struct hf__batch *b = a->batch;
    struct etcd *e = a->call.g->owner;

    for (size_t i = 0; !code && i < a->len; i++)
        if (gone[i])
            take(&b->item[a->from + i]);
    if (code)
        lose(b, a->from, a->len, code);
    over(e, b);
}

/* Those that are there stand together, so that they can be checked in one go.
 */
static size_t sort(struct hf__batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++) {
        struct hf__renewal item = b->item[i];

        b->item[i].result = HF_ENOTOWNER;
        if (!is_there(&item))
            continue;
        item.result = HF__DONE;
        b->item[i] = b->item[n];
        b->item[n++] = item;
    }
    return n;
}

/* A part is under way, or could not be sent. */
static void count(struct hf__batch *b, size_t from, size_t len, int rc)
{
    if (rc)
        lose(b, from, len, rc == HF_ENOMEM ? rc : HF_EUNKNOWN);
    else
        b->chunks++;
}

/* What the server is to hear of a hold. */
static void update(struct etcd *e, struct hf__batch *b, size_t i)
{
    struct et_lock *l = b->item[i].remote->impl;

    if (l->owes_mark)
        count(b, i, 1, hf__et_write_mark(e, b, i));
    if (l->lease && b->item[i].lease_ms)
        count(b, i, 1, hf__et_term_anew(e, b, i));
}

int hf__et_renew(void *self, struct hf__batch *b)
{
    struct etcd *e = self;
    size_t there;

    if (hf__et_is_down(e))
        return HF__LATER;
    b->req.sent_at = e->core->now();
    there = sort(b);
    b->chunks = 1;
    hf__et_keep(e, b->req.sent_at);
    b->req.next = (struct hf__req *)e->batches;
    e->batches = b;
    for (size_t i = 0; i < there; i++)
        update(e, b, i);
    for (size_t from = 0; from < there; from += ET_CHECKS) {
        size_t len = there - from < ET_CHECKS ? there - from : ET_CHECKS;

        count(b, from, len, hf__et_check(e, b, from, len));
    }
    hf__et_sent(e, &b->req);
    return HF__PENDING;
}
