/*
 * Requests from the core and their results. hf__rd_submit() never reports to
 * the core: if a write fails, advance() notices that later.
 */
#include "requests.h"

#include "late_replies.h"
#include "lock.h"
#include "pipe.h"
#include "redis.h"
#include "replica.h"
#include "subscribe.h"

/* The limit on how long the server may be silent during renewals is at least
 * this, even if the TTLs are very short. A connection with a longer round trip
 * is closed then, but it would be of no use for such TTLs. */
#define RENEW_PATIENCE_MIN_MS 200

bool hf__rd_is_renewing(const struct redis *r)
{
    return r->renewing || r->core->now() < r->renew_until;
}

/* Limits how long the server may be silent during renewals before the client
 * closes the connection. A server that was only suspended will execute the
 * requests that it has received, in their order. If they were sent again on a
 * new connection, their order would be uncertain. So the server gets some time,
 * but only so much that a renewal can still be repeated twice. */
void hf__rd_hurry(struct redis *r)
{
    uint32_t ms = r->renew_lease_ms / 6, most = r->cmd.link.silence_ms;

    ms = ms > RENEW_PATIENCE_MIN_MS ? ms : RENEW_PATIENCE_MIN_MS;
    /* A reply may be delayed by a WAIT that was sent before its command. */
    ms += r->doubts.need ? r->doubts.ms : 0;
    ms = ms < most ? ms : most;
    hf__link_hurry(&r->cmd.link, hf__rd_is_renewing(r) ? ms : 0,
                   r->core->now());
}

/* ---- from the core ------------------------------------------------------ */

static bool requests_has_room(const struct redis *r)
{
    const struct net_link *l = &r->cmd.link;

    return l->state == NET_UP && !l->stream.broken &&
           l->stream.out.len - l->stream.out.from < RD_OUT_HIGH;
}

int hf__rd_submit(struct redis *r, struct hf__req *req, rd_encode_fn *encode)
{
    int rc;

    /* If the send buffer has no room, the core must keep the request until
     * ready() or advance() has made room. */
    if (!hf__link_wanted(&r->cmd.link) || !requests_has_room(r)) {
        r->put_off = true;
        return HF__LATER;
    }
    rc = encode(r, req);
    if (rc)
        return rc;
    if (!req->parked) { /* hf__rd_pump() writes a parked request */
        hf__rd_doubt_send(r);
        hf__net_flush(&r->cmd.link.stream);
    }
    return HF__PENDING;
}

void hf__rd_pump(struct redis *r)
{
    hf__rd_doubt_send(r);
    hf__net_flush(&r->cmd.link.stream);
    if (!r->put_off || !requests_has_room(r))
        return;
    r->put_off = false;
    if (r->renew_until) {
        r->renew_until = 0;
        hf__rd_hurry(r);
    }
    r->core->go_on(r->client);
}

/* ---- to the core -------------------------------------------------------- */

static void requests_attempt_over(struct redis *r, const struct hf__req *req,
                                  int result)
{
    ((struct rd_lock *)req->remote->impl)->attempting = false;
    if (result != HF__BUSY && result != HF_EMISMATCH &&
        (!req->untouched || result == HF_EUNKNOWN))
        return;
    /* The core does not abandon an attempt that certainly left no hold, so the
     * wait ends here. */
    hf__rd_wait_end(r, req->remote, r->core->now());
    hf__rd_late_over(r, req->hold_id);
}

void hf__rd_finish(struct redis *r, struct hf__req *req, int result)
{
    if (req->op == HF__ATTEMPT)
        requests_attempt_over(r, req, result);
    else if (req->op == HF__RENEW && --r->renewing == 0)
        hf__rd_hurry(r);
    req->result = (int16_t)result;
    r->core->done(r->client, req);
}
