/*
 * Commands on the command connection that have no reply yet, and the server's
 * clock.
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

/* ---- the server's clock ------------------------------------------------ */

static int64_t flights_clock(const struct redis *r, hf__time at)
{
    return r->server_us ? r->server_us + (at - r->server_at) / 1000 : 0;
}

int64_t hf__rd_valid_until(const struct redis *r, hf__time now)
{
    return flights_clock(r, now + (hf__time)r->op_timeout_ms * HF__MS);
}

int64_t hf__rd_meant_until(const struct redis *r, const struct hf__req *req)
{
    if (req->meant_until == HF__NEVER)
        return 0;
    return flights_clock(r, req->meant_until - r->server_ahead);
}

bool hf__rd_clock(struct redis *r, const struct rd_node *node, hf__time sent_at)
{
    int64_t server_us;

    if (!hf__rd_int(node, &server_us) || server_us <= 0 ||
        server_us > INT64_MAX / 2)
        return false;
    /* The server read its clock after `sent_at`, but the estimate treats the
     * reading as the time at `sent_at`. The estimate is therefore never behind
     * the server's clock, and hf__rd_valid_until() is never too early. */
    r->server_us = server_us;
    r->server_at = sent_at;
    r->server_ahead = r->core->now() - sent_at;
    return true;
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
    hf__rd_put(o, by_text ? "EVAL" : "EVALSHA", by_text ? 4 : 7);
    hf__rd_put(o, by_text ? script->text : script->digest,
               by_text ? script->len : 40);
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
