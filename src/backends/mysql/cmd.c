/*
 * Sends requests on cmd and handles their answers. Any number of requests can
 * be in flight; the server handles one after the other. After a transaction,
 * however, nothing is sent until its answer has arrived. The reason is that an
 * error leaves the transaction open, and later statements would become part of
 * it. After an error, a ROLLBACK ends the transaction.
 */
#include "cmd.h"

#include "aside.h"
#include "clock.h"
#include "error.h"
#include "name.h"
#include "session.h"
#include "wait.h"
#include "wire.h"

/* A ping is sent when the server has been silent for a third of its idle
 * timeout. */
#define PING_PART 3
/* While more bytes than this wait to be written, the core keeps its
 * requests. */
#define OUT_HIGH (64u << 10)

static my_answer_fn cmd_answered;

/* ---- sending ------------------------------------------------------------ */

static const struct my_op *cmd_op_of(const struct mysql *m, uint8_t op)
{
    return &m->ops[op <= HF__ABANDON ? MY_VERB
                   : op == HF__RENEW ? MY_RENEW
                                     : MY_QUERY];
}

static bool cmd_has_room(const struct mysql *m)
{
    const struct net_link *l = &m->cmd.link;

    return l->state == NET_UP && !l->stream.broken && !m->exclusive &&
           l->stream.out.len - l->stream.out.from < OUT_HIGH;
}

/* Returns true for a transaction, which is sent only when nothing is in flight.
 * Otherwise the answer to an earlier request could make the client send a
 * statement (aside.h) while the transaction is in flight. */
static bool cmd_is_alone(const struct hf__req *req)
{
    const struct hf__remote *r = req->remote;

    if (r && req->op == HF__ATTEMPT)
        return r->kind == HF_RWLOCK || r->kind == HF_SEMAPHORE ||
               ((struct my_lock *)r->impl)->conversion == MY_CONVERTING;
    return req->op == HF__BREAK || req->op == HF__PUT ||
           req->op == HF__LATCH_SET || req->op == HF__LATCH_DOWN;
}

static bool cmd_fits(struct mysql *m, const struct hf__req *req)
{
    m->wants_alone = cmd_is_alone(req) && m->cmd.sents.len;
    return cmd_has_room(m) && !m->wants_alone;
}

int hf__my_submit(struct mysql *m, struct hf__req *req)
{
    int rc;

    /* Once a request is put off, all later ones are put off too, until
     * hf__my_pump() calls go_on(). hf__my_pump() is called in ready() and
     * advance(), and only these two can make room for requests. */
    if (!hf__link_wanted(&m->cmd.link) || m->put_off || !cmd_fits(m, req)) {
        m->put_off = true;
        return HF__LATER;
    }
    rc = cmd_op_of(m, req->op)->encode(m, req);
    if (rc)
        return rc;
    if (!req->parked) /* hf__my_pump() flushes a parked request */
        hf__net_flush(&m->cmd.link.stream);
    return HF__PENDING;
}

void hf__my_pump(struct mysql *m)
{
    hf__net_flush(&m->cmd.link.stream);
    if (!m->put_off || !cmd_has_room(m) || (m->wants_alone && m->cmd.sents.len))
        return;
    m->put_off = m->wants_alone = false;
    m->core->go_on(m->client);
}

/* When BREAK is sent again, the transaction of the try before may still be
 * open. START TRANSACTION would commit what that try has done. The packet of
 * the new try therefore begins with a ROLLBACK. */
void hf__my_start(struct mysql *m, const struct hf__req *req)
{
    hf__my_begin(&m->cmd);
    if (req->remote)
        hf__my_bind_lock(m, &m->cmd, req->remote->impl);
    else
        hf__my_bind_client(m, &m->cmd);
    hf__my_bind_number(&m->cmd, 'H', req->hold_id);
    hf__my_bind_number(&m->cmd, 'L', req->lease_ms * 1000ULL);
    hf__my_bind_number(&m->cmd, 'M', req->permits);
    hf__my_bind_number(&m->cmd, 'E', hf__my_late(m, req));
    if (m->tries && cmd_is_alone(req))
        hf__my_sql(&m->cmd, "rollback;");
}

struct my_flight *hf__my_sent(struct mysql *m, struct hf__req *req)
{
    struct my_flight *f = hf__my_end(&m->cmd, cmd_answered);

