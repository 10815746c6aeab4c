/*
 * Requests on the command connection: in the out buffer, on the wire, or at the
 * server, in order (flights). When the connection breaks, those of which a byte
 * was written are EUNKNOWN; the others go back to the core. While it is down,
 * or has enough to write, the core keeps what comes (HF__LATER).
 *
 * hf__rd_submit() never reports anything itself: a request that cannot be
 * written is found out by advance().
 */
#include "redis.h"

#include <errno.h>
#include <string.h>

#define IDLE_MS 500
/* A replica is left once a connection is so old: not again and again, if its
 * name leads nowhere else. */
#define REPLICA_MS 2000

static void attempt_over(struct redis *r, const struct hf__req *req, int result)
{
    ((struct rd_link *)req->remote->impl)->asking = false;
    if (result != HF__BUSY && result != HF_EMISMATCH &&
        (!req->untouched || result == HF_EUNKNOWN))
        return;
    /* The core might not abandon it, so end the wait here. */
    hf__rd_wait_end(r, req->remote, r->core->now());
    hf__rd_late_over(r, req->hold_id);
}

void hf__rd_finish(struct redis *r, struct hf__req *req, int result)
{
    if (req->op == HF__ATTEMPT)
        attempt_over(r, req, result);
    else if (req->op == HF__RENEW)
        r->renewing--;
    req->result = (int16_t)result;
    r->core->done(r->client, req);
}

/* ---- flights ---------------------------------------------------------- */

static struct rd_flight *flight_at(struct rd_flights *f, size_t i)
{
    return &f->at[(f->head + i) & (f->cap - 1)];
}

static int flights_reserve(struct redis *r)
{
    struct rd_flights *f = &r->flights, bigger = {.head = f->head, .cap = 16};

    if (f->len < f->cap)
        return 0;
    if (f->cap)
        bigger.cap = f->cap * 2;
    bigger.at = r->core->alloc(r->client, bigger.cap * sizeof(*bigger.at));
    if (!bigger.at)
        return HF_ENOMEM;
    for (; bigger.len < f->len; bigger.len++)
        *flight_at(&bigger, bigger.len) = *flight_at(f, bigger.len);
    r->core->free(r->client, f->at);
    *f = bigger;
    return 0;
}

static struct rd_flight flight_pop(struct rd_flights *f)
{
    struct rd_flight first = *flight_at(f, 0);

    f->head++;
    f->len--;
    return first;
}

void hf__rd_forget(struct redis *r, struct hf__req *req)
{
    for (size_t i = r->flights.len; i-- > 0;)
        if (flight_at(&r->flights, i)->req == req) {
            flight_at(&r->flights, i)->req = NULL;
            return;
        }
}

void hf__rd_forget_remote(struct redis *r, const struct hf__remote *remote)
{
    for (size_t i = 0; i < r->flights.len; i++)
        if (flight_at(&r->flights, i)->remote == remote)
            flight_at(&r->flights, i)->remote = NULL;
}

/* ---- sending ---------------------------------------------------------- */

