#include "grpc.h"

#include "answer.h"
#include "call.h"
#include "ping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_WINDOW (1 << 20)
#define WINDOW (4 << 20)
/* How many bytes at most are prepared for a server that does not read. Beyond
 * this limit nghttp2 keeps the acknowledgements that are due (of PINGs and
 * SETTINGS), and ends the session if they become too many. */
#define OUT_MOST (256 << 10)
/* How long open unary calls may take to end once the server or the owner has
 * announced the end of the connection. */
#define LEAVE_MS 1000

/* A server with grpc-go measures its bandwidth by this PING: it sends one with
 * an answer if its previous PING was acknowledged. Our acknowledgement is sent
 * with the next call, because sending it by itself would cost a second send()
 * per call. */
static const uint8_t their_ping[8] = {2, 4, 16, 16, 9, 14, 7, 7};

static int grpc_greet(void *, hf__time);
static int grpc_data(void *, const char *, size_t, hf__time);
static void grpc_down(void *, int, bool, hf__time);

static const struct net_talk talk = {
    .greet = grpc_greet, .data = grpc_data, .down = grpc_down};

/* ---- memory for nghttp2 -------------------------------------------------- */

/* Records a failed allocation, because nghttp2 reports it as a protocol
 * error. */
static void *grpc_noted(void *self, void *p)
{
    struct grpc *g = self;

    g->is_short = g->is_short || !p;
    return p;
}

static void *grpc_take(size_t size, void *self)
{
    return grpc_noted(self, malloc(size));
}

static void *grpc_take_zeroed(size_t n, size_t size, void *self)
{
    return grpc_noted(self, calloc(n, size));
}

static void *grpc_take_again(void *p, size_t size, void *self)
{
    return grpc_noted(self, realloc(p, size));
}

static void grpc_give(void *p, void *self)
{
    (void)self;
    free(p);
}

/* ---- callbacks of nghttp2 ------------------------------------------------ */

/* Makes nghttp2_session_mem_recv() fail, and the connection end with this
 * code. */
static int grpc_stop_with(struct grpc *g, int code)
{
    if (code)
        g->failed = code;
    return code ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int grpc_settings(struct grpc *g)
{
    if (g->has_settings)
        return 0;
    g->has_settings = g->link.understood = true;
    if (g->type->hello)
        return g->type->hello(g, g->now);
    hf__grpc_up(g, g->now);
    return 0;
}

static int grpc_pinged(struct grpc *g, const nghttp2_frame *f)
{
    const uint8_t *payload = f->ping.opaque_data;

    if (f->hd.flags & NGHTTP2_FLAG_ACK) {
        if (memcmp(payload, hf__grpc_our_ping, sizeof(hf__grpc_our_ping)) == 0)
            g->is_pinging = false;
    } else if (memcmp(payload, their_ping, sizeof(their_ping)) == 0) {
        g->owes_ack = true;
    } else if (nghttp2_submit_ping(g->session, NGHTTP2_FLAG_ACK, payload)) {
        return hf__link_why(&g->link, HF_EPROTO,
                            "the server sends too many PINGs");
    }
    return 0;
}

static void grpc_leave(struct grpc *g)
{
    g->leaves_at = hf__min_time(g->leaves_at, g->now + LEAVE_MS * HF__MS);
}

static void grpc_goaway(struct grpc *g, const nghttp2_goaway *f)
{
    char text[32];

    hf__grpc_text(text, sizeof(text), (const char *)f->opaque_data,
                  f->opaque_data_len, false);
    snprintf(g->away, sizeof(g->away), "the server ends the connection: %s%s%s",
             nghttp2_http2_strerror(f->error_code), text[0] ? ", " : "", text);
    grpc_leave(g);
}

int hf__grpc_leave(struct grpc *g, const char *why)
{
    if (g->link.state != NET_UP)
        return hf__link_why(&g->link, HF_EBACKEND, "%s", why);
    snprintf(g->away, sizeof(g->away), "%s", why);
    grpc_leave(g);
    return 0;
}

static int grpc_on_frame(nghttp2_session *session, const nghttp2_frame *f,
                         void *self)
{
    struct grpc *g = self;
    struct grpc_call *c;

    (void)session;
    switch (f->hd.type) {
    case NGHTTP2_SETTINGS:
        return f->hd.flags & NGHTTP2_FLAG_ACK
                   ? 0
                   : grpc_stop_with(g, grpc_settings(g));
    case NGHTTP2_PING:
        return grpc_stop_with(g, grpc_pinged(g, f));
    case NGHTTP2_GOAWAY:
        grpc_goaway(g, &f->goaway);
        return 0;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
        g->may_ping = !g->is_pinging;
        c = hf__grpc_find(g, f->hd.stream_id);
        if (!c)
            return 0;
        if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
            c->said = -1; /* trailers follow, which have their own status */
            return 0;
        }
        hf__grpc_finished(c);
        return grpc_stop_with(g, hf__grpc_deliver(g));
    default:
        return 0;
    }
}

