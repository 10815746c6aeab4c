/*
 * The commands of all kinds, for dialect=redisson and dialect=string. Their
 * scripts are in lua/; all scripts of the same verb begin with the same
 * arguments.
 */
#include "kinds.h"

#include "channels.h"
#include "flights.h"
#include "keys.h"
#include "lock.h"
#include "pipe.h"
#include "redis.h"
#include "replica.h"
#include "scripts.h"

#include <string.h>

/* Returns how long the token counter lives, in ms, or 0 if it lives for
 * ever. */
static int64_t kinds_token_ttl(const struct redis *r, uint32_t lease_ms)
{
    int64_t ttl = 10 * (int64_t)lease_ms;

    if (r->keep_tokens)
        return 0;
    return ttl > RD_TOKEN_TTL_MS ? ttl : RD_TOKEN_TTL_MS;
}

/* Returns the TTL, in ms, with which a releasing holder may hand the lock over
 * to this waiter, or 0 if the lock must not be handed over. */
static int64_t kinds_hand_ms(const struct redis *r, const struct hf__req *req)
{
    return req->fixed || req->lease_ms < RD_HAND_MIN_MS || r->doubts.need
               ? 0
               : req->lease_ms;
}

/* Appends ARGV[1] to ARGV[6] of a TAKE, which are the same for all kinds. */
static void kinds_put_terms(const struct redis *r, struct net_out *o,
                            const struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    struct rd_lock *lock = m->impl;

    hf__rd_put_owner(r, o, req->hold_id);
    hf__rd_put_num(o, req->lease_ms);
    hf__rd_put_num(o, hf__rd_valid_until(r, req->sent_at));
    hf__rd_put_num(o, kinds_token_ttl(r, req->lease_ms));
    hf__rd_put_two(o, r->about, r->about_len, m->label, strlen(m->label));
    hf__rd_put(o, !req->may_queue ? "0" : lock->sent ? "2" : "1", 1);
    if (!lock->sent || req->lease_ms < lock->lease_ms)
        lock->lease_ms = req->lease_ms < RD_LEASE_MOST
                             ? req->lease_ms & RD_LEASE_MOST
                             : RD_LEASE_MOST;
    lock->sent = true;
}

/* Returns the script for this op, which is ATTEMPT, RELEASE or ABANDON. */
enum rd_script hf__rd_script_of(const struct redis *r,
                                const struct hf__remote *m, enum hf__op op)
{
    static const enum rd_script of[][HF__ABANDON] = {
        {RD_TAKE, RD_DROP, RD_LEAVE},
        {RD_TAKE_FAIR, RD_DROP_FAIR, RD_LEAVE_FAIR},
        {RD_TAKE_RW, RD_DROP_RW, RD_LEAVE_RW},
        {RD_TAKE_SEM, RD_DROP_SEM, RD_LEAVE_SEM},
        {RD_TAKE_S, RD_DROP_S, RD_LEAVE_S}};

    return of[r->string_dialect         ? 4
              : m->kind == HF_SEMAPHORE ? 3
              : m->kind == HF_RWLOCK    ? 2
                                        : m->fair][op - HF__ATTEMPT];
}

/* Appends the arguments that a TAKE has only for kinds other than the mutex:
 * whether the lock is fair, whether messages are trusted, and what the attempt
 * requests, a mode or a number of permits. */
static void kinds_put_want(const struct redis *r, struct net_out *o,
                           const struct hf__req *req)
{
    const struct hf__remote *m = req->remote;

    hf__rd_put(o, m->fair ? "1" : "0", 1);
    hf__rd_put(o, r->chans.state == RD_SUB_LIVE ? "1" : "0", 1);
    if (m->kind == HF_SEMAPHORE) {
        hf__rd_put_num(o, req->permits ? req->permits : 1);
        hf__rd_put_num(o, m->permits);
    } else {
        hf__rd_put(o, m->mode == HF_READ ? "r" : "w", 1);
        hf__rd_put_key(o, RD_KEY_BASE, m->name, m->name_len);
    }
}

static int kinds_encode_take(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    struct rd_lock *lock = m->impl;
    bool is_mutex = m->kind == HF_MUTEX, is_fair = is_mutex && m->fair;
    struct net_out *o;

    if (hf__rd_doubt_room(r, !lock->waits || lock->notified))
        return HF_ENOMEM;
    lock->notified = false;
    o = hf__rd_begin(r, req, hf__rd_script_of(r, m, HF__ATTEMPT), m->name,
                     m->name_len,
                     is_fair    ? 9
                     : is_mutex ? 7
                                : 11,
                     RD_KEY_MAX + 512 + sizeof(r->about) + strlen(m->label));
    if (!o)
        return HF_ENOMEM;
    kinds_put_terms(r, o, req);
    if (!is_mutex)
        kinds_put_want(r, o, req);
    hf__rd_put_num(o, kinds_hand_ms(r, req));
    if (is_fair) {
        hf__rd_put_key(o, RD_CHANNEL, m->name, m->name_len);
        hf__rd_put(o, r->chans.state == RD_SUB_LIVE ? "1" : "0", 1);
    }
    return 0;
}

