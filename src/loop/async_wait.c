#include "loop/async_wait.h"

#include "base/futex.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/async.h"
#include "core/callbacks.h"
#include "core/client.h"
#include "core/line.h"
#include "core/lock.h"
#include "core/outbox.h"
#include "core/requests.h"
#include "core/wakeup.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

void hf__async_give_up(struct hf__async *a)
{
    hf_client *c = a->lock->line->client;
    bool waits = a->releaser.sleeper && !a->releaser.finished;

    if (waits) {
        hf__line_forget_releaser(a->line, &a->releaser);
        a->releaser.finished = true;
    }
    HF__HOLDING(&c->mu);
    if (a->call.request && !a->call.request->delivered) {
        a->call.request->sleeper = NULL; /* from now on delivery frees the
                                            request */
        hf__outbox_give_up_locked(c, &a->call.request->req);
        a->call.request = NULL;
        waits = true;
    }
    if (waits)
        hf__callback_queue_locked(c, a, HF_EUNKNOWN);
}

void hf__async_leave(struct hf__async *a, int code, hf__time now)
{
    hf__queue_leave(&a->line->queue, &a->waiter, code, hf__line_wake);
    a->lock->acquiring = false;
    hf__line_run(a->line, now);
    hf__callback_queue(a, code);
}

/* The handle cannot be freed before the callback of its verb is called. The
 * dispatching thread calls the callback only after `firing` is cleared, and
 * after that thread has locked line->mu once. `firing` is cleared and the timer
 * is set again without unlocking client->mu in between. Otherwise the timer
 * could be handled twice at the same time. */
void hf__async_timed_out(struct hf__async *a, hf__time now)
{
    struct hf__line *n = a->line;
    struct hf__lease *l = &n->queue.lease;
    hf_client *c = n->client;
    bool not_yet = false;

    hf__line_lock(n);
    if (a->waiter.state == HF__W_FINISHED) {
        hf__async_give_up(a); /* does nothing if the answer has ended the
                                 wait */
    } else if (hf__lease_unanswered(l) && now < a->grace) {
        not_yet = true;
    } else {
        hf__async_leave(a, a->waiter.is_try ? HF_EBACKEND : HF_ETIMEDOUT, now);
    }
    hf__mutex_lock(&c->mu);
    a->firing = false;
    if (not_yet)
        hf__timers_set(&c->timers, &a->timer, a->grace);
    if (c->callbacks)
        hf__fd_post(c->ready_fd);
    hf__mutex_unlock(&c->mu);
    hf__line_unlock(n);
}
