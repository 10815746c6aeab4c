#include "exchange.h"

#include "etcd.h"
#include "refusal.h"

int hf__et_pack(struct grpc_call *c, const void *message)
{
    uint8_t *p = hf__grpc_room(c, protobuf_c_message_get_packed_size(message));

    if (p)
        protobuf_c_message_pack(message, p);
    return p ? 0 : HF_ENOMEM;
}

Etcd__TxnAnswer *hf__et_txn_read(const struct grpc_call *c)
{
    struct etcd *e = c->g->owner;
    size_t len;
    const uint8_t *p = hf__grpc_answer(c, &len);
    Etcd__TxnAnswer *t = etcd__txn_answer__unpack(&e->memory, len, p);

    if (t && t->header && t->header->revision > 0)
        return t;
    hf__et_txn_free(c, t);
    return NULL;
}

void hf__et_txn_free(const struct grpc_call *c, Etcd__TxnAnswer *t)
{
    struct etcd *e = c->g->owner;

    etcd__txn_answer__free_unpacked(t, &e->memory);
}

static void exchange_explain(const struct grpc_call *c)
{
    const struct etcd *e = c->g->owner;

    /* If the connection has ended, its error message already names the
     * server. */
    if (c->end == GRPC_LOST || c->end == GRPC_UNSENT)
        e->core->why(e->client, HF_EUNKNOWN, "%s", c->text);
    else
        e->core->why(e->client, HF_EUNKNOWN, "%s: %s", e->g.link.where,
                     c->text);
}

int hf__et_failed(struct grpc_call *c,
                  int (*failed)(struct grpc_call *, int code, bool can_repeat))
{
    struct etcd *e = c->g->owner;
    bool is_refused = c->end == GRPC_ANSWERED;
    int rc;

    if (hf__et_has_answer(c))
        return failed(c, hf__et_odd(e), false);
    if (is_refused && c->status == 5)
        return failed(c, HF_ENOTOWNER, false);
    if (is_refused && !hf__et_is_unsure(c))
        return failed(c, hf__et_refusal(e, c), false);
    exchange_explain(c);
    rc = is_refused ? hf__et_leave_member(e, c) : 0;
    failed(c, HF_EUNKNOWN, !rc && (is_refused || c->end == GRPC_LATE));
    return rc;
}
