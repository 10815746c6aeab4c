#include "call.h"

#include "base/list.h"

#include "grpc.h"
#include "ping.h"

#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#define PREFIX 5
#define DEADLINE_EXCEEDED 4
#define FIRST_SIZE 512
/* The initial size of the buffer for an answer, enough for most answers. */
#define ANSWER_SIZE 1024
/* After this many late calls in a row the connection is closed, because the
 * server may still answer PINGs although it no longer executes calls. */
#define LATE_MOST 3
/* How long a slow answer counts as recent. */
#define SLOW_FOR (2000 * HF__MS)

static ssize_t call_read_out(nghttp2_session *, int32_t, uint8_t *, size_t,
                             uint32_t *, nghttp2_data_source *, void *);

/* ---- memory -------------------------------------------------------------- */

static void call_wipe(const struct grpc_buf *b)
{
    if (b->is_secret && b->data)
        explicit_bzero(b->data, b->cap);
}

int hf__grpc_reserve(const struct grpc *g, struct grpc_buf *b, size_t more)
{
    const struct hf__core *core = g->link.stream.core;
    size_t cap = b->cap ? b->cap : FIRST_SIZE;
    uint8_t *data;

    if (b->cap - b->len >= more)
        return 0;
    if (b->from) {
        b->len -= b->from;
        memmove(b->data, b->data + b->from, b->len);
        b->from = 0;
        return hf__grpc_reserve(g, b, more);
    }
    while (cap - b->len < more)
        cap *= 2;
    data = core->alloc(g->link.stream.client, cap);
    if (!data)
        return HF_ENOMEM;
    if (b->data) {
        memcpy(data, b->data, b->len);
        call_wipe(b);
    }
    core->free(g->link.stream.client, b->data);
    b->data = data;
    b->cap = cap;
    return 0;
}

/* Drops the bytes that have not been sent yet. */
static void call_empty(struct grpc_call *c)
{
    call_wipe(&c->out);
    c->out.from = c->out.len = 0;
}

void hf__grpc_call_init(struct grpc_call *c, struct grpc *g,
                        const struct grpc_method *method, void *owner)
{
    *c = (struct grpc_call){.g = g, .method = method, .owner = owner};
    c->out.is_secret = c->in_buf.is_secret = method->is_secret;
}

void hf__grpc_call_fini(struct grpc_call *c)
{
    const struct net_stream *s;

    if (!c->g)
        return;
    hf__grpc_cancel(c);
    s = &c->g->link.stream;
    call_wipe(&c->in_buf);
    s->core->free(s->client, c->out.data);
    s->core->free(s->client, c->in_buf.data);
    *c = (struct grpc_call){0};
}

uint8_t *hf__grpc_room(struct grpc_call *c, size_t len)
{
    struct grpc_buf *b = &c->out;
    uint8_t *p;

    if (len > UINT32_MAX - PREFIX || hf__grpc_reserve(c->g, b, PREFIX + len))
        return NULL;
    p = b->data + b->len;
    p[0] = 0;
    p[1] = (uint8_t)(len >> 24);
    p[2] = (uint8_t)(len >> 16);
    p[3] = (uint8_t)(len >> 8);
    p[4] = (uint8_t)len;
    b->len += PREFIX + len;
    /* This has no effect if nghttp2 is not waiting for more bytes. */
    if (c->state == GRPC_OPEN)
        nghttp2_session_resume_data(c->g->session, c->id);
    return p + PREFIX;
}

/* ---- lists --------------------------------------------------------------- */

static void call_list_add(struct grpc_list *l, struct grpc_call *c)
{
    hf__deque_add(l->first, l->last, c);
    c->in = l;
}

static void call_list_remove(struct grpc_call *c)
{
    hf__deque_remove(c->in->first, c->in->last, c);
    c->in = NULL;
}

static void call_count(struct grpc_call *c, enum grpc_state state)
{
    struct grpc *g = c->g;
    size_t was = c->state == GRPC_OPEN, will = state == GRPC_OPEN;

    g->open += will - was;
    if (!c->method->is_stream)
        g->unary += will - was;
    c->state = state;
}

/* ---- from start to end --------------------------------------------------- */