static int kinds_encode_drop(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    bool is_mutex = m->kind == HF_MUTEX;
    struct net_out *o = hf__rd_begin(r, req, hf__rd_script_of(r, m, req->op),
                                     m->name, m->name_len,
                                     r->string_dialect ? 1
                                     : is_mutex        ? 3
                                                       : 4,
                                     3 * (RD_KEY_MAX + 16) + 128);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put_owner(r, o, req->hold_id);
    if (r->string_dialect)
        return 0;
    hf__rd_put_key(o, hf__rd_channel(m->kind), m->name, m->name_len);
    hf__rd_put_key(o, hf__rd_mark(m->kind), m->name, m->name_len);
    if (!is_mutex)
        hf__rd_put_key(o, RD_KEY_BASE, m->name, m->name_len);
    return 0;
}

static int kinds_encode_wait(struct redis *r, struct hf__req *req)
{
    const struct hf__remote *m = req->remote;
    struct rd_lock *lock = m->impl;
    struct net_out *o =
        hf__rd_begin(r, req, RD_WAIT_LATCH, m->name, m->name_len, 5, 160);

    if (!o)
        return HF_ENOMEM;
    hf__rd_put(o, "", 0);
    hf__rd_put(o, "", 0);
    hf__rd_put_num(o, hf__rd_valid_until(r, req->sent_at));
    hf__rd_put(o, req->may_queue ? "1" : "0", 1);
    hf__rd_put_num(o, lock->waits ? (int64_t)lock->round : 0);
    lock->sent = true;
    return 0;
}

int hf__rd_verb_encode(struct redis *r, struct hf__req *req)
{
    if (req->remote->kind == HF_LATCH)
        return kinds_encode_wait(r, req);
    return req->op == HF__ATTEMPT ? kinds_encode_take(r, req)
                                  : kinds_encode_drop(r, req);
}

/* ---- the count of a latch ---------------------------------------------- */

/* Appends the key that exists once the request has been counted:
 * holdfast:did:{n}:<uuid>:<request> */
static void kinds_put_did(const struct redis *r, struct net_out *o,
                          const struct hf__query *q)
{
    char text[RD_KEY_MAX + 1 + RD_OWNER_MAX];
    size_t len = hf__rd_key(text, RD_KEY_DID, q->name, q->name_len);

    text[len++] = ':';
    len += hf__rd_owner(r, q->request, text + len);
    hf__rd_put(o, text, len);
}

int hf__rd_count_encode(struct redis *r, struct hf__query *q)
{
    const char *op = q->req.op == HF__LATCH_SET    ? "s"
                     : q->req.op == HF__LATCH_DOWN ? "d"
                                                   : "g";
    struct net_out *o = hf__rd_begin(r, &q->req, RD_LATCH, q->name, q->name_len,
                                     5, 2 * (RD_KEY_MAX + 80) + 128);

    if (!o)
        return HF_ENOMEM;
    kinds_put_did(r, o, q);
    hf__rd_put(o, op, 1);
    hf__rd_put_num(o, (int64_t)q->count);
    hf__rd_put_num(o, hf__rd_meant_until(r, &q->req));
    /* The server keeps the answer for longer than the request can be
     * repeated. */
    hf__rd_put_num(o, 3 * (int64_t)r->op_timeout_ms + 1000);
    hf__rd_put_key(o, RD_CHANNEL_LATCH, q->name, q->name_len);
    return 0;
}

int hf__rd_count_reply(struct redis *r, struct hf__query *q,
                       const struct rd_node *reply)
{
    int64_t what, count;

    if (!hf__rd_int(hf__rd_at(reply, 0), &what) ||
        !hf__rd_clock(r, hf__rd_at(reply, 1), q->req.sent_at))
        return HF_EPROTO;
    if (what == RD_STALE)
        return RD_AGAIN;
    if (what == RD_MISMATCH)
        return r->core->why(r->client, HF_EMISMATCH,
                            "the name is in use as another kind of lock, or "
                            "by another program");
    if (!hf__rd_int(hf__rd_at(reply, 2), &count) || count < 0 ||
        (what != HF__DONE && what != RD_BUSY))
        return HF_EPROTO;
    q->count = (uint64_t)count;
    return what == RD_BUSY ? HF_EBUSY : HF__DONE;
}
