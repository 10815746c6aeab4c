/*
 * Messages. All waiters share one connection. It is opened when a lock first
 * has to wait, or when the program listens and holds a lock (notify.c). Its
 * subscriptions:
 *
 *   holdfast:wake:{prefix}:<uuid> the client's own: "it is your turn" from
 *                                 holdfast clients, and "it is wanted" for
 *                                 holds
 *   redisson_lock__channel:{n}    unfair: Redisson has released n; subscribed
 *   + holdfast:mark:{n}           with a mark, which counts holdfast's waiters
 *   redisson_lock__channel:{n}:<owner>   fair, with Redisson in the queue
 *   redisson_rwlock:{n}, redisson_sc:{n}, redisson_countdownlatch__channel__{n}
 *                                 the other kinds; all but the latch have their
 *                                 own mark
 *
 * No event may be lost between an attempt and its subscription. If a client of
 * another library holds the lock, or waits for a fair mutex, the waiters of the
 * name are therefore rung when the channel is confirmed. After each new
 * connection all waiters are rung when the proof has succeeded (same_server.c).
 * A chan lingers for a while after its last wait (channels.h).
 */
#include "subscribe.h"

#include "backends/common/about.h"
#include "backends/common/chance.h"
#include "backends/common/table.h"
#include "channels.h"
#include "flights.h"
#include "keys.h"
#include "lock.h"
#include "notify.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"
#include "same_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pause before reconnecting after a subscription was refused temporarily. It
 * doubles each time, up to 32 s; waiters poll in the meantime. */
#define PUT_OFF_MS 1000
#define PUT_OFF_MOST 6

/* ---- commands ---------------------------------------------------------- */

/* Begins a command on the connection for messages. Returns NULL if that
 * connection is not up, or if there is no memory. If there is no memory, the
 * function also sets stream.broken, so that advance() closes the connection. */
static struct net_out *subscribe_begin(struct redis *r, const char *verb,
                                       size_t args)
{
    struct net_out *o;

    if (r->sub.link.state != NET_UP)
        return NULL;
    o = hf__rd_pipe_room(&r->sub, 64 + args * (RD_KEY_MAX + 96));
    if (!o) {
        r->sub.link.stream.broken = ENOMEM;
        return NULL;
    }
    hf__rd_put_count(o, '*', 1 + args);
    hf__rd_put_text(o, verb);
    return o;
}

/* Puts the channel of a name and its second channel, holdfast:mark:{n}, into
 * one command, so that the server never counts us as a listener of only one of
 * the two. */
static void subscribe_pair(struct redis *r, const struct rd_chan *c,
                           const char *verb)
{
    enum rd_key mark = hf__rd_mark(c->kind);
    struct net_out *o = subscribe_begin(r, verb, mark ? 2 : 1);

    if (!o)
        return;
    hf__rd_put_key(o, hf__rd_channel(c->kind), c->key.text, c->key.len);
    if (mark)
        hf__rd_put_key(o, mark, c->key.text, c->key.len);
}

static void subscribe_own(struct redis *r, const struct rd_chan *c,
                          uint64_t hold_id, const char *verb)
{
    char text[RD_KEY_MAX + 1 + RD_OWNER_MAX];
    struct net_out *o = subscribe_begin(r, verb, 1);
    size_t len;

    if (!o)
        return;
    len = hf__rd_key(text, RD_CHANNEL, c->key.text, c->key.len);
    text[len++] = ':';
    len += hf__rd_owner(r, hold_id, text + len);
    hf__rd_put(o, text, len);
}

static void subscribe_join(struct redis *r, struct rd_chan *c, bool foreign)
{
    if (c->joined && !c->confirmed_at)
        c->ring_later |= foreign;
    if (c->fair || c->joined || r->string_dialect)
        return;
    subscribe_pair(r, c, "SUBSCRIBE");
    c->joined = true;
    c->ring_later = foreign;
}

static void subscribe_join_own(struct redis *r, struct rd_lock *lock)
{
    if (!lock->own)
        subscribe_own(r, lock->chan, lock->attempt_id, "SUBSCRIBE");
    lock->own = true;
}

/* Returns whether another chan still needs the Redisson channel of this chan:
 * "m" and "{m}" share that channel (keys.c), but have different marks. While
 * there are waiters for both names, the channel has more listeners than either
 * mark, so the scripts assume that Redisson waits, and send superfluous
 * messages. */