struct net_out *hf__rd_command(struct redis *r, struct hf__req *req,
                               size_t words, size_t more)
{
    struct rd_conn *c = &r->cmd;
    struct net_out *o = &c->stream.out;
    struct rd_flights *f = &r->flights;

    if (flights_reserve(r) || hf__net_reserve(&c->stream, more + 32))
        return NULL;
    req->sent_at = r->core->now();
    if (!f->len)
        c->heard_at = req->sent_at; /* silence begins here */
    *flight_at(f, f->len++) = (struct rd_flight){
        .req = req,
        .remote = req->op == HF__ATTEMPT ? req->remote : NULL,
        .hold_id = req->hold_id,
        .sent_at = req->sent_at,
        .ahead = r->server_ahead,
        .start = c->stream.written + (o->len - o->from),
        .op = req->op,
        .by_text = true};
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
    struct rd_flight *f = o ? flight_at(&r->flights, r->flights.len - 1) : NULL;

    if (!o)
        return NULL;
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

static int encode(struct redis *r, struct hf__req *req)
{
    switch (req->op) {
    case HF__RENEW:
        return hf__rd_renew_encode(r, (struct hf__batch *)req);
    case HF__ATTEMPT:
    case HF__RELEASE:
    case HF__ABANDON:
        return hf__rd_verb_encode(r, req);
    default:
        return hf__rd_query_encode(r, (struct hf__query *)req);
    }
}

static bool has_room(const struct redis *r)
{
    return r->cmd.state == RD_UP && !r->cmd.stream.broken &&
           r->cmd.stream.out.len - r->cmd.stream.out.from < RD_OUT_HIGH;
}

/* While nobody asks anything nobody listens either. A server that has closed
 * an idle connection meanwhile would make an EUNKNOWN of what we send next. */
static void look_if_closed(struct redis *r)
{
    if (r->cmd.state == RD_UP && !r->flights.len && !r->cmd.stream.broken &&
        r->core->now() - r->cmd.heard_at > IDLE_MS * HF__MS &&
        hf__net_is_over(&r->cmd.stream))
        r->cmd.stream.broken = ECONNRESET;
}

int hf__rd_submit(struct redis *r, struct hf__req *req)
{
    int rc;

    look_if_closed(r);
    hf__rd_conn_hurry(&r->cmd);
    if (!has_room(r)) { /* there will be in ready() or advance() alone */
        r->put_off = true;
        return HF__LATER;
    }
    rc = encode(r, req);
    if (rc)
        return rc;
    if (!req->parked) /* else hf__rd_pump() writes all of them */
        hf__net_flush(&r->cmd.stream);
    return HF__PENDING;
}

void hf__rd_pump(struct redis *r)
{
    if (r->cmd.state == RD_UP && r->cmd.stream.out.from < r->cmd.stream.out.len)
        hf__net_flush(&r->cmd.stream);
    if (!r->put_off || !has_room(r))
        return;
    r->put_off = false;
    r->renew_until = 0;
    r->core->go_on(r->client);
}

/* ---- answers ---------------------------------------------------------- */

static void failed(struct redis *r, const struct rd_flight *f, int code)
{
    if (!f->req)
        return;
    if (f->op == HF__RENEW)
        hf__rd_renew_failed(r, f, code);
    else
        hf__rd_finish(r, f->req, code);
}

/* The server has no such script: the same again, with its text. */
static void send_again(struct redis *r, const struct rd_flight *f)
{
    int rc = 0;

    if (!f->req)
        return;
    if (f->op == HF__RENEW)
        rc =
            hf__rd_renew_chunk(r, (struct hf__batch *)f->req, f->first, f->len);
    else
        rc = encode(r, f->req);
    if (rc)
        failed(r, f, rc);
}

/* It was the master once, and does not close connections when it is not: they
 * are no more worth than lost ones. The name may lead to the new one. */
static bool leave_replica(struct redis *r, hf__time now)
{
    if (now - r->cmd.up_at < REPLICA_MS * HF__MS)
        return false;
    hf__rd_look_up(r, now);
    if (r->sub.state > RD_WAIT)
        hf__rd_conn_fail(&r->sub, now, HF_EBACKEND, "it has become a replica");
    return true;
}

/* A code: the connection is to end. */
static int refused(struct redis *r, const struct rd_flight *f,
                   const struct rd_node *reply, hf__time now)
{
    if (f->req)
        f->req->untouched = hf__rd_did_nothing(reply->text);
    if (strncmp(reply->text, "NOSCRIPT", 8) == 0 && !f->by_text) {
        r->by_text[f->script] = true;
        send_again(r, f);
    } else if (hf__rd_is_replica(reply->text) && leave_replica(r, now)) {
        return HF_EBACKEND;
    } else {
        failed(r, f, hf__rd_error(r, reply, f->op));
    }
    return 0;
}

int hf__rd_cmd_reply(struct redis *r, const struct rd_node *reply, hf__time now)
{
    struct rd_flight f;
    int rc = 0;

    if (!r->flights.len)
        return HF_EPROTO; /* nobody has asked */
    f = flight_pop(&r->flights);
    if (f.op == RD_PROOF)
        hf__rd_pair_reply(r, f.hold_id, reply, now);
    else if (reply->type == REDIS_REPLY_ERROR && f.op != HF__DIAGNOSE)
        rc = refused(r, &f, reply, now);
    else if (f.op == HF__RENEW)
        rc = hf__rd_renew_reply(r, &f, reply);
    else if (f.op <= HF__ABANDON)
        rc = hf__rd_verb_reply(r, &f, reply, now);
    else if (f.req)
        rc = hf__rd_query_reply(r, (struct hf__query *)f.req, reply);
    if (rc) {
        /* Back in front: it is the one that the failure is about. */
        r->flights.head--;
        r->flights.len++;
    }
    return rc;
}

/* ---- the connection comes and goes ------------------------------------ */

/* What lets go goes out as text the first time: if the server did not know it,
 * the question that follows it would be answered before it. */
static void expect_unknown(struct redis *r)
{
    static const enum rd_script scripts[] = {
        RD_DROP,      RD_LEAVE,    RD_DROP_FAIR, RD_LEAVE_FAIR,
        RD_DROP_S,    RD_LEAVE_S,  RD_DROP_RW,   RD_LEAVE_RW,
        RD_DOWNGRADE, RD_DROP_SEM, RD_LEAVE_SEM};

    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++)
        r->by_text[scripts[i]] = true;
}

