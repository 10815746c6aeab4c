/*
 * The verbs of a lock: arguments are checked here, and here threads wait.
 */
#include "core/client.h"

#include <errno.h>
#include <string.h>

int hf__lock_unusable(const hf_lock *lock, hf_error *err)
{
    if (!lock)
        return hf__fail(err, HF_EINVAL, "the lock is NULL");
    if (hf__client_check(lock->name->client) == HF_EFORK)
        return hf__fail(err, HF_EFORK,
                        "this lock is the parent process's; open a client in "
                        "the child");
    return hf__fail(err, HF_ECLOSED, "the client of this lock was closed");
}

/* Reading the clock costs as much as the rest of an acquire in shared memory:
 * only where the hold, this caller or the next one has an end. */
static hf__time clock_for(const struct hf__line *n, bool timed)
{
    const struct hf__queue *g = &n->queue;

    return timed || !n->client->endless || g->lease.deadline != HF__NEVER ||
                   (g->head && g->head->max_hold_ms)
               ? hf__now()
               : 0;
}

/* ---- acquire ----------------------------------------------------------- */

struct acquire {
    struct hf__waiter w;
    struct hf__sleeper s;
    hf_lock *lock;
    struct hf__line *line;
    hf_cancel *cancel;
    hf__time until; /* the caller's */
    hf__time grace; /* for the first answer */
    hf__time over;  /* when it was found to be finished */
    bool parks;     /* direct: it may have to sleep at the backend for all */
    bool held_here; /* EBUSY: by another owner of this client */
};

int hf__lease_valid(const char *field, int64_t ms, const char *zero,
                    hf_error *err)
{
    if (ms == 0 || (ms >= HF_LEASE_MIN_MS && ms <= HF__MS_MAX))
        return 0;
    return hf__fail(
        err, HF_EINVAL, "%s is %lld; it must be 0 (%s), or %d to %lld", field,
        (long long)ms, zero, HF_LEASE_MIN_MS, (long long)HF__MS_MAX);
}

static int check_times(const hf_acquire_options *opt, hf_error *err)
{
    if (opt->wait_ms < HF_FOREVER || opt->wait_ms > HF_TIME_MAX_MS)
        return hf__fail(err, HF_EINVAL,
                        "wait_ms is %lld; it must be HF_FOREVER (-1), 0, or "
                        "at most HF_TIME_MAX_MS",
                        (long long)opt->wait_ms);
    return hf__lease_valid("lease_ms", opt->lease_ms, "renewed", err);
}

int hf__acquire_check_options(const hf_lock *lock,
                              const hf_acquire_options *opt, hf_error *err)
{
    int kind = lock->name->remote.kind;

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
    if (opt->permits > lock->name->remote.permits && kind == HF_SEMAPHORE)
        return hf__fail(err, HF_EINVAL, "permits is %u; the semaphore has %u",
                        opt->permits, lock->name->remote.permits);
    return check_times(opt, err);
}

int hf__enter(struct hf__line *n, struct hf__waiter *w, hf__time now)
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
    if (rc == HF__PENDING || rc == HF_ELOST) /* that may be news */
        hf__line_run(n, now);
    if (rc != HF__PENDING)
        return rc;
    if (w->state == HF__W_FINISHED)
        return w->result;
    /* What a handle owns it acquires once, by one thread. */
    w->handle->acquiring = w->handle->owner && (n->remote.kind == HF_MUTEX ||
                                                n->remote.kind == HF_RWLOCK);
    return HF__PENDING;
}

/* See hf__queue_quiet(); name->mu is held. */
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
    hf__tally_add(n, HF__TALLY_GRANT);
    hf__tally_limit(n);
    if (shared || n->kin || n->owner_thread != w->thread || n->watchers)
        hf__line_own(n, w);
    else
        n->orphaned = false; /* the same thread again */
    return true;
}

/* One of several lines to the name. */
static bool acquire_line_quickly(struct hf__line *first, struct hf__waiter *w,
                                 enum hf_mode mode)
{
    struct hf__line *n = hf__pick_quiet(first, w, mode);
    bool had = n && acquire_quickly(n, w, n->queue.shared);

    if (n)
        hf__pick_went(n, w, had);
    return had;
}

/* Its owner has let it go, and the backend has not: as any other release that
 * was refused it is repeated until it succeeds. */
static __attribute__((noinline)) int release_refused(struct hf__line *n, int rc)
{
    struct hf__lease *l = &n->queue.lease;

    if (rc == HF_ENOTOWNER) {
        hf__count(&n->client->counts.lost, 1);
        return HF_ELOST;
    }
    l->state = HF__HELD;
    hf__lease_drop(l);
    hf__line_run(n, hf__now());
    return hf__lease_lets_go(l) ? rc : 0;
}

