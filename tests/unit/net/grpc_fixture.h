/*
 * gRPC with a server that is a listening socket of the test program. nghttp2
 * reads the requests; the test itself writes the frames of the answers, which
 * may be as wrong as a case requires.
 */
#ifndef TESTS_GRPC_FIXTURE_H
#define TESTS_GRPC_FIXTURE_H

#include "../cases.h"
#include "net/grpc/grpc.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "../../lib/bare_core.h"
#include "../../lib/h2_frame.h"
#include "../../lib/shm_dir.h"

#define HEARD 64

struct heard {
    int32_t id;
    char headers[400]; /* "name=value " for each header */
    uint8_t body[64];  /* first bytes of the request */
    size_t len;
    bool is_closed; /* END_STREAM received */
    int reset;      /* code of a received RST_STREAM; -1: none */
};

struct scene {
    char dir[64];
    int listener, fd; /* -1: not connected */
    nghttp2_session *server;
    bool is_deaf; /* the server does not read */
    struct net_endpoint peer;
    uint32_t tags;
    struct grpc g;
    unsigned ups, downs, renewals, pings, acks;
    int down_code;
    uint8_t ack[8]; /* data of the last PING received */
    int hello_rc, renew_rc;
    bool has_hello;
    struct heard heard[HEARD];
    size_t len;
    struct one *ones; /* the calls, which end() frees */
};

static struct heard *heard_of(struct scene *t, int32_t id)
{
    for (size_t i = 0; i < t->len; i++)
        if (t->heard[i].id == id)
            return &t->heard[i];
    assert_true(t->len < HEARD);
    t->heard[t->len] = (struct heard){.id = id, .reset = -1};
    return &t->heard[t->len++];
}

static int server_header(nghttp2_session *session, const nghttp2_frame *f,
                         const uint8_t *name, size_t name_len,
                         const uint8_t *value, size_t len, uint8_t flags,
                         void *self)
{
    struct heard *h = heard_of(self, f->hd.stream_id);
    size_t at = strlen(h->headers);

    snprintf(h->headers + at, sizeof(h->headers) - at, "%.*s=%.*s ",
             (int)name_len, name, (int)len, value);
    return 0;
}

static int server_data(nghttp2_session *session, uint8_t flags, int32_t id,
                       const uint8_t *p, size_t len, void *self)
{
    struct heard *h = heard_of(self, id);

    for (size_t i = 0; i < len; i++, h->len++)
        if (h->len < sizeof(h->body))
            h->body[h->len] = p[i];
    return 0;
}

static int server_frame(nghttp2_session *session, const nghttp2_frame *f,
                        void *self)
{
    struct scene *t = self;

    if (f->hd.type == NGHTTP2_PING) {
        t->pings += !(f->hd.flags & NGHTTP2_FLAG_ACK);
        t->acks += f->hd.flags & NGHTTP2_FLAG_ACK;
        memcpy(t->ack, f->ping.opaque_data, 8);
    } else if (f->hd.type == NGHTTP2_RST_STREAM) {
        heard_of(t, f->hd.stream_id)->reset = (int)f->rst_stream.error_code;
    } else if (f->hd.stream_id && f->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        heard_of(t, f->hd.stream_id)->is_closed = true;
    }
    return 0;
}

static void raw(struct scene *t, const void *p, size_t len)
{
    assert_int_equal(write(t->fd, p, len), len);
}

static void frame(struct scene *t, uint8_t type, uint8_t flags, int32_t id,
                  const void *payload, size_t len)
{
    uint8_t head[H2_HEAD];

    h2_head(head, type, flags, id, len);
    raw(t, head, sizeof(head));
    if (len)
        raw(t, payload, len);
}

/* Sends "name=value;name=value" as HPACK literals of less than 128 bytes
 * each. */
static void headers(struct scene *t, int32_t id, bool is_last, const char *text)
{
    uint8_t block[1000];
    size_t n = 0;

    while (*text) {
        size_t name = strcspn(text, "="), value = strcspn(text, ";") - name - 1;

        assert_true(name < 127 && value < 127 && n < 700);
        block[n++] = 0;
        block[n++] = (uint8_t)name;
        memcpy(block + n, text, name);
        n += name;
        block[n++] = (uint8_t)value;
        memcpy(block + n, text + name + 1, value);
        n += value;
        text += name + 1 + value;
        text += *text == ';';
    }
    frame(t, NGHTTP2_HEADERS,
          NGHTTP2_FLAG_END_HEADERS | (is_last ? NGHTTP2_FLAG_END_STREAM : 0),
          id, block, n);
}