static nghttp2_nv call_header(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

static size_t call_put_headers(const struct grpc_call *c, nghttp2_nv *nv,
                               char limit[16])
{
    const struct grpc *g = c->g;
    const struct net_stream *s = &g->link.stream;
    size_t n = 0;

    nv[n++] = call_header(":method", "POST");
    nv[n++] = call_header(":scheme", s->tls ? "https" : "http");
    nv[n++] = call_header(":path", c->method->path);
    nv[n++] =
        call_header(":authority", s->host[0] ? g->link.where : "localhost");
    nv[n++] = call_header("content-type", "application/grpc");
    nv[n++] = call_header("te", "trailers");
    if (c->limit_ms) { /* the header has eight digits at most */
        snprintf(limit, 16, "%um",
                 c->limit_ms < 99999999 / GRPC_BACKLOG
                     ? c->limit_ms * GRPC_BACKLOG
                     : 99999999);
        nv[n++] = call_header("grpc-timeout", limit);
    }
    for (size_t i = 0; i < g->headers_len && i < GRPC_HEADERS; i++)
        nv[n++] = call_header(g->headers[i].name, g->headers[i].value);
    if (g->token && !c->method->is_bare)
        nv[n++] = call_header(g->token_name, g->token);
    return n;
}

/* Submits a request that sends what is in c->out. Returns 0, HF__LATER or
 * HF_ENOMEM. */
static int call_submit(struct grpc_call *c)
{
    nghttp2_nv nv[8 + GRPC_HEADERS];
    char limit[16];
    nghttp2_data_provider out = {.read_callback = call_read_out};
    struct grpc *g = c->g;
    size_t n = call_put_headers(c, nv, limit);
    int32_t id;

    c->out.from = c->in_buf.len = 0;
    c->is_begun = c->is_whole = c->is_grpc = false;
    c->http = 0;
    c->said = -1;
    c->text[0] = '\0';
    c->token = g->token_no;
    id = nghttp2_submit_request(g->session, NULL, nv, n, &out, c);
    if (id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE) {
        g->leaves_at = c->at; /* this connection is out of stream numbers */
        return HF__LATER;
    }
    if (id < 0)
        return HF_ENOMEM;
    c->id = id;
    if (!g->open)
        g->begun_at = c->at;
    call_count(c, GRPC_OPEN);
    return 0;
}

static bool call_may_start(struct grpc *g, const struct grpc_method *m)
{
    if (g->failed || g->leaves_at != HF__NEVER)
        return false;
    if (m->is_greeting && g->link.state == NET_GREETING && g->has_settings)
        return !g->link.stream.broken;
    return hf__link_wanted(&g->link);
}

static int call_begin(struct grpc_call *c)
{
    struct grpc *g = c->g;

    if (!call_may_start(g, c->method))
        return HF__LATER;
    if (g->is_renewing && !c->method->is_greeting) {
        c->status = GRPC_UNAUTHENTICATED;
        c->text[0] = '\0';
        call_count(c, GRPC_HELD);
        return 0;
    }
    return call_submit(c);
}

int hf__grpc_start(struct grpc_call *c, uint32_t limit_ms)
{
    struct grpc *g = c->g;
    int rc;

    c->at = g->link.stream.core->now();
    /* The time limit is doubled for each late call in a row (g->late), so that
     * a call that is only slow is not sent twice. */
    c->limit_ms = limit_ms << g->late;
    c->until = c->limit_ms ? c->at + c->limit_ms * HF__MS : HF__NEVER;
    c->is_repeated = false;
    c->in_buf.len = 0;
    rc = hf__grpc_reserve(g, &c->in_buf, ANSWER_SIZE);
    if (!rc)
        rc = call_begin(c);
    if (rc) {
        call_empty(c);
        return rc;
    }
    call_list_add(&g->calls, c);
    g->first_limit = hf__min_time(g->first_limit, c->until);
    return 0;
}

struct grpc_call *hf__grpc_find(const struct grpc *g, int32_t id)
{
    return nghttp2_session_get_stream_user_data(g->session, id);
}

/* Passes bytes of a call to nghttp2. A unary call sends one message and closes
 * its half of the stream; a streaming call waits for more messages. */
static ssize_t call_read_out(nghttp2_session *session, int32_t id, uint8_t *buf,
                             size_t size, uint32_t *flags,
                             nghttp2_data_source *source, void *self)
{
    struct grpc *g = self;
    struct grpc_call *c = hf__grpc_find(g, id);
    size_t n;

    (void)session;
    (void)source;
    if (!c)
        return NGHTTP2_ERR_DEFERRED; /* the call was dropped; its reset
                                        follows */
    n = c->out.len - c->out.from;
    if (n > size)
        n = size;
    if (n)
        memcpy(buf, c->out.data + c->out.from, n);
    c->out.from += n;
    if (c->method->is_secret)
        g->link.stream.out.secret = true;
    if (c->out.from == c->out.len && !c->method->is_stream)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (!n)
        return NGHTTP2_ERR_DEFERRED;
    return (ssize_t)n;
}

void hf__grpc_drop(struct grpc_call *c, uint32_t error)
{
    nghttp2_session *session = c->g->session;

    if (c->state != GRPC_OPEN || !session)
        return;
    /* A reset also ends a stream whose request was not sent yet. If there is no
     * memory for the reset, the server keeps the stream until the connection
     * ends. */
    nghttp2_session_set_stream_user_data(session, c->id, NULL);
    if (error || nghttp2_session_get_stream_local_close(session, c->id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, c->id,
                                  error ? error : NGHTTP2_CANCEL);
}

void hf__grpc_cancel(struct grpc_call *c)
{
    if (c->state == GRPC_IDLE) {
        if (c->g)
            call_empty(c);
        return;
    }
    hf__grpc_drop(c, NGHTTP2_CANCEL);
    call_list_remove(c);
    call_count(c, GRPC_IDLE);
    call_empty(c);
}

bool hf__grpc_is_idle(const struct grpc_call *c)
{
    return c->state == GRPC_IDLE;
}

const uint8_t *hf__grpc_answer(const struct grpc_call *c, size_t *len)
{
    *len = c->is_whole ? c->in_buf.len - PREFIX : 0;
    return c->is_whole ? c->in_buf.data + PREFIX : NULL;
}

static void call_end(struct grpc_call *c, enum grpc_end how)
{
    c->end = how;
    call_list_remove(c);
    call_list_add(&c->g->ended, c);
    call_count(c, GRPC_ENDED);
}

/* ---- a token that has expired -------------------------------------------- */

/* Sends the same request again. */
static void call_repeat(struct grpc_call *c)
{
    int rc = call_submit(c);

    if (c->limit_ms) /* hf__grpc_hold() may have set an earlier `until` */
        c->until = c->at + (hf__time)c->limit_ms * HF__MS;
    if (!rc)
        return;
    snprintf(c->text, sizeof(c->text), "%s",
             rc == HF_ENOMEM ? "out of memory" : "the connection has ended");
    call_end(c, GRPC_UNSENT);
}

int hf__grpc_token(struct grpc *g, const char *token, int status,
                   const char *text)
{
    const struct net_stream *s = &g->link.stream;
    char *copy = token ? s->core->alloc(s->client, strlen(token) + 1) : NULL;
    struct grpc_call *next;

    if (g->token)
        explicit_bzero(g->token, strlen(g->token));
    s->core->free(s->client, g->token);
    g->token = copy;
    if (copy)
        strcpy(copy, token);
    g->token_no++;
    g->is_renewing = false;
    for (struct grpc_call *c = g->calls.first; c; c = next) {
        next = c->next;
        if (c->state != GRPC_HELD)
            continue;
        if (copy) {
            call_repeat(c);
        } else if (c->is_repeated) {
            call_end(c, GRPC_ANSWERED);
        } else {
            c->status = status;
            snprintf(c->text, sizeof(c->text), "%s",
                     token ? "out of memory" : text);
            call_end(c, GRPC_UNSENT);
        }
    }
    return token && !copy ? HF_ENOMEM : 0;
}

/* Returns whether the server refused the call only because of its token. */
static bool call_is_stale(const struct grpc_call *c)
{
    const struct grpc_owner *type = c->g->type;

    return c->status != GRPC_OK && type->is_stale && !c->method->is_greeting &&
           !c->is_repeated && type->is_stale(c->g, c);
}

static void call_renew(struct grpc *g)
{
    int rc;

    if (g->is_renewing || g->leaves_at != HF__NEVER)
        return; /* a renewal is under way already, or the next connection gets
                   another token */
    g->is_renewing = true;
    rc = g->type->renew(g, g->now);
    if (rc == HF_EAUTH)
        hf__grpc_token(g, NULL, GRPC_UNAUTHENTICATED, "there is no token");
    else if (rc && !g->failed)
        g->failed = rc;
}

/* Repeats a call that was refused because of its token, or holds it until there
 * is a new token. A stream is ended instead, and its owner starts it again. */
static void call_try_again(struct grpc_call *c)
{
    struct grpc *g = c->g;
    bool is_old = !g->is_renewing && c->token != g->token_no;

    c->is_repeated = true;
    if (c->method->is_stream)
        call_end(c, GRPC_ANSWERED);
    else if (is_old)
        call_repeat(c);
    else
        call_count(c, GRPC_HELD);
    if (!is_old)
        call_renew(g);
}

/* ---- the end ------------------------------------------------------------- */

static void call_progress(struct grpc *g, const struct grpc_call *c)
{
    hf__time age = g->now - c->at;

    g->late = 0;
    g->answered_at = g->now;
    if (age < g->slowest && g->now - g->slowest_at < SLOW_FOR)
        return;
    /* Answers are faster now, so the time limits that call_limit_of() has
     * extended may already have passed and must be checked now. */
    if (age < g->slowest)
        g->first_limit = g->now;
    g->slowest = age;
    g->slowest_at = g->now;
}

/* Returns when the time limit of the call passes. If an answer has come since
 * the call was started, the server works but is busy, and a busy server serves
 * calls in any order. Therefore the call then gets twice the time of the
 * slowest recent answer, but at most GRPC_BACKLOG times its limit. Without this
 * extension all calls would be sent again, and the server would have twice as
 * much to do. */
static hf__time call_limit_of(const struct grpc *g, const struct grpc_call *c)
{
    hf__time limit = (hf__time)c->limit_ms * HF__MS;

    if (c->state != GRPC_OPEN || !limit || g->answered_at <= c->at ||
        2 * g->slowest < limit)
        return c->until;
    return c->at + hf__min_time(2 * g->slowest, GRPC_BACKLOG * limit);
}

void hf__grpc_end(struct grpc_call *c, enum grpc_end how)
{
    if (how == GRPC_ANSWERED && c->status != DEADLINE_EXCEEDED &&
        !c->method->is_stream && !c->is_local)
        call_progress(c->g, c);
    if (how == GRPC_ANSWERED && call_is_stale(c))
        call_try_again(c);
    else
        call_end(c, how);
}

void hf__grpc_hold(struct grpc_call *c, hf__time until)
{
    c->until = hf__min_time(c->until, until);
    c->g->first_limit = hf__min_time(c->g->first_limit, c->until);
    call_count(c, GRPC_HELD);
}

int hf__grpc_deliver(struct grpc *g)
{
    struct grpc_call *c;
    bool is_secret;
    int rc = 0;

    while (!rc && (c = g->ended.first)) {
        call_list_remove(c);
        call_count(c, GRPC_IDLE);
        call_empty(c);
        is_secret = c->method->is_secret;
        rc = c->method->over(c, g->now);
        if (is_secret)
            call_wipe(&c->in_buf);
    }
    return rc;
}

/* Counts late calls in a row. A call that was started before the previous late
 * call was found to be late does not count. */
static void call_count_late(struct grpc *g, const struct grpc_call *c,
                            hf__time now)
{
    if (c->method->is_stream || c->at < g->late_at)
        return;
    g->late_at = now;
    if (++g->late == LATE_MOST && !g->failed)
        g->failed =
            hf__link_why(&g->link, HF_EBACKEND,
                         "%d calls in a row were not answered", LATE_MOST);
}

void hf__grpc_end_late(struct grpc *g, hf__time now)
{
    struct grpc_call *next;
    hf__time first = HF__NEVER;

    if (now < g->first_limit)
        return;
    for (struct grpc_call *c = g->calls.first; c; c = next) {
        hf__time until = call_limit_of(g, c);

        next = c->next;
        if (now < until) {
            first = hf__min_time(first, until);
            continue;
        }
        if (c->state == GRPC_HELD) { /* refused, or without a token */
            call_end(c, GRPC_UNSENT);
            continue;
        }
        if (g->link.heard_at <= c->at)
            hf__grpc_ping(g, now);
        snprintf(c->text, sizeof(c->text), "no answer within %s",
                 hf__span(c->limit_ms).text);
        c->status = DEADLINE_EXCEEDED;
        hf__grpc_drop(c, NGHTTP2_CANCEL);
        if (c->is_begun)
            call_count_late(g, c, now);
        call_end(c, c->is_begun ? GRPC_LATE : GRPC_UNSENT);
    }
    g->first_limit = first;
}

/* Calls that become UNSENT are ended last, the newest of them first, because
 * core->unsent() expects them in this order. */
void hf__grpc_end_all(struct grpc *g, uint64_t written)
{
    struct grpc_call *c, *next;

    for (c = g->calls.first; c; c = next) {
        next = c->next;
        snprintf(c->text, sizeof(c->text), "%.199s", g->link.text);
        c->status = 14;
        if (c->state == GRPC_OPEN && c->is_begun && c->start < written)
            call_end(c, GRPC_LOST);
    }
    while ((c = g->calls.last))
        call_end(c, GRPC_UNSENT);
}