static bool subscribe_is_shared(const struct redis *r, const struct rd_chan *c)
{
    char wrapped[HF_NAME_MAX + 2];
    const struct rd_chan *twin;

    if (c->kind == HF_LATCH)
        return false; /* latch channels always have braces */
    if (hf__rd_has_twin(c->key.text, c->key.len)) {
        twin = hf__rd_chan_find(r, c->key.text + 1, c->key.len - 2u, c->kind,
                                false);
    } else if (memchr(c->key.text, '{', c->key.len)) {
        return false;
    } else {
        wrapped[0] = '{';
        memcpy(wrapped + 1, c->key.text, c->key.len);
        wrapped[c->key.len + 1] = '}';
        twin = hf__rd_chan_find(r, wrapped, c->key.len + 2u, c->kind, false);
    }
    return twin && twin->joined;
}

static void subscribe_part(struct redis *r, struct rd_chan *c)
{
    struct net_out *o;

    if (c->joined && !subscribe_is_shared(r, c)) {
        subscribe_pair(r, c, "UNSUBSCRIBE");
    } else if (c->joined) {
        o = subscribe_begin(r, "UNSUBSCRIBE", 1);
        if (o)
            hf__rd_put_key(o, hf__rd_mark(c->kind), c->key.text, c->key.len);
    }
    c->joined = false;
}

/* ---- waiting ----------------------------------------------------------- */

/* Returns the chan of this lock and stops its lingering. Returns NULL if there
 * is no memory. */
static struct rd_chan *subscribe_chan_of(struct redis *r, struct hf__remote *m)
{
    struct rd_lock *lock = m->impl;
    struct rd_chan *c = lock->chan;

    if (!c)
        c = hf__rd_chan_find(r, m->name, m->name_len, m->kind,
                             m->fair && m->kind == HF_MUTEX);
    if (c && !c->waiting)
        hf__rd_chan_unlinger(r, c);
    else if (!c)
        c = hf__rd_chan_add(r, m);
    if (c && !lock->chan)
        hf__rd_chan_add_lock(c, lock);
    return c;
}

int hf__rd_wait(struct redis *r, struct hf__remote *m, bool foreign)
{
    struct rd_lock *lock = m->impl;
    struct rd_chan *c = lock->waits ? lock->chan : subscribe_chan_of(r, m);

    if (!c)
        return HF_ENOMEM;
    if (!lock->waits) {
        lock->waits = true;
        lock->polls = 0;
        c->waiting++;
        r->chans.waiting++;
    }
    r->sub.link.lost = "redis: lost the connection for messages";
    hf__link_start(&r->sub.link, r->core->now());
    if (r->sub.link.state != NET_UP)
        return 0; /* subscribe_up() will subscribe all waiters */
    subscribe_join(r, c, foreign);
    if (c->fair && foreign)
        subscribe_join_own(r, lock);
    hf__net_flush(&r->sub.link.stream);
    return 0;
}

void hf__rd_wait_end(struct redis *r, struct hf__remote *m, hf__time now)
{
    struct rd_lock *lock = m->impl;
    struct rd_chan *c = lock->chan;

    if (!lock->waits)
        return;
    if (lock->own) {
        subscribe_own(r, c, lock->attempt_id, "UNSUBSCRIBE");
        lock->own = false;
        hf__net_flush(&r->sub.link.stream);
    }
    if (lock->rang) /* removes the early message for this attempt, if there is
                       one */
        hf__rd_was_called(r, lock, lock->attempt_id);
    lock->waits = false;
    lock->rang = false;
    lock->token = 0;
    r->chans.waiting--;
    if (--c->waiting == 0)
        hf__rd_chan_linger(r, c, now + RD_LINGER_MS * HF__MS);
}

void hf__rd_chan_drop(struct redis *r, struct hf__remote *m)
{
    struct rd_lock *lock = m->impl;

    hf__rd_wait_end(r, m, r->core->now());
    if (lock->chan)
        hf__rd_chan_remove_lock(lock);
}

/* ---- the connection ---------------------------------------------------- */

static bool subscribe_is_needed(const struct redis *r)
{
    return r->chans.waiting || r->held;
}

