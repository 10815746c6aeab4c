/* hf_close(): ends the waits, releases the holds, and gives up the requests
 * that are not answered in time. */
#include "api/event_loop.h"
#include "base/futex.h"
#include "base/list.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/async.h"
#include "core/callbacks.h"
#include "core/client.h"
#include "core/events.h"
#include "core/hooks.h"
#include "core/line.h"
#include "core/name_table.h"
#include "core/outbox.h"
#include "core/requests.h"
#include "core/wakeup.h"
#include "loop/driver.h"
#include "loop/helper_thread.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

/* Calls fn for every line, with line->mu held. Returns true if all calls
 * returned true. No new lines can be created by now. */
static bool close_each_line(hf_client *c, bool (*fn)(struct hf__line *))
{
    bool all = true;

    for (size_t i = 0; i < c->buckets_len; i++) {
        struct hf__line *n, *next;

        hf__mutex_lock(&c->mu);
        n = c->buckets[i];
        if (n)
            n->refs++;
        hf__mutex_unlock(&c->mu);
        for (; n; n = next) {
            hf__line_lock(n);
            all = fn(n) && all;
            hf__line_unlock(n);
            hf__mutex_lock(&c->mu);
            next = n->next_in_bucket;
            if (next)
                next->refs++;
            hf__line_unref_locked(n);
            hf__mutex_unlock(&c->mu);
        }
    }
    return all;
}

/* Returns whether the line has no waiter, no attempt, no hold, and no let_go
 * that is under way or will be repeated after a pause. */
static bool close_is_idle(struct hf__line *n)
{
    return hf__queue_idle(&n->queue);
}

/* Returns whether hf_close() may stop waiting for the line early: the line is
 * idle, or the hold that is being let go must have ended at the server by now
 * and no release waits for the answer. */
static bool close_is_over(struct hf__line *n)
{
    return close_is_idle(n) ||
           (hf__lease_over(&n->queue.lease, hf__now()) && !n->releasers);
}

static bool close_end_line(struct hf__line *n)
{
    hf__time now = hf__now();

    hf__queue_fail(&n->queue, HF_ECLOSED, hf__line_wake);
    n->queue.owner = 0;
    n->queue.count = 0;
    hf__lease_drop(&n->queue.lease);
    hf__lease_hurry(&n->queue.lease, now); /* a refused let_go is repeated
                                              now, not after its pause */
    hf__line_run(n, now);
    return close_is_idle(n);
}

/* Forgets the requests of a line. The backend is closed, and will not
 * answer. */
static bool close_forget_line(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__exchange *x = hf__exchange_of(n);

    hf__line_finish_releases(n, 0, HF_EUNKNOWN);
    HF__HOLDING(&c->mu);
    if (x) {
        n->refs -= x->attempt.flying + x->let_go.flying;
        x->attempt.flying = x->let_go.flying = false;
    }
    n->refs -= n->owes;
    n->owes = false;
    return true;
}

/* The time limit for answers that change nothing: no verb waits for them, and
 * the holds have ended at the server anyway. Waiting op_timeout for such
 * answers would be too long, because a program should end within a second even
 * if its server is dead. */
#define SOON_MS 800

struct close_wait {
    hf_client *client;
    hf__time until; /* the latest time to wait for answers */
    hf__time soon; /* the latest time to wait for answers that change nothing */
    bool late;     /* the time limit has passed; one more round reads what has
                      arrived */
    int result;
};

/* Returns whether an asynchronous verb waits for an answer that its callback
 * could report. */
static bool close_is_awaited(hf_client *c)
{
    HF__HOLDING(&c->mu);
    const struct hf__request *f = c->requests;

    while (f && (!f->sleeper || f->delivered))
        f = f->next;
    return f != NULL;
}

/* Returns whether hf_close() can continue. While threads are inside a verb it
 * must wait without limit, because they use the client's memory. (Each of them
 * leaves soon: its wait has failed already, or ends after op_timeout at the
 * latest.) */
