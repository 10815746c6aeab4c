/* Runs a line: see line.h. */
#include "core/line.h"

#include "base/futex.h"
#include "base/list.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/async.h"
#include "core/callbacks.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/events.h"
#include "core/hooks.h"
#include "core/last_error.h"
#include "core/line_list.h"
#include "core/loss_fd.h"
#include "core/loss_reason.h"
#include "core/name_text.h"
#include "core/outbox.h"
#include "core/wakeup.h"
#include "policy/lease.h"
#include "policy/line_set.h"
#include "policy/local_queue.h"

void hf__line_forget_releaser(struct hf__line *n, struct hf__releaser *r)
{
    struct hf__releaser **p = &n->releasers;

    while (*p && *p != r)
        p = &(*p)->next;
    if (*p)
        *p = r->next;
}

/* ---- waking ------------------------------------------------------------ */

/* Notifies s. The system call that wakes its thread is put off until after the
 * unlock (hf__line_unlock). If another such call was put off before, that call
 * is made now. */
static void line_wake(struct hf__line *n, struct hf__sleeper *s)
{
    uint32_t *word = hf__sleeper_notify(n->client, s);

    n = hf__line_first(n);
    if (word && n->to_wake)
        hf__futex_wake(n->to_wake, 1);
    if (word)
        n->to_wake = word;
}

bool hf__line_forget_the_gone(struct hf__line *n)
{
    const struct hf__reader *r = n->queue.shared ? n->queue.readers : NULL;

    if (!n->queue.shared)
        return hf__thread_gone(n->owner_thread) &&
               hf__queue_forget(&n->queue, n->owner_thread->number);
    while (r && !(r->lost && hf__thread_gone(r->thread)))
        r = r->next;
    return r && hf__queue_forget(&n->queue, r->owner);
}

static void line_set_timer(struct hf__line *n)
{
    hf__time at = hf__lease_timer(&n->queue.lease);
    hf__time set_to = hf__timer_at(&n->timer);

    /* While the line waits, the timer is set to the exact time, so that no
     * thread is woken early. Otherwise it is only moved to an earlier time: a
     * timer that fires too early costs one check, but moving it at every grant
     * would cost more. */
    if (n->queue.lease.state == HF__WAITING ? at != set_to : at < set_to)
        hf__helper_timer(n->client, &n->timer, at);
}

void hf__line_own(struct hf__line *n, const struct hf__waiter *w)
{
    struct hf__thread *t = w->thread;

    n->orphaned = false;
    if (n->kin) {
        n->kin->permits = w->permits;
        if (n->remote.kind == HF_SEMAPHORE)
            hf__line_set_granted(&n->kin->first->kin->lines, &n->kin->line);
    }
    hf__loss_fd_heard(w->handle);
    if (!n->queue.shared && n->owner_thread != t) { /* in a shared queue, each
                                                       reader's entry has its
                                                       thread */
        hf__line_forget_the_gone(n); /* must come before owner_thread is
                                        replaced */
        if (t)
            hf__thread_ref(t);
        hf__thread_unref(n->owner_thread);
        n->owner_thread = t;
    }
    if (hf__line_first(n)->watchers) {
        /* A hold that is neither shared nor of a semaphore may have been handed
         * over by another owner, whose descriptors must then be re-armed, too.
         * Therefore all descriptors of the name are re-armed. */
        if (n->queue.shared || n->remote.kind == HF_SEMAPHORE)
            hf__loss_fd_arm_of(n, w->owner);
        else
            hf__loss_fd_arm(n, false);
    }
    if (n->queue.lease.max_until != HF__NEVER)
        line_set_timer(n); /* the new owner's max_hold_ms may end the hold
                              earlier */
}

/* Copies to *err the message that was kept about a failed request of this line.
 * Returns whether there was a message for that code. */
static bool line_copy_words(struct hf__line *n, bool let_go, int code,
                            hf_error *err)
{
    struct hf__exchange *x = hf__exchange_of(n);

    if (!x || !err || code >= 0)
        return false;
    HF__HOLDING(&n->client->mu);
    if (!x->why[let_go] || x->why[let_go]->code != code)
        return false;
    *err = *x->why[let_go];
    return true;
}

void hf__line_wake(struct hf__queue *g, struct hf__waiter *w)
{
    struct hf__line *n = hf__container(g, struct hf__line, queue);
    bool over = w->state == HF__W_FINISHED; /* otherwise the waiter is roused */

    if (over)
        w->handle->acquiring = false;
    if (over && w->result == HF__GRANTED) {
        hf__line_own(n, w);
        hf__tally_hold(n);
    }
    if (over && w->is_async)
        hf__callback_queue(hf__container(w, struct hf__async, waiter),
                           w->result);
    if (w->is_async)
        return; /* an asynchronous waiter has no thread to wake */
    if (over)
        w->err_set = line_copy_words(n, false, w->result, w->err) ||
                     line_copy_words(n, true, w->result, w->err);
    line_wake(n, w->sleeper);
}

