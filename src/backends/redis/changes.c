/*
 * Watching names, by keyspace notifications. The server sends a notification
 * whenever a key changes, whichever program has changed the key, so changes by
 * Redisson are noticed too. Watching a name means watching the name's own key
 * and the keys that list its waiters. Watching a prefix means watching all keys
 * that begin with the prefix and can be names of locks. A renewal does not
 * count as a change.
 *
 * The connection (redis.changes) exists while there is a watcher. Its first
 * command reads the setting notify-keyspace-events. It must be the first,
 * because the server refuses CONFIG on a connection that has sent SUBSCRIBE.
 * Another connection will not do, because it may lead to a different server.
 *
 * If the setting is insufficient or a subscription is refused, the client
 * closes the connection, and each LISTEN that is still unanswered fails with
 * the reason. The watchers whose LISTEN was answered before remain, and the
 * client connects again later for them.
 */
#include "changes.h"

#include "base/list.h"
#include "keys.h"
#include "pipe.h"
#include "redis.h"
#include "reply.h"
#include "requests.h"
#include "subscribe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct rd_watcher {
    struct rd_watcher *next, *prev;
    struct hf__listener *on;
    struct hf__query *query; /* the LISTEN; NULL once it has been answered */
};

static const enum rd_key keys[] = {RD_KEY_LOCK, RD_KEY_QUEUE, RD_KEY_WAITERS,
                                   RD_KEY_LINE};
#define KEYS (sizeof(keys) / sizeof(*keys))

static void changes_no_memory(struct rd_pipe *p)
{
    p->link.stream.broken = ENOMEM;
    p->link.stream.code = HF_ENOMEM;
}

static struct net_out *changes_begin(struct redis *r, const char *verb,
                                     size_t args)
{
    struct net_out *o =
        hf__rd_pipe_room(&r->changes, 64 + args * (2 * RD_KEY_MAX + 64));

    if (!o) {
        changes_no_memory(&r->changes);
        return NULL;
    }
    hf__link_await(&r->changes.link, r->core->now());
    hf__rd_put_count(o, '*', 1 + args);
    hf__rd_put_text(o, verb);
    return o;
}

static void changes_subscribe(struct redis *r, const struct hf__listener *on)
{
    size_t many = on->is_prefix ? 1 : KEYS, len;
    struct net_out *o =
        changes_begin(r, on->is_prefix ? "PSUBSCRIBE" : "SUBSCRIBE", many);
    char head[32], text[2 * RD_KEY_MAX];
    int head_len = snprintf(head, sizeof(head), "__keyspace@%u__:", r->cmd.db);

    for (size_t i = 0; o && i < many; i++) {
        if (on->is_prefix)
            len = (size_t)(hf__rd_glob(text, on->name, on->name_len) - text);
        else
            len = hf__rd_key(text, keys[i], on->name, on->name_len);
        hf__rd_put_two(o, head, (size_t)head_len, text, len);
        r->watchers.due++;
    }
}

static void changes_answer(struct redis *r, struct rd_watcher *e, int result)
{
    struct hf__query *q = e->query;

    e->query = NULL;
    if (result) {
        e->on->impl = NULL;
        hf__list_remove(r->watchers.first, e);
        r->core->free(r->client, e);
    }
    hf__rd_finish(r, &q->req, result);
}

/* ---- the connection ----------------------------------------------------- */

/* Closes the connection. If there is a watcher, advance() connects again at the
 * time `at`. This function does not connect by itself: connecting may report to
 * the core, which some callers must not do. */
static void changes_restart(struct redis *r, hf__time at)
{
    hf__rd_pipe_stop(&r->changes);
    r->watchers.state = RD_CHANGES_OFF;
    r->watchers.again = at;
    if (r->watchers.first)
        r->core->due(r->client, at);
}

bool hf__rd_publishes_changes(const char *setting)
{
    const char *c = RD_EVENTS_NEEDED;

    while (*c && (strchr(setting, *c) || strchr(setting, 'A')))
        c++;
    return !*c && strchr(setting, 'K');
}

