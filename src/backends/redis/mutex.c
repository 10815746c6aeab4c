/* The commands of the mutex, in both dialects; their texts are in lua/. */
#include "redis.h"

#include <string.h>

/* 0: for ever. */
static int64_t token_ttl(const struct redis *r, uint32_t lease_ms)
{
    int64_t ttl = 10 * (int64_t)lease_ms;

    if (r->keep_tokens)
        return 0;
    return ttl > RD_TOKEN_TTL_MS ? ttl : RD_TOKEN_TTL_MS;
}

static void put_key(struct net_out *o, enum rd_key key,
                    const struct hf__remote *m)
{
    hf__rd_put_key(o, key, m->name, m->name_len);
}

int64_t hf__rd_hand_ms(const struct hf__req *req)
{
    return req->fixed || req->lease_ms < RD_HAND_MIN_MS ? 0 : req->lease_ms;
}

void hf__rd_put_owner(const struct redis *r, struct net_out *o, uint64_t id)
{
    char owner[RD_OWNER_MAX];

    hf__rd_put(o, owner, hf__rd_owner(r, id, owner));
}

void hf__rd_put_terms(const struct redis *r, struct net_out *o,
                      const struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    struct rd_link *link = m->impl;

    hf__rd_put_owner(r, o, req->hold_id);
    hf__rd_put_num(o, req->lease_ms);
    hf__rd_put_num(o, hf__rd_valid_until(r, req->sent_at));
    hf__rd_put_num(o, token_ttl(r, req->lease_ms));
    hf__rd_put_two(o, r->about, r->about_len, m->label, strlen(m->label));
    hf__rd_put(o, !req->may_queue ? "0" : link->sent ? "2" : "1", 1);
    if (!link->sent || req->lease_ms < link->lease_ms)
        link->lease_ms = req->lease_ms < RD_LEASE_MOST
                             ? req->lease_ms & RD_LEASE_MOST
                             : RD_LEASE_MOST;
    link->sent = true;
}

static int encode_take(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    enum rd_script s = r->string_dialect ? RD_TAKE_S
                       : m->fair         ? RD_TAKE_FAIR
                                         : RD_TAKE;
    struct net_out *o =
        hf__rd_begin(r, req, s, m->name, m->name_len, m->fair ? 9 : 7,
                     RD_KEY_MAX + 512 + sizeof(r->about) + strlen(m->label));

    if (!o)
        return HF_ENOMEM;
    hf__rd_put_terms(r, o, req);
    hf__rd_put_num(o, hf__rd_hand_ms(req));
    if (m->fair) {
        put_key(o, RD_CHANNEL, m);
        hf__rd_put(o, r->chans.live ? "1" : "0", 1);
    }
    return 0;
}

enum rd_script hf__rd_leave_script(const struct redis *r,
                                   const struct hf__remote *m)
{
    return r->string_dialect         ? RD_LEAVE_S
           : m->kind == HF_RWLOCK    ? RD_LEAVE_RW
           : m->kind == HF_SEMAPHORE ? RD_LEAVE_SEM
           : m->fair                 ? RD_LEAVE_FAIR
                                     : RD_LEAVE;
}

/* RELEASE and ABANDON. */
static int encode_drop(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    bool leave = req->op == HF__ABANDON;
    enum rd_script s = leave               ? hf__rd_leave_script(r, m)
                       : r->string_dialect ? RD_DROP_S
                       : m->fair           ? RD_DROP_FAIR
                                           : RD_DROP;
    bool both = !r->string_dialect; /* kinds of waiters */
    struct net_out *o = hf__rd_begin(r, req, s, m->name, m->name_len,
                                     both ? 3 : 1, 2 * (RD_KEY_MAX + 16) + 128);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put_owner(r, o, req->hold_id);
    if (both) {
        put_key(o, RD_CHANNEL, m);
        put_key(o, RD_MARK, m);
    }
    return 0;
}

int hf__rd_verb_encode(struct redis *r, struct hf__req *req)
{
    if (req->remote->kind != HF_MUTEX)
        return hf__rd_kind_encode(r, req);
    return req->op == HF__ATTEMPT ? encode_take(r, req) : encode_drop(r, req);
}
