/* Attempts, renewals and releases are sent to all servers, whose votes decide.
 * redlock.h describes the protocol. */
#include "vote.h"

#include "backends/common/about.h"
#include "backends/common/chance.h"
#include "backends/redis/keys.h"
#include "backends/redis/pipe.h"
#include "backends/redis/scripts.h"
#include "base/hash.h"
#include "base/list.h"
#include "hold.h"
#include "redlock.h"
#include "server.h"
#include "servers.h"

#include <stdio.h>
#include <string.h>

/* ---- holds ----------------------------------------------------------------
 */

int hf__rl_attach(void *self, struct hf__remote *remote)
{
    struct redlock *rl = self;
    struct rl_lock *lock;

    if (hf__rd_reserved(remote->name, remote->name_len))
        return rl->core->why(rl->client, HF_EINVAL,
                             "a name may not begin or end as our own keys do "
                             "(holdfast:, redisson_lock_ ..., {...}:timeout)");
    lock = rl->core->alloc(rl->client, sizeof(*lock));
    if (!lock)
        return HF_ENOMEM;
    remote->impl = lock;
    return 0;
}

static struct rl_hold *vote_hold_of(const struct hf__remote *m,
                                    uint64_t hold_id)
{
    struct rl_hold *h = ((struct rl_lock *)m->impl)->holds;

    while (h && h->hold_id != hold_id)
        h = h->next;
    return h;
}

/* Removes the hold from its lock. */
static void vote_remove_hold(struct redlock *rl, struct rl_hold *h)
{
    struct rl_hold **at = &h->lock->holds;

    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    h->lock = NULL;
    hf__rl_hold_drop(rl, h);
}

static void vote_add_hold(struct redlock *rl, struct rl_lock *lock,
                          struct rl_hold *h, hf__time now)
{
    struct rl_hold *old = lock->holds, *next;

    h->lock = lock;
    h->next = old;
    lock->holds = h;
    for (; old; old = next) {
        next = old->next;
        if (old->gone_at < now && !old->poll.req)
            vote_remove_hold(rl, old);
    }
}

void hf__rl_detach(void *self, struct hf__remote *remote)
{
    struct redlock *rl = self;
    struct rl_lock *lock = remote->impl;

    if (!lock)
        return;
    while (lock->holds)
        vote_remove_hold(rl, lock->holds);
    rl->core->free(rl->client, lock);
    remote->impl = NULL;
}

/* Returns the time until every key that a command sent now may set has expired.
 * The server may execute the command until op_timeout has passed. */
static hf__time vote_ends_in(const struct redlock *rl, uint32_t lease_ms)
{
    return ((hf__time)lease_ms + rl->op_timeout_ms) * HF__MS;
}

static struct rl_hold *vote_new_hold(struct redlock *rl,
                                     const struct hf__req *req, hf__time now)
{
    const struct hf__remote *m = req->remote;
    struct rl_hold *h = rl->core->alloc(rl->client, sizeof(*h) + m->name_len);

    if (!h)
        return NULL;
    h->refs = 1;
    h->hold_id = req->hold_id;
    h->lease_ms = req->lease_ms;
    h->ahead_us =
        req->lease_ms < RL_AHEAD_MS ? 1000 * req->lease_ms : 1000 * RL_AHEAD_MS;
    h->sent_at = now;
    h->poll.hold = h;
    memcpy(h->value, rl->uuid, HF__UUID_LEN);
    h->value[HF__UUID_LEN] = ':';
    h->value_len =
        (uint8_t)(HF__UUID_LEN + 1 +
                  hf__rd_decimal(h->value + HF__UUID_LEN + 1, ++rl->values));
    h->name_len = m->name_len;
    memcpy(h->name, m->name, m->name_len);
    return h;
}

/* ---- ballots --------------------------------------------------------------
 */

struct count {
    size_t yes, no, sent, errors;
};

