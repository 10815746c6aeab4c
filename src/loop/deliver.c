#include "loop/deliver.h"

#include "base/futex.h"
#include "base/list.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/async.h"
#include "core/callbacks.h"
#include "core/client.h"
#include "core/line.h"
#include "core/name_table.h"
#include "core/requests.h"
#include "core/wakeup.h"
#include "loop/async_wait.h"
#include "loop/renewals.h"

#define MANY 256

/* Removes the timers of lines that are due by `before`, puts these lines into
 * due[], each with a reference, and returns how many lines were put there. Ends
 * the asynchronous waits whose time limit has passed by `now`. */
static size_t deliver_due_lines(hf_client *c, hf__time before, hf__time now,
                                struct hf__due *due, size_t room)
{
    size_t len = 0;

    while (len < room) {
        struct hf__timer *t;
        bool is_line;

        hf__mutex_lock(&c->mu);
        t = hf__timers_pop(&c->timers, before);
        is_line = t && t->is_line;
        if (is_line) {
            hf__timers_set(&c->timers, t, HF__NEVER);
            due[len].line = hf__container(t, struct hf__line, timer);
            due[len++].line->refs++;
        } else if (t && t->at > now) {
            hf__timers_set(&c->timers, t, t->at); /* too early to end this
                                                     wait */
            t = NULL;
        } else if (t) {
            hf__container(t, struct hf__async, timer)->firing = true;
        }
        hf__mutex_unlock(&c->mu);
        if (!t)
            break;
        if (!is_line)
            hf__async_timed_out(hf__container(t, struct hf__async, timer), now);
    }
    return len;
}

/* Runs the lines in due[]. Moves the lines whose hold must be renewed to the
 * front of due[], and returns how many there are. Drops the references to the
 * other lines. */
static size_t deliver_fire_lines(struct hf__due *due, size_t len, hf__time now)
{
    size_t renew = 0;

    for (size_t i = 0; i < len; i++) {
        struct hf__line *n = due[i].line;
        uint64_t hold_id = hf__line_timer(n, now);

        if (hold_id) {
            due[renew++] = (struct hf__due){n, hold_id};
            continue;
        }
        hf__line_unref(n);
    }
    return renew;
}

static void deliver_timers(hf_client *c, hf__time now)
{
    struct hf__due due[MANY];
    size_t len, renew;

    while ((len = deliver_due_lines(c, now, now, due, MANY))) {
        renew = deliver_fire_lines(due, len, now);
        if (!renew)
            continue;
        /* Renewals are sent in one batch. Therefore those that are due soon are
         * sent now, too. */
        len = deliver_due_lines(c, now + (hf__time)c->ttl_ms * HF__MS / 12, now,
                                due + renew, MANY - renew);
        renew += deliver_fire_lines(due + renew, len, now);
        hf__renewals_due(c, due, renew, now);
    }
}

static void deliver_landed(hf_client *c)
{
    struct hf__request *f;
    bool wanted;

    for (;;) {
        hf__mutex_lock(&c->mu);
        f = c->landed;
        if (f)
            c->landed = f->next_landed;
        hf__mutex_unlock(&c->mu);
        if (!f)
            return;
        if (f->req.op == HF__RENEW)
            hf__renewals_landed(c, f);
        hf__mutex_lock(&c->mu);
        f->delivered = true;
        wanted = f->sleeper != NULL;
        if (wanted && f->sleeper->is_async)
            hf__callback_queue_locked(c, hf__async_of(f->sleeper), 0);
        else if (wanted)
            hf__sleeper_wake(c, f->sleeper);
        hf__mutex_unlock(&c->mu);
        if (!wanted)
            hf__request_free(c, f);
    }
}

void hf__deliver(hf_client *c, hf__time now)
{
    deliver_timers(c, now);
    for (;;) {
        struct hf__line *n;

        hf__mutex_lock(&c->mu);
        n = c->news;
        if (n) {
            c->news = n->next_news;
            n->in_news = false;
        }
        hf__mutex_unlock(&c->mu);
        if (!n)
            break;
        hf__line_news(n);
        hf__line_unref(n);
    }
    deliver_landed(c);
}