    if (!f) {
        req->untouched = req->op != HF__ATTEMPT ||
                         !((struct my_lock *)req->remote->impl)->sent;
        return NULL;
    }
    req->untouched = false;
    req->sent_at = f->sent.sent.at;
    f->req = req;
    f->op = req->op;
    f->hold_id = req->hold_id;
    f->late_us = hf__my_late(m, req);
    f->tries = m->tries;
    f->exclusive = cmd_is_alone(req);
    m->exclusive = m->exclusive || f->exclusive;
    return f;
}

void hf__my_forget(struct mysql *m, const struct hf__req *req)
{
    for (size_t i = 0; i < m->cmd.sents.len; i++) {
        struct my_flight *f = hf__sent_at(&m->cmd.sents, i);

        if (f->req == req)
            f->req = NULL;
    }
}

void hf__my_finish(struct mysql *m, struct hf__req *req, int result)
{
    if (req->op == HF__ATTEMPT)
        ((struct my_lock *)req->remote->impl)->attempting = false;
    req->result = (int16_t)result;
    m->core->done(m->client, req);
}

/* ---- answers ------------------------------------------------------------ */

static void cmd_failed(struct mysql *m, const struct my_flight *f, int code)
{
    if (!f->req)
        return;
    if (cmd_op_of(m, f->op)->failed)
        cmd_op_of(m, f->op)->failed(m, f, code);
    else
        hf__my_finish(m, f->req, code);
}

/* Gives a request that is not in flight back to the core, which keeps it. */
static void cmd_give_back(struct mysql *m, struct hf__req *req)
{
    if (req->op == HF__ATTEMPT)
        ((struct my_lock *)req->remote->impl)->attempting = false;
    m->put_off = true;
    m->core->unsent(m->client, req);
}

static void cmd_unsend_one(struct mysql *m, const struct my_flight *f)
{
    if (f->fresh)
        ((struct my_lock *)f->req->remote->impl)->sent = false;
    cmd_give_back(m, f->req);
}

int hf__my_resend(struct mysql *m, struct hf__req *req)
{
    int rc = HF__PENDING;

    if (!cmd_fits(m, req))
        cmd_give_back(m, req);
    else
        rc = cmd_op_of(m, req->op)->encode(m, req);
    return rc ? rc : HF__PENDING;
}

static void cmd_try_again(struct mysql *m, const struct my_flight *f)
{
    int rc;

    if (!f->req)
        return;
    if (f->op == HF__RENEW) {
        cmd_failed(m, f, HF_EUNKNOWN); /* the core sends it again */
        return;
    }
    m->tries = f->tries + 1;
    rc = hf__my_resend(m, f->req);
    m->tries = 0;
    if (rc != HF__PENDING)
        cmd_failed(m, f, rc);
}

/* Ends the connection, because a new connection, perhaps to another server, may
 * work. If the answered request is a renewal, it fails with the server's
 * message. Any other request goes back to the core if the server refused it
 * before doing anything for it; otherwise it ends with HF_EUNKNOWN. */
static int cmd_leave(struct mysql *m, const struct my_answer *a)
{
    struct my_flight *f = (struct my_flight *)a->sent;

    if (f->req && f->op == HF__RENEW)
        cmd_failed(m, f, hf__my_refusal(m, a));
    if (f->op == HF__RENEW)
        f->req = NULL;
    f->refused = hf__my_means(a->last->error, MY_UNTOUCHED);
    hf__link_look_up(&m->cmd.link, a->now);
    return hf__link_why(&m->cmd.link, HF_EBACKEND, "%.160s", a->last->text);
}

/* Returns true for requests that the core itself sends again after a failure.
 * They are not sent again here: the core lets the requests of other callers go
 * first. */
static bool cmd_is_repeated(const struct my_flight *f)
{
    return f->op <= HF__ABANDON || f->op == HF__LATCH_SET ||
           f->op == HF__LATCH_DOWN || f->op == HF__LATCH_GET;
}

/* PUT is not sent again, because the line in its query may no longer exist.
 * BREAK is sent again only if the first BREAK has certainly not been executed;
 * otherwise the second BREAK might fail because it finds no holder. */
static bool cmd_may_try_again(const struct my_flight *f, uint16_t error)
{
    return hf__my_means(error, MY_AGAIN) && f->tries < MY_TRIES &&
           f->op != HF__PUT &&
           (f->op != HF__BREAK || hf__my_means(error, MY_IN_THE_WAY)) &&
           !cmd_is_repeated(f);
}

/* Handles an answer that ends with an error. Returns 0, or a code that ends the
 * connection. */