static struct count vote_count(const struct redlock *rl,
                               const struct rl_poll *p)
{
    struct count c = {0};

    for (size_t i = 0; i < rl->len; i++) {
        c.yes += p->vote[i] == RL_YES;
        c.no += p->vote[i] == RL_NO;
        c.sent += p->vote[i] == RL_SENT;
        c.errors += p->vote[i] == RL_ERROR;
    }
    return c;
}

static void vote_begin_poll(struct redlock *rl, struct rl_poll *p,
                            enum rl_op op, struct hf__req *req, uint32_t ms,
                            hf__time now)
{
    hf__rl_poll_end(rl, p);
    p->op = op;
    p->round = ++p->hold->rounds;
    p->req = req;
    p->until = now + ms * HF__MS;
    hf__list_add(rl->polls, p);
    rl->core->due(rl->client, p->until);
}

static void vote_send_to(struct redlock *rl, struct rl_poll *p, size_t i)
{
    struct rl_hold *h = p->hold;
    bool sent = hf__rl_send(&rl->server[i], p, p->op);

    p->vote[i] = sent ? RL_SENT : RL_FAILED;
    if (sent && (p->op == RL_GRANT || p->op == RL_KEEP))
        h->touched |= (uint16_t)(1u << i);
}

static void vote_flush(struct redlock *rl, const struct hf__req *req)
{
    if (!req->parked) /* a parked request is flushed by advance() */
        hf__rl_flush(rl);
}

static void vote_report(struct redlock *rl, struct rl_poll *p, int result)
{
    struct hf__req *req = p->req;
    struct hf__batch *b = (struct hf__batch *)req;

    hf__rl_poll_end(rl, p);
    if (req->op == HF__RENEW) {
        b->item[p->item].result = (int16_t)result;
        if (--b->chunks)
            return;
        result = HF__DONE;
    }
    req->result = (int16_t)result;
    rl->core->done(rl->client, req);
}

/* Returns whether the core must keep the request, because too few servers could
 * reply, or because the request must not overtake earlier, parked requests. */
static bool vote_put_off(struct redlock *rl, hf__time now)
{
    for (size_t i = 0; i < rl->len; i++)
        hf__link_wanted(&rl->server[i].pipe.link);
    rl->put_off = rl->put_off || !hf__rl_has_majority(rl, now);
    return rl->put_off;
}

/* ---- attempts --------------------------------------------------------------
 */

/* Returns the first of the servers in the set `these`, in an order that depends
 * on the name, so that all clients begin at the same server. */
static size_t vote_first_of(const struct redlock *rl, const struct rl_hold *h,
                            unsigned these)
{
    uint32_t hash = hf__hash32(HF__HASH32, h->name, h->name_len);
    uint32_t rank, highest = 0;
    size_t first = 0;

    for (size_t i = 0; i < rl->len; i++) {
        rank = (hash ^ (uint32_t)i) * 2654435761u;
        if (!(these & 1u << i) || rank < highest)
            continue;
        highest = rank;
        first = i;
    }
    return first;
}

static void vote_send_rest(struct redlock *rl, struct rl_poll *p, hf__time now)
{
    for (size_t i = 0; i < rl->len; i++)
        if (p->vote[i] == RL_UNSENT && hf__rl_is_usable(&rl->server[i], now))
            vote_send_to(rl, p, i);
}

static int vote_too_long(struct redlock *rl, uint32_t lease_ms)
{
    return rl->core->why(rl->client, HF_EINVAL,
                         "the lease is %u ms: it must not be longer than "
                         "max_lease (%u ms), for which a server that was "
                         "restarted stays out",
                         lease_ms, rl->max_lease_ms);
}

