/*
 * Callbacks of the command connection (cmd.h).
 *
 * When the connection breaks, a request fails with EUNKNOWN if a byte of its
 * command was written, because the server may have executed the command. A
 * request of which no byte was written is given back to the core, which sends
 * it again. Renewals are an exception: they fail with EUNKNOWN in either case.
 */
#include "cmd.h"

#include "flights.h"
#include "kinds.h"
#include "late_replies.h"
#include "lock.h"
#include "pipe.h"
#include "query.h"
#include "redis.h"
#include "renew.h"
#include "replica.h"
#include "reply.h"
#include "requests.h"
#include "rules.h"
#include "same_server.h"
#include "scripts.h"

#include <string.h>

/* A connection that leads to a replica is closed only if it is at least this
 * old. Otherwise a host name that leads only to a replica would cause rapid
 * reconnects. */
#define REPLICA_MS 2000

/* ---- answers ---------------------------------------------------------- */

/* Fails the request of this command with `code`. */
static void cmd_failed(struct redis *r, const struct rd_flight *f, int code)
{
    if (!f->req)
        return;
    if (f->op == HF__RENEW)
        hf__rd_renew_failed(r, f, code);
    else
        hf__rd_finish(r, f->req, code);
}

static int cmd_encode(struct redis *r, struct hf__req *req)
{
    switch (req->op) {
    case HF__ATTEMPT:
    case HF__RELEASE:
    case HF__ABANDON:
        return hf__rd_verb_encode(r, req);
    default:
        return hf__rd_query_encode(r, (struct hf__query *)req);
    }
}

/* Sends the command again, this time with the source of its script, because the
 * server did not know the digest. */
static void cmd_send_again(struct redis *r, const struct rd_flight *f)
{
    int rc = 0;

    if (!f->req)
        return;
    if (f->op == HF__RENEW)
        rc =
            hf__rd_renew_chunk(r, (struct hf__batch *)f->req, f->first, f->len);
    else
        rc = cmd_encode(r, f->req);
    if (rc)
        cmd_failed(r, f, rc);
}

/* Sets an error message that says what else the name is used for; the error
 * reply may contain the type of the key. Returns HF_EMISMATCH. */
static int cmd_mismatch(struct redis *r, const char *text)
{
    static const char *const no_locks[] = {"list", "set", "zset", "stream"};
    const char *other_dialect = r->string_dialect ? "hash" : "string";
    const char *type = text + strlen("WRONGTYPE");

    type += *type == ' ';
    for (size_t i = 0; i < sizeof(no_locks) / sizeof(*no_locks); i++)
        if (strcmp(type, no_locks[i]) == 0)
            return r->core->why(r->client, HF_EMISMATCH,
                                "the key is a %s: the name is used by "
                                "something other than a lock",
                                type);
    return r->core->why(
        r->client, HF_EMISMATCH,
        "the key has another type: the name is in use as another kind of lock, "
        "or by another program%s",
        strcmp(type, other_dialect) != 0 ? ""
        : r->string_dialect ? "; a Redisson lock has dialect=redisson"
                            : "; a lock of redis-py, redsync or node-redlock "
                              "has dialect=string");
}

/* Returns the result of an `op` whose reply is an error, and sets the error
 * message. A release or an abandon needs no message if the key has another
 * type. */
static int cmd_error_of(struct redis *r, const struct rd_node *reply,
                        uint8_t op)
{
    const char *text = hf__rd_error_text(reply->text);
    int code = hf__rd_error_code(text), len = hf__rd_error_len(text);

    if (code != HF_EMISMATCH)
        return (hf__rd_may_pass(text) ? r->core->why : r->core->lasts)(
            r->client, code, "%.*s", len < 150 ? len : 150, text);
    if (op == HF__RELEASE || op == HF__DOWNGRADE)
        return HF_ENOTOWNER; /* a key of another type is not our hold */
    if (op == HF__ABANDON)
        return HF__DONE;
    return cmd_mismatch(r, text);
}

static int cmd_is_replica(struct rd_pipe *p, const char *text)
{
    int len;

    text = hf__rd_error_text(text);
    len = hf__rd_error_len(text);
    return hf__link_why(&p->link, HF_EBACKEND, "it refuses to write: %.*s",
                        len < 120 ? len : 120, text);
}

