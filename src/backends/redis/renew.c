/*
 * Renewals. A batch of any length is sent in chunks, one script each, so that
 * no script blocks the server for long: a semaphore's script renews each permit
 * of each hold. The batch is finished when its last chunk has been answered or
 * lost.
 */
#include "renew.h"

#include "backends/common/about.h"
#include "flights.h"
#include "keys.h"
#include "late_replies.h"
#include "lock.h"
#include "notify.h"
#include "pipe.h"
#include "redis.h"
#include "replica.h"
#include "reply.h"
#include "requests.h"
#include "scripts.h"

#include <string.h>

/* Notes the TTL of a batch and, if `until` is not 0, `until`, unless another
 * batch has a shorter TTL. `until` is when the batch expires if the core has
 * parked it, or 0 if it was sent. */
static void renew_note_lease(struct redis *r, uint32_t lease_ms, hf__time until)
{
    if (hf__rd_is_renewing(r) && lease_ms > r->renew_lease_ms)
        return;
    r->renew_lease_ms = lease_ms;
    if (until)
        r->renew_until = until;
}

/* Returns the script that renews an item. All items of a chunk need the same
 * script. */
static enum rd_script renew_script_of(const struct redis *r,
                                      const struct hf__renewal *item)
{
    return r->string_dialect                    ? RD_RENEW_S
           : item->remote->kind == HF_RWLOCK    ? RD_RENEW_RW
           : item->remote->kind == HF_SEMAPHORE ? RD_RENEW_SEM
                                                : RD_RENEW;
}

static uint32_t renew_chunk_len(const struct redis *r,
                                const struct hf__batch *b, uint32_t first)
{
    enum rd_script s = renew_script_of(r, &b->item[first]);
    uint32_t len = 1, permits = b->item[first].permits;

    for (; first + len < b->len && len < RD_RENEW_CHUNK; len++) {
        const struct hf__renewal *next = &b->item[first + len];

        permits += next->permits;
        if (renew_script_of(r, next) != s || permits > RD_PERMITS_MAX)
            break;
    }
    return len;
}

static void renew_put_item_keys(struct net_out *o, const struct hf__remote *m)
{
    hf__rd_put_key(o, RD_KEY_LOCK, m->name, m->name_len);
    hf__rd_put_key(o, m->kind == HF_MUTEX ? RD_KEY_INFO : RD_KEY_HOLDS, m->name,
                   m->name_len);
    if (m->kind != HF_SEMAPHORE)
        return;
    hf__rd_put_key(o, RD_KEY_PERMITS, m->name, m->name_len);
    hf__rd_put_key(o, RD_KEY_KIND, m->name, m->name_len);
}

static void renew_put_item(struct net_out *o, const struct hf__renewal *item)
{
    const struct hf__remote *m = item->remote;
    char id[21];

    hf__rd_put(o, id, hf__rd_decimal(id, item->hold_id));
    hf__rd_put_num(o, item->lease_ms);
    if (m->kind != HF_RWLOCK)
        return;
    hf__rd_put_key(o, RD_KEY_BASE, m->name, m->name_len);
    /* If a downgrade was lost, the script repeats it, and publishes on this
     * channel. */
    if (m->mode == HF_READ)
        hf__rd_put_key(o, RD_CHANNEL_RW, m->name, m->name_len);
    else
        hf__rd_put(o, "", 0);
}

int hf__rd_renew_chunk(struct redis *r, struct hf__batch *b, uint32_t first,
                       uint32_t len)
{
    struct rd_flight *f;
    hf__time sent_at = b->req.sent_at;
    enum rd_script s = renew_script_of(r, &b->item[first]);
    size_t keys = s == RD_RENEW_SEM ? 4 : 2;
    size_t args = s == RD_RENEW_RW ? 4 : 2, size = 0;
    char uuid[HF__UUID_LEN + 1];
    struct net_out *o;

    for (uint32_t i = first; i < first + len; i++)
        size += (keys + args) * (b->item[i].remote->name_len + 64u);
    if (hf__rd_doubt_room(r, true))
        return HF_ENOMEM;
    o = hf__rd_call(r, &b->req, s, keys * len, 2 + args * len, size + 64);
    if (!o)
        return HF_ENOMEM;
    /* The deadlines of all holds count from the first chunk. */
    if (b->chunks)
        b->req.sent_at = sent_at;
    f = hf__rd_newest(r);
    f->first = first;
    f->len = len;
    for (uint32_t i = first; i < first + len; i++)
        renew_put_item_keys(o, b->item[i].remote);
    memcpy(uuid, r->uuid, HF__UUID_LEN);
    uuid[HF__UUID_LEN] = ':';
    hf__rd_put(o, uuid, sizeof(uuid));
    hf__rd_put_num(o, hf__rd_meant_until(r, &b->req));
    for (uint32_t i = first; i < first + len; i++)
        renew_put_item(o, &b->item[i]);
    return 0;
}

