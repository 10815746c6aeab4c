#include "api/async.h"

#include "api/acquire.h"
#include "api/lock_verb.h"
#include "api/release.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/time.h"
#include "base/timer.h"
#include "base/uncancelled.h"
#include "core/async.h"
#include "core/callbacks.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/hooks.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/line_pick.h"
#include "core/lock.h"
#include "core/loss_fd.h"
#include "core/wakeup.h"
#include "loop/async_wait.h"
#include "policy/local_queue.h"

/* Creates the record of the handle's asynchronous verb. Returns NULL if out of
 * memory. */
static struct hf__async *async_make(hf_lock *lock)
{
    hf_client *c = lock->line->client;
    struct hf__async *a = hf__alloc(c, sizeof(*a));

    if (!a)
        return NULL;
    a->lock = lock;
    a->sleeper.is_async = true;
    a->waiter.state = HF__W_FINISHED;
    HF__HOLDING(&c->mu);
    if (!hf__timers_reserve(&c->hooks, &c->timers))
        return a;
    hf__free(c, a);
    return NULL;
}

int hf__async_begin(hf_lock *lock, union hf__done done, void *arg,
                    hf_error *err)
{
    struct hf__async *a = lock->async;

    if (a && a->busy)
        return hf__fail(err, HF_EBUSY,
                        "a verb of this handle is under way already");
    if (!a)
        a = lock->async = async_make(lock);
    if (!a)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    a->done = done;
    a->arg = arg;
    a->busy = true;
    lock->waits++;
    return 0;
}

void hf__async_undo(hf_lock *lock)
{
    lock->async->busy = false;
    lock->waits--;
}

int hf__async_check(hf_lock *lock, union hf__done done, hf_error *err)
{
    int rc = hf__lock_check(lock, err);

    if (rc)
        return rc;
    if (!done.lock)
        return hf__fail(err, HF_EINVAL, "done is NULL");
    if (!lock->owner)
        return hf__fail(err, HF_EINVAL,
                        "asynchronous verbs need HF_OWNER_HANDLE");
    return 0;
}

static void enter_async(hf_lock *lock, struct hf__async *a,
                        const hf_acquire_options *opt, hf__time now)
{
    hf_client *c = lock->line->client;
    int rc;

    a->grace = hf__answer_by(c, opt->wait_ms, now);
    a->since = now;
    hf__count_wait(c, lock->line->remote.kind);
    hf__mutex_lock(&c->mu);
    a->acquires = true;
    c->async_waits++;
    if (opt->wait_ms != HF_FOREVER)
        hf__timers_set(&c->timers, &a->timer, now + opt->wait_ms * HF__MS);
    hf__mutex_unlock(&c->mu);
    rc = hf__acquire_enter(a->line, &a->waiter, now);
    /* If a->acquires is cleared, hf__line_wake() has queued the callback
     * already. */
    if (rc != HF__PENDING && a->acquires) {
        a->waiter.state = HF__W_FINISHED;
        hf__callback_queue(a, rc);
    }
    hf__mutex_lock(&c->mu);
    hf__helper_due_locked(c, c->outer_fd < 0 ? 0 : hf__timers_next(&c->timers));
    hf__mutex_unlock(&c->mu);
}

/* Claims the handle and enters the queue. line->mu is held. */
static int async_begin_acquire(hf_lock *lock, const hf_acquire_options *opt,
                               union hf__done done, void *arg, hf_error *err)
{
    hf__time now = hf__now();
    struct hf__waiter w = {.is_async = true};
    struct hf__line *line;
    int rc = hf__async_begin(lock, done, arg, err);

    if (rc)
        return rc;
    hf__acquire_fill(lock, opt, &w);
    rc = hf__pick_for(lock, &w, opt->mode, now, &line, err);
    if (rc) {
        hf__async_undo(lock);
        return rc;
    }
    lock->async->waiter = w;
    lock->async->line = line;
    enter_async(lock, lock->async, opt, now);
    hf__lines_rest(line);
    return 0;
}

int hf__acquire_async(hf_lock *lock, const hf_acquire_options *opt,
                      union hf__done done, void *arg, hf_error *err)
{
    HF__UNCANCELLED;
    int rc = hf__async_check(lock, done, err);

    if (!rc)
        rc = hf__acquire_check_options(lock, opt, err);
    if (!rc)
        rc = hf__lock_enter(lock, err);
    if (rc)
        return rc;
    hf__loss_fd_heard(lock);
    rc = async_begin_acquire(lock, opt, done, arg, err);
    if (rc)
        hf__count_failed(lock);
    hf__line_unlock(lock->line);
    return rc;
}

int hf_lock_acquire_async(hf_lock *lock, const hf_acquire_options *opt,
                          hf_done_fn done, void *arg, hf_error *err)
{
    return hf__acquire_async(lock, opt ? opt : &hf__acquire_default,
                             (union hf__done){done}, arg, err);
}

/* Claims the handle and releases. line->mu is held. */
static int async_begin_release(hf_lock *lock, hf_done_fn done, void *arg,
                               hf_error *err)
{
    hf_client *c = lock->line->client;
    int rc = hf__async_begin(lock, (union hf__done){done}, arg, err), released;
    struct hf__async *a = lock->async;

    if (rc)
        return rc;
    a->releaser = (struct hf__releaser){.sleeper = &a->sleeper};
    a->waiter.state = HF__W_FINISHED;
    a->line = hf__pick_held(lock->line, lock->owner);
    released = hf__release_enter(a->line, lock->owner, &a->releaser);
    hf__loss_fd_released(lock, released);
    if (released == HF__PENDING) {
        hf__helper_timer(c, &a->timer, hf__op_deadline(c));
    } else if (!a->releaser.finished) {
        /* If the releaser has finished already, its callback is queued, and
         * another thread may be reading a->result, so nothing is changed. */
        a->releaser.finished = true;
        hf__callback_queue(a, released);
    }
    hf__helper_check_later(c);
    return 0;
}

int hf_lock_release_async(hf_lock *lock, hf_done_fn done, void *arg,
                          hf_error *err)
{
    HF__UNCANCELLED;
    int rc = hf__async_check(lock, (union hf__done){done}, err);

    if (!rc)
        rc = hf__lock_enter(lock, err);
    if (rc)
        return rc;
    rc = async_begin_release(lock, done, arg, err);
    hf__line_unlock(lock->line); /* then another thread may free the handle */
    return rc;
}

int hf_lock_cancel(hf_lock *lock)
{
    HF__UNCANCELLED;
    struct hf__async *a;
    int rc = hf__lock_begin(lock, NULL);

    if (rc)
        return rc;
    a = lock->async;
    if (a && a->busy && a->waiter.state != HF__W_FINISHED)
        hf__async_leave(a, HF_ECANCELED, hf__now());
    else if (a && a->busy)
        hf__async_give_up(a);
    hf__helper_check_later(lock->line->client); /* must come before the unlock,
                                                   after which the client may be
                                                   freed */
    hf__line_unlock(lock->line);
    return 0;
}