static bool close_ready(void *arg, hf__time now, hf__time *until)
{
    struct close_wait *w = arg;
    bool is_last, was_late = w->late;

    hf__mutex_lock(&w->client->mu);
    w->result = w->client->under_way ? HF__PENDING : 0;
    is_last = w->client->inside == 0 &&
              __atomic_load_n(&w->client->firing, __ATOMIC_SEQ_CST) == 0;
    hf__mutex_unlock(&w->client->mu);
    /* A line is not idle while a refused request waits to be repeated, even if
     * no request is under way. (A direct backend ends all holds when it is
     * closed.) */
    if (!w->result && !w->client->direct &&
        !close_each_line(w->client, close_is_idle))
        w->result = HF__PENDING;
    *until = now + 20 * HF__MS;
    if (!is_last || w->result != HF__PENDING)
        return is_last;
    w->late =
        now >= w->until || (now >= w->soon && !close_is_awaited(w->client) &&
                            close_each_line(w->client, close_is_over));
    return w->late && was_late;
}

/* Gives up a request that will not be answered. */
static void close_drop_request_locked(hf_client *c, struct hf__request *f)
{
    struct hf__async *a = f->sleeper ? hf__async_of(f->sleeper) : NULL;

    if (a) {
        a->call.request = NULL;
        hf__callback_queue_locked(c, a, HF_EUNKNOWN);
    }
    if (f->req.op == HF__RENEW)
        for (size_t i = 0; i < f->batch.len; i++)
            hf__line_unref_locked(hf__container(f->batch.item[i].remote,
                                                struct hf__line, remote));
    else if (f->destroy)
        f->destroy(f);
    hf__list_remove(c->requests, f);
    hf__free(c, f);
}

/* Drops what is left. The backend is closed and will report nothing more. */
static void close_tidy(hf_client *c)
{
    struct hf__request *f, *next;

    hf__mutex_lock(&c->mu);
    c->landed = NULL;
    while (c->outbox)
        hf__outbox_remove_locked(c, c->outbox);
    for (f = c->requests; f; f = next) {
        next = f->next;
        if (!f->delivered) /* otherwise its callback is queued already */
            close_drop_request_locked(c, f);
    }
    hf__event_drop_all_locked(c);
    while (c->news) {
        struct hf__line *n = c->news;

        c->news = n->next_news;
        hf__line_unref_locked(n);
    }
    hf__mutex_unlock(&c->mu);
    close_each_line(c, close_forget_line);
}

int hf_close(hf_client *c)
{
    HF__UNCANCELLED;
    struct hf__sleeper s;
    struct close_wait w = {.client = c};
    struct hf__async *a;
    hf__time now;
    int rc;

    if (!c)
        return 0;
    rc = hf__client_check(c);
    if (!rc && hf__is_dispatching(c))
        rc = HF_EBUSY;
    if (rc)
        return rc;
    hf__mutex_lock(&c->mu);
    if (!__atomic_exchange_n(&c->closed, 1, __ATOMIC_ACQ_REL))
        c->handles++; /* keeps the client during this call, even if the last
                         handle is freed */
    else
        rc = HF_ECLOSED;
    hf__mutex_unlock(&c->mu);
    if (rc)
        return rc;
    close_each_line(c, close_end_line);
    now = hf__now();
    w.until = now + (hf__time)c->op_timeout_ms * HF__MS;
    w.soon = now + SOON_MS * HF__MS;
    hf__sleeper_init(&s, NULL);
    hf__driver_wait(c, &s, close_ready, &w);
    rc = w.result == HF__PENDING ? HF_EUNKNOWN : 0;
    hf__helper_stop(c);
    close_tidy(c);
    while ((a = hf__callback_next(c))) {
        hf__loop_run_callback(a);
        if (hf__client_check(c) == HF_EFORK)
            return HF_EFORK; /* a callback forked; this is the child */
    }
    hf__client_put(c);
    return rc;
}
