/*
 * One connection, from nothing to up and back. Nothing here blocks: connect()
 * goes on in the background, and a lost connection is tried again: one that has
 * lived for a while at once, then ever more slowly, with jitter. Every address
 * of the host gets its turn before a round counts as failed.
 *
 * A connection is used once: whatever is odd about what comes (bytes left
 * over, an answer nobody asked for) ends it, and the next one starts clean.
 */
#include "redis.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define READ_SIZE 16384
#define BACKOFF_MIN_MS 10
#define BACKOFF_MAX_MS 1000
/* A connection that was up for so long was a good one. */
#define LIVED_MS 1000
#define LOOKUP_POLL_MS 10

enum hello { HELLO_AUTH = 1, HELLO_SELECT, HELLO_CLOCK };

/* Also tells whether scripts may be run, and that nothing is being loaded. */
static const char clock_script[] = "return redis.call('time')";

void hf__rd_conn_init(struct redis *r, struct rd_conn *c)
{
    c->r = r;
    c->fd = -1;
    c->timer = HF__NEVER;
    c->refused_at = HF__NEVER;
    hf__rd_arena_init(&c->arena, r->core, r->client);
}

static void watch(struct rd_conn *c, uint32_t events)
{
    if (c->events == events || c->fd < 0)
        return;
    if (c->r->core->watch(c->r->client, c->fd, events, c->tag) == 0)
        c->events = events;
    else if (!c->broken)
        c->broken = ENOMEM;
}

void hf__rd_conn_stop(struct rd_conn *c)
{
    if (c->fd >= 0) {
        watch(c, 0);
        close(c->fd);
    }
    if (c->reader)
        redisReaderFree(c->reader);
    c->reader = NULL;
    c->fd = -1;
    c->events = 0;
    c->broken = 0;
    c->state = RD_OFF;
    c->timer = HF__NEVER;
    hf__rd_out_reset(&c->out);
    hf__rd_arena_reset(&c->arena);
}

void hf__rd_conn_fini(struct rd_conn *c)
{
    if (!c->r)
        return;
    hf__rd_conn_stop(c);
    hf__rd_out_fini(c->r, &c->out);
    hf__rd_arena_fini(&c->arena);
}

/* Short beside op_timeout too, so that a server that is back before that finds
 * us there. */
static hf__time backoff(struct rd_conn *c)
{
    uint32_t most = c->r->op_timeout_ms / 8, ms = BACKOFF_MIN_MS;

    most = most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS;
    for (unsigned i = 1; i < c->failures && ms < most; i++)
        ms = ms * 2 < most ? ms * 2 : most;
    return (ms / 2 + hf__rd_jitter(c->r, ms / 2)) * HF__MS;
}

/* Is there another address to try before the round has failed? */
static bool next_address(struct rd_conn *c, int code)
{
    if (code != HF_EBACKEND || c->addr + 1 >= c->r->addrs.len)
        return false;
    c->addr++;
    return true;
}

void hf__rd_conn_fail(struct rd_conn *c, hf__time now, int code,
                      const char *fmt, ...)
{
    struct redis *r = c->r;
    bool was_up = c->state == RD_UP;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text, sizeof(r->text), fmt, ap);
    va_end(ap);
    if (was_up) /* not of each attempt, as long as it is down */
        r->core->log(r->client, "redis: lost the %s to %s",
                     c == &r->cmd ? "connection" : "connection for messages",
                     r->text);
    hf__rd_conn_stop(c);
    c->state = RD_WAIT;
    if (was_up && now - c->up_at >= LIVED_MS * HF__MS) {
        c->addr = 0;
        c->failures = 0;
        c->timer = now;
    } else if (!was_up && next_address(c, code)) {
        c->timer = now;
    } else {
        c->addr = 0;
        c->failures++;
        c->timer = now + backoff(c);
        if (!r->opened && c == &r->cmd)
            r->open_code = code;
        if (r->hosts && !r->job && c->failures % 4 == 2)
            r->job = r->core->lookup(r->hosts, false);
    }
    c->on_down(r, code, now);
}

