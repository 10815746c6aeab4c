/*
 * The commands of the kinds that are not a mutex. Their scripts have the same
 * keys and arguments in front (lua/).
 */
#include "redis.h"

#include <string.h>

static int encode_take(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    bool permits = m->kind == HF_SEMAPHORE;
    struct net_out *o = hf__rd_begin(
        r, req, permits ? RD_TAKE_SEM : RD_TAKE_RW, m->name, m->name_len, 11,
        RD_KEY_MAX + 512 + sizeof(r->about) + strlen(m->label));

    if (!o)
        return HF_ENOMEM;
    hf__rd_put_terms(r, o, req);
    hf__rd_put(o, m->fair ? "1" : "0", 1);
    hf__rd_put(o, r->chans.live ? "1" : "0", 1);
    if (permits) {
        hf__rd_put_num(o, req->permits ? req->permits : 1);
        hf__rd_put_num(o, m->permits);
    } else {
        hf__rd_put(o, m->mode == HF_READ ? "r" : "w", 1);
        hf__rd_put_key(o, RD_KEY_BASE, m->name, m->name_len);
    }
    hf__rd_put_num(o, hf__rd_hand_ms(req));
    return 0;
}

/* RELEASE and ABANDON. */
static int encode_drop(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    enum rd_script s = req->op == HF__ABANDON    ? hf__rd_leave_script(r, m)
                       : m->kind == HF_SEMAPHORE ? RD_DROP_SEM
                                                 : RD_DROP_RW;
    struct net_out *o = hf__rd_begin(r, req, s, m->name, m->name_len, 4,
                                     3 * (RD_KEY_MAX + 16) + 128);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put_owner(r, o, req->hold_id);
    hf__rd_put_key(o, hf__rd_channel(m->kind), m->name, m->name_len);
    hf__rd_put_key(o, hf__rd_mark(m->kind), m->name, m->name_len);
    hf__rd_put_key(o, RD_KEY_BASE, m->name, m->name_len);
    return 0;
}

int hf__rd_kind_encode(struct redis *r, struct hf__req *req)
{
    if (req->remote->kind == HF_LATCH)
        return hf__rd_latch_encode(r, req);
    return req->op == HF__ATTEMPT ? encode_take(r, req) : encode_drop(r, req);
}