static inline bool release_quickly(struct hf__line *n, uint64_t owner,
                                   bool has_kin, int *rc)
{
    struct hf__req req = {.remote = &n->remote, .op = HF__RELEASE};

    if (!n->client->direct || !hf__queue_quick_release(&n->queue, owner))
        return false;
    req.hold_id = n->queue.lease.hold_id;
    if (has_kin)
        hf__pick_rest(n);
    if ((has_kin ? n->kin->first : n)->watchers)
        hf__loss_fd_arm_of(n, owner);
    *rc = n->client->be->release(n->client->self, &req);
    hf__tally_add(n, HF__TALLY_RELEASE);
    if (__builtin_expect(*rc != HF__DONE, 0))
        *rc = release_refused(n, *rc);
    return true;
}

/* Of the line that the owner holds; name->mu is held. */
static bool release_line_quickly(struct hf__line *first, uint64_t owner,
                                 struct hf__line **line, int *rc)
{
    *line = hf__pick_held(first, owner);
    return release_quickly(*line, owner, true, rc);
}

void hf__wait_begin(hf_lock *lock)
{
    hf_client *c = lock->name->client;

    lock->waits++;
    hf__mutex_lock(&c->mu);
    c->inside++;
    hf__mutex_unlock(&c->mu);
    hf__line_unlock(lock->name);
}

/* The first half of its end, for who has name->mu: once that is free the handle
 * may go, and the name with it. The other half is hf__client_leave(). */
static void wait_leave(hf_lock *lock, struct hf__line *line)
{
    lock->waits--;
    hf__pick_rest(line);
}

void hf__wait_end(hf_lock *lock, struct hf__line *line)
{
    hf_client *c = lock->name->client;

    hf__line_lock(line);
    wait_leave(lock, line);
    hf__line_unlock(line);
    hf__client_leave(c);
}

/* A try that was not answered in time; its caller hears EBACKEND. */
#define SILENCE (-1000)

/* Why the wait is over, or PENDING. */
static int wait_over(const struct acquire *a, const struct hf__lease *l,
                     hf__time now, hf__time *until)
{
    if (a->cancel &&
        (__atomic_load_n(a->s.word, __ATOMIC_SEQ_CST) & HF__CANCELLED))
        return HF_ECANCELED;
    if (__atomic_load_n(&a->lock->name->client->closed, __ATOMIC_ACQUIRE))
        return HF_ECLOSED;
    *until = a->until;
    if (hf__lease_unanswered(l) && a->grace > a->until)
        *until = a->grace;
    if (now < *until)
        return HF__PENDING;
    return a->w.is_try ? SILENCE : HF_ETIMEDOUT;
}

/* Direct: somebody has to sleep at the backend. */
static bool is_parkable(const struct hf__line *n)
{
    return !n->parker && n->queue.lease.state == HF__WAITING;
}

/* Somebody here has it, through whatever line; name->mu is held. */
static bool is_held_here(struct hf__line *first)
{
    struct hf__line *n = hf__pick_newest(first);

    while (n && !n->queue.owner)
        n = hf__pick_after(n);
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
        rc = wait_over(a, &n->queue.lease, now, until);
    if (rc != HF__PENDING)
        hf__queue_leave(&n->queue, &a->w, rc, hf__line_wake);
    if (claimed || rc != HF__PENDING) /* else whoever ended it has said so */
        a->lock->acquiring = false;
    if (rc != HF__PENDING || n->queue.was_lost || n->queue.lease.drop)
        hf__line_run(n, now);
    rc = a->w.state == HF__W_FINISHED;
    a->held_here = rc && a->w.result == HF_EBUSY && is_held_here(a->lock->name);
    if (rc && a->w.result == HF__GRANTED)
        wait_leave(a->lock, a->line);
    a->parks = true;
    a->over = now;
    hf__line_unlock(n);
    return rc;
}

