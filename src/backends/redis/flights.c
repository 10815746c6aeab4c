/*
 * Commands on the command connection: in the out buffer, on the wire, or at the
 * server, in order (flights).
 */
#include "flights.h"

#include "backends/common/about.h"
#include "keys.h"
#include "pipe.h"
#include "redis.h"
#include "replica.h"
#include "scripts.h"

#include <string.h>

struct rd_flight *hf__rd_newest(const struct redis *r)
{
    return hf__sent_at(&r->cmd.sents, r->cmd.sents.len - 1);
}

void hf__rd_forget(struct redis *r, struct hf__req *req)
{
    for (size_t i = r->cmd.sents.len; i-- > 0;) {
        struct rd_flight *f = hf__sent_at(&r->cmd.sents, i);

        if (f->req == req) {
            f->req = NULL;
            return;
        }
    }
    hf__rd_doubt_forget(r, req);
}

void hf__rd_forget_remote(struct redis *r, const struct hf__remote *remote)
{
    for (size_t i = 0; i < r->cmd.sents.len; i++) {
        struct rd_flight *f = hf__sent_at(&r->cmd.sents, i);

        if (f->remote == remote)
            f->remote = NULL;
    }
}

/* ---- sending ------------------------------------------------------------ */

size_t hf__rd_owner(const struct redis *r, uint64_t hold_id,
                    char to[RD_OWNER_MAX])
{
    memcpy(to, r->uuid, HF__UUID_LEN);
    to[HF__UUID_LEN] = ':';
    return HF__UUID_LEN + 1 + hf__rd_decimal(to + HF__UUID_LEN + 1, hold_id);
}

void hf__rd_put_owner(const struct redis *r, struct net_out *o, uint64_t id)
{
    char owner[RD_OWNER_MAX];

    hf__rd_put(o, owner, hf__rd_owner(r, id, owner));
}

struct net_out *hf__rd_command(struct redis *r, struct hf__req *req,
                               size_t words, size_t more)
{
    struct net_out *o = &r->cmd.link.stream.out;
    struct rd_flight *f = hf__rd_pipe_send(&r->cmd, NULL, 1, more + 32);

    if (!f)
        return NULL;
    req->sent_at = f->sent.net.at;
    f->req = req;
    f->remote = req->op == HF__ATTEMPT ? req->remote : NULL;
    f->hold_id = req->hold_id;
    f->ahead = r->server_ahead;
    f->op = req->op;
    f->by_text = true;
    hf__rd_put_count(o, '*', words);
    return o;
}

struct net_out *hf__rd_call(struct redis *r, struct hf__req *req,
                            enum rd_script s, size_t keys, size_t args,
                            size_t more)
{
    const struct rd_text *script = &hf__rd_script[s];
    bool by_text = r->by_text[s];
    struct net_out *o = hf__rd_command(
        r, req, 3 + keys + args, more + 128 + (by_text ? script->len : 40));
    struct rd_flight *f;

    if (!o)
        return NULL;
    f = hf__rd_newest(r);
    f->script = (uint8_t)s;
    f->by_text = by_text;
    if (by_text) {
        hf__rd_put(o, "EVAL", 4);
        hf__rd_put(o, script->text, script->len);
    } else {
        hf__rd_put(o, "EVALSHA", 7);
        hf__rd_put(o, script->digest, 40);
    }
    hf__rd_put_num(o, (int64_t)keys);
    r->by_text[s] = false;
    return o;
}

struct net_out *hf__rd_begin(struct redis *r, struct hf__req *req,
                             enum rd_script s, const char *name, size_t len,
                             size_t args, size_t more)
{
    const struct rd_text *script = &hf__rd_script[s];
    struct net_out *o =
        hf__rd_call(r, req, s, script->keys_len, args,
                    script->keys_len * (RD_KEY_MAX + 16) + more);

    for (size_t i = 0; o && i < script->keys_len; i++) {
        enum rd_key key = script->keys[i];

        if (key == RD_KEY_TOKEN && r->string_dialect)
            key = RD_KEY_TOKEN_S;
        if (key != RD_KEY_DID)
            hf__rd_put_key(o, key, name, len);
    }
    return o;
}
