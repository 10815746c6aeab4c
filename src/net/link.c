#include "link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define READ_SIZE 16384
#define READS 4 /* reads per call, limited so as not to delay other work */
/* If a connection that was up for at least this long is lost, the link connects
 * again without a pause. */
#define LIVED_MS 1000
#define LOOKUP_POLL_MS 10
/* A connection that was idle for longer than this is checked before use,
 * because the server may have closed it unnoticed. */
#define IDLE_MS 500

void hf__link_init(struct net_link *l, const struct hf__core *core,
                   hf_client *client)
{
    *l = (struct net_link){.timer = HF__NEVER, .refused_at = HF__NEVER};
    hf__net_init(&l->stream, core, client);
}

void hf__link_fini(struct net_link *l)
{
    hf__link_stop(l);
    hf__net_fini(&l->stream);
}

void hf__link_start(struct net_link *l, hf__time now)
{
    if (l->state != NET_OFF)
        return;
    l->state = NET_PAUSING;
    l->timer = now;
}

void hf__link_stop(struct net_link *l)
{
    hf__net_close(&l->stream);
    l->state = NET_OFF;
    l->timer = HF__NEVER;
    l->awaits = l->securing = false;
}

/* ---- failures ---------------------------------------------------------- */

int hf__link_why(struct net_link *l, int code, const char *fmt, ...)
{
    int len = snprintf(l->text, sizeof(l->text), "%s: ", l->where);
    va_list ap;

    l->explained = true;
    va_start(ap, fmt);
    vsnprintf(l->text + len, sizeof(l->text) - (size_t)len, fmt, ap);
    va_end(ap);
    return code;
}

const char *hf__link_doubt(const struct net_link *l)
{
    bool is_new = l->stream.shaking || l->state == NET_GREETING;

    return is_new && !l->understood && l->doubt ? l->doubt : "";
}

static hf__time link_pause(struct net_link *l)
{
    uint32_t chance = 0;

    l->stream.core->random(&chance, sizeof(chance));
    return hf__net_pause(l->peer, &l->walk, l->pause_ms, chance);
}

void hf__link_fail(struct net_link *l, int code, hf__time now)
{
    bool was_up = l->state == NET_UP;
    size_t next = was_up && l->goes_round ? l->walk.at + 1 : 0;

    if (was_up && l->lost) /* failed attempts to connect are not logged */
        l->stream.core->log(l->stream.client, "%s to %s", l->lost, l->text);
    hf__link_stop(l);
    l->state = NET_PAUSING;
    l->timer = now;
    if (was_up && now - l->up_at >= LIVED_MS * HF__MS) {
        l->walk = (struct net_walk){.at = next};
    } else if (was_up ||
               !hf__net_next(l->peer, &l->walk, code != HF_EBACKEND)) {
        l->timer += link_pause(l);
        l->walk.at = next;
        l->open_code = code;
    }
    l->talk->down(l->owner, code, was_up, now);
}

/* Handles a broken stream. A failure of TLS with HF_EAUTH or HF_EPROTO counts
 * as a refusal by the server. */
static void link_broken(struct net_link *l, hf__time now)
{
    int code = l->stream.code ? l->stream.code : HF_EBACKEND;

    if (code == HF_EAUTH || code == HF_EPROTO)
        l->refused_at = now;
    hf__link_why(l, code, "%s%s", hf__net_why(&l->stream),
                 l->stream.broken == ECONNRESET ? hf__link_doubt(l) : "");
    hf__link_fail(l, code, now);
}

/* Handles the return value of greet(), secured() or data(). Returns whether the
 * connection continues. */
static bool link_goes_on(struct net_link *l, int rc, hf__time now)
{
    if (!rc)
        return true;
    if (!l->explained && rc == HF_ENOMEM)
        hf__link_why(l, rc, "out of memory");
    else if (!l->explained)
        hf__link_why(l, rc, "an answer we do not understand%s",
                     hf__link_doubt(l));
    hf__link_fail(l, rc, now);
    return false;
}

/* ---- connecting -------------------------------------------------------- */

/* Handles a failure to connect. For the path of a Unix socket most failures are
 * permanent, such as EACCES. ENOENT, ECONNREFUSED and EAGAIN are not permanent:
 * a starting server may not have created or opened the socket yet, and a full
 * backlog becomes shorter. */
static void link_not_connected(struct net_link *l, hf__time now)
{
    int error = l->stream.broken;

    l->lasts = !l->peer->hosts && l->stream.fd >= 0 && error != ENOENT &&
               error != ECONNREFUSED && error != EAGAIN;
    link_broken(l, now);
}

static void link_connected(struct net_link *l, hf__time now)
{
    l->state = NET_GREETING;
    l->heard_at = now;
    if (link_goes_on(l, l->talk->greet(l->owner, now), now))
        hf__net_flush(&l->stream);
}

/* Handles the return value of hf__net_open() or hf__net_go_on(). */
static void link_move_on(struct net_link *l, int rc, hf__time now)
{
    if (rc == 0)
        link_connected(l, now);
    else if (rc != HF__PENDING)
        link_not_connected(l, now);
}

void hf__link_secure(struct net_link *l)
{
    l->securing = true;
}

/* Handles the return value of hf__net_secure() or hf__net_go_on(). */
static void link_secure(struct net_link *l, int rc, hf__time now)
{
    if (rc == HF__PENDING)
        return;
    l->securing = false;
    if (rc)
        link_broken(l, now);
    else if (link_goes_on(l, l->talk->secured(l->owner, now), now))
        hf__net_flush(&l->stream);
}

static uint32_t link_hurried(const struct net_link *l, uint32_t ms)
{
    return l->hurry_ms && l->hurry_ms < ms ? l->hurry_ms : ms;
}