void hf__rd_conn_hurry(struct rd_conn *c)
{
    hf__time at;

    if (c->state != RD_WAIT || c->refused_at == HF__NEVER)
        return;
    at = c->refused_at + BACKOFF_MIN_MS * HF__MS;
    if (at >= c->timer)
        return;
    c->timer = at;
    c->r->core->due(c->r->client, at);
}

void hf__rd_conn_flush(struct rd_conn *c)
{
    struct rd_out *o = &c->out;

    if (c->state < RD_HELLO) /* it waits for another event, or for none */
        return;
    while (o->from < o->len && !c->broken) {
        ssize_t n =
            send(c->fd, o->data + o->from, o->len - o->from, MSG_NOSIGNAL);

        if (n >= 0) {
            o->from += (size_t)n;
            c->written += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            watch(c, EPOLLIN | EPOLLOUT);
            return;
        } else if (errno != EINTR) {
            c->broken = errno;
        }
    }
    if (o->from == o->len)
        hf__rd_out_reset(o);
    watch(c, EPOLLIN);
}

/* ---- hello ------------------------------------------------------------ */

static int say_hello(struct rd_conn *c)
{
    struct redis *r = c->r;
    struct rd_out *o = &c->out;
    bool auth = r->password[0] || r->user[0];
    size_t size = 256 + strlen(r->user) + strlen(r->password);

    c->hello_len = c->hello_at = 0;
    if (hf__rd_out_reserve(r, o, size))
        return HF_ENOMEM;
    if (auth) {
        o->secret = true;
        hf__rd_put_count(o, '*', r->user[0] ? 3 : 2);
        hf__rd_put_text(o, "AUTH");
        if (r->user[0])
            hf__rd_put_text(o, r->user);
        hf__rd_put_text(o, r->password);
        c->hello[c->hello_len++] = HELLO_AUTH;
    }
    if (c == &r->sub)
        return 0;
    if (r->db) {
        hf__rd_put_count(o, '*', 2);
        hf__rd_put_text(o, "SELECT");
        hf__rd_put_num(o, r->db);
        c->hello[c->hello_len++] = HELLO_SELECT;
    }
    hf__rd_put_count(o, '*', 3);
    hf__rd_put_text(o, "EVAL");
    hf__rd_put_text(o, clock_script);
    hf__rd_put_text(o, "0");
    c->hello[c->hello_len++] = HELLO_CLOCK;
    return 0;
}

static void up(struct rd_conn *c, hf__time now)
{
    struct redis *r = c->r;

    c->state = RD_UP;
    c->timer = HF__NEVER;
    c->up_at = now;
    if (r->job) /* what it finds would be old when it is needed */
        r->core->lookup_leave(r->job);
    r->job = NULL;
    c->on_up(r, now);
}

/* The socket is connected. */
static void connected(struct rd_conn *c, hf__time now)
{
    int one = 1;

    if (c->r->hosts) {
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    }
    c->reader = hf__rd_reader_new(&c->arena);
    if (!c->reader || say_hello(c)) {
        hf__rd_conn_fail(c, now, HF_ENOMEM, "%s: out of memory", c->r->where);
        return;
    }
    c->state = RD_HELLO;
    c->heard_at = now;
    if (c->hello_len)
        hf__rd_conn_flush(c);
    else
        up(c, now);
}

static bool server_clock(struct redis *r, const struct rd_node *reply)
{
    int64_t s, us;

    if (!hf__rd_int(hf__rd_at(reply, 0), &s) ||
        !hf__rd_int(hf__rd_at(reply, 1), &us) || s <= 0 ||
        s > UINT32_MAX * 2LL || us < 0)
        return false;
    r->server_us = s * 1000000 + us;
    r->server_at = r->core->now(); /* not before it was said */
    r->server_ahead = 0;
    return true;
}

