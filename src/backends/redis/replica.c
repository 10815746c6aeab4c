/*
 * replicas=n: a grant or a renewal counts only if n replicas have it.
 *
 * Redis answers a script before its replicas have received the script's writes.
 * WAIT returns how many replicas have all writes up to the previous command of
 * the same connection, as soon as there are enough or replica_timeout has
 * passed. Therefore, after a script has said "granted" or "renewed", the
 * request is in doubt, and the next reply to a WAIT decides all requests in
 * doubt. Replies arrive in the order of sending, so this WAIT was sent after
 * the scripts of these requests.
 *
 * - WAIT is sent in one packet with the first attempt of an acquire, with the
 *   attempt after a message, and with renewals. A safety poll rarely finds the
 *   lock free, so its WAIT follows only after a grant.
 * - WAIT blocks its connection. At most one WAIT is therefore under way, and
 *   the next one covers all commands that were sent in the meantime. A command
 *   waits for at most one replica_timeout, a grant or a renewal for two.
 * - If too few replicas confirm, the acquire fails with EBACKEND, and the core
 *   abandons it, as it does after every failure that may have left a hold. That
 *   is the rollback. A failed renewal is repeated until the deadline.
 * - No lock is handed over to a client with replicas=. The connection of the
 *   previous holder would write the hold, and the client's WAIT would not cover
 *   that write. The client is rung instead, and tries (hand_ms is 0).
 * - A WAIT that was sent with a script is answered even if the script was not
 *   executed (NOSCRIPT). Nothing is in doubt then; the script and another WAIT
 *   are sent again.
 * - If the connection is lost, requests in doubt become EUNKNOWN. The core
 *   repeats them under the same hold id at the server that it reaches then.
 *
 * Latches, releases and downgrades are never in doubt. (A renewal follows a
 * downgrade at once.)
 */
#include "replica.h"

#include "flights.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPLICAS_MAX 99
#define TIMEOUT_MS 100

static int replica_parse_need(struct redis *r, const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*text < '0' || *text > '9' || *end || n > REPLICAS_MAX)
        return r->core->why(r->client, HF_EINVAL,
                            "replicas=%.40s: must be a number from 0 to %d",
                            text, REPLICAS_MAX);
    r->doubts.need = (uint32_t)n;
    return 0;
}

/* Reads replica_timeout, which is limited: two WAITs and the replies must fit
 * into op_timeout, and leave time to repeat a renewal. */
static int replica_parse_timeout(struct redis *r, const char *text,
                                 const struct hf__config *config)
{
    int64_t most = config->op_timeout_ms / 4, n = TIMEOUT_MS;

    if (config->ttl_ms / 10 < most)
        most = config->ttl_ms / 10;
    most = most ? most : 1;
    if (!text)
        n = n < most ? n : most;
    else if (r->core->parse_ms(text, &n) || n < 1 || n > most)
        return r->core->why(r->client, HF_EINVAL,
                            "replica_timeout=%.40s: must be from 1 to %lld ms "
                            "(at most a quarter of op_timeout and a tenth of "
                            "ttl)",
                            text, (long long)most);
    r->doubts.ms = (uint32_t)n;
    return 0;
}

int hf__rd_doubt_parse(struct redis *r, const struct hf__config *config)
{
    const char *need = r->core->option(config->url, "replicas");
    const char *ms = r->core->option(config->url, "replica_timeout");
    int rc = need ? replica_parse_need(r, need) : 0;

    if (!rc && ms && !r->doubts.need)
        rc = r->core->why(r->client, HF_EINVAL,
                          "replica_timeout needs replicas=1 or more");
    return rc ? rc : replica_parse_timeout(r, ms, config);
}

/* ---- in doubt ---------------------------------------------------------- */

int hf__rd_doubt_room(struct redis *r, bool now)
{
    struct rd_doubts *d = &r->doubts;
    size_t need = d->len + r->cmd.sents.len + 1, cap = d->cap ? d->cap : 8;
    struct rd_flight *all;

    if (!d->need)
        return 0;
    while (cap < need)
        cap *= 2;
    if (cap > d->cap) {
        all = r->core->alloc(r->client, cap * sizeof(*all));
        if (!all)
            return HF_ENOMEM;
        if (d->len)
            memcpy(all, d->all, d->len * sizeof(*all));
        r->core->free(r->client, d->all);
        d->all = all;
        d->cap = cap;
    }
    d->wanted = d->wanted || now;
    return 0;
}

bool hf__rd_doubt(struct redis *r, const struct rd_flight *f)
{
    struct rd_doubts *d = &r->doubts;

    if (!d->need)
        return false;
    f->req->untouched = false;
    d->all[d->len++] = *f;
    d->wanted = d->wanted || !d->waiting;
    return true;
}

void hf__rd_doubt_forget(struct redis *r, const struct hf__req *req)
{
    for (size_t i = 0; i < r->doubts.len; i++)
        if (r->doubts.all[i].req == req)
            r->doubts.all[i].req = NULL;
}

static void replica_decide_all(struct redis *r, int code, hf__time now)
{
    size_t len = r->doubts.len;

    r->doubts.len = 0;
    for (size_t i = 0; i < len; i++)
        r->doubts.decided(r, &r->doubts.all[i], code, now);
}

void hf__rd_doubt_lost(struct redis *r, hf__time now)
{
    r->doubts.waiting = r->doubts.wanted = false;
    replica_decide_all(r, HF_EUNKNOWN, now);
}

void hf__rd_doubt_fini(struct redis *r)
{
    r->core->free(r->client, r->doubts.all);
}

/* ---- WAIT -------------------------------------------------------------- */

static int replica_refused(struct redis *r, const char *text)
{
    int code = hf__rd_error_code(text);

    if (code == HF_EAUTH)
        return r->core->why(r->client, code,
                            "replicas= needs WAIT: %.100s; allow +wait", text);
    return (hf__rd_may_pass(text) ? r->core->why : r->core->lasts)(
        r->client, code, "WAIT: %.140s", text);
}

static int replica_waited(struct rd_pipe *p, struct rd_sent *sent,
                          const struct rd_node *reply, hf__time now)
{
    struct redis *r = p->owner;
    struct rd_doubts *d = &r->doubts;
    int64_t have;
    int code = 0;

    (void)sent;
    if (reply->type == REDIS_REPLY_ERROR)
        code = replica_refused(r, reply->text);
    else if (!hf__rd_int(reply, &have) || have < 0)
        return HF_EPROTO;
    else if (have < d->need)
        code = r->core->why(r->client, HF_EBACKEND,
                            "%lld of %u replicas confirmed it within %s; "
                            "add replicas, lower replicas=, or raise "
                            "replica_timeout=",
                            (long long)have, d->need, hf__span(d->ms).text);
    d->waiting = false;
    replica_decide_all(r, code, now);
    return 0;
}

void hf__rd_doubt_send(struct redis *r)
{
    struct rd_doubts *d = &r->doubts;
    struct net_link *l = &r->cmd.link;
    struct net_out *o = &l->stream.out;

    if (!d->wanted || d->waiting || l->state != NET_UP || l->stream.broken)
        return;
    if (!hf__rd_pipe_send(&r->cmd, replica_waited, 1, 64)) {
        l->stream.broken = ENOMEM;
        return;
    }
    hf__rd_put_count(o, '*', 3);
    hf__rd_put_text(o, "WAIT");
    hf__rd_put_num(o, d->need);
    hf__rd_put_num(o, d->ms);
    d->waiting = true;
    d->wanted = false;
}
