#include "policy/lease.h"

/* For how long at most a server keeps a waiter's place in the queue after the
 * waiter has stopped repeating its attempt. (A waiter usually repeats it every
 * 2 s.) */
#define PLACE (10000 * HF__MS)

/* The pause before a refused let_go is sent again. It is doubled after each
 * further refusal, at most PAUSE_DOUBLED times. */
#define PAUSE (200 * HF__MS)
#define PAUSE_DOUBLED 3

#define RENEWING_MAX ((1u << 12) - 1) /* the maximum of hf__lease.renewing */

hf__time hf__lease_margin(uint32_t lease_ms)
{
    /* 1 % of the lease plus 2 ms: what Redlock allows for clock drift. */
    return (hf__time)lease_ms * HF__MS / 100 + 2 * HF__MS;
}

void hf__lease_init(struct hf__lease *l, bool endless)
{
    *l = (struct hf__lease){.endless = endless,
                            .deadline = HF__NEVER,
                            .until = HF__NEVER,
                            .renew_at = HF__NEVER,
                            .max_until = HF__NEVER,
                            .kept_until = HF__NEVER,
                            .silent_at = HF__NEVER,
                            .resend_at = HF__NEVER};
}

static void lease_forget_current(struct hf__lease *l)
{
    if (l->known == HF__KNOWN_CURRENT)
        l->known = HF__KNOWN_QUEUED;
}

void hf__lease_want(struct hf__lease *l, bool wanted)
{
    hf__ends_verified(lease, l);

    l->wanted = wanted;
    if (l->state != HF__ATTEMPTING && l->state != HF__WAITING)
        return;
    /* If a waiter arrives before the question of the previous waiters was let
     * go, the new waiter takes over that question. */
    if (l->drop && wanted)
        lease_forget_current(l); /* the last answer was given before this waiter
                                    arrived */
    l->drop = !wanted;
}

void hf__lease_drop(struct hf__lease *l)
{
    hf__ends_verified(lease, l);

    if (l->state != HF__IDLE)
        l->drop = true;
    l->renew_at = HF__NEVER;
}

static bool lease_due(const struct hf__lease *l, hf__time now)
{
    return l->state == HF__ATTEMPTING
               ? l->question == HF__QUESTION_LOST
               : l->state == HF__WAITING && now >= l->poll_at;
}

static enum hf__todo lease_let_go(struct hf__lease *l, hf__time now)
{
    l->let_go_op = l->state == HF__HELD ? HF__RELEASE : HF__ABANDON;
    l->let_go_id = l->hold_id;
    l->drop = false;
    l->state = HF__IDLE;
    l->let_go = HF__LET_GO_SENT;
    l->refusals = 0;
    l->resend_at = HF__NEVER;
    /* The server forgets three things only when they are let go or when their
     * session ends: a hold that needs no renewal and has no fixed lease, a
     * place in the queue of a backend whose holds need no renewal, and whatever
     * a session keeps. The server forgets any other hold when the lease ends,
     * and any other place some time after the waiter has stopped repeating its
     * attempt (PLACE). */
    l->gone_at = now + (hf__time)l->lease_ms * HF__MS;
    if (l->let_go_op == HF__ABANDON)
        l->gone_at += PLACE;
    if (l->session ||
        (l->endless && (!l->fixed || l->let_go_op == HF__ABANDON)))
        l->gone_at = HF__NEVER;
    return HF__TODO_LET_GO;
}

void hf__lease_hurry(struct hf__lease *l, hf__time now)
{
    if (hf__lease_lets_go(l) && l->resend_at != HF__NEVER)
        l->resend_at = hf__min_time(l->resend_at, now);
}

/* Sets or clears silent_at, the time until which waiters wait for the answer to
 * a let_go that blocks them. */
static void lease_watch_block(struct hf__lease *l, hf__time now)
{
    if (!l->wanted || !hf__lease_blocked(l)) {
        l->silent_at = HF__NEVER;
    } else if (l->silent_at == HF__NEVER) {
        l->silent_at = now + (hf__time)l->patience * HF__MS;
        hf__lease_hurry(l, now);
    }
}

