/* One server of several: the hello, whether the server can be relied on,
 * commands and replies, and the releases and undos that must still be sent to
 * the server. */
#include "server.h"

#include "backends/redis/keys.h"
#include "backends/redis/pipe.h"
#include "backends/redis/reply.h"
#include "backends/redis/scripts.h"
#include "hold.h"
#include "redlock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PAY_AGAIN_MS 250
#define PAY_POLL_MS 10
#define UPTIME_SLACK_MS 1000 /* INFO gives whole seconds */

size_t hf__rl_index(const struct rl_server *s)
{
    return (size_t)(s - s->rl->server);
}

/* ---- whether the server can be relied on -------------------------------- */

/* Returns whether a command is under way and the server has sent nothing for
 * server_timeout. */
static bool server_is_silent(const struct rl_server *s, hf__time now)
{
    const struct net_link *l = &s->pipe.link;
    const struct rd_sent *oldest =
        s->pipe.sents.len ? hf__sent_at(&s->pipe.sents, 0) : NULL;
    hf__time since =
        oldest && oldest->net.at > l->heard_at ? oldest->net.at : l->heard_at;

    return oldest && now - since > s->rl->server_timeout_ms * HF__MS;
}

static bool server_is_twin(const struct rl_server *s)
{
    return s->twin && s->twin->pipe.link.state == NET_UP;
}

static bool server_is_reachable(const struct rl_server *s, hf__time now)
{
    return s->pipe.link.state == NET_UP && !s->pipe.link.stream.broken &&
           s->out_until <= now && !server_is_twin(s);
}

bool hf__rl_is_usable(const struct rl_server *s, hf__time now)
{
    const struct net_out *o = &s->pipe.link.stream.out;

    return server_is_reachable(s, now) && !server_is_silent(s, now) &&
           o->len - o->from < RD_OUT_HIGH;
}

void hf__rl_trouble(const struct rl_server *s, hf__time now, char *buf,
                    size_t size)
{
    const struct net_link *l = &s->pipe.link;
    size_t where = strlen(l->where);

    if (l->state == NET_UP && server_is_twin(s))
        snprintf(buf, size, "the same server as %s", s->twin->pipe.link.where);
    else if (l->state == NET_UP && s->out_until > now)
        snprintf(buf, size, "started recently, votes in %lld s",
                 (long long)((s->out_until - now) / (1000 * HF__MS) + 1));
    else if (l->state == NET_UP)
        snprintf(buf, size, "no answer");
    else /* l->text is "where: why", or "" before any connection */
        snprintf(buf, size, "%s",
                 strncmp(l->text, l->where, where) == 0 &&
                         strncmp(l->text + where, ": ", 2) == 0
                     ? l->text + where + 2
                     : l->text);
}

/* ---- the hello ---------------------------------------------------------- */

static void server_read_line(const char *info, const char *key, char *to,
                             size_t size)
{
    const char *at = strstr(info, key);
    size_t len = at ? strcspn(at + strlen(key), "\r\n") : 0;

    len = len < size ? len : size - 1;
    if (at)
        memcpy(to, at + strlen(key), len);
    to[len] = '\0';
}

static int server_info_reply(struct rd_pipe *p, struct rd_sent *sent,
                             const struct rd_node *reply, hf__time now)
{
    struct rl_server *s = p->owner;
    char uptime[24];

    (void)sent;
    if (reply->type != REDIS_REPLY_STRING)
        return HF_EPROTO;
    if (hf__rd_refuse_old(p, reply->text, RD_OLDEST_VOTE, now))
        return HF_EBACKEND;
    server_read_line(reply->text, "\nrun_id:", s->said, sizeof(s->said));
    server_read_line(reply->text, "\nuptime_in_seconds:", uptime,
                     sizeof(uptime));
    s->uptime_s = strtoll(uptime, NULL, 10);
    return s->said[0] && uptime[0] && s->uptime_s >= 0 ? 0 : HF_EPROTO;
}

static bool server_read_clock(struct rl_server *s, int64_t us, hf__time sent_at)
{
    if (us <= 0 || us > INT64_MAX / 2)
        return false;
    s->clock_us = us;
    s->clock_at = sent_at;
    return true;
}

