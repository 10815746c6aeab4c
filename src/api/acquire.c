/*
 * Acquires a lock. Checks the arguments, turns the time limit into a deadline
 * (acquire_wait_for), waits, and decides how a wait has ended: EBUSY,
 * ETIMEDOUT, ECANCELED or EBACKEND (acquire_wait_over, acquire_result). In
 * shared memory an uncontended acquire bypasses the queue (acquire_quickly).
 */
#include "api/acquire.h"

#include "api/cancel.h"
#include "api/lock_verb.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/text.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/last_error.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/line_pick.h"
#include "core/lock.h"
#include "core/loss_fd.h"
#include "core/loss_reason.h"
#include "core/name_text.h"
#include "core/wakeup.h"
#include "loop/driver.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

struct acquire {
    struct hf__waiter w;
    struct hf__sleeper s;
    hf_lock *lock;
    struct hf__line *line;
    hf_cancel *cancel;
    hf__time until; /* the time limit of the caller */
    hf__time grace; /* the latest time to wait for the first answer */
    hf__time over;  /* when the thread found that the wait had ended */
    bool parks; /* direct: this thread may have to park for all waiters of the
                   line */
    bool held_here; /* EBUSY: an owner of this client, not another client, holds
                       the lock */
};

static int acquire_check_times(const hf_acquire_options *opt, hf_error *err)
{
    if (opt->wait_ms < HF_FOREVER || opt->wait_ms > HF_TIME_MAX_MS)
        return hf__fail(err, HF_EINVAL,
                        "wait_ms is %lld; it must be HF_FOREVER (-1), 0, or "
                        "at most HF_TIME_MAX_MS",
                        (long long)opt->wait_ms);
    return hf__lock_lease_valid("lease_ms", opt->lease_ms, "renewed", err);
}

int hf__acquire_check_options(const hf_lock *lock,
                              const hf_acquire_options *opt, hf_error *err)
{
    int kind = lock->line->remote.kind;

    if (opt->size != sizeof(*opt))
        return hf__fail(err, HF_EINVAL,
                        "the options were not set by HF_ACQUIRE_OPTIONS_INIT");
    if (opt->mode != HF_WRITE && (opt->mode != HF_READ || kind != HF_RWLOCK))
        return hf__fail(err, HF_EINVAL,
                        "mode %d: it must be HF_WRITE, or HF_READ on a "
                        "read-write lock",
                        (int)opt->mode);
    if (opt->permits > 1 && kind != HF_SEMAPHORE)
        return hf__fail(err, HF_EINVAL,
                        "permits is %u, and the lock is no semaphore; it must "
                        "be 0",
                        opt->permits);
    if (opt->permits > lock->line->remote.permits && kind == HF_SEMAPHORE)
        return hf__fail(err, HF_EINVAL, "permits is %u; the semaphore has %u",
                        opt->permits, lock->line->remote.permits);
    return acquire_check_times(opt, err);
}

int hf__acquire_enter(struct hf__line *n, struct hf__waiter *w, hf__time now)
{
    const struct hf__reader *entry = w->reader;
    int rc = hf__queue_enter(&n->queue, w, now);

    if (rc == HF__GRANTED) {
        if (entry ? n->queue.readers == entry
                  : hf__queue_count(&n->queue, w->owner) == 1)
            hf__line_own(n, w);
        hf__tally_hold(n);
        return rc;
    }
    /* Sends the attempt (PENDING), or reports a loss that hf__queue_enter() has
     * just found (ELOST). */
    if (rc == HF__PENDING || rc == HF_ELOST)
        hf__line_run(n, now);
    if (rc != HF__PENDING)
        return rc;
    if (w->state == HF__W_FINISHED)
        return w->result;
    /* If the handle itself, and not a thread, is the owner of a mutex or a
     * read-write lock, it can have only one acquire under way. */
    w->handle->acquiring = w->handle->owner && (n->remote.kind == HF_MUTEX ||
                                                n->remote.kind == HF_RWLOCK);
    return HF__PENDING;
}

/* Acquires without the queue, if hf__queue_quiet() allows that. Returns false
 * if it does not, or if the backend did not grant the lock. line->mu is
 * held. */
