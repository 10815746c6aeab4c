/*
 * Changes of names, as the server tells of them: keyspace notifications. They
 * are about keys, whoever changes them, so Redisson's holders are heard as
 * well.
 *
 * They have a connection of their own (redis.ear), which is there while anybody
 * listens. Each one begins with a look at notify-keyspace-events, which cannot
 * be asked for after the first SUBSCRIBE: so the settings are those of the very
 * server that will tell. If they are right, everything is subscribed to, in the
 * order of the list, and confirmed or refused in that order. If not, what is
 * new is refused, and those who have listened before stay deaf until a later
 * look (as often as a connection is PINGed) finds them right.
 *
 * Of a name its own key is listened to and the lists of waiters, of a prefix
 * all keys that begin so, which are names. Renewals alone are no change.
 */
#include "redis.h"

#include "../../list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SETTING "notify-keyspace-events"
#define NEEDED "g$lhxe"

struct rd_ear {
    struct rd_ear *next, *prev;
    struct hf__listener *on; /* NULL: left before it was confirmed */
    struct hf__query *asked; /* LISTEN is not answered yet; else NULL */
    unsigned due;            /* confirmations that are to come */
};

static const enum rd_key keys[] = {RD_KEY_LOCK, RD_KEY_QUEUE, RD_KEY_WAITERS,
                                   RD_KEY_LINE};
#define KEYS (sizeof(keys) / sizeof(*keys))

static unsigned channels_of(const struct hf__listener *on)
{
    return on->is_prefix ? 1 : KEYS;
}

/* The i-th channel or pattern, without "__keyspace@0__:". */
static size_t channel_of(const struct hf__listener *on, unsigned i,
                         char to[2 * RD_KEY_MAX])
{
    if (!on->is_prefix)
        return hf__rd_key(to, keys[i], on->name, on->name_len);
    return (size_t)(hf__rd_glob(to, on->name, on->name_len) - to);
}

static struct net_out *begin(struct redis *r, const char *verb, size_t args)
{
    struct net_out *o = &r->ear.stream.out;

    if (hf__net_reserve(&r->ear.stream, 64 + args * (2 * RD_KEY_MAX + 64))) {
        r->ear.stream.broken = ENOMEM;
        return NULL;
    }
    r->ears.asked_at = r->core->now();
    hf__rd_put_count(o, '*', 1 + args);
    hf__rd_put_text(o, verb);
    return o;
}

static void subscribe(struct redis *r, const struct hf__listener *on,
                      const char *verb)
{
    struct net_out *o =
        begin(r, verb + !on->is_prefix, channels_of(on)); /* after the P */
    char text[2 * RD_KEY_MAX];

    for (unsigned i = 0; o && i < channels_of(on); i++) {
        size_t len = channel_of(on, i, text);

        hf__rd_put_two(o, r->ears.head, r->ears.head_len, text, len);
    }
}

static void ask_settings(struct redis *r)
{
    struct net_out *o = begin(r, "CONFIG", 2);

    if (!o)
        return;
    hf__rd_put_text(o, "GET");
    hf__rd_put_text(o, SETTING);
    r->ears.looking = true;
}

static void ear_free(struct redis *r, struct rd_ear *e)
{
    hf__queue_remove(r->ears.first, r->ears.last, e);
    r->core->free(r->client, e);
}

static void answer(struct redis *r, struct rd_ear *e, int result)
{
    struct hf__query *q = e->asked;

    e->asked = NULL;
    if (q)
        hf__rd_finish(r, &q->req, result);
}

/* ---- the connection ----------------------------------------------------- */

void hf__rd_ear_up(struct redis *r, hf__time now)
{
    (void)now;
    ask_settings(r);
    hf__net_flush(&r->ear.stream);
}

/* Nothing is subscribed to any more. */
static void forget_all(struct redis *r)
{
    struct rd_ear *e, *next;

    r->ears.hears = r->ears.looking = false;
    r->ears.asked_at = 0;
    for (e = r->ears.first; e; e = next) {
        next = e->next;
        e->due = 0;
        if (!e->on)
            ear_free(r, e);
    }
}

void hf__rd_ear_down(struct redis *r, int code, hf__time now)
{
    forget_all(r);
    if (r->ear.timer <= now)
        return; /* it is tried again at once */
    for (struct rd_ear *e = r->ears.first; e; e = e->next)
        if (e->asked)
            answer(r, e, r->core->why(r->client, code, "%s", r->text));
}

