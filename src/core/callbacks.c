#include "core/callbacks.h"

#include "base/futex.h"
#include "base/list.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/async.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/lock.h"
#include "core/wakeup.h"

void hf__callback_queue_locked(hf_client *c, struct hf__async *a, int result)
{
    a->result = result == HF__GRANTED ? 0 : result;
    if (a->acquires) {
        c->async_waits--;
        hf__count_waited(c, a->lock->line->remote.kind, result,
                         hf__now() - a->since);
    }
    a->acquires = false;
    hf__timers_set(&c->timers, &a->timer, HF__NEVER);
    hf__fifo_add(c->callbacks, c->callbacks_tail, a, next);
    c->callbacks_len++;
    hf__fd_post(c->ready_fd);
}

void hf__callback_queue(struct hf__async *a, int result)
{
    hf_client *c = a->lock->line->client;

    HF__HOLDING(&c->mu);
    hf__callback_queue_locked(c, a, result);
}

struct hf__async *hf__callback_next(hf_client *c)
{
    HF__HOLDING(&c->mu);
    struct hf__async *a = c->callbacks;

    if (!a || a->firing)
        return NULL; /* if a->firing, hf__async_timed_out() will post
                        ready_fd */
    c->callbacks = a->next;
    c->callbacks_len--;
    return a;
}
