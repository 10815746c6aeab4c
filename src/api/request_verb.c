#include "api/request_verb.h"

#include "api/async.h"
#include "api/lock_verb.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/async.h"
#include "core/client.h"
#include "core/last_error.h"
#include "core/line.h"
#include "core/lock.h"
#include "core/loss_reason.h"
#include "core/name_text.h"
#include "core/requests.h"
#include "core/wakeup.h"
#include "loop/deliver.h"
#include "loop/request_wait.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

void hf__verb_send(hf_client *c, struct hf__verb_call *t, struct hf__request *f)
{
    struct hf__async *a = hf__async_of(t->sleeper);

    hf__mutex_lock(&c->mu);
    t->request = f;
    f->sleeper = t->sleeper;
    if (f->req.op != HF__DOWNGRADE)
        f->req.meant_until = t->until;
    hf__mutex_unlock(&c->mu);
    if (a)
        hf__helper_timer(c, &a->timer, t->until);
    hf__request_submit(c, f);
}

int hf__verb_answered(hf_lock *lock, struct hf__verb_call *t, hf_error *err)
{
    hf_client *c = lock->line->client;
    struct hf__request *f = t->request;
    int rc;

    hf__mutex_lock(&lock->line->mu);
    hf__mutex_lock(&c->mu);
    t->request = NULL;
    hf__mutex_unlock(&c->mu);
    rc = t->verb->answered(lock, t, f, err);
    hf__line_unlock(lock->line);
    hf__request_free(c, f);
    return rc;
}

int hf__verb_lost(hf_lock *lock, struct hf__verb_call *t, hf_error *err)
{
    struct hf__queue *g = &t->line->queue;
    uint64_t owner = hf__owner_of(lock, NULL);
    int rc;

    if (g->lease.hold_id == t->hold_id && g->owner)
        hf__queue_lose(g, true, HF__LOSS_TAKEN, hf__now());
    rc = hf__queue_check(g, owner, hf__now());
    if (!hf__client_check(lock->line->client))
        hf__line_run(t->line, hf__now());
    if (rc == HF_ELOST)
        return hf__fail_lost(t->line, owner, err);
    /* The hold was released in the meantime. No reason is given, because the
     * loss that the queue remembers may be the loss of an earlier hold. */
    return hf__fail_loss(t->line, hf__loss(HF__LOSS_NONE, 0), err);
}

int hf__verb_check(const hf_lock *lock, const struct hf__verb_call *t)
{
    struct hf__queue *g = &t->line->queue;
    int rc = hf__queue_check(g, hf__owner_of(lock, NULL), hf__now());

    if (!rc && g->lease.hold_id != t->hold_id)
        rc = HF_ENOTOWNER; /* another thread has released the hold, and the lock
                              was acquired again */
    return rc;
}

int hf__verb_judge(hf_lock *lock, struct hf__verb_call *t,
                   const struct hf__request *f, int rc, hf_error *err)
{
    hf_client *c = lock->line->client;
    uint64_t owner = hf__owner_of(lock, NULL);
    int now;

    if (hf__client_check(c))
        return hf__fail(err, HF_ECLOSED,
                        "the client was closed during the call");
    now = hf__verb_check(lock, t);
    hf__line_run(t->line, hf__now());
    if (rc == HF_ENOTOWNER || now == HF_ELOST)
        return hf__verb_lost(lock, t, err);
    if (now)
        return hf__fail_hold(t->line, owner, now, err);
    return rc ? hf__fail_word(c, &f->why, err, rc) : 0;
}

bool hf__verb_may_go_on(const hf_lock *lock, const struct hf__verb_call *t)
{
    return hf__now() < t->until && !hf__client_check(lock->line->client);
}

static int verb_unanswered(const hf_lock *lock, const struct hf__verb_call *t,
                           hf_error *err)
{
    hf_client *c = lock->line->client;

    return hf__fail(err, HF_EUNKNOWN, "%s: \"%s\": no answer to %s within %s%s",
                    c->be->name, hf__line_shown(lock->line).text, t->verb->what,
                    hf__span(c->op_timeout_ms).text, hf__trouble(c).text);
}

int hf__verb_run(hf_lock *lock, const struct hf__verb_call *what, hf_error *err)
{
    HF__UNCANCELLED;
    struct hf__verb_call t = *what;
    struct hf__sleeper s;
    hf_client *c;
    int rc = hf__lock_begin(lock, err);

    if (rc)
        return rc;
    c = lock->line->client;
    hf__sleeper_init(&s, NULL);
    t.sleeper = &s;
    t.line = lock->line;
    t.until = hf__op_deadline(c);
    rc = t.verb->begin(lock, &t, err);
    if (rc) {
        hf__line_unlock(lock->line);
        return rc;
    }
    hf__lock_wait_begin(lock);
    do
        rc = hf__request_await(c, t.request, t.until)
                 ? hf__verb_answered(lock, &t, err)
                 : verb_unanswered(lock, &t, err);
    while (rc == HF__PENDING);
    hf__lock_wait_end(lock, t.line);
    return rc;
}

/* Claims the handle and begins the verb. line->mu is held. */
static int verb_begin_async(hf_lock *lock, const struct hf__verb_call *what,
                            union hf__done done, void *arg, hf_error *err)
{
    int rc = hf__async_begin(lock, done, arg, err);
    struct hf__async *a = lock->async;

    if (rc)
        return rc;
    a->line = lock->line;
    a->call = *what;
    a->call.sleeper = &a->sleeper;
    a->call.line = lock->line;
    a->call.until = hf__op_deadline(lock->line->client);
    rc = what->verb->begin(lock, &a->call, err);
    if (rc)
        hf__async_undo(lock);
    return rc;
}

int hf__verb_run_async(hf_lock *lock, const struct hf__verb_call *what,
                       union hf__done done, void *arg, hf_error *err)
{
    HF__UNCANCELLED;
    int rc = hf__async_check(lock, done, err);
    hf_client *c;

    if (rc)
        return rc;
    c = lock->line->client;
    if (!hf__client_enter(c))
        return hf__fail(err, HF_ECLOSED, "the client was closed");
    rc = hf__lock_enter(lock, err);
    if (!rc) {
        rc = verb_begin_async(lock, what, done, arg, err);
        hf__line_unlock(lock->line);
    }
    hf__deliver(c, hf__now()); /* the answer may have arrived already */
    hf__helper_check_later(c);
    hf__client_leave(c);
    return rc;
}