/* Returns 0, or HF_ENOMEM if nothing was encoded. */
static int renew_encode(struct redis *r, struct hf__req *req)
{
    struct hf__batch *b = (struct hf__batch *)req;
    uint32_t sent = 0, len;

    for (; sent < b->len; sent += len) {
        len = renew_chunk_len(r, b, sent);
        if (hf__rd_renew_chunk(r, b, sent, len))
            break; /* no memory: the remaining items keep EUNKNOWN */
        b->chunks++;
    }
    return sent ? 0 : HF_ENOMEM;
}

int hf__rd_renew(void *self, struct hf__batch *b)
{
    struct redis *r = self;
    uint32_t shortest = UINT32_MAX;
    int rc;

    b->chunks = 0;
    for (size_t i = 0; i < b->len; i++) {
        b->item[i].result = HF_EUNKNOWN;
        if (b->item[i].lease_ms < shortest)
            shortest = b->item[i].lease_ms;
    }
    b->req.result = HF__DONE;
    if (!b->len)
        return HF__DONE;
    rc = hf__rd_submit(r, &b->req, renew_encode);
    if (rc != HF__PENDING && rc != HF__LATER)
        return rc;
    renew_note_lease(r, shortest, rc == HF__LATER ? b->req.meant_until : 0);
    r->renewing += rc == HF__PENDING;
    hf__rd_hurry(r);
    return rc;
}

void hf__rd_renew_landed(struct redis *r, struct hf__batch *b)
{
    if (--b->chunks == 0)
        hf__rd_finish(r, &b->req, HF__DONE);
}

void hf__rd_renew_failed(struct redis *r, const struct rd_flight *f, int code)
{
    struct hf__batch *b = (struct hf__batch *)f->req;

    for (uint32_t i = f->first; i < f->first + f->len; i++)
        /* An ENOTOWNER of an earlier reply is final. */
        if (b->item[i].result != HF_ENOTOWNER)
            b->item[i].result = (int16_t)code;
    hf__rd_renew_landed(r, b);
}

/* Handles the reply to a chunk that was refused as too late, because its time
 * limit came from an inexact estimate of the server's clock. The reply improves
 * the estimate; if the chunk is still valid, it is sent again. */
static int renew_too_late(struct redis *r, const struct rd_flight *f,
                          const struct rd_node *reply)
{
    struct hf__batch *b = (struct hf__batch *)f->req;
    int rc = HF_EUNKNOWN;

    if (!hf__rd_clock(r, hf__rd_at(reply, 1), f->sent.net.at))
        return HF_EPROTO;
    if (r->core->now() < b->req.meant_until)
        rc = hf__rd_renew_chunk(r, b, f->first, f->len);
    if (rc)
        hf__rd_renew_failed(r, f, rc);
    return 0;
}

int hf__rd_renew_reply(struct redis *r, const struct rd_flight *f,
                       const struct rd_node *reply)
{
    struct hf__batch *b = (struct hf__batch *)f->req;

    if (reply->type == REDIS_REPLY_ARRAY)
        return renew_too_late(r, f, reply);
    if (reply->type != REDIS_REPLY_STRING || reply->len != f->len ||
        strspn(reply->text, "01") != f->len)
        return HF_EPROTO;
    for (uint32_t i = 0; i < f->len; i++) {
        struct hf__renewal *item = &b->item[f->first + i];
        bool is_ours = reply->text[i] == '1';

        item->result = is_ours ? HF__DONE : HF_ENOTOWNER;
        if (!is_ours)
            hf__rd_held_end(r, item->remote, item->hold_id);
        /* The hold has ended. If its attempt was also sent on a lost connection
         * and is executed late, late_replies.c abandons what it takes. */
        if (!is_ours)
            hf__rd_late_over(r, item->hold_id);
    }
    if (!hf__rd_doubt(r, f))
        hf__rd_renew_landed(r, b);
    return 0;
}