static int server_time_reply(struct rd_pipe *p, struct rd_sent *sent,
                             const struct rd_node *reply, hf__time now)
{
    int64_t s, us;

    (void)now;
    return hf__rd_int(hf__rd_at(reply, 0), &s) &&
                   hf__rd_int(hf__rd_at(reply, 1), &us) && s >= 0 &&
                   s < INT64_MAX / 2000000 && us >= 0 && us < 1000000 &&
                   server_read_clock(p->owner, s * 1000000 + us, sent->net.at)
               ? 0
               : HF_EPROTO;
}

static int server_hello(struct rd_pipe *p, hf__time now)
{
    struct net_out *o = &p->link.stream.out;

    (void)now;
    if (!hf__rd_pipe_send(p, server_info_reply, 1, 64))
        return HF_ENOMEM;
    hf__rd_put_count(o, '*', 2);
    hf__rd_put_text(o, "INFO");
    hf__rd_put_text(o, "server");
    if (!hf__rd_pipe_send(p, server_time_reply, 1, 64))
        return HF_ENOMEM;
    hf__rd_put_count(o, '*', 1);
    hf__rd_put_text(o, "TIME");
    return 0;
}

/* Returns the time until which nothing is sent to the server, because its new
 * process may have lost the keys of the old one. At the first contact the
 * uptime of the process shows for how long it has kept keys. */
static hf__time server_out_until(const struct rl_server *s, bool is_new,
                                 hf__time now)
{
    int64_t ms = s->rl->max_lease_ms;

    if (!ms || !is_new)
        return s->out_until;
    if (!s->run_id[0] && s->uptime_s > ms / 1000 + 1)
        ms = 0;
    else if (!s->run_id[0])
        ms += UPTIME_SLACK_MS - 1000 * s->uptime_s;
    return ms > 0 ? now + ms * HF__MS : 0;
}

/* Returns the command that ends the hold. A granted hold is dropped, never
 * undone, because its token may have been used: after an undo the server could
 * reply a base below that token. */
static enum rl_op server_end_of(const struct rl_hold *h)
{
    return h->held ? RL_DROP : RL_UNDO;
}

/* Sends the releases and undos that must still be sent to the server.
 * `lost_all` says that the server has lost its keys, so that nothing needs to
 * be sent. */
static void server_pay(struct rl_server *s, bool lost_all, hf__time now)
{
    struct redlock *rl = s->rl;
    struct rl_hold **at = &rl->debtors, *h;
    unsigned bit = 1u << hf__rl_index(s);

    s->pay_at = HF__NEVER;
    while ((h = *at)) {
        if (h->gone_at <= now) /* all keys of the hold have expired */
            h->owes = 0;
        if (h->owes & bit &&
            (lost_all || hf__rl_send(s, &h->poll, server_end_of(h))))
            h->owes &= (uint16_t)~bit;
        if (h->owes & bit)
            s->pay_at = now + PAY_AGAIN_MS * HF__MS;
        if (h->owes) {
            at = &h->next_debtor;
            continue;
        }
        *at = h->next_debtor;
        hf__rl_hold_drop(rl, h);
    }
}

static void server_up(struct rd_pipe *p, hf__time now)
{
    struct rl_server *s = p->owner;
    struct redlock *rl = s->rl;
    bool is_new = strcmp(s->run_id, s->said) != 0;

    s->twin = NULL;
    for (size_t i = 0; i < rl->len; i++)
        if (&rl->server[i] != s && strcmp(rl->server[i].run_id, s->said) == 0 &&
            rl->server[i].pipe.link.state == NET_UP && !rl->server[i].twin)
            s->twin = &rl->server[i];
    s->out_until = server_out_until(s, is_new, now);
    memcpy(s->run_id, s->said, sizeof(s->run_id));
    s->by_text = is_new;
    server_pay(s, is_new && rl->max_lease_ms, now);
}

/* While releases or undos must still be sent and a connection is being
 * established, the timeout is PAY_POLL_MS, so that a thread soon drives the
 * client and completes the connection. server_up() then sends them. */
hf__time hf__rl_pay_timeout(const struct rl_server *s, hf__time now)
{
    const struct net_link *l = &s->pipe.link;

    if (s->pay_at == HF__NEVER || l->state == NET_UP)
        return s->pay_at;
    return l->state == NET_PAUSING ? HF__NEVER : now + PAY_POLL_MS * HF__MS;
}

void hf__rl_pay_again(struct rl_server *s, hf__time now)
{
    if (s->pay_at <= now && s->pipe.link.state == NET_UP)
        server_pay(s, false, now);
}

/* ---- commands ------------------------------------------------------------ */

