/*
 * Changes of names, as the server tells of them: keyspace notifications. They
 * are about keys, whoever changes them, so Redisson's holders are heard as
 * well. Of a name its own key is listened to and the lists of waiters; of a
 * prefix all keys that begin so, which are names. A renewal is no change.
 *
 * They have a connection of their own (redis.ear), which is there while anybody
 * listens. It begins with a look at notify-keyspace-events, for which it is too
 * late after the first SUBSCRIBE: so the setting is that of the very server
 * that will tell. If it is wrong, or a subscription is refused, the connection
 * is given up. Whoever has asked for it is told why; those who have listened
 * before try again later.
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
    struct hf__listener *on;
    struct hf__query *asked; /* LISTEN is not answered yet; else NULL */
};

static const enum rd_key keys[] = {RD_KEY_LOCK, RD_KEY_QUEUE, RD_KEY_WAITERS,
                                   RD_KEY_LINE};
#define KEYS (sizeof(keys) / sizeof(*keys))

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

static void subscribe(struct redis *r, const struct hf__listener *on)
{
    size_t many = on->is_prefix ? 1 : KEYS, len;
    struct net_out *o =
        begin(r, on->is_prefix ? "PSUBSCRIBE" : "SUBSCRIBE", many);
    char head[32], text[2 * RD_KEY_MAX];
    int head_len = snprintf(head, sizeof(head), "__keyspace@%u__:", r->db);

    for (size_t i = 0; o && i < many; i++) {
        if (on->is_prefix)
            len = (size_t)(hf__rd_glob(text, on->name, on->name_len) - text);
        else
            len = hf__rd_key(text, keys[i], on->name, on->name_len);
        hf__rd_put_two(o, head, (size_t)head_len, text, len);
        r->ears.due++;
    }
}

static void answer(struct redis *r, struct rd_ear *e, int result)
{
    struct hf__query *q = e->asked;

    e->asked = NULL;
    if (result) {
        e->on->impl = NULL;
        hf__list_remove(r->ears.first, e);
        r->core->free(r->client, e);
    }
    hf__rd_finish(r, &q->req, result);
}

/* ---- the connection ----------------------------------------------------- */

/* Anew, if anybody listens; by advance(), which may report. */
static void restart(struct redis *r)
{
    hf__rd_conn_stop(&r->ear);
    r->ears.hears = false;
    if (!r->ears.first)
        return;
    r->ear.state = RD_WAIT;
    r->ear.timer = 0;
    r->core->due(r->client, 0);
}

void hf__rd_ear_up(struct redis *r, hf__time now)
{
    struct net_out *o = begin(r, "CONFIG", 2);

    (void)now;
    r->ears.hears = false;
    r->ears.anew = true;
    r->ears.due = 0;
    if (!o)
        return;
    hf__rd_put_text(o, "GET");
    hf__rd_put_text(o, SETTING);
    hf__net_flush(&r->ear.stream);
}

void hf__rd_ear_down(struct redis *r, int code, hf__time now)
{
    bool refused = code != HF_EBACKEND && code != HF_ENOMEM, any = false;
    struct rd_ear *e, *next;

    if (!refused && r->ear.timer <= now)
        return; /* it is tried again at once */
    for (e = r->ears.first; e; e = next) {
        next = e->next;
        if (!e->asked)
            continue;
        any = true;
        answer(r, e, r->core->why(r->client, code, "%s", r->text));
    }
    if (!r->ears.first)
        hf__rd_conn_stop(&r->ear);
    else if (refused)
        r->ear.timer = any ? now : now + RD_SUB_PING_MS * HF__MS;
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
    if (r->ear.state == RD_UP && r->cmd.state == RD_UP &&
        r->cmd.up_at > r->ear.up_at)
        restart(r); /* there may be another server now */
    hf__rd_conn_move(&r->ear, now);
    if (now >= next_look(r)) {
        if (r->ears.asked_at > r->ear.heard_at)
            hf__rd_conn_fail(&r->ear, now, HF_EBACKEND, "changes are silent");
        else
            begin(r, "PING", 0);
    }
    if (r->ear.state == RD_UP)
        hf__net_flush(&r->ear.stream);
}