enum hf__todo hf__lease_next(struct hf__lease *l, hf__time now, uint64_t *ids)
{
    hf__ends_verified(lease, l);

    lease_watch_block(l, now);
    if (hf__lease_lets_go(l) && now >= l->resend_at) {
        l->resend_at = HF__NEVER;
        return HF__TODO_LET_GO;
    }
    if (l->drop && !hf__lease_lets_go(l))
        return lease_let_go(l, now);
    if (l->drop || !l->wanted)
        return HF__TODO_NOTHING;
    if (l->state == HF__IDLE && l->let_go != HF__LET_GO_UNSURE) {
        l->hold_id = ++*ids;
        l->known = HF__KNOWN_NOT;
        l->question = HF__QUESTION_SENT;
        l->state = HF__ATTEMPTING;
        return HF__TODO_ATTEMPT;
    }
    if (lease_due(l, now)) {
        if (l->question == HF__QUESTION_RANG)
            l->question = HF__QUESTION_SENT;
        l->state = HF__ATTEMPTING;
        return HF__TODO_ATTEMPT;
    }
    return HF__TODO_NOTHING;
}

void hf__lease_attempted(struct hf__lease *l, hf__time now,
                         uint32_t op_timeout_ms)
{
    hf__ends_verified(lease, l);

    l->patience = op_timeout_ms;
    if (l->question != HF__QUESTION_LOST)
        l->poll_at = now + (hf__time)op_timeout_ms * HF__MS;
    l->question = HF__QUESTION_SENT;
}

void hf__lease_listen(struct hf__lease *l, hf__time now)
{
    hf__ends_verified(lease, l);

    if (l->state == HF__ATTEMPTING)
        l->poll_at = now + (hf__time)l->patience * HF__MS;
}

void hf__lease_gone(struct hf__lease *l, hf__time now)
{
    l->state = HF__IDLE;
    lease_watch_block(l, now);
}

static void lease_set_deadline(struct hf__lease *l)
{
    l->deadline =
        hf__min_time(l->until, hf__min_time(l->max_until, l->kept_until));
}

static hf__time lease_end_of(hf__time sent_at, uint32_t ms)
{
    return sent_at + (hf__time)ms * HF__MS - hf__lease_margin(ms);
}

/* Sets the end of the lease: the server has granted `ms` milliseconds, counted
 * from sent_at. */
static void lease_extend(struct hf__lease *l, hf__time sent_at, uint32_t ms)
{
    l->until = lease_end_of(sent_at, ms);
    lease_set_deadline(l);
}

void hf__lease_cap(struct hf__lease *l, hf__time now, int64_t max_hold_ms)
{
    hf__ends_verified(lease, l);

    l->max_until = max_hold_ms ? now + max_hold_ms * HF__MS : HF__NEVER;
    lease_set_deadline(l);
}

static int lease_granted(struct hf__lease *l, const struct hf__req *req,
                         hf__time now, int64_t max_hold_ms)
{
    uint32_t term_ms = l->session ? req->session_ms : l->lease_ms;
    bool ends = !l->endless || l->fixed;

    l->session_ms = req->session_ms;
    l->state = HF__HELD;
    l->token = req->token;
    l->renewing = l->keeping = l->mixed = 0;
    l->refused = false;
    l->renew_at = HF__NEVER;
    l->until = l->kept_until = HF__NEVER;
    if (ends)
        lease_extend(l, req->sent_at, term_ms);
    if (ends && (!l->fixed || l->session))
        l->renew_at = req->sent_at + term_ms * HF__MS / 3;
    if (l->fixed && l->session)
        l->kept_until = lease_end_of(req->sent_at, l->lease_ms);
    hf__lease_cap(l, now, max_hold_ms);
    if (!hf__lease_expired(l, now))
        return HF__GRANTED;
    /* The answer took longer than the lease lasts. */
    hf__lease_drop(l);
    return HF__PENDING;
}

/* Records, after a lost answer or a refusal, that the server may know the hold
 * id, unless the server certainly did nothing for this request. */
static void lease_may_know(struct hf__lease *l, const struct hf__req *req)
{
    if (l->known == HF__KNOWN_NOT && !req->untouched)
        l->known = HF__KNOWN_PERHAPS;
}

