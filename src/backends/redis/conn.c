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
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define READ_SIZE 16384
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
    hf__net_init(&c->stream, r->core, r->client);
    c->timer = HF__NEVER;
    c->refused_at = HF__NEVER;
    hf__rd_arena_init(&c->arena, r->core, r->client);
}

void hf__rd_conn_stop(struct rd_conn *c)
{
    hf__net_close(&c->stream);
    if (c->reader)
        redisReaderFree(c->reader);
    c->reader = NULL;
    c->state = RD_OFF;
    c->timer = HF__NEVER;
    hf__rd_arena_reset(&c->arena);
}

void hf__rd_conn_fini(struct rd_conn *c)
{
    if (!c->r)
        return;
    hf__rd_conn_stop(c);
    hf__net_fini(&c->stream);
    hf__rd_arena_fini(&c->arena);
}

/* Short beside op_timeout too, so that a server that is back before that finds
 * us there. */
static hf__time pause(struct rd_conn *c)
{
    uint32_t most = c->r->op_timeout_ms / 8;

    return hf__net_pause(&c->r->peer, &c->walk,
                         most < BACKOFF_MAX_MS ? most : BACKOFF_MAX_MS,
                         hf__rd_jitter(c->r, UINT32_MAX));
}

void hf__rd_conn_fail(struct rd_conn *c, hf__time now, int code,
                      const char *fmt, ...)
{
    struct redis *r = c->r;
    bool was_up = c->state == RD_UP;
    size_t len =
        (size_t)snprintf(r->text, sizeof(r->text), "%s: ", r->peer.where);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text + len, sizeof(r->text) - len, fmt, ap);
    va_end(ap);
    if (was_up) /* not of each attempt, as long as it is down */
        r->core->log(r->client, "redis: lost the %s to %s",
                     c == &r->cmd ? "connection" : "connection for messages",
                     r->text);
    hf__rd_conn_stop(c);
    c->state = RD_WAIT;
    if (was_up && now - c->up_at >= LIVED_MS * HF__MS) {
        c->walk = (struct net_walk){0};
        c->timer = now;
    } else if (!was_up && code == HF_EBACKEND &&
               hf__net_next(&r->peer, &c->walk)) {
        c->timer = now;
    } else {
        c->timer = now + pause(c);
        if (!r->opened && c == &r->cmd)
            r->open_code = code;
    }
    c->on_down(r, code, now);
}

void hf__rd_conn_hurry(struct rd_conn *c)
{
    hf__time at;

    if (c->state != RD_WAIT || c->refused_at == HF__NEVER)
        return;
    at = c->refused_at + NET_BACKOFF_MS * HF__MS;
    if (at >= c->timer)
        return;
    c->timer = at;
    c->r->core->due(c->r->client, at);
}

/* Of one that has not said anything yet that Redis would say. */
static const char *doubt(const struct rd_conn *c)
{
    if (c->state >= RD_HELLO ? c->state == RD_UP || c->hello_at
                             : !c->stream.shaking)
        return "";
    return c->stream.tls ? "; is it Redis, with TLS?"
                         : "; is it Redis? With TLS it is rediss://";
}

/* The stream is broken. If TLS does not agree, the server has answered. */
static void broken(struct rd_conn *c, hf__time now)
{
    int code = c->stream.code ? c->stream.code : HF_EBACKEND;

    if (code == HF_EAUTH || code == HF_EPROTO)
        c->refused_at = now;
    hf__rd_conn_fail(c, now, code, "%s%s", hf__net_why(&c->stream),
                     c->stream.broken == ECONNRESET ? doubt(c) : "");
}

/* ---- hello ------------------------------------------------------------ */

static int say_hello(struct rd_conn *c)
{
    struct redis *r = c->r;
    struct net_out *o = &c->stream.out;
    bool auth = r->password[0] || r->user[0];
    size_t size = 256 + strlen(r->user) + strlen(r->password);

    c->hello_len = c->hello_at = 0;
    if (hf__net_reserve(&c->stream, size))
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
    if (c != &r->cmd)
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
    hf__net_settle(&r->peer);
    c->on_up(r, now);
}

static void connected(struct rd_conn *c, hf__time now)
{
    c->reader = hf__rd_reader_new(&c->arena);
    if (!c->reader || say_hello(c)) {
        hf__rd_conn_fail(c, now, HF_ENOMEM, "out of memory");
        return;
    }
    c->state = RD_HELLO;
    c->heard_at = now;
    if (c->hello_len)
        hf__net_flush(&c->stream);
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
                         "the server wants a password: in "
                         "HOLDFAST_PASSWORD, by password_file=, or in the URL");
    else if (step != HELLO_AUTH || strstr(text, "max number of clients"))
        hf__rd_conn_fail(c, now, hf__rd_error_code(text), "%.120s", text);
    else if (strstr(text, "without any password") ||
             strstr(text, "no password is set"))
        hf__rd_conn_fail(c, now, HF_EAUTH,
                         "the server wants no password, and one was given");
    else
        hf__rd_conn_fail(c, now, HF_EAUTH,
                         "the server refused the user name or password");
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
        hf__rd_conn_fail(c, now, HF_EPROTO, "is this a Redis server?");
        return false;
    }
    if (c->hello_at == c->hello_len)
        up(c, now);
    return true;
}

