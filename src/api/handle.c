#include "api/handle.h"

#include "api/lock_verb.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "base/timer.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/lock.h"
#include "core/loss_fd.h"
#include "core/name_table.h"
#include "core/name_text.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

#include <stdio.h>
#include <string.h>

static const hf_lock_options by_default = HF_LOCK_OPTIONS_INIT;

/* Fails because the client cannot have locks of this kind. The URL matters,
 * too: for example, the zookeeper backend has no semaphore with
 * dialect=kazoo. */
static int handle_kind_missing(const hf_client *c, int kind, hf_error *err)
{
    char has[64] = "";

    for (int i = HF_MUTEX; i <= HF_LATCH; i++)
        if (c->caps[i])
            snprintf(has + strlen(has), sizeof(has) - strlen(has), "%s%s",
                     *has ? ", " : "", hf__kind_name(i));
    if (!c->be->caps[kind])
        return hf__fail(err, HF_ENOTSUP,
                        "the %s backend has no %s, only: %s; other backends "
                        "have one",
                        c->be->name, hf__kind_name(kind), has);
    return hf__fail(err, HF_ENOTSUP,
                    "the %s backend has no %s with this URL; it has: %s",
                    c->be->name, hf__kind_name(kind), has);
}

static int handle_check_kind(const hf_client *c, const hf_lock_options *opt,
                             enum hf_kind last, hf_error *err)
{
    int caps;

    if (opt->kind < HF_MUTEX || opt->kind > last)
        return hf__fail(err, HF_EINVAL,
                        "kind %d: it must be HF_MUTEX, HF_RWLOCK or "
                        "HF_SEMAPHORE",
                        (int)opt->kind);
    caps = c->caps[opt->kind];
    if (!caps)
        return handle_kind_missing(c, opt->kind, err);
    if ((opt->kind == HF_SEMAPHORE) != (opt->permits != 0))
        return hf__fail(err, HF_EINVAL,
                        "permits is %u; it must be 1 or more for a semaphore, "
                        "and 0 for any other lock",
                        opt->permits);
    if ((unsigned)opt->fairness > HF_UNFAIR)
        return hf__fail(err, HF_EINVAL,
                        "fairness is %d; it must be HF_FAIR_DEFAULT (0), "
                        "HF_FAIR (1) or HF_UNFAIR (2)",
                        (int)opt->fairness);
    if ((opt->fairness == HF_FAIR && !(caps & HF_CAP_FAIR)) ||
        (opt->fairness == HF_UNFAIR && !(caps & HF_CAP_UNFAIR)))
        return hf__fail(
            err, HF_ENOTSUP,
            "the %s backend has no %s %s with this URL, only %s", c->be->name,
            opt->fairness == HF_FAIR ? "fair" : "unfair",
            hf__kind_name(opt->kind),
            opt->fairness == HF_FAIR ? "an unfair one" : "a fair one");
    return 0;
}

static int handle_check_options(const hf_client *c, const hf_lock_options *opt,
                                enum hf_kind last, hf_error *err)
{
    if (opt->size != sizeof(*opt))
        return hf__fail(err, HF_EINVAL,
                        "the options were not set by HF_LOCK_OPTIONS_INIT");
    if (opt->flags & ~(unsigned)(HF_OWNER_HANDLE | HF_NOT_REENTRANT))
        return hf__fail(err, HF_EINVAL,
                        "flags is %#x; HF_OWNER_HANDLE (1) and "
                        "HF_NOT_REENTRANT (2) are all there are",
                        opt->flags);
    if (opt->handoff > HF__HANDOFF_MAX)
        return hf__fail(err, HF_EINVAL, "handoff is %u; it must be at most %u",
                        opt->handoff, HF__HANDOFF_MAX);
    if (opt->max_hold_ms < 0 || opt->max_hold_ms > HF_TIME_MAX_MS)
        return hf__fail(err, HF_EINVAL,
                        "max_hold_ms is %lld; it must be 0 (no limit) to %lld",
                        (long long)opt->max_hold_ms, HF_TIME_MAX_MS);
    if (hf__lock_lease_valid("ttl_ms", opt->ttl_ms, "the client's", err))
        return HF_EINVAL;
    return handle_check_kind(c, opt, last, err);
}

/* Creates the handle. This may take up to op_timeout. The caller has called
 * hf__client_enter(), so the client stays during this time. */