static void subscribe_up(struct rd_pipe *p, hf__time now)
{
    struct redis *r = p->owner;
    struct net_out *o;

    (void)now;
    r->chans.refused = false;
    /* No waiter need be rung when its channel is confirmed (`false`): all are
     * rung when the proof succeeds, and poll until then. A fair waiter that
     * needs its own channel subscribes to it after its next attempt. */
    for (struct rd_chan *c = NULL; (c = hf__rd_chan_next(r, c));)
        if (c->waiting)
            subscribe_join(r, c, false);
    /* The client's own channel is last: its confirmation implies all others. */
    o = subscribe_begin(r, "SUBSCRIBE", 1);
    if (o)
        hf__rd_put(o, r->wake, r->wake_len);
    hf__net_flush(&r->sub.link.stream);
}

static void subscribe_down(struct rd_pipe *p, int code, bool was_up,
                           hf__time now)
{
    struct redis *r = p->owner;

    (void)code;
    (void)was_up;
    (void)now;
    hf__rd_pair_end(r);
    r->chans.state = RD_SUB_NONE;
    r->chans.again = 0;
    r->broken_id = 0;
    while (r->chans.oldest)
        hf__rd_chan_forget(r, r->chans.oldest);
    for (struct rd_chan *c = NULL; (c = hf__rd_chan_next(r, c));) {
        c->joined = false;
        c->confirmed_at = 0;
        for (struct rd_lock *lock = c->locks; lock; lock = lock->next)
            lock->own = false;
    }
    if (p->link.walk.failures == 1 && r->cmd.link.state == NET_UP)
        hf__rd_ring_all(r); /* without messages all waiters must poll */
    if (!subscribe_is_needed(r))
        hf__rd_pipe_stop(p);
}

/* Reconnects. Nothing is logged, because no connection was lost. */
static void subscribe_reconnect(struct redis *r, hf__time now)
{
    hf__link_look_up(&r->sub.link, now);
    hf__rd_pipe_stop(&r->sub);
    subscribe_down(&r->sub, HF_EBACKEND, true, now);
    if (subscribe_is_needed(r))
        hf__link_start(&r->sub.link, now);
}

static hf__time subscribe_next_ping(const struct redis *r)
{
    const struct net_link *l = &r->sub.link;

    return l->state == NET_UP && subscribe_is_needed(r) && !l->awaits
               ? l->heard_at + RD_SUB_PING_MS * HF__MS
               : HF__NEVER;
}

/* Returns whether the connection is being established for a holder. No waiting
 * thread drives it then, so the helper thread must drive it, at short
 * intervals. */
static bool subscribe_is_made_for_holders(const struct redis *r)
{
    const struct rd_chans *c = &r->chans;
    enum net_state state = r->sub.link.state;

    return r->held && !c->waiting &&
           (state == NET_CONNECTING || state == NET_GREETING ||
            (state == NET_UP && (hf__rd_pair_is_under_way(r) ||
                                 (c->state == RD_SUB_NONE && !c->refused))));
}

hf__time hf__rd_sub_timeout(const struct redis *r)
{
    hf__time at =
        hf__min_time(hf__link_timeout(&r->sub.link), subscribe_next_ping(r));

    if (subscribe_is_made_for_holders(r))
        at = hf__min_time(at, r->core->now() + RD_CONNECT_POLL_MS * HF__MS);
    at = hf__min_time(at, hf__rd_pair_timeout(r));
    if (r->chans.again)
        at = hf__min_time(at, r->chans.again);
    return r->chans.oldest ? hf__min_time(at, r->chans.oldest->until) : at;
}

void hf__rd_sub_move(struct redis *r, hf__time now)
{
    struct rd_chan *c;

    hf__link_advance(&r->sub.link, now);
    if (hf__rd_pair_move(r, now))
        subscribe_reconnect(r, now);
    if (r->chans.again && now >= r->chans.again)
        subscribe_reconnect(r, now);
    while ((c = r->chans.oldest) && now >= c->until) {
        subscribe_part(r, c);
        hf__rd_chan_forget(r, c);
    }
    if (now >= subscribe_next_ping(r)) {
        subscribe_begin(r, "PING", 0);
        hf__link_await(&r->sub.link, now);
    }
    hf__net_flush(&r->sub.link.stream);
}

void hf__rd_sub_fini(struct redis *r)
{
    for (struct rd_chan *c = NULL; (c = hf__rd_chan_next(r, c));)
        while (c->locks)
            hf__rd_chan_remove_lock(c->locks);
    hf__table_fini(&r->chans.table);
    r->chans = (struct rd_chans){0};
}

/* ---- messages --------------------------------------------------------- */

