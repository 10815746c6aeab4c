#include "renew.h"

#include "batch.h"
#include "entry_request.h"
#include "etcd.h"
#include "lease.h"
#include "lock_state.h"
#include "slot.h"

/* Moves the items whose holds still exist to the front, so that few
 * transactions can check them all. Sets their results to DONE, and those of the
 * other items to ENOTOWNER. Returns the number of items at the front. */
static size_t renew_sort(struct hf__batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->len; i++) {
        struct hf__renewal item = b->item[i];

        b->item[i].result = HF_ENOTOWNER;
        if (!hf__et_item_is_held(&item))
            continue;
        item.result = HF__DONE;
        b->item[i] = b->item[n];
        b->item[n++] = item;
    }
    return n;
}

/* Handles the sending of a part of the batch. If it has succeeded (rc is 0),
 * counts the part as under way; otherwise sets the results of the part's
 * items. */
static void renew_count(struct hf__batch *b, size_t from, size_t len, int rc)
{
    if (rc)
        hf__et_batch_lose(b, from, len, rc == HF_ENOMEM ? rc : HF_EUNKNOWN);
    else
        b->chunks++;
}

/* Sends what the server does not have yet about this hold: its mark, and the
 * new length of its fixed lease. */
static void renew_update(struct etcd *e, struct hf__batch *b, size_t i)
{
    const struct et_lock *l = b->item[i].remote->impl;

    if (l->mark == ET_MARK_OWED)
        renew_count(b, i, 1, hf__et_write_mark(e, b, i));
    if (l->is_fixed && b->item[i].lease_ms)
        hf__et_touch(l, b->item[i].lease_ms);
}

int hf__et_renew(void *self, struct hf__batch *b)
{
    struct etcd *e = self;
    size_t there;

    if (hf__et_is_down(e))
        return HF__LATER;
    b->req.sent_at = e->core->now();
    there = renew_sort(b);
    b->chunks = 1;
    hf__et_keep(e, b->req.sent_at);
    b->req.next = (struct hf__req *)e->batches;
    e->batches = b;
    for (size_t i = 0; i < there; i++)
        renew_update(e, b, i);
    for (size_t from = 0; from < there; from += ET_CHECKS) {
        size_t len = there - from < ET_CHECKS ? there - from : ET_CHECKS;

        renew_count(b, from, len, hf__et_check(e, b, from, len));
    }
    hf__et_sent(e, &b->req);
    return HF__PENDING;
}