int hf__lease_answered(struct hf__lease *l, const struct hf__req *req,
                       hf__time now, int64_t max_hold_ms)
{
    hf__ends_verified(lease, l);

    if (l->state != HF__ATTEMPTING || req->hold_id != l->hold_id)
        return HF__PENDING; /* the answer to a question that has been dropped */
    switch (req->result) {
    case HF__GRANTED:
        if (!l->drop)
            return lease_granted(l, req, now, max_hold_ms);
        l->until = HF__NEVER; /* until now the same memory has contained
                                 poll_at */
        l->state = HF__HELD;
        return HF__PENDING;
    case HF__QUEUED:
        l->known = HF__KNOWN_CURRENT;
        l->state = HF__WAITING;
        /* Bells and answers arrive independently: a bell that rang before this
         * answer was read may be about a change that is later than the answer.
         * In that case the attempt is repeated at once. */
        l->poll_at = l->question == HF__QUESTION_RANG ? now : req->poll_at;
        return HF__PENDING;
    case HF_EUNKNOWN:
        /* hf__lease_next() repeats a lost question at once. */
        lease_may_know(l, req);
        l->question = HF__QUESTION_LOST;
        return HF__PENDING;
    case HF__BUSY:
    case HF_EMISMATCH:
    case HF_EINVAL:
    case HF_ENOTSUP:
        /* Certainly nothing is held. If the question was QUEUED before, the
         * backend has tried to leave the server's queue. If that failed, the
         * server drops the place as it drops the place of a dead client. */
        l->state = HF__IDLE;
        l->drop = false;
        return req->result;
    default:
        /* Let go of the question, unless the server certainly knows nothing of
         * it. */
        lease_may_know(l, req);
        l->drop = l->known != HF__KNOWN_NOT;
        l->state = HF__WAITING;
        l->poll_at = now;
        if (!l->drop)
            l->state = HF__IDLE;
        return req->result;
    }
}

void hf__lease_bell(struct hf__lease *l, hf__time now)
{
    hf__ends_verified(lease, l);

    if (l->question == HF__QUESTION_SENT)
        l->question = HF__QUESTION_RANG;
    if (l->state == HF__WAITING)
        l->poll_at = now;
}

bool hf__lease_let_go_answered(struct hf__lease *l, int result, hf__time now)
{
    hf__ends_verified(lease, l);

    if (result != HF__DONE && result != HF_ENOTOWNER && now < l->gone_at) {
        l->let_go = HF__LET_GO_UNSURE;
        if (result != HF_EUNKNOWN)
            l->silent_at = HF__NEVER; /* an answer is not silence */
        /* After a lost answer the let_go is sent again at once (on a new
         * connection). After a refusal it is sent again after a pause, because
         * the server would probably refuse it again. */
        l->resend_at = now;
        if (result != HF_EUNKNOWN) {
            l->resend_at += PAUSE << l->refusals;
            if (l->refusals < PAUSE_DOUBLED)
                l->refusals++;
        }
        return false;
    }
    l->let_go = HF__LET_GO_NONE;
    return true;
}

/* The time by which the renewal is put off must be longer than the time by
 * which hf__queue_renewable() reports a renewal early. Otherwise the renewal
 * would be due again at once. */
void hf__lease_put_off(struct hf__lease *l, hf__time now)
{
    hf__ends_verified(lease, l);
    uint32_t term_ms = l->session ? l->session_ms : l->lease_ms;

    if (l->renew_at != HF__NEVER)
        l->renew_at = now + term_ms * HF__MS / 10 + 10 * HF__MS;
}

static void lease_all_renewed(struct hf__lease *l)
{
    l->least = HF__NEVER;
    l->mixed = 0;
}

/* Threads may report the answers in any order, so it is unknown which of
 * several renewals the server has handled last. Therefore the earliest deadline
 * counts. */
static void lease_compare(struct hf__lease *l, uint32_t lease_ms, hf__time now)
{
    l->mixed = l->mixed || (l->least != HF__NEVER && lease_ms != l->renew_ms);
    l->least = hf__min_time(l->least, lease_end_of(now, lease_ms));
    l->renew_ms = lease_ms;
}