int hf__rl_attempt(void *self, struct hf__req *req)
{
    struct redlock *rl = self;
    struct rl_lock *lock = req->remote->impl;
    hf__time now = rl->core->now();
    struct rl_hold *h;

    if (rl->max_lease_ms && req->lease_ms > rl->max_lease_ms)
        return vote_too_long(rl, req->lease_ms);
    if (vote_put_off(rl, now))
        return HF__LATER;
    h = vote_new_hold(rl, req, now);
    req->untouched = !h;
    if (!h)
        return HF_ENOMEM;
    h->gone_at = now + vote_ends_in(rl, req->lease_ms);
    vote_add_hold(rl, lock, h, now);
    req->sent_at = now;
    vote_begin_poll(rl, &h->poll, RL_GRANT, req, rl->server_timeout_ms, now);
    h->carefully =
        lock->careful && req->may_queue && lock->unheard != req->hold_id &&
        (++lock->polls % 4 || now - lock->seen_at < RL_ALL_MS * HF__MS);
    if (h->carefully)
        vote_send_to(
            rl, &h->poll,
            vote_first_of(rl, h,
                          hf__rl_usable(rl, now) & ~(unsigned)lock->lacks));
    else
        vote_send_rest(rl, &h->poll, now);
    if (!vote_count(rl, &h->poll).sent) {
        h->poll.until = 0; /* advance() decides: a slot reports nothing */
        rl->core->due(rl->client, 0);
    }
    vote_flush(rl, req);
    return HF__PENDING;
}

/* Deletes the keys that the hold may have at the servers. */
static void vote_forget(struct redlock *rl, struct rl_hold *h)
{
    for (size_t i = 0; i < rl->len; i++)
        if (h->touched & 1u << i)
            hf__rl_end_at(&rl->server[i], h);
}

/* Undoes the attempt, which has failed. No request waits for the undo. */
static void vote_undo(struct redlock *rl, struct rl_hold *h)
{
    hf__rl_poll_end(rl, &h->poll);
    vote_forget(rl, h);
}

/* Updates the time since which the holder has been the same (seen_at). Servers
 * that lack the holder's key do not count, because keys of other attempts
 * appear and disappear there. */
static void vote_see(struct redlock *rl, struct rl_hold *h, bool taken,
                     hf__time now)
{
    struct rl_lock *lock = h->lock;
    bool is_known = false;
    unsigned yes = 0;

    for (size_t i = 0; i < rl->len; i++) {
        yes |= (unsigned)(h->poll.vote[i] == RL_YES) << i;
        if (h->poll.vote[i] != RL_NO)
            continue;
        is_known = is_known || lock->seen[i] == h->base[i];
        lock->seen[i] = h->base[i];
    }
    if (yes)
        lock->lacks = (uint16_t)(taken ? yes : 0);
    if (!is_known)
        lock->seen_at = now;
}

/* Returns a random pause: a sixteenth to an eighth of the time for which the
 * lock is known to be held, within the limits in vote.h. */
static hf__time vote_pause(struct redlock *rl, hf__time held)
{
    uint32_t us = RL_PAUSE_MIN_MS * 1000;

    if (held > 8 * RL_PAUSE_MAX_MS * HF__MS)
        us = RL_PAUSE_MAX_MS * 1000;
    else if (held > 8 * RL_PAUSE_MIN_MS * HF__MS)
        us = (uint32_t)(held / 8000);
    return (us / 2 + hf__chance(&rl->chance, us / 2)) * 1000LL;
}

/* Returns whether so many servers have replied with errors that there can be no
 * majority. */
static bool vote_is_hopeless(const struct redlock *rl, struct count c)
{
    return c.errors > rl->len - rl->majority;
}

static bool vote_is_heard(const struct redlock *rl, struct count c)
{
    return c.yes + c.no >= rl->majority;
}

/* Returns the error code for a ballot that no majority has decided, and sets
 * its message. If errors make a majority impossible, the code is that of one of
 * these errors; otherwise EUNKNOWN, because servers may still execute the
 * request. */
static int vote_why_not(struct redlock *rl, const struct rl_poll *p,
                        hf__time now)
{
    char text[200];
    int code = HF_EUNKNOWN;
    bool hopeless = vote_is_hopeless(rl, vote_count(rl, p));

    for (size_t i = 0; i < rl->len; i++)
        if (hopeless && p->vote[i] == RL_ERROR)
            code = rl->server[i].error_code;
    hf__rl_describe(rl, p, now, text, sizeof(text));
    return rl->core->why(rl->client, code, "%s", text);
}