/* Calls fn for each chan to which a Redisson channel may belong. `text` is the
 * part of the channel after its prefix: either the name of a lock in braces, or
 * a name that itself contains braces. */
static void subscribe_each_name(struct redis *r, const char *text, size_t len,
                                enum hf_kind kind, bool fair,
                                void (*fn)(struct redis *, struct rd_chan *))
{
    struct rd_chan *c = NULL;

    if (len > 2 && text[0] == '{' && text[len - 1] == '}' &&
        (kind == HF_LATCH || !memchr(text + 1, '{', len - 1)))
        c = hf__rd_chan_find(r, text + 1, len - 2, kind, fair);
    if (c)
        fn(r, c);
    c = kind != HF_LATCH && memchr(text, '{', len)
            ? hf__rd_chan_find(r, text, len, kind, fair)
            : NULL;
    if (c)
        fn(r, c);
}

/* Returns the length of the channel's prefix, which precedes the name of the
 * lock, or 0 if the channel does not belong to a lock. */
static size_t subscribe_prefix_of(const struct rd_node *channel,
                                  enum hf_kind *kind)
{
    for (*kind = HF_MUTEX; *kind <= HF_LATCH; ++*kind) {
        const char *prefix = hf__rd_prefix(hf__rd_channel(*kind));
        size_t len = strlen(prefix);

        if (channel->len > len && memcmp(channel->text, prefix, len) == 0)
            return len;
    }
    return 0;
}

static void subscribe_each_chan(struct redis *r, const struct rd_node *channel,
                                void (*fn)(struct redis *, struct rd_chan *))
{
    enum hf_kind kind;
    size_t skip = subscribe_prefix_of(channel, &kind),
           len = channel->len - skip, i;
    const char *text = channel->text + skip;

    if (!skip)
        return;
    subscribe_each_name(r, text, len, kind, false, fn);
    if (kind != HF_MUTEX)
        return;
    /* The channel of a fair waiter ends with ":<uuid>:<hold id>". */
    for (i = len; i && text[i - 1] >= '0' && text[i - 1] <= '9';)
        i--;
    if (i < len && i > HF__UUID_LEN + 2 && text[i - 1] == ':' &&
        text[i - HF__UUID_LEN - 2] == ':' &&
        memcmp(text + i - HF__UUID_LEN - 1, r->uuid, HF__UUID_LEN) == 0)
        subscribe_each_name(r, text, i - HF__UUID_LEN - 2, HF_MUTEX, true, fn);
}

static void subscribe_confirmed(struct redis *r, struct rd_chan *c)
{
    c->confirmed_at = r->core->now();
    if (c->fair || c->ring_later)
        hf__rd_ring(r, c);
    c->ring_later = false;
}

/* Returns whether the attempt of an early message may still be under way. The
 * comparison is `<=`, because sents.head is incremented before the reply is
 * handled. */
static bool subscribe_is_awaited(const struct redis *r,
                                 const struct rd_early *e)
{
    return e->hold_id && r->cmd.sents.head <= e->last;
}

static void subscribe_came_early(struct redis *r, struct rd_early early)
{
    struct rd_early *e = &r->chans.early[r->chans.early_at++ % RD_EARLY];

    if (subscribe_is_awaited(r, e))
        r->chans.early_lost_at = r->core->now();
    *e = early;
    e->last = r->cmd.sents.head + r->cmd.sents.len;
}

static void subscribe_complete(struct rd_lock *lock,
                               const struct rd_early *call)
{
    if (call->token && call->seen_ms == lock->seen_ms)
        lock->token = call->token;
}

/* Handles a message "u|f|r|s<hold id> <token> <seen> <name>". A token means
 * that the lock was handed over; token 0 means "try". If the hold is no longer
 * wanted, its release is already under way.
 *
 * The deadline of a hold that was handed over counts from the attempt that
 * <seen> identifies, so the message is valid only together with the reply to
 * that attempt. If a later attempt has been answered since, the hold may have
 * ended and the lock may have another holder. The waiter then only tries again.
 * It also only tries again while the message may come from a server other than
 * that of the replies (same_server.c), and if replicas= is set (replica.c). */