static int changes_setting_read(struct rd_pipe *p, struct rd_sent *sent,
                                const struct rd_node *reply, hf__time now)
{
    struct redis *r = p->owner;
    const struct rd_node *value = hf__rd_at(reply, 1);

    (void)sent;
    (void)now;
    if (reply->type == REDIS_REPLY_ERROR) {
        int code = hf__rd_error_code(reply->text);

        if (code != HF_EAUTH && hf__rd_is_forbidden(reply->text))
            code = HF_ENOTSUP; /* the server has no CONFIG command */
        return hf__link_why(
            &p->link, code, RD_EVENTS_SETTING " cannot be read: %.80s%s",
            reply->text, code == HF_EAUTH ? "; allow +config|get" : "");
    }
    if (!value || !value->text)
        return HF_EPROTO;
    if (!hf__rd_publishes_changes(value->text))
        return hf__link_why(&p->link, HF_ENOTSUP,
                            "Redis does not announce key changes "
                            "(" RD_EVENTS_SETTING " is \"%.40s\"): run CONFIG "
                            "SET " RD_EVENTS_SETTING " KA",
                            value->text);
    r->watchers.state = RD_CHANGES_CONFIRMING;
    for (struct rd_watcher *e = r->watchers.first; e; e = e->next)
        changes_subscribe(r, e->on);
    hf__net_flush(&p->link.stream);
    return 0;
}

static void changes_up(struct rd_pipe *p, hf__time now)
{
    struct redis *r = p->owner;

    r->watchers.state = RD_CHANGES_CHECKING;
    r->watchers.due = 0;
    if (!hf__rd_pipe_send(p, changes_setting_read, 1, 128)) {
        changes_no_memory(p);
        return;
    }
    hf__link_await(&p->link, now);
    hf__rd_put_count(&p->link.stream.out, '*', 3);
    hf__rd_put_text(&p->link.stream.out, "CONFIG");
    hf__rd_put_text(&p->link.stream.out, "GET");
    hf__rd_put_text(&p->link.stream.out, RD_EVENTS_SETTING);
    hf__net_flush(&p->link.stream);
}

static void changes_down(struct rd_pipe *p, int code, bool was_up, hf__time now)
{
    struct redis *r = p->owner;
    bool refused = code != HF_EBACKEND && code != HF_ENOMEM, any = false;
    struct rd_watcher *e, *next;

    (void)was_up;
    r->watchers.state = RD_CHANGES_OFF;
    if (!refused && p->link.timer <= now)
        return; /* the link connects again at once */
    for (e = r->watchers.first; e; e = next) {
        next = e->next;
        if (!e->query)
            continue;
        any = true;
        changes_answer(r, e, r->core->why(r->client, code, "%s", p->link.text));
    }
    if (!r->watchers.first || refused)
        changes_restart(r, any ? now : now + RD_SUB_PING_MS * HF__MS);
}

static hf__time changes_next_ping(const struct net_link *l)
{
    return l->state == NET_UP && !l->awaits
               ? l->heard_at + RD_SUB_PING_MS * HF__MS
               : HF__NEVER;
}

hf__time hf__rd_changes_timeout(const struct redis *r)
{
    const struct net_link *l = &r->changes.link;

    return l->state == NET_OFF && r->watchers.first
               ? r->watchers.again
               : hf__min_time(hf__link_timeout(l), changes_next_ping(l));
}

void hf__rd_changes_move(struct redis *r, hf__time now)
{
    struct net_link *l = &r->changes.link, *cmd = &r->cmd.link;

    if (l->state == NET_UP && cmd->state == NET_UP && cmd->up_at > l->up_at)
        /* r->cmd has reconnected, maybe to a different server. r->changes must
         * lead to the same server as r->cmd. */
        changes_restart(r, now);
    if (l->state == NET_OFF && r->watchers.first && now >= r->watchers.again)
        hf__link_start(l, now);
    hf__link_advance(l, now);
    if (l->state == NET_UP && r->watchers.due)
        /* pipe.c sets a time limit only for the replies to commands; this one
         * is for the confirmations. */
        hf__link_await(l, now);
    if (now >= changes_next_ping(l))
        changes_begin(r, "PING", 0);
    hf__net_flush(&l->stream);
}