/* Ends an attempt on which no majority has voted. If the backend reported the
 * failure now, the core would repeat the attempt at once, and so on until
 * op_timeout. The backend therefore reports the failure after a pause: an
 * eighth of the time for which the attempt has had no majority of votes. During
 * the pause the hold stays in the lock, so that an abandon finds it; its ballot
 * sends nothing and serves only as a timer. */
static void vote_unheard(struct redlock *rl, struct rl_hold *h, hf__time now)
{
    struct hf__req *req = h->poll.req;
    struct rl_lock *lock = h->lock;
    char text[200];

    if (lock->unheard != req->hold_id)
        lock->unheard_at = h->sent_at;
    lock->unheard = req->hold_id;
    hf__rl_describe(rl, &h->poll, now, text, sizeof(text));
    rl->is_unheard = rl->is_unheard || text[0];
    if (text[0] && !rl->is_down)
        rl->core->trouble(rl->client, text);
    vote_undo(rl, h);
    h->touched = 0; /* an abandon need not undo it again */
    memset(h->poll.vote, RL_UNSENT, sizeof(h->poll.vote));
    vote_begin_poll(
        rl, &h->poll, RL_UNDO, req,
        (uint32_t)(vote_pause(rl, now - lock->unheard_at) / HF__MS) + 1, now);
    vote_flush(rl, req);
}

static void vote_end_pause(struct redlock *rl, struct rl_hold *h)
{
    vote_report(rl, &h->poll, HF_EUNKNOWN);
    vote_remove_hold(rl, h);
}

/* Ends an attempt that no majority has granted. `taken` says that the lock
 * counts as held: a majority can no longer say yes, or the only server that was
 * asked has refused. If errors make a majority impossible, the attempt fails.
 * Otherwise, if the lock is taken, or a majority has voted, the attempt ends as
 * BUSY or, if it may queue, continues to wait. Otherwise vote_unheard() ends
 * it. */
static void vote_refused(struct redlock *rl, struct rl_hold *h, bool taken,
                         hf__time now)
{
    struct count c = vote_count(rl, &h->poll);
    struct hf__req *req = h->poll.req;
    struct rl_lock *lock = h->lock;
    int result = HF__QUEUED;

    lock->careful = true;
    vote_see(rl, h, taken, now);
    if (!taken && !vote_is_heard(rl, c) && !vote_is_hopeless(rl, c)) {
        vote_unheard(rl, h, now);
        return;
    }
    lock->unheard = 0;
    if (vote_is_hopeless(rl, c))
        result = vote_why_not(rl, &h->poll, now);
    else if (!req->may_queue)
        result = HF__BUSY;
    else /* if not `taken`, the pause is the shortest */
        req->poll_at = now + vote_pause(rl, taken ? now - lock->seen_at : 0);
    vote_report(rl, &h->poll, result);
    vote_forget(rl, h);
    vote_remove_hold(rl, h);
    vote_flush(rl, req);
}

/* Returns the lowest token of any majority whose numbers are close (redlock.h),
 * or 0 if there is no such majority. Sets *highest to one more than the highest
 * number of all yes votes. */
static uint64_t vote_token_of(const struct redlock *rl, const struct rl_hold *h,
                              uint64_t *highest)
{
    int64_t base[HF__HOSTS];
    size_t len = 0, at;

    *highest = 0;
    for (size_t i = 0; i < rl->len; i++) {
        if (h->poll.vote[i] != RL_YES)
            continue;
        if ((uint64_t)h->base[i] >= *highest)
            *highest = (uint64_t)h->base[i] + 1;
        for (at = len++; at && base[at - 1] > h->base[i]; at--)
            base[at] = base[at - 1];
        base[at] = h->base[i];
    }
    for (at = rl->majority - 1; at < len; at++)
        if (base[at] + 1 <= base[at + 1 - rl->majority] + h->ahead_us)
            return (uint64_t)base[at] + 1;
    return 0;
}