static void link_connect_now(struct net_link *l, hf__time now)
{
    const struct net_addr *a;

    if (hf__net_is_finding(l->peer, now)) {
        l->timer = now + LOOKUP_POLL_MS * HF__MS;
        return;
    }
    a = hf__net_addr(l->peer, &l->walk);
    memcpy(l->where, a->where, sizeof(l->where));
    l->lasts = l->understood = l->explained = false;
    l->refused_at = HF__NEVER;
    l->state = NET_CONNECTING;
    l->timer =
        now + link_hurried(l, l->connect_ms /
                                  (uint32_t)(l->peer->len ? l->peer->len : 1)) *
                  HF__MS;
    link_move_on(l, hf__net_open(&l->stream, a, ++*l->tags), now);
}

void hf__link_up(struct net_link *l, hf__time now)
{
    l->state = NET_UP;
    l->timer = HF__NEVER;
    l->up_at = now;
    hf__net_connected(l->peer);
}

/* ---- calls of the owner ------------------------------------------------ */

static void link_check_closed(struct net_link *l)
{
    const struct hf__core *core = l->stream.core;

    if (l->state == NET_UP && !l->awaits && !l->stream.broken &&
        core->now() - l->heard_at > IDLE_MS * HF__MS &&
        hf__net_is_over(&l->stream))
        l->stream.broken = ECONNRESET;
}

static void link_try_soon(struct net_link *l)
{
    hf__time at = l->refused_at;

    if (l->state != NET_PAUSING || at == HF__NEVER)
        return;
    at += NET_BACKOFF_MS * HF__MS;
    if (at >= l->timer)
        return;
    l->timer = at;
    l->stream.core->due(l->stream.client, at);
}

bool hf__link_wanted(struct net_link *l)
{
    link_check_closed(l);
    link_try_soon(l);
    return l->state == NET_UP && !l->stream.broken;
}

void hf__link_await(struct net_link *l, hf__time now)
{
    if (!l->awaits)
        l->heard_at = now;
    l->awaits = true;
}

void hf__link_hurry(struct net_link *l, uint32_t ms, hf__time now)
{
    l->hurry_ms = ms;
    if (ms && (l->state == NET_CONNECTING || l->state == NET_GREETING))
        l->timer = hf__min_time(l->timer, now + ms * HF__MS);
}

void hf__link_look_up(struct net_link *l, hf__time now)
{
    hf__net_find_again(l->peer, now + l->connect_ms * HF__MS);
}

/* ---- the backend's slots ----------------------------------------------- */

int hf__link_opened(const struct net_link *l)
{
    const struct hf__core *core = l->stream.core;

    if (l->up_at)
        return HF__DONE;
    if (!l->open_code)
        return HF__PENDING;
    return (l->lasts ? core->lasts : core->why)(l->stream.client, l->open_code,
                                                "%s", l->text);
}

static void link_read_all(struct net_link *l, hf__time now)
{
    char buf[READ_SIZE];
    int rc, reads = 0;
    ssize_t n;

    do { /* a closed stream has `more` unset, so the loop ends */
        reads++;
        n = hf__net_read(&l->stream, buf, sizeof(buf));
        if (n < 0) {
            link_broken(l, now);
        } else if (n > 0) {
            l->heard_at = now;
            rc = l->talk->data(l->owner, buf, (size_t)n, now);
            if (link_goes_on(l, rc, now) && l->securing)
                link_secure(l, hf__net_secure(&l->stream), now);
        }
    } while (l->stream.more && reads < READS);
}

bool hf__link_ready(struct net_link *l, uint32_t tag, uint32_t events,
                    hf__time now)
{
    if (tag != l->stream.tag || l->stream.fd < 0)
        return false;
    if (l->state == NET_CONNECTING) {
        link_move_on(l, hf__net_go_on(&l->stream), now);
        return true;
    }
    if (l->securing) {
        link_secure(l, hf__net_go_on(&l->stream), now);
        return true;
    }
    if (events & EPOLLOUT)
        hf__net_flush(&l->stream);
    if (events & ~(uint32_t)EPOLLOUT)
        link_read_all(l, now);
    return true;
}

static hf__time link_silent_at(const struct net_link *l)
{
    return l->state == NET_UP && l->awaits
               ? l->heard_at + link_hurried(l, l->silence_ms) * HF__MS
               : HF__NEVER;
}

hf__time hf__link_timeout(const struct net_link *l)
{
    return l->stream.broken || l->stream.more
               ? 0
               : hf__min_time(l->timer, link_silent_at(l));
}

/* Returns what to add to the message about a silent server. The server may be
 * of a different kind if it does not answer the TLS handshake or if, in a
 * protocol with tls_later, its first message does not come. */
static const char *link_doubt_of_silence(const struct net_link *l)
{
    return l->stream.shaking || l->stream.tls_later ? hf__link_doubt(l) : "";
}

void hf__link_advance(struct net_link *l, hf__time now)
{
    if (l->stream.more)
        link_read_all(l, now);
    if (l->stream.broken) {
        link_broken(l, now);
    } else if (l->state != NET_PAUSING && !l->stream.more &&
               now >= hf__link_timeout(l)) {
        hf__link_why(
            l, HF_EBACKEND, "no answer within %s%s",
            hf__span(link_hurried(l, l->state == NET_UP ? l->silence_ms
                                                        : l->connect_ms))
                .text,
            link_doubt_of_silence(l));
        hf__link_fail(l, HF_EBACKEND, now);
    }
    if (l->state == NET_PAUSING && now >= l->timer)
        link_connect_now(l, now);
}
