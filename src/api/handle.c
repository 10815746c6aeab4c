/* Handles: made and freed, and what one can ask of a hold without asking the
 * network. */
#include "core/client.h"

#include <stdio.h>
#include <string.h>

static const hf_lock_options by_default = HF_LOCK_OPTIONS_INIT;

const char *hf__kind_name(int kind)
{
    static const char *const names[] = {"?", "mutex", "read-write lock",
                                        "semaphore", "latch"};

    return names[kind >= HF_MUTEX && kind <= HF_LATCH ? kind : 0];
}

/* By the URL: a dialect may have fewer kinds than the backend. */
static int kind_missing(const hf_client *c, int kind, hf_error *err)
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

static int check_kind(const hf_client *c, const hf_lock_options *opt,
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
        return kind_missing(c, opt->kind, err);
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

static int check_options(const hf_client *c, const hf_lock_options *opt,
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
                        "max_hold_ms is %lld; 0 (no limit) to %lld would be "
                        "right",
                        (long long)opt->max_hold_ms, HF_TIME_MAX_MS);
    if (hf__lock_lease_valid("ttl_ms", opt->ttl_ms, "the client's", err))
        return HF_EINVAL;
    return check_kind(c, opt, last, err);
}

int hf__name_valid(const void *name, size_t *len, hf_error *err)
{
    if (!name)
        return hf__fail(err, HF_EINVAL, "the name is NULL");
    if (*len == HF_CSTRING)
        *len = strlen(name);
    if (*len == 0)
        return hf__fail(err, HF_EINVAL,
                        "the name is empty; it must have 1 to %d bytes",
                        HF_NAME_MAX);
    if (*len > HF_NAME_MAX)
        return hf__fail(err, HF_EINVAL,
                        "the name has %zu bytes; at most %d are allowed", *len,
                        HF_NAME_MAX);
    if (memchr(name, 0, *len))
        return hf__fail(err, HF_EINVAL,
                        "the name has a NUL in it; any other byte is allowed");
    return 0;
}

/* It may take until op_timeout: the caller is inside of the client. */
static int make_lock(hf_client *c, const void *name, size_t name_len,
                     const hf_lock_options *opt, hf_lock **out, hf_error *err)
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
    rc = hf__names_get(c, name, name_len, opt, &lock->name, err);
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
        rc = check_options(c, opt, last, err);
    if (rc)
        return rc;
    if (!hf__client_enter(c))
        return hf__fail(err, HF_ECLOSED, "the client was closed");
    rc = make_lock(c, name, name_len, opt, out, err);
    hf__client_leave(c);
    return rc;
}

int hf_lock_new(hf_client *c, const void *name, size_t name_len,
                const hf_lock_options *opt, hf_lock **out, hf_error *err)
{
    return hf__lock_new(c, name, name_len, opt ? opt : &by_default,
                        HF_SEMAPHORE, out, err);
}

/* name->mu and client->mu are held. A hold of a thread may be released through
 * any handle on the name, so only the last one keeps it from being freed. */
static bool keeps_locked(const hf_lock *lock, const struct hf__line *n)
{
    const struct hf__queue *g = &n->queue;

    if (!g->owner || g->lease.state != HF__HELD || g->lease.drop)
        return false;
    if (lock->owner && hf__queue_knows(g, lock->owner))
        return true;
    return lock->name->timer.handles == 1 && (g->shared || n->owner_thread);
}

/* Nobody will release through this handle what it has lost; nor, if it is the
 * last one, what threads have. */
static void forget_lost(const hf_lock *lock, bool is_last)
{
    struct hf__line *n, *next;

    for (n = hf__lines_newest(lock->name); n; n = next) {
        next = hf__lines_after(n);
        if (is_last)
            hf__queue_forget_all(&n->queue);
        else if (!lock->owner || !hf__queue_forget(&n->queue, lock->owner))
            continue;
        hf__lines_rest(n);
    }
}

/* What the clock has ended is not held, even if nobody has looked yet. */
static void notice_ends(struct hf__line *first)
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

static bool in_use_locked(const hf_lock *lock)
{
    if (lock->waits)
        return true;
    for (struct hf__line *n = hf__lines_newest(lock->name); n;
         n = hf__lines_after(n))
        if (keeps_locked(lock, n))
            return true;
    return false;
}

