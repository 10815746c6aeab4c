#include "ping.h"

#include "grpc.h"

/* Servers refuse clients that send PINGs too often. The next PING may follow at
 * once if the server has sent headers or data since it answered the last PING,
 * otherwise only after this time. */
#define PING_MS 5100
/* A PING must be answered within this many times link.silence_ms. */
#define PONG_LATE 4

const uint8_t hf__grpc_our_ping[8] = "holdfast";

hf__time hf__grpc_ping_at(const struct grpc *g)
{
    hf__time since =
        g->link.heard_at > g->begun_at ? g->link.heard_at : g->begun_at;
    hf__time at = since + g->ping_ms * HF__MS;
    hf__time allowed = g->pinged_at + PING_MS * HF__MS;

    if (g->link.state != NET_UP || !g->open || g->is_pinging || !g->ping_ms)
        return HF__NEVER;
    return g->may_ping || at > allowed ? at : allowed;
}

hf__time hf__grpc_pong_until(const struct grpc *g)
{
    return g->is_pinging
               ? g->pinged_at + PONG_LATE * g->link.silence_ms * HF__MS
               : HF__NEVER;
}

void hf__grpc_ping(struct grpc *g, hf__time now)
{
    if (g->link.state != NET_UP || !g->open || g->is_pinging ||
        (!g->may_ping && now < g->pinged_at + PING_MS * HF__MS))
        return;
    if (nghttp2_submit_ping(g->session, NGHTTP2_FLAG_NONE, hf__grpc_our_ping)) {
        if (!g->failed)
            g->failed = hf__link_why(&g->link, HF_ENOMEM, "out of memory");
        return;
    }
    g->is_pinging = true;
    g->may_ping = false;
    g->pinged_at = now;
    hf__link_await(&g->link, now);
}
