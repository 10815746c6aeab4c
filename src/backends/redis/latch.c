/* The commands of a latch: whether it is 0, for its lock; all else by its name.
 */
#include "latch.h"

#include "clock.h"
#include "flights.h"
#include "keys.h"
#include "lock.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"
#include "scripts.h"

#include <string.h>

int hf__rd_latch_encode(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    struct rd_lock *lock = m->impl;
    struct net_out *o =
        hf__rd_begin(r, req, RD_WAIT_LATCH, m->name, m->name_len, 5, 160);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put(o, "", 0);
    hf__rd_put(o, "", 0);
    hf__rd_put_num(o, hf__rd_valid_until(r, req->sent_at));
    hf__rd_put(o, req->may_queue ? "1" : "0", 1);
    hf__rd_put_num(o, lock->waits ? (int64_t)lock->round : 0);
    lock->sent = true;
    return 0;
}

/* holdfast:did:{n}:<uuid>:<request> */
static void latch_put_did(const struct redis *r, struct net_out *o,
                          const struct hf__query *q)
{
    char text[RD_KEY_MAX + 1 + RD_OWNER_MAX];
    size_t len = hf__rd_key(text, RD_KEY_DID, q->name, q->name_len);

    text[len++] = ':';
    len += hf__rd_owner(r, q->request, text + len);
    hf__rd_put(o, text, len);
}

int hf__rd_count_encode(struct redis *r, struct hf__query *q)
{
    const char *op = q->req.op == HF__LATCH_SET    ? "s"
                     : q->req.op == HF__LATCH_DOWN ? "d"
                                                   : "g";
    struct net_out *o = hf__rd_begin(r, &q->req, RD_LATCH, q->name, q->name_len,
                                     5, 2 * (RD_KEY_MAX + 80) + 128);

    if (!o)
        return HF_ENOMEM;
    latch_put_did(r, o, q);
    hf__rd_put(o, op, 1);
    hf__rd_put_num(o, (int64_t)q->count);
    hf__rd_put_num(o, hf__rd_meant_until(r, &q->req));
    /* For longer than it can be sent again. */
    hf__rd_put_num(o, 3 * (int64_t)r->op_timeout_ms + 1000);
    hf__rd_put_key(o, RD_CHANNEL_LATCH, q->name, q->name_len);
    return 0;
}

int hf__rd_count_reply(struct redis *r, struct hf__query *q,
                       const struct rd_node *reply)
{
    int64_t what, count;

    if (!hf__rd_int(hf__rd_at(reply, 0), &what) ||
        !hf__rd_clock(r, hf__rd_at(reply, 1), q->req.sent_at))
        return HF_EPROTO;
    if (what == RD_STALE)
        return RD_AGAIN;
    if (what == RD_MISMATCH)
        return r->core->why(r->client, HF_EMISMATCH,
                            "the name is in use as another kind of lock");
    if (!hf__rd_int(hf__rd_at(reply, 2), &count) || count < 0 ||
        (what != HF__DONE && what != RD_BUSY))
        return HF_EPROTO;
    q->count = (uint64_t)count;
    return what == RD_BUSY ? HF_EBUSY : HF__DONE;
}