/* The text of an error may quote what was sent, so AUTH's is not shown. */
static void hello_refused(struct rd_conn *c, const struct rd_node *reply,
                          uint8_t step, hf__time now)
{
    const char *text = reply->text;

    c->r->lasts = !hf__rd_may_pass(text);
    c->refused_at = now;
    if (strncmp(text, "NOAUTH", 6) == 0)
        hf__rd_conn_fail(c, now, HF_EAUTH,
                         "%s: the server wants a password: in "
                         "HOLDFAST_PASSWORD, by password_file=, or in the URL",
                         c->r->where);
    else if (step != HELLO_AUTH || strstr(text, "max number of clients"))
        hf__rd_conn_fail(c, now, hf__rd_error_code(text), "%s: %.120s",
                         c->r->where, text);
    else if (strstr(text, "without any password") ||
             strstr(text, "no password is set"))
        hf__rd_conn_fail(c, now, HF_EAUTH,
                         "%s: the server wants no password, and one was given",
                         c->r->where);
    else
        hf__rd_conn_fail(c, now, HF_EAUTH,
                         "%s: the server refused the user name or password",
                         c->r->where);
}

/* Returns false if the connection is gone. */
static bool hello_reply(struct rd_conn *c, const struct rd_node *reply,
                        hf__time now)
{
    uint8_t step = c->hello[c->hello_at++];

    if (reply->type == REDIS_REPLY_ERROR) {
        hello_refused(c, reply, step, now);
        return false;
    }
    if (step == HELLO_CLOCK ? !server_clock(c->r, reply)
                            : !hf__rd_is(reply, "OK")) {
        hf__rd_conn_fail(c, now, HF_EPROTO, "%s: is this a Redis server?",
                         c->r->where);
        return false;
    }
    if (c->hello_at == c->hello_len)
        up(c, now);
    return true;
}

/* ---- connect ---------------------------------------------------------- */

static void take_found(struct redis *r)
{
    struct rd_addrs addrs;

    if (!r->job || !r->core->lookup_over(r->job))
        return;
    hf__rd_addrs(r->job, &addrs);
    if (addrs.len)
        r->addrs = addrs;
    r->core->lookup_leave(r->job);
    r->job = NULL;
}

void hf__rd_look_up(struct redis *r, hf__time now)
{
    if (r->hosts && !r->job)
        r->job = r->core->lookup(r->hosts, false);
    r->job_until = now + r->connect_timeout_ms * HF__MS;
}

static bool waits_for_lookup(struct rd_conn *c, hf__time now)
{
    struct redis *r = c->r;

    if (!r->job || r->core->lookup_over(r->job) || now >= r->job_until)
        return false;
    c->state = RD_WAIT;
    c->timer = now + LOOKUP_POLL_MS * HF__MS;
    return true;
}

/* The path of a socket that is wrong or forbidden stays so until it is
 * corrected; a server that starts may not have created or opened it yet. */
static void not_connected(struct rd_conn *c, hf__time now, int error)
{
    c->r->lasts = !c->r->hosts && error != ENOENT && error != ECONNREFUSED &&
                  error != EAGAIN;
    hf__rd_conn_fail(c, now, HF_EBACKEND, "%s: %s", c->r->where,
                     strerror(error));
}

static uint32_t connect_ms(const struct redis *r)
{
    return r->opened ? r->connect_timeout_ms : r->open_timeout_ms;
}

void hf__rd_conn_start(struct rd_conn *c, hf__time now)
{
    struct redis *r = c->r;
    const struct rd_addr *a;

    if (waits_for_lookup(c, now))
        return;
    if (c->addr == 0)
        take_found(r);
    if (c->addr >= r->addrs.len)
        c->addr = 0; /* there is always one: open() saw to it */
    a = &r->addrs.at[c->addr];
    r->lasts = false;
    c->refused_at = HF__NEVER;
    c->written = 0;
    c->tag += 2;
    c->state = RD_CONNECTING;
    c->timer = now + connect_ms(r) * HF__MS /
                         (hf__time)(r->addrs.len ? r->addrs.len : 1);
    if (c == &r->cmd)
        hf__rd_renew_hurry(r, now);
    c->fd = socket(a->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        hf__rd_conn_fail(c, now, HF_EBACKEND, "%s: socket: %s", r->where,
                         strerror(errno));
        return;
    }
    if (connect(c->fd, (const struct sockaddr *)&a->sa, a->len) == 0)
        connected(c, now);
    else if (errno == EINPROGRESS)
        watch(c, EPOLLOUT);
    else
        not_connected(c, now, errno);
}