static void vote_grant(struct redlock *rl, struct rl_hold *h)
{
    h->held = true;
    h->lock->careful = false;
    h->lock->lacks = 0;
    h->poll.req->token = h->token;
    h->poll.req->sent_at = h->sent_at;
    vote_report(rl, &h->poll, HF__GRANTED);
}

static void vote_raise_token(struct redlock *rl, struct rl_hold *h,
                             hf__time now)
{
    vote_begin_poll(rl, &h->poll, RL_RAISE, h->poll.req, rl->server_timeout_ms,
                    now);
    for (size_t i = 0; i < rl->len; i++) {
        if (h->poll.vote[i] == RL_YES)
            vote_send_to(rl, &h->poll, i);
        else
            h->poll.vote[i] = RL_UNSENT;
    }
}

static void vote_judge_grant(struct redlock *rl, struct rl_hold *h,
                             hf__time now)
{
    struct count c = vote_count(rl, &h->poll);
    uint64_t highest;

    if (h->carefully && !c.sent) {
        h->carefully = false;
        if (c.no) {
            vote_refused(rl, h, true, now);
            return;
        }
        h->poll.until = now + rl->server_timeout_ms * HF__MS;
        vote_send_rest(rl, &h->poll, now);
        c = vote_count(rl, &h->poll);
    }
    if (c.yes >= rl->majority) {
        h->token = vote_token_of(rl, h, &highest);
        if (h->token) {
            vote_grant(rl, h);
            return;
        }
        h->token = highest;
        vote_raise_token(rl, h, now);
    } else if (c.yes + c.sent < rl->majority) {
        bool taken = c.no > rl->len - rl->majority;

        if (taken || !c.sent || vote_is_hopeless(rl, c) ||
            (h->poll.req->may_queue && vote_is_heard(rl, c)))
            vote_refused(rl, h, taken, now);
    }
}

static void vote_judge_raise(struct redlock *rl, struct rl_hold *h,
                             hf__time now)
{
    struct count c = vote_count(rl, &h->poll);

    if (c.yes >= rl->majority)
        vote_grant(rl, h);
    else if (c.yes + c.sent < rl->majority)
        vote_refused(rl, h, false, now);
}

/* ---- renewals and releases --------------------------------------------------
 */

/* Returns how long to wait for votes on a renewal or a release, in ms, so that
 * it can be repeated in time. */
static uint32_t vote_patience(const struct redlock *rl, uint32_t lease_ms)
{
    uint32_t ms = lease_ms / 6, most = rl->op_timeout_ms / 2 + 1;

    ms = ms > rl->server_timeout_ms ? ms : rl->server_timeout_ms;
    return ms < most ? ms : most;
}

/* Releases the hold. If the drop is a repetition, it is sent only to the
 * servers that have not replied to it. */
static int vote_drop(struct redlock *rl, struct rl_hold *h, struct hf__req *req)
{
    hf__time now = rl->core->now();

    if (vote_put_off(rl, now))
        return HF__LATER;
    if (h->poll.op != RL_DROP)
        memset(h->poll.vote, RL_UNSENT, sizeof(h->poll.vote));
    vote_begin_poll(rl, &h->poll, RL_DROP, req, vote_patience(rl, h->lease_ms),
                    now);
    req->sent_at = now;
    for (size_t i = 0; i < rl->len; i++) {
        if (h->poll.vote[i] == RL_YES || h->poll.vote[i] == RL_NO)
            continue;
        vote_send_to(rl, &h->poll, i);
        if (h->poll.vote[i] == RL_FAILED && h->touched & 1u << i)
            hf__rl_end_at(&rl->server[i], h);
    }
    if (vote_count(rl, &h->poll).sent) {
        vote_flush(rl, req);
        return HF__PENDING;
    }
    hf__rl_poll_end(rl, &h->poll); /* server.c sends later what is owed */
    vote_remove_hold(rl, h);
    return HF__DONE;
}

int hf__rl_release(void *self, struct hf__req *req)
{
    struct rl_hold *h = vote_hold_of(req->remote, req->hold_id);

    return h && h->held ? vote_drop(self, h, req) : HF_ENOTOWNER;
}