static int64_t server_valid_until(const struct rl_server *s, hf__time now)
{
    return s->clock_us +
           (now - s->clock_at + s->rl->op_timeout_ms * HF__MS) / 1000;
}

static int64_t server_keep_ms(const struct rl_hold *h)
{
    int64_t ten = 10 * (int64_t)h->lease_ms;

    return ten > RD_TOKEN_TTL_MS ? ten : RD_TOKEN_TTL_MS;
}

static rd_reply_fn server_answered;

bool hf__rl_send(struct rl_server *s, struct rl_poll *poll, enum rl_op op)
{
    struct rl_hold *h = poll->hold;
    size_t i = hf__rl_index(s);
    const struct rd_text *script = &hf__rd_script[RD_VOTE];
    hf__time now = s->rl->core->now();
    int64_t number = op == RL_GRANT  ? h->ahead_us
                     : op == RL_UNDO ? 0
                                     : (int64_t)h->token;
    char letter = (char)op;
    bool meant = op == RL_GRANT || op == RL_KEEP;
    struct rl_flight *f;
    struct net_out *o;

    if (!server_is_reachable(s, now))
        return false;
    f = hf__rd_pipe_send(&s->pipe, server_answered, 1,
                         512 + 2 * (size_t)h->name_len +
                             (s->by_text ? script->len : 0));
    if (!f)
        return false;
    f->hold = h;
    f->poll = poll;
    f->round = poll->round;
    f->op = op;
    h->refs++;
    o = &s->pipe.link.stream.out;
    hf__rd_put_count(o, '*', 3 + 2 + 5 + meant);
    hf__rd_put_text(o, s->by_text ? "EVAL" : "EVALSHA");
    hf__rd_put_text(o, s->by_text ? script->text : script->digest);
    hf__rd_put_num(o, 2);
    hf__rd_put_key(o, RD_KEY_LOCK, h->name, h->name_len);
    hf__rd_put_key(o, RD_KEY_RESERVE, h->name, h->name_len);
    hf__rd_put(o, &letter, 1);
    hf__rd_put(o, h->value, h->value_len);
    hf__rd_put_num(o, number);
    hf__rd_put_num(o, h->lease_ms);
    hf__rd_put_num(o, server_keep_ms(h));
    if (meant)
        hf__rd_put_num(o, server_valid_until(s, now));
    s->by_text = false;
    if (poll->req && poll->op == op && poll->vote[i] == RL_FAILED)
        poll->vote[i] = RL_SENT; /* the vote is still possible */
    return true;
}

static void server_owe(struct rl_server *s, struct rl_hold *h)
{
    struct redlock *rl = s->rl;
    hf__time now = rl->core->now();

    if (!h->owes) {
        h->next_debtor = rl->debtors;
        rl->debtors = h;
        h->refs++;
    }
    h->owes |= (uint16_t)(1u << hf__rl_index(s));
    s->pay_at = now + PAY_AGAIN_MS * HF__MS;
    rl->core->due(rl->client, s->pay_at);
}

void hf__rl_end_at(struct rl_server *s, struct rl_hold *h)
{
    if (!hf__rl_send(s, &h->poll, server_end_of(h)))
        server_owe(s, h);
}

/* ---- answers --------------------------------------------------------------
 */

static bool server_is_end(enum rl_op op)
{
    return op == RL_DROP || op == RL_UNDO;
}

bool hf__rl_counts(const struct rl_server *s, const struct rl_flight *f)
{
    const struct rl_poll *p = f->poll;

    return p->req && p->op == f->op && p->round == f->round &&
           p->vote[hf__rl_index(s)] == RL_SENT;
}

/* Handles a command that was answered with an error, or to which no reply will
 * arrive. */
static void server_failed(struct rl_server *s, const struct rl_flight *f,
                          enum rl_vote vote, bool lost)
{
    if (server_is_end(f->op))
        server_owe(s, f->hold);
    s->rl->calls->failed(s, f, vote, lost);
}

/* Handles an error reply. A server that does not know the script has done
 * nothing, so the command is sent again, with the source of the script. */
static void server_refused(struct rl_server *s, const struct rl_flight *f,
                           const char *text)
{
    bool lost = !hf__rd_did_nothing(text);

    if (strncmp(text, "NOSCRIPT", 8) == 0) {
        s->by_text = true;
        if ((server_is_end(f->op) || hf__rl_counts(s, f)) &&
            hf__rl_send(s, f->poll, f->op))
            return;
    }
    s->error_code = hf__rd_error_code(text);
    if (s->error_code == HF_EMISMATCH)
        text = "the name is used by something other than a lock";
    snprintf(s->error, sizeof(s->error), "%.*s", hf__rd_error_len(text), text);
    server_failed(s, f, RL_ERROR, lost);
}

