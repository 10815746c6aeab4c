#include "api/release.h"

#include "api/lock_verb.h"
#include "base/error.h"
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

/* Handles the backend's refusal of a release by release_quickly(). Unless the
 * hold was gone, the release is repeated until it succeeds, like any other
 * refused release. */
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
        hf__lines_rest(n);
    if ((has_kin ? n->kin->first : n)->watchers)
        hf__loss_fd_arm_of(n, owner);
    *rc = n->client->be->release(n->client->self, &req);
    hf__tally_add(n, HF__TALLY_RELEASE - HF__TALLY_HOLD);
    if (__builtin_expect(*rc != HF__DONE, 0))
        *rc = release_refused(n, *rc);
    return true;
}

/* Sets *line to the line with the owner's hold, and releases that hold by
 * release_quickly(). Returns false if release_quickly() cannot do that.
 * line->mu is held. */
static bool release_line_quickly(struct hf__line *first, uint64_t owner,
                                 struct hf__line **line, int *rc)
{
    *line = hf__pick_held(first, owner);
    return release_quickly(*line, owner, true, rc);
}

static bool release_ready(void *arg, hf__time now, hf__time *until)
{
    const struct hf__releasing *r = arg;
    bool finished;

    hf__line_lock(r->line);
    finished = r->releaser.finished;
    hf__line_unlock(r->line);
    *until = r->until;
    return finished || now >= r->until;
}

int hf__release_enter(struct hf__line *n, uint64_t owner,
                      struct hf__releaser *r)
{
    hf__time now = hf__lock_clock(n, false);
    int rc;

    if (r)
        r->hold_id = n->queue.lease.hold_id;
    rc = hf__queue_release(&n->queue, owner, now, hf__line_wake);
    hf__tally_release(n, rc);
    hf__lines_rest(n);
    /* Only for this owner, because other owners may still hold the lock. */
    if ((rc == HF__DONE || (rc == HF__PENDING && n->queue.shared)) &&
        hf__line_first(n)->watchers)
        hf__loss_fd_arm_of(n, owner);
    if (rc == HF__PENDING)
        return 0; /* a local owner still holds the lock, or was just granted
                     it */
    if (rc == HF__DONE && r) {
        r->next = n->releasers;
        n->releasers = r;
    }
    hf__line_run(n, now);
    if (rc == HF__DONE && r)
        return r->finished ? r->result : HF__PENDING;
    return rc;
}

/* Fails a release with the error code rc. `loss` is the reason if rc is ELOST;
 * for other codes, `word` is the server's message. */
static int release_failed(const hf_lock *lock, int rc, struct hf__loss loss,
                          const hf_error *word, hf_error *err)
{
    if (rc == HF_ENOTOWNER)
        return hf__fail(err, rc, "this %s does not hold \"%s\"",
                        lock->owner ? "handle" : "thread",
                        hf__line_shown(lock->line).text);
    if (rc == HF_ELOST)
        return hf__fail_loss(lock->line, loss, err);
    if (lock->line->client->direct)
        return hf__fail_why(lock->line->client, err, rc);
    return hf__fail_word(lock->line->client, word, err, rc);
}

/* The reason of an ELOST in shared memory: a hold without a lease can only have
 * been broken. */
static const struct hf__loss broken = {.why = HF__LOSS_TAKEN};

/* The reason of an ELOST from a server: the lease may have ended while the
 * release was on its way to the server. */
static const struct hf__loss too_late = {.why = HF__LOSS_RELEASE};

/* Returns the reason of an ELOST. If r has finished, the ELOST came from the
 * backend, otherwise from the queue. */
static struct hf__loss release_why_lost(const struct hf__line *line,
                                        uint64_t owner,
                                        const struct hf__releaser *r)
{
    if (!r->finished)
        return hf__queue_loss(&line->queue, owner);
    return line->client->direct ? broken : too_late;
}

/* Releases through the queue. line->mu is held on entry and unlocked on return.
 * After that the handle may have been freed, unless the result is PENDING. */
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
    rc = hf__release_enter(r->line, owner, waits ? &r->releaser : NULL);
    hf__loss_fd_released(lock, rc);
    if (rc != HF__PENDING) {
        if (rc)
            rc = release_failed(lock, rc,
                                release_why_lost(r->line, owner, &r->releaser),
                                &r->word, err);
        if (!waits)
            hf__helper_check_later(lock->line->client);
        hf__line_unlock_first(lock->line);
        return rc;
    }
    r->until = hf__op_deadline(lock->line->client);
    hf__lock_wait_begin(lock);
    return HF__PENDING;
}

/* Begins a release. `waits` tells whether the caller waits for the answer. */
static inline __attribute__((always_inline)) int
release_begin(hf_lock *lock, struct hf__releasing *r, bool waits, hf_error *err)
{
    uint64_t owner;
    int rc = hf__lock_check(lock, err);

    r->lock = lock;
    if (rc)
        return rc;
    owner = hf__owner_of(lock, NULL);
    if (!owner) /* no memory for this thread's number: it holds nothing */
        return release_failed(lock, HF_ENOTOWNER, broken, NULL, err);
    rc = hf__lock_enter(lock, err);
    if (rc)
        return rc;
    r->line = lock->line;
    if (r->line->kin ? release_line_quickly(lock->line, owner, &r->line, &rc)
                     : release_quickly(r->line, owner, false, &rc)) {
        hf__loss_fd_released(lock, rc);
        rc = rc ? release_failed(lock, rc, broken, NULL, err) : 0;
        hf__line_unlock_first(lock->line); /* the handle may have been freed by
                                              now */
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
    hf_client *c = r->lock->line->client;
    int rc;

    hf__driver_wait(c, &r->sleeper, release_ready, r);
    hf__line_lock(r->line);
    hf__line_forget_releaser(r->line, &r->releaser);
    hf__line_unlock(r->line);
    rc = r->releaser.result;
    if (!r->releaser.finished)
        rc = hf__fail(err, HF_EUNKNOWN,
                      "%s: no answer to the release within %s; it is tried "
                      "again in the background%s",
                      c->be->name, hf__span(c->op_timeout_ms).text,
                      hf__trouble(c).text);
    else if (rc)
        rc = release_failed(r->lock, rc, too_late, &r->word, err);
    hf__lock_wait_end(r->lock, r->line);
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