static int grpc_on_header(nghttp2_session *session, const nghttp2_frame *f,
                          const uint8_t *name, size_t name_len,
                          const uint8_t *value, size_t len, uint8_t flags,
                          void *self)
{
    struct grpc_call *c = hf__grpc_find(self, f->hd.stream_id);

    (void)session;
    (void)flags;
    if (c)
        hf__grpc_header(c, (const char *)name, name_len, (const char *)value,
                        len);
    return 0;
}

static int grpc_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                        const uint8_t *p, size_t len, void *self)
{
    struct grpc *g = self;
    struct grpc_call *c = hf__grpc_find(g, id);
    int rc;

    (void)session;
    (void)flags;
    if (!c)
        return 0;
    rc = hf__grpc_data(c, p, len);
    return grpc_stop_with(g, rc ? rc : hf__grpc_deliver(g));
}

/* A call that ends normally is dropped before its stream closes, so a call that
 * is found here was reset. nghttp2 may also call this function inside mem_send;
 * over() is then called later. */
static int grpc_on_close(nghttp2_session *session, int32_t id, uint32_t error,
                         void *self)
{
    struct grpc *g = self;
    struct grpc_call *c = hf__grpc_find(g, id);

    (void)session;
    if (!c)
        return 0;
    hf__grpc_was_reset(c, error);
    return g->is_reading ? grpc_stop_with(g, hf__grpc_deliver(g)) : 0;
}

/* Records where the bytes of a call begin. All bytes that come before them are
 * in the out buffer already. */
static int grpc_before_send(nghttp2_session *session, const nghttp2_frame *f,
                            void *self)
{
    struct grpc *g = self;
    const struct net_stream *s = &g->link.stream;
    struct grpc_call *c;

    (void)session;
    if (f->hd.type != NGHTTP2_HEADERS)
        return 0;
    c = hf__grpc_find(g, f->hd.stream_id);
    if (c) {
        c->start = s->written + (s->out.len - s->out.from);
        c->is_begun = true;
    }
    return 0;
}

/* ---- beginning and end --------------------------------------------------- */

int hf__grpc_init(struct grpc *g, const struct hf__core *core,
                  hf_client *client, const struct grpc_owner *type, void *owner)
{
    nghttp2_session_callbacks *cb;

    *g = (struct grpc){.type = type,
                       .owner = owner,
                       .first_limit = HF__NEVER,
                       .leaves_at = HF__NEVER};
    hf__link_init(&g->link, core, client);
    g->link.talk = &talk;
    g->link.owner = g;
    if (nghttp2_session_callbacks_new(&g->callbacks) ||
        nghttp2_option_new(&g->options))
        return HF_ENOMEM;
    cb = g->callbacks;
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, grpc_on_frame);
    nghttp2_session_callbacks_set_on_header_callback(cb, grpc_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, grpc_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, grpc_on_close);
    nghttp2_session_callbacks_set_before_frame_send_callback(cb,
                                                             grpc_before_send);
    nghttp2_option_set_no_auto_ping_ack(g->options, 1);
    return 0;
}

/* Resets the state of one connection. */
static void grpc_clear(struct grpc *g)
{
    nghttp2_session_del(g->session); /* calls no callback */
    g->session = NULL;
    g->is_renewing = g->has_settings = g->is_pinging = g->owes_ack = false;
    g->leaves_at = HF__NEVER;
    g->is_short = false;
    g->failed = 0;
    g->late = 0;
    g->late_at = g->answered_at = g->slowest = g->slowest_at = 0;
}

void hf__grpc_stop(struct grpc *g)
{
    hf__link_stop(&g->link);
    grpc_clear(g);
    while (g->calls.first)
        hf__grpc_cancel(g->calls.first);
    while (g->ended.first)
        hf__grpc_cancel(g->ended.first);
}

void hf__grpc_fini(struct grpc *g)
{
    const struct net_stream *s = &g->link.stream;

    hf__grpc_stop(g);
    nghttp2_session_callbacks_del(g->callbacks);
    nghttp2_option_del(g->options);
    g->callbacks = NULL;
    g->options = NULL;
    if (g->token)
        explicit_bzero(g->token, strlen(g->token));
    s->core->free(s->client, g->token);
    g->token = NULL;
    hf__link_fini(&g->link);
}

/* ---- out ----------------------------------------------------------------- */

static void grpc_fail_later(struct grpc *g, int code)
{
    if (!g->failed)
        g->failed = hf__link_why(&g->link, code, "%s",
                                 code == HF_ENOMEM ? "out of memory"
                                                   : "HTTP/2 has failed");
}

/* Moves bytes from nghttp2 to the out buffer. Returns true if there may be more
 * to send. */
static bool grpc_pull(struct grpc *g)
{
    struct net_stream *s = &g->link.stream;
    const uint8_t *p = NULL;
    ssize_t n = 0;

    while (!g->failed && s->out.len - s->out.from < OUT_MOST &&
           (n = nghttp2_session_mem_send(g->session, &p)) > 0) {
        if (hf__net_reserve(s, (size_t)n)) {
            grpc_fail_later(g, HF_ENOMEM);
            return false;
        }
        memcpy(s->out.data + s->out.len, p, (size_t)n);
        s->out.len += (size_t)n;
    }
    if (n < 0)
        grpc_fail_later(g, g->is_short ? HF_ENOMEM : HF_EPROTO);
    return n > 0;
}

