/*
 * The server's clock, as its answers say. A request says until when, by
 * that clock, it is meant; a server that gets it later refuses it.
 */
#include "clock.h"

#include "redis.h"
#include "reply.h"

static int64_t server_clock(const struct redis *r, hf__time at)
{
    return r->server_us ? r->server_us + (at - r->server_at) / 1000 : 0;
}

int64_t hf__rd_valid_until(const struct redis *r, hf__time now)
{
    return server_clock(r, now + (hf__time)r->op_timeout_ms * HF__MS);
}

int64_t hf__rd_meant_until(const struct redis *r, const struct hf__req *req)
{
    if (req->meant_until == HF__NEVER)
        return 0;
    return server_clock(r, req->meant_until - r->server_ahead);
}

bool hf__rd_clock(struct redis *r, const struct rd_node *node, hf__time sent_at)
{
    int64_t server_us;

    if (!hf__rd_int(node, &server_us) || server_us <= 0 ||
        server_us > INT64_MAX / 2)
        return false;
    /* By the time of sending: rather too late a time than too early, so that
     * a question that is meant is never refused. */
    r->server_us = server_us;
    r->server_at = sent_at;
    r->server_ahead = r->core->now() - sent_at;
    return true;
}