static inline bool acquire_quickly(struct hf__line *n, struct hf__waiter *w,
                                   bool shared)
{
    uint64_t id = n->queue.ids + 1;
    struct hf__req req = {.remote = &n->remote,
                          .op = HF__ATTEMPT,
                          .hold_id = id,
                          .lease_ms = w->lease_ms,
                          .permits = w->permits};

    if (!hf__queue_quiet(&n->queue, w))
        return false;
    n->queue.ids = id;
    if (n->client->be->attempt(n->client->self, &req) != HF__GRANTED)
        return false;
    if (shared)
        hf__queue_quick_share(&n->queue, w, id, req.token);
    else
        hf__queue_quick_grant(&n->queue, w, id, req.token);
    hf__tally_add(n, HF__TALLY_GRANT + HF__TALLY_HOLD);
    hf__tally_limit(n);
    if (shared || n->kin || n->owner_thread != w->thread || n->watchers)
        hf__line_own(n, w);
    else
        n->orphaned = false; /* this thread is the owner again */
    return true;
}

/* Does what acquire_quickly() does, for a name with several lines. */
static bool acquire_line_quickly(struct hf__line *first, struct hf__waiter *w,
                                 enum hf_mode mode)
{
    struct hf__line *n = hf__pick_quiet(first, w, mode);
    bool had = n && acquire_quickly(n, w, n->queue.shared);

    if (n)
        hf__pick_went(n, w, had);
    return had;
}

/* What acquire_wait_over() returns for a try whose answer did not come in time.
 * The program then gets EBACKEND. */
#define SILENCE (-1000)

/* Returns the error code with which the wait ends now. If the wait does not end
 * yet, returns PENDING and sets *until to the time to look again. */
static int acquire_wait_over(const struct acquire *a, const struct hf__lease *l,
                             hf__time now, hf__time *until)
{
    if (a->cancel &&
        (__atomic_load_n(a->s.word, __ATOMIC_SEQ_CST) & HF__CANCELLED))
        return HF_ECANCELED;
    if (__atomic_load_n(&a->lock->line->client->closed, __ATOMIC_ACQUIRE))
        return HF_ECLOSED;
    *until = a->until;
    if (hf__lease_unanswered(l) && a->grace > a->until)
        *until = a->grace;
    if (now < *until)
        return HF__PENDING;
    return a->w.is_try ? SILENCE : HF_ETIMEDOUT;
}

/* For direct backends only. Returns whether a thread must sleep inside the
 * backend (park) for this line, and no thread does so yet. */
static bool acquire_is_parkable(const struct hf__line *n)
{
    return !n->parker && n->queue.lease.state == HF__WAITING;
}

/* Returns whether an owner of this client holds the lock, through any line.
 * line->mu is held. */
static bool acquire_is_held_here(struct hf__line *first)
{
    struct hf__line *n = hf__lines_newest(first);

    while (n && !n->queue.owner)
        n = hf__lines_after(n);
    return n != NULL;
}

static bool acquire_ready(void *arg, hf__time now, hf__time *until)
{
    struct acquire *a = arg;
    struct hf__line *n = a->line;
    int rc = HF__PENDING;
    bool claimed;

    hf__line_lock(n);
    claimed = hf__queue_claim(&n->queue, &a->w, now);
    if (claimed) {
        hf__line_own(n, &a->w);
        hf__tally_hold(n);
    }
    if (a->w.state != HF__W_FINISHED)
        rc = acquire_wait_over(a, &n->queue.lease, now, until);
    if (rc != HF__PENDING)
        hf__queue_leave(&n->queue, &a->w, rc, hf__line_wake);
    if (claimed || rc != HF__PENDING) /* otherwise hf__line_wake() has done
                                         it */
        a->lock->acquiring = false;
    if (rc != HF__PENDING || n->queue.was_lost || n->queue.lease.drop)
        hf__line_run(n, now);
    rc = a->w.state == HF__W_FINISHED;
    a->held_here =
        rc && a->w.result == HF_EBUSY && acquire_is_held_here(a->lock->line);
    if (rc && a->w.result == HF__GRANTED)
        hf__lock_wait_leave(a->lock, a->line);
    a->parks = true;
    a->over = now;
    hf__line_unlock(n);
    return rc;
}

/* Sleeps inside the backend on behalf of all waiters of this line. Returns
 * false if that is not necessary, or if this thread must first look at its wait
 * again. */
