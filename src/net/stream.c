#include "stream.h"

#include "tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The first capacity of the out buffer. It is enough for any single Redis
 * request with its script, so that a release does not enlarge the buffer. */
#define FIRST_SIZE 16384

void hf__net_init(struct net_stream *s, const struct hf__core *core,
                  hf_client *client)
{
    *s = (struct net_stream){.core = core, .client = client, .fd = -1};
}

static int stream_broke(struct net_stream *s, int error)
{
    if (!s->broken)
        s->broken = error;
    return HF_EBACKEND;
}

const char *hf__net_why(const struct net_stream *s)
{
    if (s->closed)
        return "the server closed the connection";
    return s->words[0] ? s->words : strerror(s->broken);
}

static void stream_watch(struct net_stream *s, uint32_t events)
{
    if (s->events == events || s->fd < 0)
        return;
    if (s->core->watch(s->client, s->fd, events, s->tag) == 0)
        s->events = events;
    else
        stream_broke(s, ENOMEM);
}

/* ---- out --------------------------------------------------------------- */

static void stream_wipe(struct net_out *o)
{
    if (o->secret)
        explicit_bzero(o->data, o->cap);
}

static void stream_empty(struct net_out *o)
{
    stream_wipe(o);
    o->secret = false;
    o->from = o->len = 0;
}

int hf__net_grow(const struct hf__core *core, hf_client *client,
                 struct net_out *o, size_t first_cap, size_t more)
{
    size_t used = o->len - o->from, cap = o->cap ? o->cap : first_cap;
    char *data;

    if (o->cap - o->len >= more)
        return 0;
    if (o->from && o->cap - used >= more) {
        memmove(o->data, o->data + o->from, used);
        o->len = used;
        o->from = 0;
        return 0;
    }
    while (cap - used < more)
        cap *= 2;
    data = core->alloc(client, cap);
    if (!data)
        return HF_ENOMEM;
    if (o->data) {
        memcpy(data, o->data + o->from, used);
        stream_wipe(o);
        core->free(client, o->data);
    }
    *o = (struct net_out){data, 0, used, cap, o->secret};
    return 0;
}

int hf__net_reserve(struct net_stream *s, size_t more)
{
    return hf__net_grow(s->core, s->client, &s->out, FIRST_SIZE, more);
}

/* Returns the number of bytes sent, 0 if none can be sent now, or an error
 * code. */
static ssize_t stream_write_some(struct net_stream *s, const char *p,
                                 size_t len)
{
    ssize_t n;

    if (s->ssl)
        return hf__tls_write(s, p, len);
    do
        n = send(s->fd, p, len, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : stream_broke(s, errno);
}

void hf__net_flush(struct net_stream *s)
{
    struct net_out *o = &s->out;

    if (s->fd < 0 || s->connecting || s->shaking)
        return;
    if (!o->len && s->events == EPOLLIN)
        return;
    while (o->from < o->len && !s->broken) {
        ssize_t n = stream_write_some(s, o->data + o->from, o->len - o->from);

        if (n == 0) {
            stream_watch(s, EPOLLIN | EPOLLOUT);
            return;
        }
        if (n > 0) {
            o->from += (size_t)n;
            s->written += (size_t)n;
        }
    }
    if (o->from == o->len)
        stream_empty(o);
    stream_watch(s, EPOLLIN);
}

/* ---- in ---------------------------------------------------------------- */

ssize_t hf__net_read(struct net_stream *s, void *buf, size_t size)
{
    ssize_t n;

    if (s->ssl)
        return hf__tls_read(s, buf, size);
    n = recv(s->fd, buf, size, 0);
    /* A short read has emptied the socket, so no second recv() is necessary. */
    s->more = n == (ssize_t)size;
    if (n > 0)
        return n;
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR
                   ? 0
                   : stream_broke(s, errno);
    s->closed = true;
    return stream_broke(s, ECONNRESET);
}

bool hf__net_is_over(struct net_stream *s)
{
    char byte;

    if (s->ssl)
        return hf__tls_is_over(s);
    return recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- open, close ------------------------------------------------------- */

static int stream_shake(struct net_stream *s)
{
    int rc = hf__tls_shake(s);

    s->shaking = rc != 0;
    if (rc == HF__PENDING)
        stream_watch(s, hf__tls_wants_out(s) ? EPOLLOUT : EPOLLIN);
    return rc;
}

static int stream_begin_tls(struct net_stream *s)
{
    int rc = hf__tls_begin(s);

    return rc ? rc : stream_shake(s);
}

int hf__net_secure(struct net_stream *s)
{
    hf__net_flush(s);
    if (s->broken)
        return HF_EBACKEND;
    s->more = false; /* what has not been read yet belongs to TLS */
    s->securing = s->out.len;
    return s->securing ? HF__PENDING : stream_begin_tls(s);
}

/* Packets may vanish silently, for example because a firewall has dropped the
 * connection. The socket then fails after 4 s if something was sent, otherwise
 * after 20 s. */
static void stream_set_tcp(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 15}, {IPPROTO_TCP, TCP_KEEPINTVL, 5},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 4000},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof(int));
}

static int stream_connected(struct net_stream *s, bool is_tcp)
{
    if (is_tcp)
        stream_set_tcp(s->fd);
    return s->tls && !s->tls_later ? stream_begin_tls(s) : 0;
}

int hf__net_open(struct net_stream *s, const struct net_addr *a, uint32_t tag)
{
    s->tag = tag;
    s->written = 0;
    memcpy(s->host, a->host, sizeof(s->host));
    if (a->family == AF_UNSPEC) {
        snprintf(s->words, sizeof(s->words), "the host is not known");
        return stream_broke(s, EHOSTUNREACH);
    }
    s->fd = socket(a->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0)
        return stream_broke(s, errno);
    if (connect(s->fd, (const struct sockaddr *)&a->sa, a->len) == 0)
        return stream_connected(s, a->family != AF_UNIX);
    if (errno != EINPROGRESS)
        return stream_broke(s, errno);
    s->connecting = true;
    stream_watch(s, EPOLLOUT);
    return HF__PENDING;
}

int hf__net_go_on(struct net_stream *s)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (s->shaking)
        return stream_shake(s);
    if (s->securing)
        return hf__net_secure(s);
    s->connecting = false;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len))
        error = errno;
    /* The stream is TCP: connect() to a Unix socket is never in progress. */
    return error ? stream_broke(s, error) : stream_connected(s, true);
}

void hf__net_close(struct net_stream *s)
{
    if (s->ssl)
        hf__tls_end(s);
    if (s->fd >= 0) {
        stream_watch(s, 0);
        close(s->fd);
    }
    s->fd = -1;
    s->events = 0;
    s->broken = s->code = 0;
    s->words[0] = '\0';
    s->closed = s->more = s->connecting = s->securing = s->shaking = false;
    stream_empty(&s->out);
}

void hf__net_fini(struct net_stream *s)
{
    hf__net_close(s);
    s->core->free(s->client, s->out.data);
    s->out = (struct net_out){0};
}