/* Sleeps at the backend for everybody who waits for this name here. */
static bool park(struct acquire *a, hf__time until)
{
    struct hf__line *n = a->line;
    hf_client *c = n->client;
    hf__time look_at;
    uint32_t seen;

    hf__line_lock(n);
    /* Up to here it may have been told to park (find_parker), as it does now:
     * with an older word it would not sleep, and ask again for nothing. All
     * else that it may have been told is looked at here. */
    seen = __atomic_load_n(a->s.word, __ATOMIC_SEQ_CST);
    if (!is_parkable(n) || a->w.state == HF__W_FINISHED || a->w.roused ||
        (seen & HF__CANCELLED)) {
        hf__line_unlock(n);
        return false;
    }
    n->parker = true;
    look_at = n->queue.lease.look_at;
    hf__line_unlock(n);
    c->be->park(c->self, &n->remote, a->s.word, seen,
                until < look_at ? until : look_at);
    __atomic_store_n(&a->s.posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    hf__line_lock(n);
    n->parker = false;
    hf__lease_bell(&n->queue.lease, hf__now());
    hf__line_run(n, hf__now());
    hf__line_unlock(n);
    return true;
}

static void direct_wait(struct acquire *a)
{
    for (;;) {
        uint32_t seen;
        hf__time until = HF__NEVER;

        if (hf__sleeper_looks(&a->s, &seen) &&
            acquire_ready(a, hf__now(), &until))
            break;
        __atomic_store_n(&a->s.posture, HF__PARKED, __ATOMIC_SEQ_CST);
        if (!a->parks || !park(a, until))
            hf__futex_wait(a->s.word, seen, until);
        __atomic_store_n(&a->s.posture, HF__AWAKE, __ATOMIC_SEQ_CST);
    }
}

static int tell_busy(const struct acquire *a, const char *name, hf_error *err)
{
    switch (a->lock->name->remote.kind) {
    case HF_LATCH:
        return hf__fail(err, HF_EBUSY, "\"%s\" has not come to 0", name);
    case HF_SEMAPHORE:
        return hf__fail(err, HF_EBUSY,
                        "\"%s\" does not have that many permits free", name);
    default:
        return hf__fail(err, HF_EBUSY, "\"%s\" is held by another %s", name,
                        a->held_here ? "thread or handle of this client"
                                     : "client");
    }
}

static int tell(const struct acquire *a, const hf_acquire_options *opt, int rc,
                hf_error *err)
{
    hf_client *c = a->lock->name->client;
    struct hf__shown shown = hf__line_shown(a->lock->name);
    const char *name = shown.text;
    int kind = a->lock->name->remote.kind;

    switch (rc) {
    case HF__GRANTED:
        return 0;
    case HF_EBUSY:
        return tell_busy(a, name, err);
    case HF_ETIMEDOUT:
        return hf__fail(err, rc,
                        kind == HF_LATCH
                            ? "\"%s\" has not come to 0 within %lld ms%s"
                            : "\"%s\" was not granted within %lld ms%s",
                        name, (long long)opt->wait_ms, hf__trouble(c).text);
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
        if (a->w.told)
            return rc;
        /* One that answers at once has just said why. */
        return c->direct ? hf__fail_why(c, err, rc)
                         : hf__fail_word(c, NULL, err, rc);
    }
}

/* From here on, who fires wakes the client's driver. False: it was fired
 * before. */
static bool cancel_attach(hf_cancel *cancel, hf_client *c)
{
    __atomic_store_n(&cancel->client, c, __ATOMIC_SEQ_CST);
    return !(__atomic_fetch_or(&cancel->word, HF__ATTACHED, __ATOMIC_SEQ_CST) &
             HF__CANCELLED);
}

/* A thread that has fired meanwhile may not have come to the client yet: it is
 * counted here, and counts itself out. HF__ATTACHED is set, so adding it clears
 * it and changes the rest of the word: a firing that has read the old word and
 * this client starts again, also if the next wait, of another client, is
 * attached by then. */
static void cancel_detach(hf_cancel *cancel, hf_client *c)
{
    if (__atomic_fetch_add(&cancel->word, HF__ATTACHED, __ATOMIC_SEQ_CST) &
        HF__CANCELLED)
        __atomic_add_fetch(&c->firing, 1, __ATOMIC_SEQ_CST);
}

static int wait_for(struct acquire *a, const hf_acquire_options *opt,
                    hf__time latest)
{
    hf_lock *lock = a->lock;
    hf_client *c = lock->name->client;
    bool attached = a->cancel && !c->direct && cancel_attach(a->cancel, c);

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
        direct_wait(a);
    else
        hf__engine_wait(c, &a->s, acquire_ready, a);
    if (attached)
        cancel_detach(a->cancel, c);
    return a->w.result;
}

const hf_acquire_options hf__acquire_default = HF_ACQUIRE_OPTIONS_INIT;

/* name->mu is held, and free afterwards. */
static int acquire_slowly(struct acquire *a, const hf_acquire_options *opt,
                          hf__time latest, hf_error *err)
{
    HF__UNCANCELLED;
    hf_lock *lock = a->lock;
    hf_client *c = lock->name->client;
    enum hf_kind kind = lock->name->remote.kind;
    struct hf__waiter *w = &a->w;
    hf__time now =
        clock_for(lock->name, lock->name->kin || w->fixed || w->max_hold_ms);
    int rc = hf__pick_for(lock, w, opt->mode, now, &a->line, err);

    if (rc) {
        hf__count_failed(lock);
        hf__line_unlock(lock->name);
        return rc;
    }
    hf__sleeper_init(&a->s, opt->cancel);
    rc = hf__enter(a->line, w, now);
    if (rc != HF__PENDING) {
        hf__count_at_once(a->line, rc);
        hf__pick_rest(a->line);
        a->held_here = rc == HF_EBUSY && is_held_here(lock->name);
        /* Once unlocked, it may be gone. */
        rc = rc == HF__GRANTED ? 0 : tell(a, opt, rc, err);
        hf__line_unlock(lock->name);
        return rc;
    }
    a->parks = is_parkable(a->line);
    a->s.fresh = !opt->cancel && opt->wait_ms == HF_FOREVER;
    hf__count_wait(c, kind);
    hf__wait_begin(lock);
    if (!now)
        now = hf__now();
    rc = wait_for(a, opt, latest);
    hf__count_waited(c, kind, rc, a->over - now);
    if (rc == HF__GRANTED) {
        hf__client_leave(c); /* handle and line may be gone */
        return 0;
    }
    rc = tell(a, opt, rc, err);
    hf__wait_end(lock, a->line);
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
    hf__lock_heard(lock);
    n = lock->name;
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

void hf_cancel_init(hf_cancel *cancel)
{
    if (cancel)
        *cancel = (hf_cancel)HF_CANCEL_INIT;
}

/* Once it is fired the wait may return, and the cancel be gone. So all that is
 * in it is read before, and was so at the moment of firing; its client stays
 * until the firing has counted itself out. */
void hf_cancel_fire(hf_cancel *cancel)
{
    int saved = errno;
    hf_client *c;
    uint32_t word;

    if (!cancel)
        return;
    word = __atomic_load_n(&cancel->word, __ATOMIC_SEQ_CST);
    do {
        if (word & HF__CANCELLED)
            return;
        c = __atomic_load_n(&cancel->client, __ATOMIC_SEQ_CST);
    } while (!__atomic_compare_exchange_n(&cancel->word, &word,
                                          word | HF__CANCELLED, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    hf__futex_wake(&cancel->word, 1);
    if ((word & HF__ATTACHED) && hf__client_check(c) != HF_EFORK) {
        hf__fd_post(c->wake_fd);
        __atomic_sub_fetch(&c->firing, 1, __ATOMIC_SEQ_CST);
    }
    errno = saved;
}

/* ---- release ----------------------------------------------------------- */

static bool release_ready(void *arg, hf__time now, hf__time *until)
{
    const struct hf__releasing *r = arg;
    bool settled;

    hf__line_lock(r->line);
    settled = r->releaser.settled;
    hf__line_unlock(r->line);
    *until = r->until;
    return settled || now >= r->until;
}

void hf__releaser_forget(struct hf__line *n, struct hf__releaser *r)
{
    struct hf__releaser **p = &n->releasers;

    while (*p && *p != r)
        p = &(*p)->next;
    if (*p)
        *p = r->next;
}

/* Through the queue, with name->mu held. PENDING: r will be settled. */
int hf__release(struct hf__line *n, uint64_t owner, struct hf__releaser *r)
{
    hf__time now = clock_for(n, false);
    int rc;

    if (r)
        r->hold_id = n->queue.lease.hold_id;
    rc = hf__queue_release(&n->queue, owner, now, hf__line_wake);
    hf__tally_release(n, rc);
    hf__pick_rest(n);
    if ((rc == HF__DONE || (rc == HF__PENDING && n->queue.shared)) &&
        hf__line_first(n)->watchers)
        hf__loss_fd_arm_of(n,
                           owner); /* who has left: others may have it still */
    if (rc == HF__PENDING)
        return 0; /* somebody local has it still, or again */
    if (rc == HF__DONE && r) {
        r->next = n->releasers;
        n->releasers = r;
    }
    hf__line_run(n, now);
    if (rc == HF__DONE && r)
        return r->settled ? r->result : HF__PENDING;
    return rc;
}

/* loss: why, if it is lost; word: what the server said of another failure. */
static int release_failed(const hf_lock *lock, int rc, struct hf__loss loss,
                          const hf_error *word, hf_error *err)
{
    if (rc == HF_ENOTOWNER)
        return hf__fail(err, rc, "this %s does not hold \"%s\"",
                        lock->owner ? "handle" : "thread",
                        hf__line_shown(lock->name).text);
    if (rc == HF_ELOST)
        return hf__fail_loss(lock->name, loss, err);
    if (lock->name->client->direct)
        return hf__fail_why(lock->name->client, err, rc);
    return hf__fail_word(lock->name->client, word, err, rc);
}

/* A hold of shared memory without a lease does not end by itself. */
static const struct hf__loss broken = {.why = HF__LOSS_TAKEN};
/* A lease may have ended on the way to the server. */
static const struct hf__loss too_late = {.why = HF__LOSS_RELEASE};

/* A release said ELOST: here, or by its answer if it is settled. */
static struct hf__loss why_lost(const struct hf__line *line, uint64_t owner,
                                const struct hf__releaser *r)
{
    if (!r->settled)
        return hf__queue_loss(&line->queue, owner);
    return line->client->direct ? broken : too_late;
}

void hf__see_to_it(hf_client *c)
{
    if (c->direct)
        return;
    hf__mutex_lock(&c->mu);
    if (c->under_way || c->landed)
        hf__helper_due_locked(c, hf__now() + HF__PATIENCE);
    hf__mutex_unlock(&c->mu);
}

/* name->mu is held. It is free afterwards, and the lock may be gone unless this
 * is PENDING. */
static int release_slowly(struct hf__releasing *r, uint64_t owner, bool waits,
                          hf_error *err)
{
    HF__UNCANCELLED;
    hf_lock *lock = r->lock;
    int rc;

    hf__sleeper_init(&r->sleeper, NULL);
    r->word.code = 0;
    r->releaser =
        (struct hf__releaser){.sleeper = &r->sleeper, .word = &r->word};
    rc = hf__release(r->line, owner, waits ? &r->releaser : NULL);
    hf__lock_released(lock, rc);
    if (rc != HF__PENDING) {
        if (rc)
            rc =
                release_failed(lock, rc, why_lost(r->line, owner, &r->releaser),
                               &r->word, err);
        if (!waits)
            hf__see_to_it(lock->name->client);
        hf__line_unlock_first(lock->name);
        return rc;
    }
    r->until = hf__patience(lock->name->client);
    hf__wait_begin(lock);
    return HF__PENDING;
}

/* waits: its answer is waited for. */
static inline __attribute__((always_inline)) int
release_begin(hf_lock *lock, struct hf__releasing *r, bool waits, hf_error *err)
{
    uint64_t owner;
    int rc = hf__lock_check(lock, err);

    r->lock = lock;
    if (rc)
        return rc;
    owner = hf__owner_of(lock, NULL);
    if (!owner) /* out of memory: it has never acquired anything */
        return release_failed(lock, HF_ENOTOWNER, broken, NULL, err);
    rc = hf__lock_enter(lock, err);
    if (rc)
        return rc;
    r->line = lock->name;
    if (r->line->kin ? release_line_quickly(lock->name, owner, &r->line, &rc)
                     : release_quickly(r->line, owner, false, &rc)) {
        hf__lock_released(lock, rc);
        rc = rc ? release_failed(lock, rc, broken, NULL, err) : 0;
        hf__line_unlock_first(lock->name); /* and it may be gone */
        return rc;
    }
    return release_slowly(r, owner, waits, err);
}

int hf__release_begin(hf_lock *lock, struct hf__releasing *r, hf_error *err)
{
    return release_begin(lock, r, true, err);
}

int hf__release_end(struct hf__releasing *r, hf_error *err)
{
    HF__UNCANCELLED;
    hf_client *c = r->lock->name->client;
    int rc;

    hf__engine_wait(c, &r->sleeper, release_ready, r);
    hf__line_lock(r->line);
    hf__releaser_forget(r->line, &r->releaser);
    hf__line_unlock(r->line);
    rc = r->releaser.result;
    if (!r->releaser.settled)
        rc = hf__fail(err, HF_EUNKNOWN,
                      "%s: no answer to the release within %u ms; it is tried "
                      "again in the background%s",
                      c->be->name, c->op_timeout_ms, hf__trouble(c).text);
    else if (rc)
        rc = release_failed(r->lock, rc, too_late, &r->word, err);
    hf__wait_end(r->lock, r->line);
    return rc;
}

int hf_lock_release(hf_lock *lock, hf_error *err)
{
    struct hf__releasing r;
    int rc = release_begin(lock, &r, true, err);

    return rc == HF__PENDING ? hf__release_end(&r, err) : rc;
}

int hf_lock_release_nowait(hf_lock *lock, hf_error *err)
{
    struct hf__releasing r;

    return release_begin(lock, &r, false, err);
}
