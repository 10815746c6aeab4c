/*
 * For programs that listen, that is, have an event handler. The client of such
 * a program is subscribed to its own channel (subscribe.c) while it holds a
 * lock, not only while it waits. A client that asks for a lock looks up the
 * holders of the lock (query.c), and lua/ask.lua publishes the wish "w<hold
 * id>" on each holder's channel. If no connection is subscribed to that
 * channel, the server keeps the wish for a minute, and lua/prove.lua publishes
 * it again once both connections of the holder are up. A message "b<hold id>
 * <token>" says that a hold was broken. The server does not keep that message,
 * because the next renewal fails anyway.
 */
#include "notify.h"

#include "base/list.h"
#include "channels.h"
#include "lock.h"
#include "redis.h"

#include <stdlib.h>

static void notify_put(struct redis *r, struct rd_held *h, uint64_t hold_id,
                       uint64_t token)
{
    if (!h->hold_id)
        hf__list_add(r->held, h);
    h->hold_id = hold_id;
    h->token = token;
}

static void notify_end(struct redis *r, struct rd_held *h)
{
    if (h->hold_id)
        hf__list_remove(r->held, h);
    h->hold_id = 0;
}

size_t hf__rd_lock_size(const struct redis *r)
{
    return r->listens ? sizeof(struct rd_held) : sizeof(struct rd_lock);
}

static void notify_broken(struct redis *r, struct rd_held *h)
{
    r->core->lost(r->client, h->lock.remote, h->hold_id, NULL);
    notify_end(r, h);
}

void hf__rd_held(struct redis *r, const struct hf__req *req, hf__time now)
{
    bool is_wanted = false;

    if (!r->listens || req->remote->kind == HF_LATCH)
        return;
    notify_put(r, req->remote->impl, req->hold_id, req->token);
    if (r->sub.link.state == NET_OFF)
        r->core->due(r->client, now + RD_CONNECT_POLL_MS * HF__MS);
    hf__link_start(&r->sub.link, now);
    for (size_t i = 0; i < RD_WISHES; i++)
        if (r->wished[i] == req->hold_id) {
            is_wanted = true;
            r->wished[i] = 0;
        }
    if (is_wanted)
        r->core->wanted(r->client, req->remote, req->token);
    if (r->chans.state == RD_SUB_LIVE && hf__rd_was_broken(r, req))
        notify_broken(r, req->remote->impl);
}

bool hf__rd_was_broken(const struct redis *r, const struct hf__req *req)
{
    return r->broken_id == req->hold_id && r->broken_token == req->token;
}

void hf__rd_held_end(struct redis *r, const struct hf__remote *m,
                     uint64_t hold_id)
{
    struct rd_held *h = m->impl;

    if (r->listens && (h->hold_id == hold_id || !hold_id))
        notify_end(r, h);
}

void hf__rd_held_move(struct redis *r, const struct hf__query *q)
{
    struct rd_held *from = r->listens && q->line ? q->line->impl : NULL;

    if (!from || from->hold_id != q->req.hold_id)
        return;
    notify_put(r, q->into->impl, from->hold_id, from->token);
    notify_end(r, from);
}

static struct rd_held *notify_find(const struct redis *r, uint64_t hold_id)
{
    struct rd_held *h = r->held;

    while (h && h->hold_id != hold_id)
        h = h->next;
    return h;
}

/* Reports the wish, or keeps it if no hold with this id is known: the reply
 * that grants the hold arrives on the command connection, and may not have been
 * read yet. */
void hf__rd_wished(struct redis *r, const char *number)
{
    uint64_t hold_id = strtoull(number, NULL, 10);
    const struct rd_held *h = notify_find(r, hold_id);

    if (h) {
        r->core->wanted(r->client, h->lock.remote, h->token);
        return;
    }
    for (size_t i = 0; i < RD_WISHES; i++)
        if (r->wished[i] == hold_id) /* a repeated wish uses one slot */
            return;
    r->wished[r->wished_at++ % RD_WISHES] = hold_id;
}

/* Notes the broken hold, and reports it if messages are trusted now
 * (RD_SUB_LIVE). Otherwise the hold is reported after the next successful
 * proof, unless a failed renewal has reported the loss before. The message
 * names the token too, because the same hold id may have been granted again
 * since. A hold that is not known is noted too, because the reply that grants
 * it may not have been read yet. */
void hf__rd_broken(struct redis *r, const char *numbers)
{
    char *rest;
    uint64_t hold_id = strtoull(numbers, &rest, 10);
    uint64_t token = strtoull(rest, NULL, 10);

    r->broken_id = hold_id;
    r->broken_token = token;
    hf__rd_held_check(r);
}

void hf__rd_held_check(struct redis *r)
{
    struct rd_held *h = r->broken_id ? notify_find(r, r->broken_id) : NULL;

    if (h && r->chans.state == RD_SUB_LIVE && h->token == r->broken_token)
        notify_broken(r, h);
}