static int cmd_refused(struct mysql *m, const struct my_answer *a)
{
    const struct my_flight f = *(const struct my_flight *)a->sent;
    uint16_t error = a->last->error;
    bool again;
    int rc;

    if (hf__my_means(error, MY_LEAVES))
        return cmd_leave(m, a);
    again = cmd_may_try_again(&f, error);
    if (f.exclusive && !(again && f.req && !m->cmd.sents.len))
        hf__my_aside(m, "rollback");
    if (again) {
        cmd_try_again(m, &f);
        return 0;
    }
    if (f.req)
        f.req->untouched = hf__my_means(error, MY_UNTOUCHED);
    if (f.op == HF__ATTEMPT && f.req)
        hf__my_bell_give_back(m, f.req->remote->impl);
    rc = hf__my_refusal(m, a);
    if (hf__my_means(error, MY_AGAIN) &&
        (f.op == HF__BREAK || cmd_is_repeated(&f)))
        rc = HF_EUNKNOWN;
    cmd_failed(m, &f, rc);
    return 0;
}

static int cmd_answered(struct my_conn *c, const struct my_answer *a)
{
    struct mysql *m = c->owner;
    const struct my_flight f = *(const struct my_flight *)a->sent;

    if (f.exclusive)
        m->exclusive = false;
    if (a->last->error && f.op != HF__DIAGNOSE)
        return cmd_refused(m, a);
    return cmd_op_of(m, f.op)->answer(m, &f, a);
}

/* ---- the connection comes and goes -------------------------------------- */

static void cmd_up(struct my_conn *c, hf__time now)
{
    struct mysql *m = c->owner;

    (void)now;
    /* Until the client's first connection is up, connecting is limited by the
     * time limit of hf_open(). From now on the limit is connect_ms. */
    hf__my_aim(m, c, &m->peer, m->connect_ms);
    m->here.addr[0] = m->peer.addr[c->link.walk.at];
    m->here.len = 1;
    m->exclusive = false;
    if (m->opened) {
        m->core->log(m->client, "mysql: connected again to %s", c->link.where);
        m->core->session(m->client, HF_EVENT_UP, NULL);
    }
    if (m->polls && !m->must_poll)
        m->core->log(m->client, "mysql: %s: waiting clients poll, %s",
                     c->link.where, m->polls);
    m->opened = true;
    m->core->trouble(m->client, NULL);
}

/* Gives back to the core the requests of which no byte has been written. A
 * renewal fails instead. */
static void cmd_unsend(struct mysql *m, struct my_conn *c)
{
    const struct my_flight *f;

    while ((f = hf__sent_unsent(&c->sents, c->link.stream.written))) {
        if (!f->req)
            continue;
        if (f->op == HF__RENEW) {
            cmd_failed(m, f, HF_EUNKNOWN);
            continue;
        }
        cmd_unsend_one(m, f);
    }
}

static void cmd_down(struct my_conn *c, int code, bool was_up, hf__time now)
{
    struct mysql *m = c->owner;
    const struct net_link *l = &c->link;
    struct my_flight back = {.req = NULL};
    const struct my_flight *f;

    if (was_up)
        m->core->session(m->client, HF_EVENT_DOWN, NULL);
    m->core->trouble(m->client, l->text);
    if (c->sents.len)
        m->core->why(m->client, HF_EUNKNOWN, "%s", l->text);
    while (was_up && (f = hf__sent_lost(&c->sents, l->stream.written))) {
        if (f->refused) {
            /* This request is the oldest and must come first again. Therefore
             * it is returned to the core last, after the unsent requests: the
             * core puts each returned request at the front of its list. */
            back = *f;
            continue;
        }
        cmd_failed(m, f, code == HF_EPROTO ? code : HF_EUNKNOWN);
        code = code == HF_EPROTO ? HF_EBACKEND : code;
    }
    if (was_up)
        cmd_unsend(m, c);
    if (back.req)
        cmd_unsend_one(m, &back);
    m->exclusive = false;
    hf__my_waits_lost(m);
    m->core->why(m->client, code, "%s", l->text);
    /* If the server has just refused the connection, the parked requests fail
     * with `code`, unless the link tries another address at once. */
    if (l->refused_at == now && l->timer > now)
        m->core->refuse(m->client, code);
}

hf__time hf__my_ping_at(const struct mysql *m)
{
    const struct net_link *l = &m->cmd.link;

    return l->state == NET_UP && !l->awaits
               ? l->heard_at + m->idle_s * 1000LL / PING_PART * HF__MS
               : HF__NEVER;
}

void hf__my_ping(struct mysql *m, hf__time now)
{
    if (now >= hf__my_ping_at(m))
        hf__my_aside(m, "do 1");
}

const struct my_owner hf__my_cmd = {
    .hello = hf__my_session_hello, .up = cmd_up, .down = cmd_down};