int hf_lock_free(hf_lock *lock)
{
    HF__UNCANCELLED;
    hf_client *c;
    bool in_use, is_last;

    if (!lock)
        return 0;
    c = lock->name->client;
    if (hf__client_check(c) == HF_EFORK)
        return HF_EFORK;
    hf__mutex_lock(&lock->name->mu);
    notice_ends(lock->name);
    hf__mutex_lock(&c->mu);
    in_use = in_use_locked(lock);
    is_last = lock->name->timer.handles == 1;
    if (!in_use)
        /* Of two that are freed at once, one is the last. */
        lock->name->timer.handles--;
    if (!in_use && lock->async)
        hf__timers_unreserve(&c->timers);
    hf__mutex_unlock(&c->mu);
    if (!in_use) {
        forget_lost(lock, is_last);
        hf__loss_fd_close(lock);
    }
    hf__line_unlock(lock->name);
    if (in_use)
        return HF_EBUSY;
    hf__names_put(lock->name);
    hf__free(c, lock->async);
    hf__free(c, lock);
    hf__client_put(c);
    return 0;
}

/* ---- what a holder may ask --------------------------------------------- */

/* name->mu is held. */
static unsigned permits_held(const hf_lock *lock)
{
    hf__time now = hf__now();
    unsigned sum = 0;

    for (struct hf__line *n = hf__lines_newest(lock->name); n;
         n = hf__lines_after(n))
        if (n->queue.owner == lock->owner &&
            !hf__lease_expired(&n->queue.lease, now))
            sum += n->kin->permits;
    return sum;
}

/* The caller's hold as it is now, and how often it has acquired it. */
static int look(hf_lock *lock, struct hf__lease *lease, unsigned *count,
                hf_error *err)
{
    struct hf__line *line;
    int rc = hf__lock_check(lock, err);

    if (!rc)
        rc = hf__lock_enter(lock, err);
    if (rc)
        return rc;
    rc = hf__pick_check(lock, &line, err);
    *lease = line->queue.lease;
    if (count && lock->name->remote.kind == HF_SEMAPHORE)
        *count = permits_held(lock);
    else if (count)
        *count = hf__queue_count(&line->queue, hf__owner_of(lock, NULL));
    hf__line_unlock(lock->name);
    return rc;
}

int hf_lock_check(hf_lock *lock)
{
    struct hf__lease lease;

    return look(lock, &lease, NULL, NULL);
}

int hf_lock_explain(hf_lock *lock, hf_error *why)
{
    struct hf__lease lease;
    int rc = look(lock, &lease, NULL, why);

    if (rc || !why)
        return rc;
    *why = (hf_error)HF_ERROR_INIT;
    if (lease.renew_at != HF__NEVER)
        hf__fail(why, HF_OK, "%s",
                 hf__doubt(lock->name->client, lease.refused).text);
    return 0;
}

int hf_lock_token(hf_lock *lock, uint64_t *token)
{
    struct hf__lease lease;
    int rc = token ? look(lock, &lease, NULL, NULL) : HF_EINVAL;

    if (!rc)
        *token = lease.token;
    return rc;
}

int hf_lock_deadline(hf_lock *lock, int64_t *boottime_ns)
{
    struct hf__lease lease;
    int rc = boottime_ns ? look(lock, &lease, NULL, NULL) : HF_EINVAL;

    if (!rc)
        *boottime_ns = lease.deadline;
    return rc;
}

int hf_lock_count(hf_lock *lock, unsigned *count)
{
    struct hf__lease lease;
    unsigned held;
    int rc = count ? look(lock, &lease, &held, NULL) : HF_EINVAL;

    if (!rc)
        *count = held;
    return rc;
}

int hf_lock_upgrade(hf_lock *lock, hf_error *err)
{
    int rc = hf_lock_explain(lock, err);

    if (rc)
        return rc;
    return hf__fail(err, HF_ENOTSUP,
                    "a read hold cannot become a write hold: two that try "
                    "would wait for each other for ever; release it first");
}

/* ---- HF_SYNCHRONIZED --------------------------------------------------- */

static __thread int synchronized_result;

hf_guard hf_guard_enter(hf_lock *lock)
{
    synchronized_result = hf_lock_acquire(lock, NULL, NULL);
    return (hf_guard){synchronized_result ? NULL : lock,
                      synchronized_result == 0};
}

void hf_guard_leave(hf_guard *guard)
{
    int rc;

    if (!guard->lock)
        return;
    rc = hf_lock_release(guard->lock, NULL);
    /* That it was lost meanwhile is worth knowing; what an inner block left
     * behind is not this block's result. */
    synchronized_result = rc;
}

int hf_synchronized_result(void)
{
    return synchronized_result;
}
