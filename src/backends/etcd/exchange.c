#include "exchange.h"

#include "etcd.h"
#include "refusal.h"

int hf__et_txn_read(struct grpc_call *c, const uint8_t *p, size_t len,
                    int (*take)(struct grpc_call *, const Etcd__TxnAnswer *))
{
    struct etcd *e = c->g->owner;
    Etcd__TxnAnswer *t = etcd__txn_answer__unpack(&e->memory, len, p);
    int rc = t && t->header && t->header->revision > 0 ? take(c, t) : HF_EPROTO;

    etcd__txn_answer__free_unpacked(t, &e->memory);
    return rc;
}

static int exchange_answered(struct grpc_call *c, const struct et_exchange *x)
{
    size_t len;
    const uint8_t *p = hf__grpc_answer(c, &len);
    int rc = x->answered(c, p, len);

    return rc == HF_EPROTO ? x->failed(c, hf__et_odd(c->g->owner), false) : rc;
}

static int exchange_unsure(struct grpc_call *c, const struct et_exchange *x)
{
    struct etcd *e = c->g->owner;
    bool is_refused = c->end == GRPC_ANSWERED;
    int rc = is_refused ? hf__et_leave_member(e, c) : 0;

    if (c->end == GRPC_LOST || c->end == GRPC_UNSENT)
        e->core->why(e->client, HF_EUNKNOWN, "%s", c->text);
    else
        e->core->why(e->client, HF_EUNKNOWN, "%s: %s", e->g.link.where,
                     c->text);
    x->failed(c, HF_EUNKNOWN, !rc && (is_refused || c->end == GRPC_LATE));
    return rc;
}

int hf__et_exchange_over(struct grpc_call *c, const struct et_exchange *x)
{
    if (c->end == GRPC_ANSWERED && !c->status)
        return exchange_answered(c, x);
    if (c->end == GRPC_ANSWERED && c->status == 5)
        return x->failed(c, HF_ENOTOWNER, false);
    if (c->end != GRPC_ANSWERED || hf__et_is_unsure(c))
        return exchange_unsure(c, x);
    x->failed(c, hf__et_refusal(c->g->owner, c), false);
    return 0;
}
