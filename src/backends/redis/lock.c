/*
 * The verbs of every kind: from a request to its command (kinds.c), and from
 * the reply to an outcome. Renewals are in renew.c.
 */
#include "lock.h"

#include "backends/common/chance.h"
#include "channels.h"
#include "flights.h"
#include "keys.h"
#include "kinds.h"
#include "late_replies.h"
#include "notify.h"
#include "redis.h"
#include "replica.h"
#include "reply.h"
#include "requests.h"
#include "scripts.h"
#include "subscribe.h"

#include <string.h>

/* When the hold in the way expires, all waiters try again at random times
 * within an interval, which begins RD_EXPIRY_SLACK_MS after that. For the first
 * waiters the interval lasts RD_EXPIRY_MIN_MS. For the others it grows by
 * RD_EXPIRY_EACH_MS with each waiter, from RD_EXPIRY_MIN_MS to
 * RD_EXPIRY_MAX_MS. */
#define RD_EXPIRY_SLACK_MS 2
#define RD_EXPIRY_EACH_MS 2
#define RD_EXPIRY_MIN_MS 8
#define RD_EXPIRY_MAX_MS 1900

int hf__rd_attach(void *self, struct hf__remote *remote)
{
    struct redis *r = self;
    struct rd_lock *lock;

    if (remote->name_len > HF_NAME_MAX)
        return HF_EINVAL;
    if ((remote->fair || remote->kind != HF_MUTEX) && r->string_dialect)
        return r->core->why(r->client, HF_ENOTSUP,
                            "dialect=string has only the unfair mutex");
    if (hf__rd_reserved(remote->name, remote->name_len))
        return r->core->why(r->client, HF_EINVAL,
                            "a name may not begin or end as our own keys do "
                            "(holdfast:, redisson_lock_ ..., {...}:timeout)");
    lock = r->core->alloc(r->client, hf__rd_lock_size(r));
    if (!lock)
        return HF_ENOMEM;
    lock->remote = remote;
    remote->impl = lock;
    return 0;
}

void hf__rd_detach(void *self, struct hf__remote *remote)
{
    struct redis *r = self;

    if (!remote->impl)
        return;
    hf__rd_forget_remote(r, remote);
    hf__rd_chan_drop(r, remote);
    hf__rd_held_end(r, remote, 0);
    r->core->free(r->client, remote->impl);
    remote->impl = NULL;
}

/* ---- sending ---------------------------------------------------------- */

/* Returns whether the previous holder has handed the lock over (lua/README.md);
 * if so, the attempt is granted. The message that says so replaces the earlier
 * reply "wait" to the latest attempt. */
static bool lock_handed_over(struct redis *r, struct hf__req *req)
{
    struct rd_lock *lock = req->remote->impl;
    hf__time now;

    if (!lock->token || lock->attempt_id != req->hold_id ||
        req->remote->kind == HF_LATCH)
        return false;
    now = r->core->now();
    req->token = lock->token;
    req->sent_at = lock->sent_at;
    lock->token = 0;
    if (req->lease_ms > lock->lease_ms ||
        now - lock->sent_at > lock->lease_ms * HF__MS / 2 ||
        hf__rd_was_broken(r, req))
        return false; /* the caller sends an attempt, which renews the hold if
                         it still exists */
    hf__rd_wait_end(r, req->remote, now);
    hf__rd_held(r, req, now);
    return true;
}

static int lock_too_many(struct redis *r, const struct hf__req *req)
{
    return r->core->why(r->client, HF_EINVAL,
                        "permits is %u; on Redis an acquire takes at most %d",
                        req->permits, RD_PERMITS_MAX);
}

int hf__rd_attempt(void *self, struct hf__req *req)
{
    struct redis *r = self;
    struct rd_lock *lock = req->remote->impl;
    int rc;

    if (req->permits > RD_PERMITS_MAX)
        return lock_too_many(r, req);
    if (lock_handed_over(r, req))
        return HF__GRANTED;
    if (lock->attempt_id != req->hold_id)
        lock->sent = false;
    lock->attempt_id = req->hold_id;
    lock->attempting = true;
    lock->rang = false;
    rc = hf__rd_submit(r, req, hf__rd_verb_encode);
    if (rc != HF__PENDING)
        lock->attempting = false;
    return rc;
}

int hf__rd_release(void *self, struct hf__req *req)
{
    if (req->remote->kind == HF_LATCH)
        return HF__DONE; /* a latch has no holder */
    hf__rd_late_over(self, req->hold_id);
    hf__rd_held_end(self, req->remote, req->hold_id);
    return hf__rd_submit(self, req, hf__rd_verb_encode);
}