/* ---- connect ---------------------------------------------------------- */

void hf__rd_look_up(struct redis *r, hf__time now)
{
    hf__net_find_again(&r->peer, now + r->connect_timeout_ms * HF__MS);
}

static bool waits_for_lookup(struct rd_conn *c, hf__time now)
{
    if (!hf__net_is_finding(&c->r->peer, now))
        return false;
    c->state = RD_WAIT;
    c->timer = now + LOOKUP_POLL_MS * HF__MS;
    return true;
}

/* The path of a socket that is wrong or forbidden stays so until it is
 * corrected; a server that starts may not have created or opened it yet. */
static void not_connected(struct rd_conn *c, hf__time now)
{
    int error = c->stream.broken;

    c->r->lasts = !c->r->peer.hosts && c->stream.fd >= 0 && error != ENOENT &&
                  error != ECONNREFUSED && error != EAGAIN;
    broken(c, now);
}

/* What hf__net_open() or hf__net_go_on() came to. */
static void move_on(struct rd_conn *c, int rc, hf__time now)
{
    if (rc == 0)
        connected(c, now);
    else if (rc != HF__PENDING)
        not_connected(c, now);
}

/* With TLS a part is left of what hf_open() has: a server without TLS may wait
 * for more, and our text says so, where that of hf_open() would not. */
static uint32_t connect_ms(const struct redis *r)
{
    uint32_t ms = r->opened ? r->connect_timeout_ms : r->open_timeout_ms;

    return r->cmd.stream.tls ? ms - ms / 8 : ms;
}

void hf__rd_conn_start(struct rd_conn *c, hf__time now)
{
    struct redis *r = c->r;
    const struct net_addr *a;

    if (waits_for_lookup(c, now))
        return;
    a = hf__net_addr(&r->peer, &c->walk);
    r->lasts = false;
    c->refused_at = HF__NEVER;
    c->state = RD_CONNECTING;
    c->timer = now + connect_ms(r) * HF__MS /
                         (hf__time)(r->peer.len ? r->peer.len : 1);
    if (c == &r->cmd)
        hf__rd_renew_hurry(r, now);
    move_on(c, hf__net_open(&c->stream, a, c->stream.tag + 4), now);
}

/* For how long a connection is waited for; see hf__rd_renew_hurry(). */
static uint32_t patience_ms(const struct rd_conn *c)
{
    const struct redis *r = c->r;

    return c == &r->cmd && (r->renewing || r->renew_waits)
               ? (uint32_t)hf__min_time(connect_ms(r), hf__rd_patience_ms(r))
               : connect_ms(r);
}

void hf__rd_conn_move(struct rd_conn *c, hf__time now)
{
    if (c->stream.broken)
        broken(c, now);
    if (now >= c->timer && c->state != RD_OFF) {
        if (c->state == RD_WAIT)
            hf__rd_conn_start(c, now);
        else
            hf__rd_conn_fail(c, now, HF_EBACKEND, "no answer within %u ms%s",
                             patience_ms(c), c->stream.shaking ? doubt(c) : "");
    }
}

hf__time hf__rd_conn_timeout(const struct rd_conn *c)
{
    return c->stream.broken ? 0 : c->timer;
}

/* ---- read ------------------------------------------------------------- */

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
        hf__rd_conn_fail(c, now, rc, "an answer we do not understand%s%s%s",
                         c->reader->err ? ": " : "",
                         c->reader->err ? c->reader->errstr : "", doubt(c));
    else if (rc == HF_EBACKEND)
        hf__rd_conn_fail(c, now, rc, "it has become a replica");
    else if (rc)
        hf__rd_conn_fail(c, now, rc, "out of memory");
    return rc == 0;
}

static void read_all(struct rd_conn *c, hf__time now)
{
    char buf[READ_SIZE];
    ssize_t n;

    do {
        n = hf__net_read(&c->stream, buf, sizeof(buf));
        if (n > 0) {
            c->heard_at = now;
            if (redisReaderFeed(c->reader, buf, (size_t)n) != REDIS_OK) {
                hf__rd_conn_fail(c, now, HF_ENOMEM, "out of memory");
                return;
            }
            if (!digest(c, now))
                return;
        } else if (n < 0) {
            broken(c, now);
            return;
        }
    } while (c->stream.more);
}

void hf__rd_conn_ready(struct rd_conn *c, uint32_t events, hf__time now)
{
    if (c->state == RD_CONNECTING) {
        move_on(c, hf__net_go_on(&c->stream), now);
        return;
    }
    if (c->state >= RD_HELLO && events & EPOLLOUT)
        hf__net_flush(&c->stream);
    if (c->state >= RD_HELLO && events & ~(uint32_t)EPOLLOUT)
        read_all(c, now);
}