/* If no hold has this id, the attempt was refused, and was undone at once. */
int hf__rl_abandon(void *self, struct hf__req *req)
{
    struct redlock *rl = self;
    struct rl_hold *h = vote_hold_of(req->remote, req->hold_id);

    if (!h)
        return HF__DONE;
    if (h->held)
        return vote_drop(rl, h, req);
    vote_undo(rl, h);
    vote_remove_hold(rl, h);
    vote_flush(rl, req);
    return HF__DONE;
}

/* Returns a struct for the ballot of a renewal: an unused or a new one, or NULL
 * if there is no memory. */
static struct rl_poll *vote_keep_of(struct redlock *rl, struct rl_hold *h)
{
    struct rl_poll *p = h->keeps;

    while (p && p->req)
        p = p->more;
    if (p)
        return p;
    p = rl->core->alloc(rl->client, sizeof(*p));
    if (!p)
        return NULL;
    p->hold = h;
    p->more = h->keeps;
    h->keeps = p;
    return p;
}

static int vote_keep(struct redlock *rl, struct hf__batch *b, size_t i,
                     hf__time now)
{
    struct hf__renewal *item = &b->item[i];
    struct rl_hold *h = vote_hold_of(item->remote, item->hold_id);
    struct rl_poll *p;

    if (!h || !h->held || h->poll.op == RL_DROP)
        return HF_ENOTOWNER;
    p = vote_keep_of(rl, h);
    if (!p)
        return HF_ENOMEM;
    h->lease_ms = item->lease_ms;
    if (h->gone_at < now + vote_ends_in(rl, h->lease_ms))
        h->gone_at = now + vote_ends_in(rl, h->lease_ms);
    vote_begin_poll(rl, p, RL_KEEP, &b->req, vote_patience(rl, h->lease_ms),
                    now);
    p->item = i;
    for (size_t s = 0; s < rl->len; s++)
        vote_send_to(rl, p, s);
    if (vote_count(rl, p).sent)
        return HF__PENDING;
    hf__rl_poll_end(rl, p); /* nothing was sent, so no reply will end it */
    return vote_why_not(rl, p, now);
}

int hf__rl_renew(void *self, struct hf__batch *b)
{
    struct redlock *rl = self;
    hf__time now = rl->core->now();

    b->chunks = 0;
    b->req.result = HF__DONE;
    for (size_t i = 0; rl->max_lease_ms && i < b->len; i++)
        if (b->item[i].lease_ms > rl->max_lease_ms)
            return vote_too_long(rl, b->item[i].lease_ms);
    if (vote_put_off(rl, now))
        return HF__LATER;
    b->req.sent_at = now;
    for (size_t i = 0; i < b->len; i++) {
        int rc = vote_keep(rl, b, i, now);

        b->item[i].result = (int16_t)rc;
        b->chunks += rc == HF__PENDING;
    }
    if (!b->chunks)
        return HF__DONE;
    vote_flush(rl, &b->req);
    return HF__PENDING;
}

/* Decides a renewal. At a server where the key was missing, the renewal has set
 * it again. Such a server does not count as a yes until a majority of other
 * servers has renewed (rl_hold.lapsed): a majority must have had the key
 * without interruption. */
static void vote_judge_keep(struct redlock *rl, struct rl_poll *p, hf__time now)
{
    struct count c = vote_count(rl, p);

    if (c.yes >= rl->majority) {
        p->hold->lapsed = 0;
        p->hold->good = p->round;
        vote_report(rl, p, HF__DONE);
    } else if (c.no >= rl->majority) {
        vote_forget(rl, p->hold); /* servers may have set the key again */
        vote_report(rl, p, HF_ENOTOWNER);
    } else if (!c.sent) {
        vote_report(rl, p, vote_why_not(rl, p, now));
    }
}

/* Decides a drop. EUNKNOWN is not reported before the time of the ballot has
 * passed, because the core repeats a drop with an unknown result at once. */