void hf__lease_renewing(struct hf__lease *l, uint32_t lease_ms, hf__time now)
{
    hf__ends_verified(lease, l);

    if (!l->renewing)
        lease_all_renewed(l);
    if (lease_ms)
        lease_compare(l, lease_ms, now);
    /* Once the count has reached its maximum, it no longer changes, and no
     * renewal extends the lease. (The session is still extended.) */
    if (l->renewing < RENEWING_MAX)
        l->renewing++;
    if (l->session) { /* a renewal never shortens a session */
        if (l->fixed && lease_ms)
            l->kept_until =
                hf__min_time(l->kept_until, lease_end_of(now, lease_ms));
        l->keeping = l->keeping || !lease_ms;
        lease_set_deadline(l);
        return;
    }
    if (lease_ms > l->lease_ms)
        l->lease_ms = lease_ms; /* the server may remember the hold for that
                                   long */
    if (l->until == HF__NEVER)
        return; /* an endless hold: a renewal by the program must not shorten
                   it */
    l->until = hf__min_time(l->until, lease_end_of(now, lease_ms));
    l->deadline = hf__min_time(l->deadline, l->until);
}

/* Extends the hold to the end of the session, unless a later end is known
 * already. `end` is the new end of a fixed lease, which renewals by the program
 * have requested, or NEVER if the lease keeps its end. */
static void lease_session_renewed(struct hf__lease *l, hf__time sent_at,
                                  hf__time end)
{
    if (l->fixed && end != HF__NEVER) {
        l->kept_until = end;
        lease_set_deadline(l);
    }
    if (lease_end_of(sent_at, l->session_ms) > l->until)
        lease_extend(l, sent_at, l->session_ms);
    if (l->renew_at != HF__NEVER)
        l->renew_at = sent_at + l->session_ms * HF__MS / 3;
}

int hf__lease_renewed(struct hf__lease *l, uint64_t hold_id, int result,
                      hf__time sent_at, uint32_t lease_ms, hf__time now)
{
    hf__ends_verified(lease, l);
    hf__time length =
        (hf__time)(l->session ? l->session_ms : lease_ms) * HF__MS;
    hf__time end = HF__NEVER; /* the new end of the lease, or NEVER if it does
                                 not change or is not known yet */
    bool mixed = l->mixed;

    if (l->state != HF__HELD || l->hold_id != hold_id || l->drop)
        return HF__DONE; /* the hold was let go in the meantime */
    if (l->renewing && l->renewing < RENEWING_MAX)
        l->renewing--;
    if (!lease_ms)
        l->keeping = 0;
    if (l->renewing == l->keeping) { /* no other renewal under way sets an
                                        end */
        if (lease_ms)
            end = mixed ? l->least : lease_end_of(sent_at, lease_ms);
        lease_all_renewed(l);
    }
    if (result == HF_ENOTOWNER) {
        hf__lease_gone(l, now);
        return HF_ELOST;
    }
    l->refused = hf__is_refusal(result);
    if (result != HF__DONE) {
        /* The server did not confirm the renewal, so it is repeated soon, while
         * the hold lasts. */
        if (l->renew_at != HF__NEVER)
            l->renew_at = now + length / 20 + 10 * HF__MS;
        return HF__DONE;
    }
    if (end != HF__NEVER && !mixed)
        l->lease_ms = lease_ms;
    if (l->session) {
        lease_session_renewed(l, sent_at, end);
        return HF__DONE;
    }
    /* While other renewals that may change the end are under way, the end stays
     * as hf__lease_renewing() has set it: the earliest of all. The last answer
     * sets the new end. */
    if ((l->endless && !l->fixed) || end == HF__NEVER)
        return HF__DONE;
    l->until = end;
    lease_set_deadline(l);
    if (l->renew_at != HF__NEVER)
        l->renew_at = sent_at + length / 3;
    return HF__DONE;
}