void hf__line_finish_releases(struct hf__line *n, uint64_t hold_id, int result)
{
    struct hf__releaser **p = &n->releasers, *r;

    while ((r = *p)) {
        if (r->hold_id != hold_id && hold_id) {
            p = &r->next;
            continue;
        }
        *p = r->next;
        r->result = result;
        r->finished = true;
        if (result == HF_ELOST)
            hf__count(&n->client->counts.lost, 1);
        line_copy_words(n, true, result, r->word);
        if (r->sleeper->is_async)
            hf__callback_queue(hf__async_of(r->sleeper), result);
        else
            line_wake(n, r->sleeper);
    }
}

/* ---- sending ----------------------------------------------------------- */

static bool line_nobody_parks(const struct hf__queue *g)
{
    for (const struct hf__waiter *w = g->head; w; w = w->next)
        if (!w->is_async)
            return false;
    return true;
}

/* Hands a request to the backend. Returns the result of the request, or
 * PENDING. */
static int line_submit(struct hf__line *n, struct hf__req *req,
                       int (*slot)(void *, struct hf__req *))
{
    hf_client *c = n->client;
    int rc;

    if (c->direct)
        return slot(c->self, req);
    HF__HOLDING(&c->mu);
    req->flying = true;
    n->refs++;
    c->under_way++;
    rc = hf__outbox_submit_locked(c, req);
    if (rc != HF__PENDING) {
        req->flying = false;
        n->refs--; /* not the last reference: the caller has one */
        c->under_way--;
        hf__keep_word_locked(c, hf__exchange_of(n), req->op != HF__ATTEMPT, rc);
    }
    return rc;
}

struct hf__exchange *hf__exchange_make(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__exchange *x = hf__exchange_of(n);

    if (x)
        return x;
    HF__HOLDING(&c->mu);
    x = c->exchanges;
    if (x)
        c->exchanges = x->next;
    else
        x = hf__alloc(c, sizeof(*x));
    n->remote.attempt = x ? &x->attempt : NULL;
    return x;
}

static void line_exchange_end(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__exchange *x = hf__exchange_of(n);

    HF__HOLDING(&c->mu);
    if (x->attempt.flying || x->let_go.flying || n->attempt_ready ||
        n->let_go_ready)
        return;
    x->lost_id = 0;
    hf__words_free(c, x);
    x->next = c->exchanges;
    c->exchanges = x;
    n->remote.attempt = NULL;
}

static void line_send_attempt(struct hf__line *n,
                              const struct hf__waiter *first, bool may_queue,
                              hf__time now)
{
    hf_client *c = n->client;
    struct hf__req here, *req = &here;
    struct hf__exchange *x;
    int rc = 0;

    if (!c->direct) {
        x = hf__exchange_make(n);
        rc = x ? 0 : HF_ENOMEM;
        req = x ? &x->attempt : &here;
    }
    *req =
        (struct hf__req){.remote = &n->remote,
                         .op = HF__ATTEMPT,
                         .hold_id = n->queue.lease.hold_id,
                         .meant_until = HF__NEVER,
                         .lease_ms = first->lease_ms,
                         .fixed = first->fixed,
                         .permits = first->permits,
                         .may_queue = may_queue,
                         .is_async = c->direct && line_nobody_parks(&n->queue)};
    n->rings = req->is_async;
    hf__lease_attempted(&n->queue.lease, now, c->op_timeout_ms);
    if (!rc)
        rc = line_submit(n, req, c->be->attempt);
    if (rc == HF__PENDING)
        return;
    req->result = (int16_t)rc;
    hf__queue_answered(&n->queue, req, now, hf__line_wake);
}

/* Makes sure that the attempt being abandoned is never reported. If the abandon
 * is a repetition, the line may have sent another attempt in between, with a
 * new hold id; that attempt is not touched. */
static void line_forget_attempt(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__req *attempt = n->remote.attempt;

    if (attempt->hold_id != n->queue.lease.let_go_id)
        return;
    HF__HOLDING(&c->mu);
    n->attempt_ready = false;
    hf__outbox_remove_locked(c, attempt);
    n->refs -= attempt->flying; /* the caller has another reference */
    c->under_way -= attempt->flying;
    attempt->flying = false;
}