void hf__rd_cmd_up(struct redis *r, hf__time now)
{
    (void)now;
    expect_unknown(r); /* it may be another server, or another life of it */
    if (r->opened && !r->is_up) {
        r->core->log(r->client, "redis: connected again to %s", r->peer.where);
        r->core->session(r->client, HF_EVENT_UP, NULL);
    }
    r->opened = true;
    r->is_up = true;
    r->core->trouble(r->client, NULL);
    hf__rd_pair_begin(r);
}

/* What was never written goes back to the core. */
static void unsend(struct redis *r)
{
    struct rd_flights *f = &r->flights;

    for (size_t i = f->len; i-- > 0;) {
        const struct rd_flight *one = flight_at(f, i);

        if (!one->req)
            continue;
        if (one->op == HF__RENEW) {
            hf__rd_renew_failed(r, one, HF_EUNKNOWN);
            continue;
        }
        if (one->op == HF__ATTEMPT)
            ((struct rd_link *)one->req->remote->impl)->asking = false;
        r->put_off = true;
        r->core->unsent(r->client, one->req);
    }
    f->head += f->len;
    f->len = 0;
}

void hf__rd_cmd_down(struct redis *r, int code, hf__time now)
{
    struct rd_flights *f = &r->flights;

    if (r->is_up)
        r->core->session(r->client, HF_EVENT_DOWN, NULL);
    r->is_up = false;
    hf__rd_pair_end(r);
    r->core->trouble(r->client, r->text);
    if (f->len)
        r->core->why(r->client, HF_EUNKNOWN, "%s", r->text);
    while (f->len && flight_at(f, 0)->start < r->cmd.stream.written) {
        struct rd_flight one = flight_pop(f);

        if (one.op == HF__ATTEMPT)
            hf__rd_late_add(r, &one, now);
        failed(r, &one, code == HF_EPROTO ? code : HF_EUNKNOWN);
        code = code == HF_EPROTO ? HF_EBACKEND : code;
    }
    unsend(r);
    r->core->why(r->client, code, "%s", r->text);
    /* A refusal is an answer, unless another address is tried now. */
    if (r->cmd.refused_at == now && r->cmd.timer > now)
        r->core->refuse(r->client, code);
}

static hf__time silent_at(const struct redis *r)
{
    if (r->cmd.state != RD_UP || !r->flights.len)
        return HF__NEVER;
    return r->cmd.heard_at + hf__rd_patience_ms(r) * HF__MS;
}

hf__time hf__rd_cmd_timeout(const struct redis *r)
{
    return hf__min_time(hf__rd_conn_timeout(&r->cmd), silent_at(r));
}

void hf__rd_cmd_silence(struct redis *r, hf__time now)
{
    if (now >= silent_at(r))
        hf__rd_conn_fail(&r->cmd, now, HF_EBACKEND, "no answer within %u ms",
                         hf__rd_patience_ms(r));
}

void hf__rd_cmd_fini(struct redis *r)
{
    r->core->free(r->client, r->flights.at);
    r->flights = (struct rd_flights){0};
}