/* Reads a reply. The reply to a grant contains a code, the time and a number;
 * all other replies are only a code. */
static bool server_read_answer(struct rl_server *s, const struct rl_flight *f,
                               const struct rd_node *reply, int64_t *what,
                               int64_t *base)
{
    int64_t us;

    if (f->op != RL_GRANT)
        return hf__rd_int(reply, what) &&
               (*what == 0 || *what == RL_DID || *what == RL_SET_AGAIN);
    return hf__rd_int(hf__rd_at(reply, 0), what) &&
           (*what == RD_GRANTED || *what == RD_BUSY || *what == RD_STALE) &&
           hf__rd_int(hf__rd_at(reply, 1), &us) &&
           server_read_clock(s, us, f->sent.net.at) &&
           (*what == RD_STALE || hf__rd_int(hf__rd_at(reply, 2), base));
}

static int server_answered(struct rd_pipe *p, struct rd_sent *sent,
                           const struct rd_node *reply, hf__time now)
{
    struct rl_server *s = p->owner;
    struct rl_flight f = *(struct rl_flight *)sent;
    int64_t what, base = 0;

    if (reply->type == REDIS_REPLY_ERROR)
        server_refused(s, &f, hf__rd_error_text(reply->text));
    else if (!server_read_answer(s, &f, reply, &what, &base))
        return HF_EPROTO;
    else if (base < 0 || base > RL_BASE_MAX)
        server_refused(s, &f,
                       "ERR the number in holdfast:reserve:{...} is wrong");
    else
        s->rl->calls->voted(s, &f, what, base, now);
    hf__rl_hold_drop(s->rl, f.hold);
    return 0;
}

static void server_gone(struct rl_server *s, const struct rl_flight *at,
                        bool written)
{
    struct rl_flight f = *at; /* the calls below may move *at */

    if (f.checkup) {
        s->rl->calls->unchecked(s->rl, f.checkup);
        return;
    }
    server_failed(s, &f, RL_FAILED, written);
    hf__rl_hold_drop(s->rl, f.hold);
}

static void server_down(struct rd_pipe *p, int code, bool was_up, hf__time now)
{
    struct rl_server *s = p->owner;
    const struct rl_flight *f;

    (void)code, (void)now;
    if (!was_up)
        return;
    while ((f = hf__sent_unsent(&p->sents, p->link.stream.written)))
        server_gone(s, f, false);
    while ((f = hf__sent_lost(&p->sents, p->link.stream.written)))
        server_gone(s, f, true);
}

/* ---- beginning and end ------------------------------------------------------
 */

static const struct rd_owner owner = {
    .hello = server_hello, .up = server_up, .down = server_down};

void hf__rl_server_init(struct rl_server *s, struct redlock *rl)
{
    s->rl = rl;
    s->peer.core = rl->core;
    s->peer.client = rl->client;
    s->pay_at = HF__NEVER;
    hf__rd_pipe_init(&s->pipe, rl->core, rl->client, &owner, s,
                     sizeof(struct rl_flight));
}

void hf__rl_leave(struct rl_server *s, hf__time until)
{
    int fd = s->pipe.link.stream.fd;
    struct pollfd at = {.fd = fd, .events = POLLIN};
    char answers[4096];
    hf__time now;

    if (s->pipe.link.state != NET_UP || !s->pipe.sents.len ||
        shutdown(fd, SHUT_WR))
        return;
    while ((now = s->rl->core->now()) < until &&
           poll(&at, 1, (int)((until - now) / HF__MS) + 1) > 0 &&
           recv(fd, answers, sizeof(answers), MSG_DONTWAIT) > 0)
        ;
}

void hf__rl_server_fini(struct rl_server *s)
{
    for (size_t i = 0; i < s->pipe.sents.len; i++) {
        struct rl_flight *f = hf__sent_at(&s->pipe.sents, i);

        hf__rl_hold_drop(s->rl, f->hold);
        s->rl->calls->unchecked(s->rl, f->checkup);
    }
    hf__rd_pipe_fini(&s->pipe);
    hf__net_endpoint_fini(&s->peer);
}