static void subscribe_called(struct redis *r, const char *text, const char *end)
{
    enum hf_kind kind = *text == 'r'   ? HF_RWLOCK
                        : *text == 's' ? HF_SEMAPHORE
                                       : HF_MUTEX;
    bool fair = *text == 'f';
    char *at;
    struct rd_early call = {0};
    struct rd_chan *c;
    struct rd_lock *lock;

    if (text == end)
        return;
    call.hold_id = strtoull(text + 1, &at, 10);
    call.token = strtoull(at, &at, 10);
    call.seen_ms = (uint32_t)strtoull(at, &at, 10);
    if (!call.hold_id || *at++ != ' ' || at >= end)
        return;
    if (r->chans.state != RD_SUB_LIVE || r->doubts.need)
        call.token = 0;
    c = hf__rd_chan_find(r, at, (size_t)(end - at), kind, fair);
    lock = c ? c->locks : NULL;
    while (lock && (!lock->waits || lock->attempt_id != call.hold_id))
        lock = lock->next;
    if (!lock || (lock->attempting && call.token))
        subscribe_came_early(r, call);
    else
        subscribe_complete(lock, &call);
    if (lock) {
        lock->notified = true;
        hf__rd_ring_one(r, lock);
    }
}

void hf__rd_was_called(struct redis *r, struct rd_lock *lock, uint64_t hold_id)
{
    for (int i = 0; i < RD_EARLY; i++) {
        struct rd_early *e = &r->chans.early[i];

        if (e->hold_id != hold_id)
            continue;
        subscribe_complete(lock, e);
        lock->rang = true;
        e->hold_id = 0;
    }
}

/* Returns whether the message is a number with an extra 0 in front, which is
 * for Redisson's waiters only. Holdfast's waiters get separate messages. */
static bool subscribe_not_for_us(const struct rd_node *payload)
{
    return payload->len > 1 && payload->text[0] == '0';
}

static void subscribe_heard(struct redis *r, const struct rd_node *channel,
                            const struct rd_node *payload)
{
    if (hf__rd_is(channel, r->wake)) {
        if (payload->text[0] == 'p')
            hf__rd_pair_heard(r, payload->text + 1);
        else if (payload->text[0] == 'w')
            hf__rd_wished(r, payload->text + 1);
        else if (payload->text[0] == 'b')
            hf__rd_broken(r, payload->text + 1);
        else
            subscribe_called(r, payload->text, payload->text + payload->len);
    } else if (!subscribe_not_for_us(payload)) {
        subscribe_each_chan(r, channel, hf__rd_ring);
    }
}

/* Handles a permanent or temporary refusal of a subscription. A refusal is
 * logged once, however often it is repeated. */
static void subscribe_refused(struct redis *r, const char *text, hf__time now)
{
    struct rd_chans *c = &r->chans;
    bool is_news = !c->refused && !c->put_off;

    c->refused = true;
    if (!c->again && !hf__rd_is_forbidden(text)) {
        uint32_t ms = PUT_OFF_MS << c->put_off;

        c->again = now + (ms / 2 + hf__chance(&r->chance, ms / 2)) * HF__MS;
        if (c->put_off < PUT_OFF_MOST - 1)
            c->put_off++;
    }
    if (is_news)
        hf__rd_no_messages(r, "subscribe", text);
}

static int subscribe_pushed(struct rd_pipe *p, const struct rd_node *reply,
                            hf__time now)
{
    struct redis *r = p->owner;
    const struct rd_node *what = hf__rd_at(reply, 0);
    const struct rd_node *channel = hf__rd_at(reply, 1);
    const struct rd_node *payload = hf__rd_at(reply, 2);

    if (reply->type == REDIS_REPLY_ERROR) {
        subscribe_refused(r, reply->text, now);
        return 0;
    }
    if (hf__rd_is(reply, "PONG") || hf__rd_is(what, "pong") ||
        hf__rd_is(what, "unsubscribe"))
        return 0;
    if (!channel || !channel->text)
        return HF_EPROTO;
    if (hf__rd_is(what, "message") && payload && payload->text) {
        subscribe_heard(r, channel, payload);
        return 0;
    }
    if (!hf__rd_is(what, "subscribe"))
        return HF_EPROTO;
    if (hf__rd_is(channel, r->wake)) {
        if (r->chans.state == RD_SUB_NONE)
            r->chans.state = RD_SUB_CONFIRMED;
        if (!r->chans.refused)
            r->chans.put_off = 0;
        hf__rd_pair_begin(r);
        hf__net_flush(&r->cmd.link.stream);
    } else {
        subscribe_each_chan(r, channel, subscribe_confirmed);
    }
    return 0;
}

const struct rd_owner hf__rd_sub = {
    .up = subscribe_up, .push = subscribe_pushed, .down = subscribe_down};