static hf__time next_look(const struct redis *r)
{
    if (r->ear.state != RD_UP)
        return HF__NEVER;
    if (r->ears.asked_at > r->ear.heard_at)
        return r->ears.asked_at + (hf__time)r->op_timeout_ms * HF__MS;
    return r->ear.heard_at + RD_SUB_PING_MS * HF__MS;
}

hf__time hf__rd_ear_timeout(const struct redis *r)
{
    return hf__min_time(hf__rd_conn_timeout(&r->ear), next_look(r));
}

void hf__rd_ear_move(struct redis *r, hf__time now)
{
    hf__rd_conn_move(&r->ear, now);
    if (r->ear.state == RD_UP && r->cmd.state == RD_UP &&
        r->cmd.up_at > r->ear.up_at) {
        hf__rd_conn_stop(&r->ear); /* there may be another server now */
        forget_all(r);
        hf__rd_conn_start(&r->ear, now);
    } else if (now >= next_look(r)) {
        if (r->ears.asked_at > r->ear.heard_at)
            hf__rd_conn_fail(&r->ear, now, HF_EBACKEND,
                             "notifications are silent");
        else if (r->ears.hears)
            begin(r, "PING", 0);
        else
            ask_settings(r);
    }
    if (r->ear.state == RD_UP)
        hf__net_flush(&r->ear.stream);
}

void hf__rd_ear_fini(struct redis *r)
{
    while (r->ears.first)
        ear_free(r, r->ears.first);
}

/* ---- listeners ---------------------------------------------------------- */

int hf__rd_listen(struct redis *r, struct hf__query *q)
{
    struct rd_ear *e;

    if (r->cmd.state != RD_UP) {
        r->put_off = true;
        return HF__LATER;
    }
    e = r->core->alloc(r->client, sizeof(*e));
    if (!e)
        return HF_ENOMEM;
    e->on = q->listener;
    e->on->impl = e;
    e->asked = q;
    hf__queue_add(r->ears.first, r->ears.last, e);
    r->ears.head_len = (size_t)snprintf(r->ears.head, sizeof(r->ears.head),
                                        "__keyspace@%u__:", r->db);
    if (r->ear.state == RD_OFF) { /* by advance(), which may report */
        r->ear.state = RD_WAIT;
        r->ear.timer = 0;
        r->core->due(r->client, 0);
    }
    if (r->ear.state != RD_UP)
        return HF__PENDING;
    if (r->ears.hears) {
        subscribe(r, e->on, "PSUBSCRIBE");
        e->due = channels_of(e->on);
    } else if (!r->ears.looking) {
        ask_settings(r);
    }
    hf__net_flush(&r->ear.stream);
    return HF__PENDING;
}

static bool is_same(const struct hf__listener *a, const struct hf__listener *b)
{
    return a->is_prefix == b->is_prefix && a->name_len == b->name_len &&
           memcmp(a->name, b->name, a->name_len) == 0;
}

void hf__rd_unlisten(void *self, struct hf__listener *on)
{
    struct redis *r = self;
    struct rd_ear *e = on->impl, *other = r->ears.first;

    if (!e)
        return;
    while (other && (other == e || !other->on || !is_same(on, other->on)))
        other = other->next;
    if (r->ears.hears && !other) {
        subscribe(r, on, "PUNSUBSCRIBE");
        hf__net_flush(&r->ear.stream);
    }
    e->on = NULL;
    on->impl = NULL;
    if (!e->due)
        ear_free(r, e);
    for (e = r->ears.first; e && !e->on; e = e->next)
        ;
    if (!e) {
        hf__rd_conn_stop(&r->ear);
        forget_all(r);
    }
}

/* ---- what we are told --------------------------------------------------- */

/* As "KEA" or "AKE", or each by itself. */
static bool is_enough(const char *value)
{
    if (!strchr(value, 'K'))
        return false;
    for (const char *c = NEEDED; *c; c++)
        if (!strchr(value, *c) && !strchr(value, 'A'))
            return false;
    return true;
}

static void hear(struct redis *r)
{
    r->ears.hears = true;
    r->ears.deaf = false;
    for (struct rd_ear *e = r->ears.first; e; e = e->next) {
        subscribe(r, e->on, "PSUBSCRIBE");
        e->due = channels_of(e->on);
    }
    hf__net_flush(&r->ear.stream);
}