static void vote_judge_drop(struct redlock *rl, struct rl_hold *h, hf__time now)
{
    struct count c = vote_count(rl, &h->poll);
    bool ours = c.yes >= rl->majority || h->poll.req->op == HF__ABANDON;

    if (c.yes >= rl->majority || c.no >= rl->majority) {
        vote_report(rl, &h->poll, ours ? HF__DONE : HF_ENOTOWNER);
        if (h->lock)
            vote_remove_hold(rl, h);
    } else if (!c.sent && (vote_is_hopeless(rl, c) || h->poll.until <= now)) {
        vote_report(rl, &h->poll, vote_why_not(rl, &h->poll, now));
    }
}

/* ---- answers ----------------------------------------------------------------
 */

/* If a majority has voted, in whatever way, reports to the core that the
 * trouble with missing votes is over. */
static void vote_hear(struct redlock *rl, const struct rl_poll *p)
{
    if (!rl->is_unheard || !vote_is_heard(rl, vote_count(rl, p)))
        return;
    rl->is_unheard = false;
    if (!rl->is_down)
        rl->core->trouble(rl->client, NULL);
}

static void vote_judge(struct redlock *rl, struct rl_poll *p, hf__time now)
{
    vote_hear(rl, p);
    if (p->op == RL_GRANT)
        vote_judge_grant(rl, p->hold, now);
    else if (p->op == RL_RAISE)
        vote_judge_raise(rl, p->hold, now);
    else if (p->op == RL_KEEP)
        vote_judge_keep(rl, p, now);
    else if (p->op == RL_UNDO)
        vote_end_pause(rl, p->hold);
    else
        vote_judge_drop(rl, p->hold, now);
}

void hf__rl_voted(struct rl_server *s, const struct rl_flight *f, int64_t what,
                  int64_t base, hf__time now)
{
    struct rl_hold *h = f->hold;
    size_t i = hf__rl_index(s);
    bool yes = what == RD_GRANTED || what == RL_DID ||
               (f->op == RL_DROP && h->unsure & 1u << i);

    if (f->op == RL_GRANT && what == RD_BUSY)
        h->touched &= (uint16_t) ~(1u << i);
    if (f->op == RL_GRANT)
        h->base[i] = base;
    if (what == RL_SET_AGAIN && (int32_t)(f->round - h->good) > 0)
        h->lapsed |= (uint16_t)(1u << i);
    if (f->op == RL_KEEP && h->lapsed & 1u << i)
        yes = false;
    if (!hf__rl_counts(s, f))
        return;
    if (what == RD_STALE && !(h->late & 1u << i)) {
        /* The reply has improved our estimate of the server's clock, so the
         * attempt is sent once more. */
        h->late |= (uint16_t)(1u << i);
        vote_send_to(s->rl, f->poll, i);
    } else {
        f->poll->vote[i] = what == RD_STALE ? RL_SLOW : yes ? RL_YES : RL_NO;
    }
    vote_judge(s->rl, f->poll, now);
}

void hf__rl_failed(struct rl_server *s, const struct rl_flight *f,
                   enum rl_vote vote, bool lost)
{
    size_t i = hf__rl_index(s);

    if (f->op == RL_DROP && lost)
        f->hold->unsure |= (uint16_t)(1u << i);
    if (!hf__rl_counts(s, f))
        return;
    f->poll->vote[i] = (uint8_t)vote;
    vote_judge(s->rl, f->poll, s->rl->core->now());
}

void hf__rl_vote_move(struct redlock *rl, hf__time now)
{
    struct rl_poll *p = rl->polls, *next;

    for (; p; p = next) {
        next = p->next;
        if (p->until > now)
            continue;
        for (size_t i = 0; i < rl->len; i++)
            if (p->vote[i] == RL_SENT)
                p->vote[i] = RL_SLOW;
        vote_judge(rl, p, now);
    }
}

hf__time hf__rl_vote_timeout(const struct redlock *rl)
{
    hf__time at = HF__NEVER;

    for (const struct rl_poll *p = rl->polls; p; p = p->next)
        at = hf__min_time(at, p->until);
    return at;
}