static void line_let_go_answered(struct hf__line *n, int result, hf__time now)
{
    struct hf__lease *l = &n->queue.lease;
    bool first_word = l->let_go != HF__LET_GO_UNSURE;

    if (!now && result != HF__DONE)
        now = hf__now(); /* the caller may have passed 0 (hf__lock_clock) */
    if (!hf__queue_let_go_answered(&n->queue, result, now, hf__line_wake)) {
        /* The let_go will be repeated. If it was refused, the callers that wait
         * for the release get the refusal now. If its answer was lost, they
         * continue to wait. */
        if (result != HF_EUNKNOWN)
            hf__line_finish_releases(n, l->let_go_id, result);
        return;
    }
    /* ENOTOWNER means that the hold was lost or, if this let_go was a
     * repetition, that an earlier one has worked. */
    hf__line_finish_releases(n, l->let_go_id,
                             result == HF_ENOTOWNER && first_word ? HF_ELOST
                                                                  : HF__DONE);
}

static void line_let_go(struct hf__line *n, hf__time now)
{
    const struct hf__backend *be = n->client->be;
    bool direct = n->client->direct;
    bool abandon = n->queue.lease.let_go_op == HF__ABANDON;
    struct hf__req here, *req = direct ? &here : NULL;
    int rc = HF__DONE; /* the result if the line has no exchange: it ran out of
                          memory before it could send the attempt */

    if (!direct && n->remote.attempt)
        req = &hf__exchange_of(n)->let_go;
    if (req) {
        *req = (struct hf__req){.remote = &n->remote,
                                .op = n->queue.lease.let_go_op,
                                .hold_id = n->queue.lease.let_go_id,
                                .meant_until = HF__NEVER};
        if (abandon && !direct)
            line_forget_attempt(n);
        rc = line_submit(n, req, abandon ? be->abandon : be->release);
    }
    if (rc != HF__PENDING)
        line_let_go_answered(n, rc, now);
}

static void line_report_loss(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__loss loss = hf__queue_last_loss(&n->queue);

    n->queue.was_lost = false;
    hf__tally_lost(n);
    hf__log(c, "%s: lost the lock \"%s\": %s", c->be->name,
            hf__line_shown(n).text, hf__reason(c, loss).text);
    hf__mutex_lock(&c->mu);
    hf__event_queue_locked(c, HF_EVENT_LOST, n, n->queue.lease.token, loss);
    hf__mutex_unlock(&c->mu);
    hf__loss_fd_arm(n, true);
    hf__line_forget_the_gone(n);
}

/* For direct backends only. One thread must sleep inside the backend (park) on
 * behalf of all waiters of this line. If no thread does, wakes a waiting
 * thread, which then parks. */
static void line_find_parker(struct hf__line *n)
{
    struct hf__waiter *w = n->queue.head;

    if (!w || n->parker || n->queue.lease.state != HF__WAITING)
        return;
    while (w && w->is_async)
        w = w->next;
    if (w)
        line_wake(n, w->sleeper);
}

/* For direct backends only. Returns whether there are waiters, but none of them
 * is a thread that could sleep inside the backend, and the helper thread does
 * not sleep there for them (n->rings). A wake-up would then not be noticed.
 * Therefore the line must repeat its attempt as an asynchronous one, because
 * for an asynchronous attempt the helper thread sleeps. */
static bool line_is_deaf(const struct hf__line *n)
{
    return n->client->direct && n->queue.lease.state == HF__WAITING &&
           !n->rings && n->queue.head && line_nobody_parks(&n->queue);
}

/* Keeps a reference to the line while a refused let_go waits to be repeated,
 * because there may be no other reference. */
static void line_keep_while_it_owes(struct hf__line *n)
{
    const struct hf__lease *l = &n->queue.lease;
    bool owes = hf__lease_lets_go(l) && l->resend_at != HF__NEVER;

    if (owes == n->owes)
        return;
    n->owes = owes;
    HF__HOLDING(&n->client->mu);
    n->refs += owes ? 1u : -1u; /* not the last reference: the caller has one */
}

void hf__line_run(struct hf__line *n, hf__time now)
{
    struct hf__waiter *first;
    bool may_queue;

    if (__builtin_expect(n->queue.was_lost, 0))
        line_report_loss(n); /* must come before the next grant */
    if (line_is_deaf(n))
        hf__lease_bell(&n->queue.lease, now);
    for (;;) {
        switch (hf__queue_next(&n->queue, now, &first, &may_queue)) {
        case HF__TODO_ATTEMPT:
            line_send_attempt(n, first, may_queue, now);
            continue;
        case HF__TODO_LET_GO:
            line_let_go(n, now);
            continue;
        case HF__TODO_NOTHING:
            break;
        }
        break;
    }
    if (n->client->direct)
        line_find_parker(n);
    line_keep_while_it_owes(n);
    if (n->remote.attempt && hf__queue_idle(&n->queue))
        line_exchange_end(n);
    hf__lines_rest(n);
    line_set_timer(n);
}

/* ---- news -------------------------------------------------------------- */