#define HEAD ":status=200;content-type=application/grpc"

static size_t message(uint8_t *to, const char *text)
{
    size_t len = strlen(text);

    memset(to, 0, 4);
    to[4] = (uint8_t)len;
    memcpy(to + 5, text, len);
    return len + 5;
}

static void says(struct scene *t, int32_t id, const char *text)
{
    uint8_t bytes[300];

    frame(t, NGHTTP2_DATA, 0, id, bytes, message(bytes, text));
}

static void answers(struct scene *t, int32_t id, const char *text)
{
    headers(t, id, false, HEAD);
    says(t, id, text);
    headers(t, id, true, "grpc-status=0;grpc-message=");
}

static bool serve(struct scene *t)
{
    uint8_t buf[65536];
    const uint8_t *p;
    ssize_t n;
    bool moved = false;

    while (!t->is_deaf && t->fd >= 0 &&
           (n = recv(t->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
        assert_int_equal(nghttp2_session_mem_recv(t->server, buf, (size_t)n),
                         n);
        moved = true;
    }
    while (t->fd >= 0 && (n = nghttp2_session_mem_send(t->server, &p)) > 0) {
        if (send(t->fd, p, (size_t)n, MSG_NOSIGNAL) < 0)
            break;
        moved = true;
    }
    return moved;
}

/* Runs client and server until the server neither reads nor sends anything
 * more. */
static void go(struct scene *t)
{
    do {
        for (int i = 0; i < 8; i++) {
            hf__grpc_ready(&t->g, t->g.link.stream.tag, EPOLLIN | EPOLLOUT,
                           clock_ns);
            hf__grpc_advance(&t->g, clock_ns);
        }
    } while (serve(t));
}

/* answer_one() sends an answer, and end_one() sends headers that end the
 * stream; then both wait until the client has read them. */
static void answer_one(struct scene *t, int32_t id, const char *text)
{
    answers(t, id, text);
    go(t);
}

static void end_one(struct scene *t, int32_t id, const char *text)
{
    headers(t, id, true, text);
    go(t);
}

static void later(struct scene *t, int64_t ms)
{
    clock_ns += ms * HF__MS;
    go(t);
}

static void hang_up(struct scene *t)
{
    if (t->fd >= 0)
        close(t->fd);
    nghttp2_session_del(t->server);
    t->server = NULL;
    t->fd = -1;
}

/* Connects the client, and accepts the connection; the server has sent nothing
 * yet. */
static void accept_it(struct scene *t)
{
    nghttp2_session_callbacks *cb;
    nghttp2_option *option;

    hang_up(t);
    hf__link_start(&t->g.link, clock_ns);
    clock_ns += 200 * HF__MS; /* longer than any pause */
    hf__grpc_advance(&t->g, clock_ns);
    t->fd = accept(t->listener, NULL, NULL);
    assert_true(t->fd >= 0);
    t->len = t->pings = t->acks = 0;
    assert_int_equal(nghttp2_session_callbacks_new(&cb), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, server_frame);
    nghttp2_session_callbacks_set_on_header_callback(cb, server_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, server_data);
    nghttp2_option_set_no_auto_ping_ack(option, 1);
    assert_int_equal(nghttp2_session_server_new2(&t->server, cb, t, option), 0);
    nghttp2_session_callbacks_del(cb);
    nghttp2_option_del(option);
}

/* Connects, and sends SETTINGS with this limit of streams; 0 means no limit. */
static void connect_with(struct scene *t, uint32_t streams)
{
    nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                    streams};

    accept_it(t);
    assert_int_equal(nghttp2_submit_settings(t->server, 0, &entry, streams > 0),
                     0);
    go(t);
}

static void connect_it(struct scene *t)
{
    connect_with(t, 0);
    assert_int_equal(t->g.link.state, t->has_hello ? NET_GREETING : NET_UP);
}

struct one {
    struct grpc_call call; /* first member: callbacks cast it to struct one */
    int overs, messages;
    enum grpc_end end;
    int status;
    char text[200], got[300];
    int rc;              /* what its callbacks return */
    struct one *cancels; /* call to cancel in the next callback */
    bool restarts;
    struct scene *scene;
    struct one *next; /* next call in the list of its scene */
};

static void note_end(struct one *o)
{
    o->overs++;
    o->end = o->call.end;
    o->status = o->call.status;
    strcpy(o->text, o->call.text);
    if (o->cancels)
        hf__grpc_cancel(&o->cancels->call);
}

static void ask(struct one *o, const char *text, uint32_t limit_ms)
{
    uint8_t *p = hf__grpc_room(&o->call, strlen(text));

    assert_non_null(p);
    memcpy(p, text, strlen(text));
    assert_int_equal(hf__grpc_start(&o->call, limit_ms), 0);
}

static int over(struct grpc_call *c, hf__time at)
{
    struct one *o = (struct one *)c;
    const uint8_t *p;
    size_t len;

    assert_true(hf__grpc_is_idle(c));
    note_end(o);
    if (o->end == GRPC_ANSWERED && !o->status) {
        p = hf__grpc_answer(c, &len);
        assert_true(len < sizeof(o->got));
        memcpy(o->got, p, len);
        o->got[len] = '\0';
    }
    if (o->restarts)
        ask(o, "again", 0);
    return o->rc;
}

static int stream_over(struct grpc_call *c, hf__time at)
{
    note_end((struct one *)c);
    return 0;
}

static int stream_message(struct grpc_call *c, const uint8_t *p, size_t len,
                          hf__time at)
{
    struct one *o = (struct one *)c;
    size_t n = strlen(o->got);

    o->messages++;
    if (n + len + 2 < sizeof(o->got)) {
        memcpy(o->got + n, p, len);
        strcpy(o->got + n + len, " ");
    }
    if (o->cancels)
        hf__grpc_cancel(&o->cancels->call);
    return o->rc;
}

#define MOST 1000

static const struct grpc_method unary = {
    .path = "/test.Test/One", .most = MOST, .over = over};
static const struct grpc_method stream = {.path = "/test.Test/Many",
                                          .is_stream = true,
                                          .most = MOST,
                                          .message = stream_message,
                                          .over = stream_over};
static const struct grpc_method greeting = {.path = "/test.Test/Hello",
                                            .is_greeting = true,
                                            .is_bare = true,
                                            .is_secret = true,
                                            .most = MOST,
                                            .over = over};

/* Calls ask(), and then waits until the server has received the call. */
static void send_one(struct scene *t, struct one *o, const char *text,
                     uint32_t limit_ms)
{
    ask(o, text, limit_ms);
    go(t);
}

static struct one *one_of(struct scene *t, const struct grpc_method *m)
{
    struct one *o = calloc(1, sizeof(*o));

    assert_non_null(o);
    hf__grpc_call_init(&o->call, &t->g, m, t);
    o->scene = t;
    o->next = t->ones;
    t->ones = o;
    return o;
}

/* Starts a call on a new connection; returns when the server has received
 * it. */
static struct one *first_of(struct scene *t, const struct grpc_method *m)
{
    struct one *o = one_of(t, m);

    connect_it(t);
    send_one(t, o, "x", 0);
    return o;
}

static void one_free(struct one *o)
{
    struct one **at = &o->scene->ones;

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    hf__grpc_call_fini(&o->call);
    free(o);
}

#include "grpc_owner.h"

static int owner_hello(struct grpc *g, hf__time at)
{
    struct scene *t = g->owner;

    if (!t->has_hello)
        hf__grpc_up(g, at);
    return t->hello_rc;
}

static int owner_renew(struct grpc *g, hf__time at)
{
    struct scene *t = g->owner;

    t->renewals++;
    return t->renew_rc;
}

static int begin(void **state)
{
    struct scene *t = calloc(1, sizeof(*t));
    char path[80];

    assert_non_null(t);
    assert_non_null(shm_dir_make(t->dir, sizeof(t->dir), "holdfast-grpc"));
    own(t, 1000, 2000);
    snprintf(path, sizeof(path), "%s/s", t->dir);
    assert_int_equal(hf__net_set_path(&t->peer, path), 0);
    t->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    t->fd = -1;
    assert_int_equal(bind(t->listener, (struct sockaddr *)&t->peer.addr[0].sa,
                          t->peer.addr[0].len),
                     0);
    assert_int_equal(listen(t->listener, 5), 0);
    *state = t;
    return 0;
}

static int end(void **state)
{
    struct scene *t = *state;
    char path[80];

    fail_in = 0;
    while (t->ones)
        one_free(t->ones);
    hf__grpc_fini(&t->g);
    hf__net_endpoint_fini(&t->peer);
    close(t->listener);
    hang_up(t);
    snprintf(path, sizeof(path), "%s/s", t->dir);
    unlink(path);
    rmdir(t->dir);
    free(t);
    return 0;
}

#define CASE_HERE(fn) CASE_WITH(fn, begin, end, struct scene *t)

#endif