void hf__grpc_flush(struct grpc *g)
{
    bool more;

    if (!g->session)
        return;
    if (g->owes_ack && nghttp2_session_want_write(g->session))
        g->owes_ack =
            nghttp2_submit_ping(g->session, NGHTTP2_FLAG_ACK, their_ping) != 0;
    do {
        more = grpc_pull(g);
        hf__net_flush(&g->link.stream);
    } while (more && !g->link.stream.out.len);
}

/* ---- from nothing to up -------------------------------------------------- */

static int grpc_greet(void *self, hf__time now)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
    };
    struct grpc *g = self;
    nghttp2_mem mem = {g, grpc_take, grpc_give, grpc_take_zeroed,
                       grpc_take_again};

    g->now = now;
    g->may_ping = true;
    if (nghttp2_session_client_new3(&g->session, g->callbacks, g, g->options,
                                    &mem) ||
        nghttp2_submit_settings(g->session, NGHTTP2_FLAG_NONE, settings, 2) ||
        nghttp2_session_set_local_window_size(g->session, NGHTTP2_FLAG_NONE, 0,
                                              WINDOW))
        return hf__link_why(&g->link, HF_ENOMEM, "out of memory");
    grpc_pull(g);
    return g->failed;
}

void hf__grpc_up(struct grpc *g, hf__time now)
{
    hf__link_up(&g->link, now);
    if (g->type->up)
        g->type->up(g, now);
}

static void grpc_down(void *self, int code, bool was_up, hf__time now)
{
    struct grpc *g = self;

    g->now = now;
    grpc_clear(g);
    hf__grpc_end_all(g, g->link.stream.written);
    while (hf__grpc_deliver(g))
        ;
    g->type->down(g, code, was_up, now);
}

/* ---- driving ------------------------------------------------------------- */

static int grpc_data(void *self, const char *bytes, size_t len, hf__time now)
{
    struct grpc *g = self;
    ssize_t n;

    g->now = now;
    g->is_reading = true;
    n = nghttp2_session_mem_recv(g->session, (const uint8_t *)bytes, len);
    g->is_reading = false;
    g->link.awaits = g->is_pinging;
    if (g->failed)
        return g->failed;
    if (n < 0 && g->is_short)
        return hf__link_why(&g->link, HF_ENOMEM, "out of memory");
    if (n < 0)
        return hf__link_why(&g->link, HF_EPROTO,
                            "an answer we do not understand: %s%s",
                            nghttp2_strerror((int)n), hf__link_doubt(&g->link));
    return 0;
}

/* Checks whether nghttp2 has ended the session because of what the server
 * sent. */
static int grpc_check_over(struct grpc *g)
{
    if (nghttp2_session_want_read(g->session) || g->leaves_at != HF__NEVER)
        return 0;
    if (g->is_short)
        return hf__link_why(&g->link, HF_ENOMEM, "out of memory");
    return hf__link_why(&g->link, HF_EPROTO, "an answer we do not understand%s",
                        hf__link_doubt(&g->link));
}

static int grpc_check_left(struct grpc *g, hf__time now)
{
    if (g->leaves_at == HF__NEVER || (g->unary && now < g->leaves_at))
        return 0;
    return hf__link_why(&g->link, HF_EBACKEND, "%s", g->away);
}

static int grpc_go_on(struct grpc *g, hf__time now)
{
    int rc;

    if (now >= hf__grpc_pong_until(g))
        return hf__link_why(&g->link, HF_EBACKEND, "a PING was not answered");
    hf__grpc_end_late(g, now);
    rc = hf__grpc_deliver(g);
    if (rc)
        return rc;
    if (now >= hf__grpc_ping_at(g))
        hf__grpc_ping(g, now);
    hf__grpc_flush(g);
    if (g->failed)
        return g->failed;
    rc = grpc_check_over(g);
    return rc ? rc : grpc_check_left(g, now);
}

bool hf__grpc_ready(struct grpc *g, uint32_t tag, uint32_t events, hf__time now)
{
    g->now = now;
    return hf__link_ready(&g->link, tag, events, now);
}

void hf__grpc_advance(struct grpc *g, hf__time now)
{
    int rc;

    g->now = now;
    hf__link_advance(&g->link, now);
    if (!g->session)
        return;
    rc = grpc_go_on(g, now);
    if (rc)
        hf__link_fail(&g->link, rc, now);
}

hf__time hf__grpc_timeout(const struct grpc *g)
{
    hf__time at = hf__link_timeout(&g->link);

    if (!g->session)
        return at;
    if (g->failed || g->ended.first)
        return 0;
    at = hf__min_time(at, hf__min_time(g->first_limit, hf__grpc_ping_at(g)));
    return hf__min_time(at, hf__min_time(g->leaves_at, hf__grpc_pong_until(g)));
}