/* Hands to the queue what the backend has reported. line->mu is held. */
static void line_take_news(struct hf__line *n)
{
    hf_client *c = n->client;
    hf__time now = hf__now(); /* the hold may have expired since the driver's
                                 round began */
    struct hf__exchange was = {0}, *x;
    bool attempt_ready, let_go_ready, rang, lost;

    hf__mutex_lock(&c->mu);
    x = hf__exchange_of(n);
    if (x) {
        was = *x;
        x->lost_id = 0;
    }
    attempt_ready = n->attempt_ready;
    let_go_ready = n->let_go_ready;
    rang = n->rang;
    lost = n->session_lost;
    n->attempt_ready = n->let_go_ready = n->rang = n->session_lost = false;
    hf__mutex_unlock(&c->mu);
    if (lost && n->queue.lease.state == HF__HELD)
        hf__queue_lose(&n->queue, false, HF__LOSS_SESSION, now);
    if (let_go_ready)
        line_let_go_answered(n, was.let_go.result, now);
    if (attempt_ready)
        hf__queue_answered(&n->queue, &was.attempt, now, hf__line_wake);
    if (was.lost_id)
        hf__queue_gone(&n->queue, was.lost_id,
                       was.session_over ? HF__LOSS_SESSION : HF__LOSS_TAKEN,
                       now);
    if (rang)
        hf__lease_bell(&n->queue.lease, now);
    hf__line_run(n, now);
}

void hf__line_news(struct hf__line *n)
{
    hf__line_lock(n);
    line_take_news(n);
    hf__line_unlock(n);
}

/* Returns whether the backend has reported an answer of the server that was not
 * handed to the queue yet. */
static bool line_is_answered(struct hf__line *n)
{
    HF__HOLDING(&n->client->mu);
    const struct hf__exchange *x = hf__exchange_of(n);

    return (n->attempt_ready && x->attempt.result != HF_EUNKNOWN) ||
           (n->let_go_ready && x->let_go.result != HF_EUNKNOWN);
}

/* Stores a message about the server's silence in the exchange, for the waiters
 * that are about to fail. */
static void line_note_silence(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__exchange *x = hf__exchange_of(n);

    HF__HOLDING(&c->mu);
    if (x && !x->why[0])
        x->why[0] = hf__alloc(c, sizeof(*x->why[0]));
    if (x && x->why[0])
        hf__silence(c, x->why[0]);
}

static void line_report_orphan(struct hf__line *n)
{
    hf_client *c = n->client;

    HF__HOLDING(&c->mu);
    hf__event_queue_locked(c, HF_EVENT_ORPHANED, n, n->queue.lease.token,
                           hf__no_loss);
}

/* Reports the owners whose thread has exited while it held the lock. Returns
 * whether no other owner still has a hold. */
static bool line_deserted(struct hf__line *n)
{
    bool all = true;

    if (!n->queue.shared) {
        if (!hf__thread_gone(n->owner_thread))
            return false;
        line_report_orphan(n);
        return true;
    }
    for (struct hf__reader *r = n->queue.readers; r; r = r->next) {
        if (!hf__thread_gone(r->thread)) {
            all = all && r->lost;
        } else if (!r->orphaned) {
            r->orphaned = true;
            line_report_orphan(n);
        }
    }
    return all;
}

/* Ends the renewal of the hold if no thread is left that could release it. */
static void line_find_orphans(struct hf__line *n, hf__time now)
{
    struct hf__lease *l = &n->queue.lease;

    if (n->orphaned || !line_deserted(n))
        return;
    n->orphaned = true;
    l->renew_at = HF__NEVER;
    if (n->queue.shared)
        n->queue.join_until = now; /* no reader may join a hold that is not
                                      renewed */
    if (l->deadline == HF__NEVER)  /* otherwise the hold would never end */
        l->deadline = now + (hf__time)n->client->ttl_ms * HF__MS;
}

uint64_t hf__line_timer(struct hf__line *n, hf__time now)
{
    struct hf__lease *l = &n->queue.lease;
    uint64_t renew = 0;
    hf__time present;

    hf__line_lock(n);
    present = hf__now(); /* `now` is when the round began, perhaps long ago */
    if (present > now)
        now = present;
    if (n->queue.owner)
        line_find_orphans(n, now);
    /* If an answer has been reported but not handed to the queue yet, the
     * server was not silent. The time limit for the answer has passed only
     * because this process did not run for a while. */
    if (hf__queue_silent(&n->queue, now) && line_is_answered(n))
        line_take_news(n);
    if (hf__queue_silent(&n->queue, now))
        line_note_silence(n);
    hf__queue_tick(&n->queue, now, hf__line_wake);
    if (hf__queue_renewable(&n->queue, now)) {
        renew = l->hold_id;
        hf__lease_put_off(l, now);
    }
    hf__line_run(n, now);
    hf__line_unlock(n);
    return renew;
}
