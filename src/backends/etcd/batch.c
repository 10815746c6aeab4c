#include "batch.h"

#include "entry_request.h"
#include "etcd.h"
#include "lock_state.h"

bool hf__et_item_is_held(const struct hf__renewal *item)
{
    const struct et_lock *l = item->remote->impl;

    return l->rev && l->state == ET_HELD && l->hold_id == item->hold_id;
}

static void batch_over(struct etcd *e, struct hf__batch *b)
{
    if (--b->chunks)
        return;
    for (size_t i = 0; i < b->len; i++)
        b->item[i].session_ms = e->term_ms;
    hf__et_finish(e, &b->req, HF__DONE);
}

void hf__et_batch_lose(struct hf__batch *b, size_t from, size_t len, int code)
{
    for (size_t i = from; i < from + len; i++)
        if (b->item[i].result == HF__DONE)
            b->item[i].result = (int16_t)code;
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
        batch_over(e, (struct hf__batch *)req);
    }
}

void hf__et_renew_failed(struct etcd *e, int code)
{
    struct hf__batch *b;

    while ((b = e->batches)) {
        e->batches = (struct hf__batch *)b->req.next;
        hf__et_batch_lose(b, 0, b->len, code);
        batch_over(e, b);
    }
}

static void batch_take(struct hf__renewal *item)
{
    if (hf__et_item_is_held(item))
        hf__et_lock_taken(item->remote->impl);
    item->result = HF_ENOTOWNER;
}

void hf__et_checked(const struct et_request *a, int code, const bool *gone)
{
    struct hf__batch *b = a->batch;
    struct etcd *e = a->call.g->owner;

    for (size_t i = 0; !code && i < a->len; i++)
        if (gone[i])
            batch_take(&b->item[a->from + i]);
    if (code)
        hf__et_batch_lose(b, a->from, a->len, code);
    batch_over(e, b);
}