void hf__rd_ear_fini(struct redis *r)
{
    struct rd_ear *e;

    while ((e = r->ears.first)) {
        r->ears.first = e->next;
        r->core->free(r->client, e);
    }
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
    hf__list_add(r->ears.first, e);
    if (r->ears.hears && r->ear.state == RD_UP) {
        subscribe(r, e->on);
        hf__net_flush(&r->ear.stream);
    } else if (r->ear.state < RD_CONNECTING) {
        restart(r);
    }
    return HF__PENDING;
}

void hf__rd_unlisten(void *self, struct hf__listener *on)
{
    struct redis *r = self;
    struct rd_ear *e = on->impl;

    if (!e)
        return;
    hf__list_remove(r->ears.first, e);
    r->core->free(r->client, e);
    restart(r); /* or it would be told for ever of what nobody wants */
}

/* ---- what we are told --------------------------------------------------- */

/* Ends the connection, outside of the reader: with that code and text. */
static void give_up(struct redis *r, int code, const char *before,
                    const char *value, const char *after)
{
    snprintf(r->ear.stream.words, sizeof(r->ear.stream.words), "%s%.80s%s",
             before, value, after);
    r->ear.stream.code = code;
    r->ear.stream.broken = EACCES;
}

static bool is_enough(const char *setting)
{
    const char *c = NEEDED;

    while (*c && (strchr(setting, *c) || strchr(setting, 'A')))
        c++;
    return !*c && strchr(setting, 'K');
}

static int looked(struct redis *r, const struct rd_node *reply)
{
    const struct rd_node *value = hf__rd_at(reply, 1);

    if (reply->type == REDIS_REPLY_ERROR && hf__rd_is_forbidden(reply->text))
        give_up(r, HF_EAUTH, "changes are not told, or the user may not read ",
                SETTING, ": allow +config|get");
    else if (reply->type == REDIS_REPLY_ERROR)
        give_up(r, HF_EBACKEND, "", reply->text, "");
    else if (!value || !value->text)
        return HF_EPROTO;
    else if (!is_enough(value->text))
        give_up(r, HF_ENOTSUP, "changes are not told; " SETTING " is \"",
                value->text, "\", set it to KA or K" NEEDED);
    else
        r->ears.hears = true;
    for (struct rd_ear *e = r->ears.first; r->ears.hears && e; e = e->next)
        subscribe(r, e->on);
    return 0;
}

/* When all are confirmed, each of them hears. */
static void confirmed(struct redis *r)
{
    if (!r->ears.due || --r->ears.due)
        return;
    for (struct rd_ear *e = r->ears.first; e; e = e->next)
        if (e->asked)
            answer(r, e, HF__DONE);
        else if (r->ears.anew)
            r->core->changed(r->client, e->on, NULL, 0);
    r->ears.anew = false;
}

static bool is_of(const struct hf__listener *on, const char *key, size_t len)
{
    char text[RD_KEY_MAX + 1];

    if (on->is_prefix)
        return len >= on->name_len && !hf__rd_reserved(key, len) &&
               memcmp(key, on->name, on->name_len) == 0;
    for (size_t i = 0; i < KEYS; i++)
        if (hf__rd_key(text, keys[i], on->name, on->name_len) == len &&
            memcmp(text, key, len) == 0)
            return true;
    return false;
}

static int heard(struct redis *r, const struct rd_node *channel)
{
    const struct rd_node *event = channel ? channel->next : NULL;
    const char *key =
        channel && channel->text ? strchr(channel->text, ':') : NULL;
    size_t len;

    if (!key++ || !event || !event->text)
        return HF_EPROTO;
    len = channel->len - (size_t)(key - channel->text);
    for (struct rd_ear *e = r->ears.first; e; e = e->next)
        if (strcmp(event->text, "expire") != 0 && is_of(e->on, key, len))
            r->core->changed(r->client, e->on, key, len);
    return 0;
}

int hf__rd_ear_reply(struct redis *r, const struct rd_node *reply, hf__time now)
{
    const struct rd_node *what = hf__rd_at(reply, 0);

    (void)now;
    if (r->ear.stream.broken)
        return 0;
    if (!r->ears.hears)
        return looked(r, reply);
    if (hf__rd_is(what, "message"))
        return heard(r, hf__rd_at(reply, 1));
    if (hf__rd_is(what, "pmessage"))
        return heard(r, hf__rd_at(reply, 2));
    if (reply->type == REDIS_REPLY_ERROR)
        give_up(r, hf__rd_error_code(reply->text), "", reply->text, "");
    else if (hf__rd_is(what, "subscribe") || hf__rd_is(what, "psubscribe"))
        confirmed(r);
    return 0;
}