/* Handles an error reply of a server that has become a replica. Returns false
 * if the command connection is younger than REPLICA_MS. Otherwise ends the
 * connection for messages and returns true, and the caller must end the command
 * connection: a replica does not close its connections, and the host name may
 * lead to the new master now. */
static bool cmd_leave_replica(struct redis *r, const char *text, hf__time now)
{
    if (now - r->cmd.link.up_at < REPLICA_MS * HF__MS)
        return false;
    hf__link_look_up(&r->cmd.link, now);
    if (r->sub.link.state > NET_PAUSING)
        hf__link_fail(&r->sub.link, cmd_is_replica(&r->sub, text), now);
    return true;
}

/* Handles an error reply. Returns 0, or a code that ends the connection. */
static int cmd_refused(struct redis *r, struct rd_flight *sent,
                       const struct rd_node *reply, hf__time now)
{
    const struct rd_flight f = *sent;

    if (f.req)
        f.req->untouched = hf__rd_did_nothing(reply->text);
    if (strncmp(reply->text, "NOSCRIPT", 8) == 0 && !f.by_text) {
        r->by_text[f.script] = true;
        cmd_send_again(r, &f);
        return 0;
    }
    if (!hf__rd_is_replica(reply->text) ||
        !cmd_leave_replica(r, reply->text, now)) {
        cmd_failed(r, &f, cmd_error_of(r, reply, f.op));
        return 0;
    }
    /* A renewal fails now, so that the holder gets the reason. Other
     * requests are sent again on the next connection, as if the server had
     * not answered. */
    if (f.op == HF__RENEW) {
        cmd_failed(r, &f, cmd_error_of(r, reply, f.op));
        sent->req = NULL;
    }
    return cmd_is_replica(&r->cmd, reply->text);
}

static int cmd_answered(struct rd_pipe *p, struct rd_sent *sent,
                        const struct rd_node *reply, hf__time now)
{
    struct redis *r = p->owner;
    const struct rd_flight f = *(const struct rd_flight *)sent;

    if (reply->type == REDIS_REPLY_ERROR && f.op != HF__DIAGNOSE)
        return cmd_refused(r, (struct rd_flight *)sent, reply, now);
    if (f.op == HF__RENEW)
        return hf__rd_renew_reply(r, &f, reply);
    if (f.op <= HF__ABANDON)
        return hf__rd_verb_reply(r, &f, reply, now);
    return f.req ? hf__rd_query_reply(r, (struct hf__query *)f.req, reply) : 0;
}

/* ---- connection up and down -------------------------------------------- */

/* Marks the scripts that release as unknown to the server, so that each is sent
 * as EVAL the first time. After an EVALSHA with an unknown digest the script
 * would have to be sent again, and would run only after later commands. */
static void cmd_expect_unknown(struct redis *r)
{
    static const enum rd_script scripts[] = {
        RD_DROP,      RD_LEAVE,    RD_DROP_FAIR, RD_LEAVE_FAIR,
        RD_DROP_S,    RD_LEAVE_S,  RD_DROP_RW,   RD_LEAVE_RW,
        RD_DOWNGRADE, RD_DROP_SEM, RD_LEAVE_SEM};

    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++)
        r->by_text[scripts[i]] = true;
}

static int cmd_clock_reply(struct rd_pipe *p, struct rd_sent *sent,
                           const struct rd_node *reply, hf__time now)
{
    const struct rd_node *info = hf__rd_at(reply, 2);
    struct redis *r = p->owner;
    int64_t s, us;

    (void)sent;
    if (!hf__rd_int(hf__rd_at(reply, 0), &s) ||
        !hf__rd_int(hf__rd_at(reply, 1), &us) || s <= 0 ||
        s > UINT32_MAX * 2LL || us < 0)
        return HF_EPROTO;
    r->server_us = s * 1000000 + us;
    /* Take the time of the arrival, so that the estimate is never ahead of the
     * server's clock. */
    r->server_at = r->core->now();
    r->server_ahead = 0;
    return info && info->type == REDIS_REPLY_STRING
               ? hf__rd_refuse_old(p, info->text, RD_OLDEST, now)
               : 0;
}

/* Requests the server's clock. The request also checks that the user is allowed
 * to run scripts, and that the server is not loading its data. INFO, for the
 * version, is requested only from a server without redis.setresp: such a server
 * is older than 6.0, and has no ACL that could forbid INFO. */