static bool acquire_park(struct acquire *a, hf__time until)
{
    struct hf__line *n = a->line;
    hf_client *c = n->client;
    hf__time poll_at;
    uint32_t seen;

    hf__line_lock(n);
    /* The word is read here and not earlier, because line_find_parker() may
     * have changed it before now to make this thread park. With an older value,
     * park would return at once and the attempt would be repeated for nothing.
     * The next lines check for all other causes of a change. */
    seen = __atomic_load_n(a->s.word, __ATOMIC_SEQ_CST);
    if (!acquire_is_parkable(n) || a->w.state == HF__W_FINISHED ||
        a->w.roused || (seen & HF__CANCELLED)) {
        hf__line_unlock(n);
        return false;
    }
    n->parker = true;
    poll_at = n->queue.lease.poll_at;
    hf__line_unlock(n);
    c->be->park(c->self, &n->remote, a->s.word, seen,
                until < poll_at ? until : poll_at);
    __atomic_store_n(&a->s.posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    hf__line_lock(n);
    n->parker = false;
    hf__lease_bell(&n->queue.lease, hf__now());
    hf__line_run(n, hf__now());
    hf__line_unlock(n);
    return true;
}

static void acquire_direct_wait(struct acquire *a)
{
    for (;;) {
        uint32_t seen;
        hf__time until = HF__NEVER;

        if (hf__sleeper_checks(&a->s, &seen) &&
            acquire_ready(a, hf__now(), &until))
            break;
        __atomic_store_n(&a->s.posture, HF__PARKED, __ATOMIC_SEQ_CST);
        if (!a->parks || !acquire_park(a, until))
            hf__futex_wait(a->s.word, seen, until);
        __atomic_store_n(&a->s.posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    }
}

static int acquire_fail_busy(const struct acquire *a, const char *name,
                             hf_error *err)
{
    switch (a->lock->line->remote.kind) {
    case HF_LATCH:
        return hf__fail(err, HF_EBUSY, "\"%s\" is not at 0", name);
    case HF_SEMAPHORE:
        return hf__fail(err, HF_EBUSY,
                        "\"%s\" does not have that many permits free", name);
    default:
        return hf__fail(err, HF_EBUSY, "\"%s\" is held by another %s", name,
                        a->held_here ? "thread or handle of this client"
                                     : "client");
    }
}

static int acquire_result(const struct acquire *a,
                          const hf_acquire_options *opt, int rc, hf_error *err)
{
    hf_client *c = a->lock->line->client;
    struct hf__shown shown = hf__line_shown(a->lock->line);
    const char *name = shown.text;
    int kind = a->lock->line->remote.kind;

    switch (rc) {
    case HF__GRANTED:
        return 0;
    case HF_EBUSY:
        return acquire_fail_busy(a, name, err);
    case HF_ETIMEDOUT:
        return hf__fail(err, rc,
                        kind == HF_LATCH
                            ? "\"%s\" has not reached 0 within %s%s"
                            : "\"%s\" was not granted within %s%s",
                        name, hf__span(opt->wait_ms).text, hf__trouble(c).text);
    case HF_ECANCELED:
        return hf__fail(err, rc, "the wait for \"%s\" was cancelled", name);
    case HF_ECLOSED:
        return hf__fail(err, rc, "the client was closed during the wait");
    case HF_EDEADLK:
        return hf__fail(err, rc,
                        a->w.reentrant
                            ? "the caller holds \"%s\" already, as often as "
                              "can be counted"
                            : "the caller holds \"%s\" already, and the lock "
                              "is not reentrant",
                        name);
    case HF_ELOST:
        return hf__fail_unreleased(a->line, a->w.owner, err);
    case SILENCE:
        return hf__silence(c, err);
    default:
        if (a->w.err_set)
            return rc;
        /* A direct backend has failed during this call, so its last message is
         * about this failure. */
        return c->direct ? hf__fail_why(c, err, rc)
                         : hf__fail_word(c, NULL, err, rc);
    }
}

static int acquire_wait_for(struct acquire *a, const hf_acquire_options *opt,
                            hf__time latest)
{
    hf_lock *lock = a->lock;
    hf_client *c = lock->line->client;
    bool attached = a->cancel && !c->direct && hf__cancel_attach(a->cancel, c);

    a->until = HF__NEVER;
    a->grace = 0;
    if (opt->wait_ms != HF_FOREVER) {
        hf__time now = hf__now();

        a->until = now + opt->wait_ms * HF__MS;
        a->grace = hf__answer_by(c, opt->wait_ms, now);
        if (a->grace > latest)
            a->grace = latest;
    }
    if (c->direct)
        acquire_direct_wait(a);
    else
        hf__driver_wait(c, &a->s, acquire_ready, a);
    if (attached)
        hf__cancel_detach(a->cancel, c);
    return a->w.result;
}

const hf_acquire_options hf__acquire_default = HF_ACQUIRE_OPTIONS_INIT;

/* Acquires through the queue. line->mu is held on entry and unlocked on
 * return. */
static int acquire_slowly(struct acquire *a, const hf_acquire_options *opt,
                          hf__time latest, hf_error *err)
{
    HF__UNCANCELLED;
    hf_lock *lock = a->lock;
    hf_client *c = lock->line->client;
    enum hf_kind kind = lock->line->remote.kind;
    struct hf__waiter *w = &a->w;
    hf__time now = hf__lock_clock(lock->line, lock->line->kin || w->fixed ||
                                                  w->max_hold_ms);
    int rc = hf__pick_for(lock, w, opt->mode, now, &a->line, err);

    if (rc) {
        hf__count_failed(lock);
        hf__line_unlock(lock->line);
        return rc;
    }
    hf__sleeper_init(&a->s, opt->cancel);
    rc = hf__acquire_enter(a->line, w, now);
    if (rc != HF__PENDING) {
        hf__count_at_once(a->line, rc);
        hf__lines_rest(a->line);
        a->held_here = rc == HF_EBUSY && acquire_is_held_here(lock->line);
        /* The result is made before the unlock, after which the handle may be
         * freed. */
        rc = rc == HF__GRANTED ? 0 : acquire_result(a, opt, rc, err);
        hf__line_unlock(lock->line);
        return rc;
    }
    a->parks = acquire_is_parkable(a->line);
    a->s.fresh = !opt->cancel && opt->wait_ms == HF_FOREVER;
    hf__count_wait(c, kind);
    hf__lock_wait_begin(lock);
    if (!now)
        now = hf__now();
    rc = acquire_wait_for(a, opt, latest);
    hf__count_waited(c, kind, rc, a->over - now);
    if (rc == HF__GRANTED) {
        hf__client_leave(c); /* the handle and line may have been freed */
        return 0;
    }
    rc = acquire_result(a, opt, rc, err);
    hf__lock_wait_end(lock, a->line);
    return rc;
}

static inline __attribute__((always_inline)) int
acquire(hf_lock *lock, const hf_acquire_options *opt, hf__time latest,
        hf_error *err)
{
    struct acquire a;
    struct hf__line *n;
    int rc = hf__lock_check(lock, err);

    if (!opt)
        opt = &hf__acquire_default;
    else if (!rc)
        rc = hf__acquire_check_options(lock, opt, err);
    if (rc)
        return rc;
    a.w = (struct hf__waiter){.sleeper = &a.s, .err = err};
    a.lock = lock;
    a.cancel = opt->cancel;
    hf__acquire_fill(lock, opt, &a.w);
    if (!a.w.owner) {
        hf__count_failed(lock);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    rc = hf__lock_enter(lock, err);
    if (rc)
        return rc;
    hf__loss_fd_heard(lock);
    n = lock->line;
    if (n->client->direct && (n->kin ? acquire_line_quickly(n, &a.w, opt->mode)
                                     : acquire_quickly(n, &a.w, false))) {
        hf__line_unlock_first(n);
        return 0;
    }
    return acquire_slowly(&a, opt, latest, err);
}

int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *opt, hf_error *err)
{
    return acquire(lock, opt, HF__NEVER, err);
}

int hf__acquire_by(hf_lock *lock, const hf_acquire_options *opt,
                   hf__time latest, hf_error *err)
{
    return acquire(lock, opt, latest, err);
}

int hf_lock_try(hf_lock *lock, hf_error *err)
{
    return hf_lock_timed(lock, 0, err);
}

int hf_lock_timed(hf_lock *lock, int64_t wait_ms, hf_error *err)
{
    hf_acquire_options opt = hf__acquire_default;

    opt.wait_ms = wait_ms;
    return hf_lock_acquire(lock, &opt, err);
}