static void connecting(struct rd_conn *c, hf__time now)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len))
        error = errno;
    if (error)
        not_connected(c, now, error);
    else
        connected(c, now);
}

/* For how long a connection is waited for; see hf__rd_renew_hurry(). */
static uint32_t patience_ms(const struct rd_conn *c)
{
    const struct redis *r = c->r;

    return c == &r->cmd && r->renewing
               ? (uint32_t)hf__rd_min(connect_ms(r), hf__rd_patience_ms(r))
               : connect_ms(r);
}

void hf__rd_conn_move(struct rd_conn *c, hf__time now)
{
    if (c->broken)
        hf__rd_conn_fail(c, now, HF_EBACKEND, "%s: %s", c->r->where,
                         strerror(c->broken));
    if (now >= c->timer && c->state != RD_OFF) {
        if (c->state == RD_WAIT)
            hf__rd_conn_start(c, now);
        else
            hf__rd_conn_fail(c, now, HF_EBACKEND, "%s: no answer within %u ms",
                             c->r->where, patience_ms(c));
    }
}

hf__time hf__rd_conn_timeout(const struct rd_conn *c)
{
    return c->broken ? 0 : c->timer;
}

/* ---- read ------------------------------------------------------------- */

/* Of one that has not said anything yet that Redis would say. */
static const char *doubt(const struct rd_conn *c)
{
    return c->state == RD_HELLO && c->hello_at == 0
               ? "; is it Redis, without TLS?"
               : "";
}

/* Returns false if the connection is gone. */
static bool digest(struct rd_conn *c, hf__time now)
{
    struct rd_node *reply;
    int rc;

    while ((rc = hf__rd_reader_next(c->reader, &c->arena, &reply)) == 1) {
        if (c->state == RD_HELLO) {
            if (!hello_reply(c, reply, now))
                return false;
            rc = 0;
        } else {
            rc = c->on_reply(c->r, reply, now);
        }
        hf__rd_arena_reset(&c->arena);
        if (rc)
            break;
    }
    if (rc == HF_EPROTO)
        hf__rd_conn_fail(c, now, rc, "%s: an answer we do not understand%s%s%s",
                         c->r->where, c->reader->err ? ": " : "",
                         c->reader->err ? c->reader->errstr : "", doubt(c));
    else if (rc == HF_EBACKEND)
        hf__rd_conn_fail(c, now, rc, "%s: it has become a replica",
                         c->r->where);
    else if (rc)
        hf__rd_conn_fail(c, now, rc, "%s: out of memory", c->r->where);
    return rc == 0;
}

static void read_all(struct rd_conn *c, hf__time now)
{
    char buf[READ_SIZE];
    ssize_t n;

    /* A short read has emptied the socket: no second recv() to hear EAGAIN. */
    do {
        n = recv(c->fd, buf, sizeof(buf), 0);
        if (n > 0) {
            c->heard_at = now;
            if (redisReaderFeed(c->reader, buf, (size_t)n) != REDIS_OK) {
                hf__rd_conn_fail(c, now, HF_ENOMEM, "%s: out of memory",
                                 c->r->where);
                return;
            }
            if (!digest(c, now))
                return;
        } else if (n == 0) {
            hf__rd_conn_fail(c, now, HF_EBACKEND,
                             "%s: the server closed the connection%s",
                             c->r->where, doubt(c));
        } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
            hf__rd_conn_fail(c, now, HF_EBACKEND, "%s: %s", c->r->where,
                             strerror(errno));
        }
    } while (n == (ssize_t)sizeof(buf));
}

void hf__rd_conn_ready(struct rd_conn *c, uint32_t events, hf__time now)
{
    if (c->state == RD_CONNECTING) {
        connecting(c, now);
        return;
    }
    if (c->state >= RD_HELLO && events & EPOLLOUT)
        hf__rd_conn_flush(c);
    if (c->state >= RD_HELLO && events & ~(uint32_t)EPOLLOUT)
        read_all(c, now);
}