void hf__rd_changes_fini(struct redis *r)
{
    struct rd_watcher *e;

    while ((e = r->watchers.first)) {
        r->watchers.first = e->next;
        r->core->free(r->client, e);
    }
}

/* ---- listeners ---------------------------------------------------------- */

int hf__rd_listen(struct redis *r, struct hf__query *q)
{
    struct rd_watcher *e;

    if (!hf__link_wanted(&r->cmd.link)) {
        r->put_off = true;
        return HF__LATER;
    }
    e = r->core->alloc(r->client, sizeof(*e));
    if (!e)
        return HF_ENOMEM;
    e->on = q->listener;
    e->on->impl = e;
    e->query = q;
    hf__list_add(r->watchers.first, e);
    if (r->watchers.state >= RD_CHANGES_CONFIRMING) {
        changes_subscribe(r, e->on);
        hf__net_flush(&r->changes.link.stream);
    } else if (r->changes.link.state <= NET_PAUSING) {
        changes_restart(r, 0);
    }
    return HF__PENDING;
}

void hf__rd_unlisten(void *self, struct hf__listener *on)
{
    struct redis *r = self;
    struct rd_watcher *e = on->impl;

    if (!e)
        return;
    hf__list_remove(r->watchers.first, e);
    r->core->free(r->client, e);
    /* The connection is closed, because on it the server would still publish
     * for this listener. If there are other watchers, advance() connects
     * again. */
    changes_restart(r, 0);
}

/* ---- messages ---------------------------------------------------------- */

/* Counts a confirmation. When the last one has arrived, each watcher whose
 * LISTEN is unanswered gets its result. If the connection is new, each other
 * watcher gets one change, because changes before the subscription may have
 * been missed. */
static void changes_confirmed(struct redis *r)
{
    if (!r->watchers.due || --r->watchers.due)
        return;
    for (struct rd_watcher *e = r->watchers.first; e; e = e->next)
        if (e->query)
            changes_answer(r, e, HF__DONE);
        else if (r->watchers.state == RD_CHANGES_CONFIRMING)
            r->core->changed(r->client, e->on, NULL, 0);
    r->watchers.state = RD_CHANGES_ON;
}

static bool changes_is_of(const struct hf__listener *on, const char *key,
                          size_t len)
{
    char text[RD_KEY_MAX + 1];

    if (!memmem(key, len, on->name, on->name_len))
        return false; /* a fast test: most messages concern other names */
    if (on->is_prefix)
        return !hf__rd_reserved(key, len) &&
               memcmp(key, on->name, on->name_len) == 0;
    for (size_t i = 0; i < KEYS; i++)
        if (hf__rd_key(text, keys[i], on->name, on->name_len) == len &&
            memcmp(text, key, len) == 0)
            return true;
    return false;
}

static int changes_heard(struct redis *r, const struct rd_node *channel)
{
    const struct rd_node *event = channel ? channel->next : NULL;
    const char *key =
        channel && channel->text ? strchr(channel->text, ':') : NULL;
    size_t len;

    if (!key++ || !event || !event->text)
        return HF_EPROTO;
    len = channel->len - (size_t)(key - channel->text);
    for (struct rd_watcher *e = r->watchers.first; e; e = e->next)
        if (strcmp(event->text, "expire") != 0 &&
            changes_is_of(e->on, key, len))
            r->core->changed(r->client, e->on, key, len);
    return 0;
}

static int changes_pushed(struct rd_pipe *p, const struct rd_node *reply,
                          hf__time now)
{
    const struct rd_node *what = hf__rd_at(reply, 0);

    (void)now;
    if (hf__rd_is(what, "message"))
        return changes_heard(p->owner, hf__rd_at(reply, 1));
    if (hf__rd_is(what, "pmessage"))
        return changes_heard(p->owner, hf__rd_at(reply, 2));
    if (reply->type == REDIS_REPLY_ERROR)
        return hf__link_why(&p->link, hf__rd_error_code(reply->text), "%.140s",
                            reply->text);
    if (hf__rd_is(what, "subscribe") || hf__rd_is(what, "psubscribe"))
        changes_confirmed(p->owner);
    return 0;
}

const struct rd_owner hf__rd_changes = {
    .up = changes_up, .push = changes_pushed, .down = changes_down};