static int handle_make_lock(hf_client *c, const void *name, size_t name_len,
                            const hf_lock_options *opt, hf_lock **out,
                            hf_error *err)
{
    hf_lock *lock = hf__alloc(c, sizeof(*lock));
    int rc;

    if (!lock)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    lock->loss_fd = -1;
    lock->flags = opt->flags & 3;
    lock->handoff = opt->handoff & HF__HANDOFF_MAX;
    lock->max_hold_ms = opt->max_hold_ms;
    lock->ttl_ms = opt->ttl_ms ? (uint32_t)opt->ttl_ms : c->ttl_ms;
    if (lock->flags & HF_OWNER_HANDLE || opt->kind == HF_SEMAPHORE)
        lock->owner = hf__owner_number() | HF__HANDLE_OWNS;
    rc = hf__names_get(c, name, name_len, opt, &lock->line, err);
    if (rc)
        hf__free(c, lock);
    else
        *out = lock;
    return rc;
}

int hf__lock_new(hf_client *c, const void *name, size_t name_len,
                 const hf_lock_options *opt, enum hf_kind last, hf_lock **out,
                 hf_error *err)
{
    HF__UNCANCELLED;
    int rc;

    if (!out)
        return hf__fail(err, HF_EINVAL, "out is NULL");
    *out = NULL;
    rc = hf__client_usable(c, err);
    if (!rc)
        rc = hf__name_valid(name, &name_len, err);
    if (!rc)
        rc = handle_check_options(c, opt, last, err);
    if (rc)
        return rc;
    if (!hf__client_enter(c))
        return hf__fail(err, HF_ECLOSED, "the client was closed");
    rc = handle_make_lock(c, name, name_len, opt, out, err);
    hf__client_leave(c);
    return rc;
}

int hf_lock_new(hf_client *c, const void *name, size_t name_len,
                const hf_lock_options *opt, hf_lock **out, hf_error *err)
{
    return hf__lock_new(c, name, name_len, opt ? opt : &by_default,
                        HF_SEMAPHORE, out, err);
}

/* Returns whether a hold keeps the handle from being freed. A thread's hold can
 * be released through any handle of the name, so it keeps only the last handle.
 * line->mu and client->mu are held. */
static bool handle_keeps_locked(const hf_lock *lock, const struct hf__line *n)
{
    const struct hf__queue *g = &n->queue;

    if (!g->owner || g->lease.state != HF__HELD || g->lease.drop)
        return false;
    if (lock->owner && hf__queue_knows(g, lock->owner))
        return true;
    return lock->line->timer.handles == 1 && (g->shared || n->owner_thread);
}

/* Forgets the lost holds that can no longer be released: those of the handle
 * and, if it is the last one, those of threads. */
static void handle_forget_lost(const hf_lock *lock, bool is_last)
{
    struct hf__line *n, *next;

    for (n = hf__lines_newest(lock->line); n; n = next) {
        next = hf__lines_after(n);
        if (is_last)
            hf__queue_forget_all(&n->queue);
        else if (!lock->owner || !hf__queue_forget(&n->queue, lock->owner))
            continue;
        hf__lines_rest(n);
    }
}

/* Ends the holds whose deadline has passed, even if that was not noticed yet,
 * so that they no longer count as held. */
static void handle_notice_ends(struct hf__line *first)
{
    hf__time now = hf__now();
    struct hf__line *n, *next;

    for (n = hf__lines_newest(first); n; n = next) {
        next = hf__lines_after(n);
        if (!n->queue.owner || !hf__lease_expired(&n->queue.lease, now))
            continue;
        hf__queue_tick(&n->queue, now, hf__line_wake);
        hf__line_run(n, now);
    }
}

/* Removes the handle from its line. Returns 0, or EBUSY if the handle is in
 * use. line->mu is held. */
static int handle_uncount(hf_lock *lock)
{
    hf_client *c = lock->line->client;

    HF__HOLDING(&c->mu);
    if (lock->waits)
        return HF_EBUSY;
    for (struct hf__line *n = hf__lines_newest(lock->line); n;
         n = hf__lines_after(n))
        if (handle_keeps_locked(lock, n))
            return HF_EBUSY;
    if (lock->async)
        hf__timers_unreserve(&c->timers);
    /* The number of handles is decremented and compared with 0 in one step. If
     * the last two handles are freed at the same time, exactly one of them is
     * therefore the last. */
    handle_forget_lost(lock, --lock->line->timer.handles == 0);
    return 0;
}

int hf_lock_free(hf_lock *lock)
{
    HF__UNCANCELLED;
    hf_client *c;
    int rc;

    if (!lock)
        return 0;
    c = lock->line->client;
    if (hf__client_check(c) == HF_EFORK)
        return HF_EFORK;
    hf__mutex_lock(&lock->line->mu);
    handle_notice_ends(lock->line);
    rc = handle_uncount(lock);
    if (!rc)
        hf__loss_fd_close(lock);
    hf__line_unlock(lock->line);
    if (rc)
        return rc;
    hf__names_put(lock->line);
    hf__free(c, lock->async);
    hf__free(c, lock);
    hf__client_put(c);
    return 0;
}