static int looked(struct redis *r, const struct rd_node *reply)
{
    const struct rd_node *value = hf__rd_at(reply, 1);
    bool is_error = reply->type == REDIS_REPLY_ERROR, any = false;
    int code = HF_ENOTSUP;

    r->ears.looking = false;
    if (is_error && !hf__rd_is_forbidden(reply->text)) {
        snprintf(r->ear.stream.words, sizeof(r->ear.stream.words), "%s",
                 reply->text);
        r->ear.stream.broken = EAGAIN; /* it may say otherwise later */
        return 0;
    }
    if (!is_error && (!value || !value->text))
        return HF_EPROTO;
    if (!is_error && is_enough(value->text)) {
        hear(r);
        return 0;
    }
    if (is_error)
        code = r->core->why(r->client, HF_EAUTH,
                            "changes cannot be watched: the user may not read "
                            "the server's " SETTING "; allow +config|get");
    else
        r->core->why(r->client, code,
                     "the server does not tell of changes: " SETTING
                     " is \"%.20s\"; set it to KA, or to K" NEEDED,
                     value->text);
    for (struct rd_ear *e = r->ears.first; e; e = e->next) {
        any = any || !e->asked;
        answer(r, e, code);
    }
    if (any && !r->ears.deaf)
        r->core->log(r->client, "redis: no changes are heard any more, because "
                                "of " SETTING);
    r->ears.deaf = any;
    return 0;
}

/* The first that waits for one is confirmed by it. */
static void confirmed(struct redis *r, const struct rd_node *refusal)
{
    struct rd_ear *e = r->ears.first;

    while (e && !e->due)
        e = e->next;
    if (!e)
        return;
    e->due = refusal ? 0 : e->due - 1;
    if (e->due)
        return;
    if (!e->on)
        ear_free(r, e);
    else if (e->asked)
        answer(r, e, refusal ? hf__rd_error(r, refusal, HF__LISTEN) : HF__DONE);
    else if (refusal)
        r->core->log(r->client, "redis: changes of %.60s are not heard: %.100s",
                     e->on->name, refusal->text);
    else
        r->core->changed(r->client, e->on, NULL, 0);
}

/* By that channel, or pattern, of ours. */
static bool is_of(const struct hf__listener *on, const char *channel,
                  size_t len)
{
    char text[2 * RD_KEY_MAX];

    for (unsigned i = 0; i < channels_of(on); i++)
        if (channel_of(on, i, text) == len && memcmp(text, channel, len) == 0)
            return true;
    return false;
}

static int heard(struct redis *r, const struct rd_node *reply, bool by_pattern)
{
    const struct rd_node *by = hf__rd_at(reply, 1);
    const struct rd_node *channel = hf__rd_at(reply, by_pattern ? 2 : 1);
    const struct rd_node *event = hf__rd_at(reply, by_pattern ? 3 : 2);
    size_t skip = r->ears.head_len;

    if (!event || !event->text || !channel->text || !by->text ||
        channel->len < skip || by->len < skip)
        return HF_EPROTO;
    if (strcmp(event->text, "expire") == 0 ||
        (by_pattern &&
         hf__rd_reserved(channel->text + skip, channel->len - skip)))
        return 0;
    for (struct rd_ear *e = r->ears.first; e; e = e->next)
        if (e->on && e->on->is_prefix == by_pattern &&
            is_of(e->on, by->text + skip, by->len - skip))
            r->core->changed(r->client, e->on, channel->text + skip,
                             channel->len - skip);
    return 0;
}

int hf__rd_ear_reply(struct redis *r, const struct rd_node *reply, hf__time now)
{
    const struct rd_node *what = hf__rd_at(reply, 0);

    (void)now;
    if (!r->ears.hears)
        return r->ears.looking ? looked(r, reply) : HF_EPROTO;
    if (hf__rd_is(what, "message"))
        return heard(r, reply, false);
    if (hf__rd_is(what, "pmessage"))
        return heard(r, reply, true);
    if (reply->type == REDIS_REPLY_ERROR)
        confirmed(r, reply);
    else if (hf__rd_is(what, "subscribe") || hf__rd_is(what, "psubscribe"))
        confirmed(r, NULL);
    return 0;
}