static int cmd_request_clock(struct rd_pipe *p, hf__time now)
{
    struct net_out *o = &p->link.stream.out;

    (void)now;
    if (!hf__rd_pipe_send(p, cmd_clock_reply, 1, 192))
        return HF_ENOMEM;
    hf__rd_put_count(o, '*', 3);
    hf__rd_put_text(o, "EVAL");
    hf__rd_put_text(o, "local t=redis.call('time') "
                       "if not redis.setresp then "
                       "t[3]=redis.pcall('info','server') end return t");
    hf__rd_put_text(o, "0");
    return 0;
}

static void cmd_advise(const struct rd_pipe *p, char *to, size_t size)
{
    const struct redis *r = p->owner;
    char rules[400];

    snprintf(
        to, size, ". " RD_RUN "%s%s%s",
        r->login.user[0] ? r->login.user : "default", p->db ? " +select" : "",
        hf__rd_rules(rules, sizeof(rules),
                     r->string_dialect ? RD_RULES_STRING : RD_RULES_REDISSON,
                     NULL, r->doubts.need > 0));
}

static void cmd_up(struct rd_pipe *p, hf__time now)
{
    struct redis *r = p->owner;

    (void)now;
    /* The timeout of hf_open() no longer applies. */
    p->link.connect_ms = r->sub.link.connect_ms;
    cmd_expect_unknown(r); /* the server may be a new one, or restarted */
    if (r->opened) {
        r->core->log(r->client, "redis: connected again to %s", p->link.where);
        r->core->session(r->client, HF_EVENT_UP, NULL);
    }
    r->opened = true;
    r->core->trouble(r->client, NULL);
    hf__rd_pair_begin(r);
}

/* Handles the commands of which no byte was written: renewals fail, and the
 * core gets all other requests back. */
static void cmd_unsend(struct redis *r)
{
    const struct rd_flight *f;

    while ((f = hf__sent_unsent(&r->cmd.sents, r->cmd.link.stream.written))) {
        if (!f->req)
            continue;
        if (f->op == HF__RENEW) {
            hf__rd_renew_failed(r, f, HF_EUNKNOWN);
            continue;
        }
        if (f->op == HF__ATTEMPT)
            ((struct rd_lock *)f->req->remote->impl)->attempting = false;
        r->put_off = true;
        r->core->unsent(r->client, f->req);
    }
}

static void cmd_down(struct rd_pipe *p, int code, bool was_up, hf__time now)
{
    struct redis *r = p->owner;
    const struct net_link *l = &p->link;
    const struct rd_flight *f;

    if (was_up)
        r->core->session(r->client, HF_EVENT_DOWN, NULL);
    hf__rd_pair_end(r);
    /* The batch that the core has parked may have expired. If so, the shorter
     * limit on the server's silence, which is for renewals, no longer
     * applies. */
    hf__rd_hurry(r);
    r->core->trouble(r->client, l->text);
    if (p->sents.len || r->doubts.len)
        r->core->why(r->client, HF_EUNKNOWN, "%s", l->text);
    hf__rd_doubt_lost(r, now);
    while ((f = hf__sent_lost(&p->sents, p->link.stream.written))) {
        if (f->op == HF__ATTEMPT)
            hf__rd_late_add(r, f, now);
        cmd_failed(r, f, code == HF_EPROTO ? code : HF_EUNKNOWN);
        code = code == HF_EPROTO ? HF_EBACKEND : code;
    }
    cmd_unsend(r);
    r->core->why(r->client, code, "%s", l->text);
    /* A refusal by the server fails all parked requests, unless the link tries
     * another address at once. */
    if (l->refused_at == now && l->timer > now)
        r->core->refuse(r->client, code);
}

const struct rd_owner hf__rd_cmd = {.hello = cmd_request_clock,
                                    .advise = cmd_advise,
                                    .up = cmd_up,
                                    .answer = cmd_answered,
                                    .down = cmd_down};

void hf__rd_decided(struct redis *r, const struct rd_flight *f, int code,
                    hf__time now)
{
    if (code)
        cmd_failed(r, f, code);
    else if (f->req && f->op == HF__RENEW)
        hf__rd_renew_landed(r, (struct hf__batch *)f->req);
    else if (f->req)
        hf__rd_grant(r, f->req, now);
}