void hf__lease_move(struct hf__lease *to, struct hf__lease *from, hf__time now)
{
    hf__ends_verified(lease, to);

    *to = *from;
    to->wanted = to->drop = to->refused = false;
    to->let_go = HF__LET_GO_NONE; /* a let_go of `from` stays with `from` */
    to->resend_at = to->silent_at = HF__NEVER;
    to->renewing = to->keeping = to->mixed = 0; /* the renewals of `from` stay
                                                   with it, too */
    if (to->renew_at != HF__NEVER)
        to->renew_at = now;
    hf__lease_gone(from, now);
}

/* Returns how late this process may be in handling a renewal or a deadline. A
 * process that is even later was not running for a while. The result is longer
 * than the delay of a driver after which the helper thread acts in its
 * place. */
static hf__time lease_late(const struct hf__lease *l)
{
    uint32_t term_ms = l->session ? l->session_ms : l->lease_ms;

    return hf__min_time((hf__time)term_ms * HF__MS / 5, 1000 * HF__MS);
}

static struct hf__loss lease_stopped(const struct hf__lease *l, hf__time at)
{
    struct hf__loss loss = hf__loss(HF__LOSS_STOPPED, at);

    loss.refused = l->refused;
    return loss;
}

struct hf__loss hf__lease_why(const struct hf__lease *l, hf__time now)
{
    if (l->deadline == l->max_until)
        return hf__loss(HF__LOSS_MAX, now);
    if (l->fixed && (!l->session || l->deadline == l->kept_until))
        return hf__loss(HF__LOSS_LEASE, l->lease_ms);
    if (l->renew_at == HF__NEVER)
        return hf__loss(HF__LOSS_ORPHAN, now);
    /* This process was not running if no thread has sent the renewal that was
     * due, or if no thread has noticed the deadline in time. */
    if (!l->renewing && l->renew_at + lease_late(l) <= l->deadline)
        return lease_stopped(l, l->renew_at);
    if (l->deadline + lease_late(l) <= now)
        return lease_stopped(l, l->deadline);
    return hf__loss(l->refused ? HF__LOSS_REFUSED : HF__LOSS_SILENT,
                    l->deadline);
}

hf__time hf__lease_timer(const struct hf__lease *l)
{
    hf__time at = hf__lease_lets_go(l) ? l->resend_at : HF__NEVER;

    at = hf__min_time(at, l->silent_at);
    if (l->drop)
        return at; /* the drop waits for the let_go that is under way */
    switch (l->state) {
    case HF__HELD:
        at = hf__min_time(at, l->deadline);
        return l->renewing ? at : hf__min_time(at, l->renew_at);
    case HF__ATTEMPTING:
    case HF__WAITING:
        return hf__min_time(at, l->poll_at);
    default:
        return at;
    }
}

#ifdef HF__ASSERT

static void lease_verify_let_go(const struct hf__lease *l)
{
    hf__assert(l->let_go <= HF__LET_GO_UNSURE);
    if (l->let_go == HF__LET_GO_SENT)
        hf__assert(l->resend_at == HF__NEVER && !l->refusals);
    if (hf__lease_lets_go(l) && l->state != HF__IDLE)
        hf__assert(l->let_go_id != l->hold_id); /* ids are never used again */
}

static void lease_verify_hold(const struct hf__lease *l)
{
    hf__time end =
        hf__min_time(l->until, hf__min_time(l->max_until, l->kept_until));

    hf__assert(l->deadline == end ||
               (end == HF__NEVER && l->renew_at == HF__NEVER));
    hf__assert(l->renew_at == HF__NEVER || l->session ||
               (!l->fixed && !l->endless));
    hf__assert(l->kept_until == HF__NEVER || (l->session && l->fixed));
    hf__assert(l->until != HF__NEVER || (l->endless && !l->fixed));
    if (l->session)
        hf__assert(l->keeping <= l->renewing);
}

void hf__lease_verify(const struct hf__lease *l)
{
    lease_verify_let_go(l);
    hf__assert(l->question <= HF__QUESTION_LOST);
    switch (l->state) {
    case HF__IDLE:
        hf__assert(!l->drop);
        break;
    case HF__WAITING:
        hf__assert(l->known >= HF__KNOWN_PERHAPS);
        hf__assert(l->question != HF__QUESTION_LOST);
        break;
    case HF__HELD:
        if (!l->drop)
            lease_verify_hold(l);
        break;
    default:
        break;
    }
}

#endif