int hf__rd_abandon(void *self, struct hf__req *req)
{
    struct redis *r = self;
    struct rd_lock *lock = req->remote->impl;

    hf__rd_late_over(r, req->hold_id);
    hf__rd_held_end(r, req->remote, req->hold_id);
    /* A repeated abandon may be about a hold id that is older than that of the
     * latest attempt. */
    if (lock->attempt_id != req->hold_id)
        return req->remote->kind == HF_LATCH
                   ? HF__DONE
                   : hf__rd_submit(r, req, hf__rd_verb_encode);
    if (req->remote->attempt)
        hf__rd_forget(r, req->remote->attempt);
    lock->attempting = false;
    hf__rd_wait_end(r, req->remote, r->core->now());
    if (!lock->sent || req->remote->kind == HF_LATCH)
        return HF__DONE; /* the server has no hold of this id: no attempt was
                            sent, or it is a latch */
    return hf__rd_submit(r, req, hf__rd_verb_encode);
}

/* ---- answers ---------------------------------------------------------- */

static int64_t lock_clamp(int64_t n, int64_t low, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

/* What a reply says about the caller's place in the queue. */
struct place {
    int64_t ttl_ms;  /* ms until the hold in the way expires; -1: unknown */
    int64_t foreign; /* 1 if the holder is no holdfast client */
    int64_t waiting; /* number of waiters */
    int64_t near;    /* 1: among the first, 2: among the last, 0: neither */
};

static bool lock_read_place(const struct rd_node *reply, struct place *p)
{
    return hf__rd_int(hf__rd_at(reply, 2), &p->ttl_ms) &&
           hf__rd_int(hf__rd_at(reply, 3), &p->foreign) &&
           hf__rd_int(hf__rd_at(reply, 4), &p->waiting) &&
           hf__rd_int(hf__rd_at(reply, 5), &p->near);
}

/* Returns the time until the next safety poll (scripts.h), in ms. For waiters
 * in the middle of the queue it is random, so that their polls are spread even
 * if they joined together. */
static int64_t lock_safety_poll(struct redis *r, const struct place *p)
{
    int64_t most =
        lock_clamp(p->waiting * RD_POLL_EACH_MS, RD_POLL_MS, RD_POLL_MAX_MS);

    if (p->near || most == RD_POLL_MS)
        return RD_POLL_MS - hf__chance(&r->chance, RD_POLL_MS / RD_POLL_JITTER);
    return 1 + hf__chance(&r->chance, (uint32_t)most);
}

/* Returns the time, in ms, until the next poll of a waiter that cannot rely on
 * messages: with dialect=string if the holder is no holdfast client, if the
 * server refuses our subscriptions, or while the state is not RD_SUB_LIVE
 * (messages are trusted only in that state). The waiter polls about every 100
 * ms at first, then less and less often, down to once a second. */
static int64_t lock_blind_poll(struct redis *r, struct rd_lock *lock)
{
    static const uint16_t poll_ms[] = {100, 150, 225, 340, 500, 750, 1000};
    enum { LAST = sizeof(poll_ms) / sizeof(*poll_ms) - 1 };
    uint32_t poll = poll_ms[lock->polls];

    if (lock->polls < LAST)
        lock->polls++;
    return poll / 2 + hf__chance(&r->chance, poll);
}

/* Returns when to try again if no message arrives before. */
static hf__time lock_poll_at(struct redis *r, struct rd_lock *lock,
                             const struct place *p, hf__time now)
{
    int64_t spread = p->near == 1
                         ? RD_EXPIRY_MIN_MS
                         : lock_clamp(p->waiting * RD_EXPIRY_EACH_MS,
                                      RD_EXPIRY_MIN_MS, RD_EXPIRY_MAX_MS);
    int64_t end = p->ttl_ms + RD_EXPIRY_SLACK_MS +
                  hf__chance(&r->chance, (uint32_t)spread);
    bool is_notified = r->chans.state == RD_SUB_LIVE && !r->chans.refused &&
                       !(p->foreign && r->string_dialect);
    int64_t ms =
        is_notified ? lock_safety_poll(r, p) : lock_blind_poll(r, lock);

    if (p->ttl_ms >= 0 && end < ms)
        ms = end;
    return now + ms * HF__MS;
}

void hf__rd_grant(struct redis *r, struct hf__req *req, hf__time now)
{
    hf__rd_wait_end(r, req->remote, now);
    hf__rd_held(r, req, now);
    hf__rd_finish(r, req, HF__GRANTED);
}

/* Returns whether a message for this waiter may have been missed. That is so in
 * two cases: the waiters of its name, or all waiters, were rung after the
 * attempt was sent, when this lock did not count as a waiter yet; or so many
 * early messages arrived that one was overwritten. */
static bool lock_missed_something(const struct redis *r,
                                  const struct rd_lock *lock)
{
    return (r->chans.state == RD_SUB_LIVE &&
            r->chans.live_at > lock->sent_at) ||
           (lock->chan->joined && lock->chan->confirmed_at > lock->sent_at) ||
           r->chans.early_lost_at >= lock->sent_at;
}

/* Returns the i-th number of a reply, or 0 if it is missing or negative. */
static uint64_t lock_number(const struct rd_node *reply, size_t i)
{
    int64_t n = 0;

    return hf__rd_int(hf__rd_at(reply, i), &n) && n > 0 ? (uint64_t)n : 0;
}

static int lock_queued(struct redis *r, struct hf__req *req,
                       const struct rd_node *reply, hf__time now)
{
    struct rd_lock *lock = req->remote->impl;
    struct place place;
    bool rang;

    if (!lock_read_place(reply, &place) || !req->may_queue)
        return HF_EPROTO;
    if (hf__rd_wait(r, req->remote, place.foreign != 0)) {
        hf__rd_finish(r, req, HF_ENOMEM);
        return 0;
    }
    lock->sent_at = req->sent_at;
    lock->seen_ms = (uint32_t)(lock_number(reply, 1) / 1000);
    if (req->remote->kind == HF_LATCH)
        lock->round = lock_number(reply, 6);
    else
        hf__rd_was_called(r, lock, req->hold_id);
    if (lock->token && req->remote->kind != HF_LATCH) {
        req->token = lock->token;
        hf__rd_grant(r, req, now);
        return 0;
    }
    rang = lock->rang || lock_missed_something(r, lock);
    lock->rang = false;
    req->poll_at = lock_poll_at(r, lock, &place, now);
    hf__rd_finish(r, req, HF__QUEUED);
    if (rang)
        r->core->bell(r->client, req->remote);
    return 0;
}

static int lock_granted(struct redis *r, const struct rd_flight *f,
                        const struct rd_node *reply, hf__time now)
{
    struct hf__req *req = f->req;
    int64_t token;

    if (!hf__rd_int(hf__rd_at(reply, 2), &token) || token <= 0)
        return HF_EPROTO;
    req->is_zero = req->remote->kind == HF_LATCH && token == 1;
    req->token = (uint64_t)token;
    if (req->remote->kind == HF_LATCH || !hf__rd_doubt(r, f))
        hf__rd_grant(r, req, now);
    return 0;
}

static int lock_taken(struct redis *r, const struct rd_flight *f, int64_t what,
                      const struct rd_node *reply, hf__time now)
{
    struct hf__req *req = f->req;
    int rc;

    switch (what) {
    case RD_GRANTED:
        return lock_granted(r, f, reply, now);
    case RD_QUEUED:
        return lock_queued(r, req, reply, now);
    case RD_BUSY:
        hf__rd_finish(r, req, HF__BUSY);
        return 0;
    case RD_STALE:
        /* The script did nothing, because the time limit that the client had
         * computed for the attempt from its estimate of the server's clock was
         * over. The reply has improved the estimate: send the attempt again. */
        rc = hf__rd_verb_encode(r, req);
        if (rc)
            hf__rd_finish(r, req, rc);
        return 0;
    case RD_MISMATCH:
        r->core->why(
            r->client, HF_EMISMATCH,
            req->remote->kind == HF_SEMAPHORE
                ? "the name is in use as another kind of lock, or as a "
                  "semaphore of another size"
                : "the name is in use as another kind of lock");
        hf__rd_finish(r, req, HF_EMISMATCH);
        return 0;
    default:
        return HF_EPROTO;
    }
}

static int lock_take_reply(struct redis *r, const struct rd_flight *f,
                           const struct rd_node *reply, hf__time now)
{
    int64_t what;

    if (!hf__rd_int(hf__rd_at(reply, 0), &what) ||
        !hf__rd_clock(r, hf__rd_at(reply, 1), f->sent.net.at))
        return HF_EPROTO;
    if (!f->req)
        return 0; /* the attempt is no longer wanted; an abandon follows */
    return lock_taken(r, f, what, reply, now);
}

int hf__rd_verb_reply(struct redis *r, const struct rd_flight *f,
                      const struct rd_node *reply, hf__time now)
{
    int64_t was_ours;

    if (f->op == HF__ATTEMPT)
        return lock_take_reply(r, f, reply, now);
    if (!hf__rd_int(reply, &was_ours) || was_ours < 0 || was_ours > 1)
        return HF_EPROTO;
    if (f->req)
        hf__rd_finish(r, f->req,
                      was_ours || f->op == HF__ABANDON ? HF__DONE
                                                       : HF_ENOTOWNER);
    return 0;
}
