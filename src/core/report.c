#include "core/report.h"

#include "base/futex.h"
#include "base/list.h"
#include "base/timer.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/events.h"
#include "core/last_error.h"
#include "core/line.h"
#include "core/loss_reason.h"
#include "core/name_table.h"
#include "core/requests.h"
#include "policy/lease.h"

static void report_news(hf_client *c, struct hf__line *n)
{
    if (n->in_news)
        return;
    n->in_news = true;
    n->refs++;
    hf__fifo_add(c->news, c->news_tail, n, next_news);
}

void hf__report_done(hf_client *c, struct hf__req *req)
{
    struct hf__line *n;
    struct hf__request *f;

    /* An attempt that is not flying is being abandoned. Its answer came before
     * the backend knew of the abandon, and line_forget_attempt() has already
     * subtracted the attempt from under_way. */
    if (req->remote && !req->flying)
        return;
    c->under_way--;
    req->flying = false;
    if (!req->remote) {
        f = hf__container(req, struct hf__request, req);
        /* Each renewal of a batch may have failed in its own way; only the last
         * message is kept. */
        hf__mutex_lock(&c->why_mu);
        f->why = c->why;
        hf__mutex_unlock(&c->why_mu);
        hf__fifo_add(c->landed, c->landed_tail, f, next_landed);
        return;
    }
    n = hf__container(req->remote, struct hf__line, remote);
    hf__keep_word_locked(c, hf__exchange_of(n), req->op != HF__ATTEMPT,
                         req->result);
    if (req->op == HF__ATTEMPT)
        n->attempt_ready = true;
    else
        n->let_go_ready = true;
    report_news(c, n);
    hf__line_unref_locked(n); /* the request's reference; news has its own */
}

void hf__report_bell(hf_client *c, struct hf__remote *remote)
{
    struct hf__line *n = hf__container(remote, struct hf__line, remote);

    n->rang = true;
    report_news(c, n);
}

void hf__report_lost(hf_client *c, struct hf__remote *remote, uint64_t hold_id,
                     const char *session)
{
    struct hf__line *n = hf__container(remote, struct hf__line, remote);
    struct hf__exchange *x = hf__exchange_of(n);

    if (c->direct) { /* the timer fires at once, and its handler finds out
                        whether the hold is lost: the lock may have been
                        acquired again since the loss */
        hf__timers_set(&c->timers, &n->timer, 0);
        return;
    }
    if (!x)
        return; /* the line no longer holds anything */
    x->lost_id = hold_id;
    x->session_over = session != NULL;
    if (session)
        hf__note(c, HF__LOSS_SESSION, session);
    report_news(c, n);
}

void hf__report_wanted(hf_client *c, struct hf__remote *remote, uint64_t token)
{
    hf__event_queue_locked(c, HF_EVENT_WANTED,
                           hf__container(remote, struct hf__line, remote),
                           token, hf__no_loss);
}

/* HF_EVENT_LOST may be reported on any thread, with or without mutexes.
 * Therefore only a flag is set here; the helper thread marks the lines
 * later. */
void hf__report_session(hf_client *c, int event, const char *why)
{
    if (event == HF_EVENT_LOST) {
        hf__note(c, HF__LOSS_SESSION, why);
        __atomic_store_n(&c->session_lost, 1, __ATOMIC_RELEASE);
        __atomic_add_fetch(&c->helper_word, 1, __ATOMIC_RELEASE);
        hf__futex_wake(&c->helper_word, 1);
    } else {
        hf__count(event == HF_EVENT_DOWN ? &c->counts.disconnects
                                         : &c->counts.reconnects,
                  1);
        hf__event_queue_locked(c, event, NULL, 0, hf__no_loss);
    }
}

void hf__report_session_locked(hf_client *c)
{
    for (size_t i = 0; i < c->buckets_len; i++)
        for (struct hf__line *n = c->buckets[i]; n; n = n->next_in_bucket) {
            n->session_lost = true;
            report_news(c, n);
        }
}
