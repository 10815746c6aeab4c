/* hf_lock_downgrade(): turns a write hold into a read hold without releasing
 * it. */
#include "api/query.h"
#include "api/renew.h"
#include "api/request_verb.h"
#include "base/error.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "core/async.h"
#include "core/client.h"
#include "core/last_error.h"
#include "core/line.h"
#include "core/line_pick.h"
#include "core/lock.h"
#include "core/loss_reason.h"
#include "core/requests.h"
#include "policy/lease.h"

/* Returns 0 if the caller holds the lock for writing, otherwise an error code
 * with a message. */
static int downgrade_check(const hf_lock *lock, hf_error *err)
{
    struct hf__line *held;
    int rc = hf__pick_check(lock, &held, err);

    if (rc)
        return rc;
    if (held->remote.kind != HF_RWLOCK)
        return hf__fail(err, HF_ENOTSUP,
                        "only the write hold of a read-write lock can be "
                        "downgraded");
    if (held != lock->line)
        return hf__fail(err, HF_ENOTOWNER,
                        "the caller already holds it for reading");
    return 0;
}

/* Sends the downgrade. From then on the hold belongs to the line for reading,
 * whatever the server answers. */
static int downgrade_begin(hf_lock *lock, struct hf__verb_call *t,
                           hf_error *err)
{
    hf_client *c = lock->line->client;
    struct hf__thread *thread;
    hf__time now = hf__now();
    struct hf__request *f;
    int rc = downgrade_check(lock, err);

    if (rc)
        return rc;
    (void)hf__owner_of(lock, &thread);
    f = hf__query_new_of(lock, HF__DOWNGRADE, err);
    if (!f)
        return HF_ENOMEM;
    rc = hf__pick_downgrade(lock->line, thread, now, &t->line, err);
    if (rc) {
        hf__request_free(c, f);
        return rc;
    }
    t->hold_id = t->line->queue.lease.hold_id;
    f->req.hold_id = t->hold_id;
    f->req.lease_ms = t->line->queue.lease.lease_ms;
    f->query.line = &lock->line->remote;
    f->query.into = &t->line->remote;
    hf__verb_send(c, t, f);
    hf__line_run(lock->line, now); /* sends the attempt of a local writer that
                                      waits */
    hf__line_run(t->line, now);
    return 0;
}

/* Returns the length in ms for the renewal of downgrade_send_again(). If the
 * lease is fixed, the hold must end when it would have ended without the
 * renewal. Any other lease gets its usual length. */
static int64_t downgrade_as_before_ms(const struct hf__lease *l, hf__time now)
{
    if (l->fixed && l->session)
        return 0; /* the end of the lease does not move */
    return l->fixed ? (l->until - now) / HF__MS : l->lease_ms;
}

/* Renews the hold as a read hold, because the answer to the downgrade was lost.
 * If the hold is still a write hold at the server, the renewal turns it into a
 * read hold (struct hf__batch). */
static int downgrade_send_again(hf_lock *lock, struct hf__verb_call *t,
                                hf_error *err)
{
    const struct hf__lease *l = &t->line->queue.lease;
    hf__time now = hf__now();
    int64_t ms = downgrade_as_before_ms(l, now);
    uint64_t owner = hf__owner_of(lock, NULL);
    int rc;

    if (!hf__verb_may_go_on(lock, t))
        return hf__fail_why(lock->line->client, err, HF_EUNKNOWN);
    rc = hf__verb_check(lock, t);
    if (!rc && !ms && !l->session)
        return hf__fail_loss(t->line, hf__loss(HF__LOSS_LEASE, l->lease_ms),
                             err);
    if (rc) {
        hf__line_run(t->line, now);
        return hf__fail_hold(t->line, owner, rc, err);
    }
    if (hf__renew_send(lock->line->client, t, (uint32_t)ms,
                       l->fixed && !l->session, NULL))
        return hf__fail_why(lock->line->client, err, HF_EUNKNOWN);
    return HF__PENDING;
}

static int downgrade_judge(hf_lock *lock, struct hf__verb_call *t,
                           const struct hf__request *f, hf_error *err)
{
    int rc = f->req.result;

    if (f->req.op == HF__RENEW)
        return hf__renew_answered(lock, t, f, err);
    if (rc == HF_EUNKNOWN)
        return downgrade_send_again(lock, t, err);
    return hf__verb_judge(lock, t, f, rc, err);
}

/* Returns what the answer means for the caller. Even after a failure the caller
 * has a read hold now. Error codes that would say that nothing has changed
 * therefore become EUNKNOWN. */
static int downgrade_answered(hf_lock *lock, struct hf__verb_call *t,
                              const struct hf__request *f, hf_error *err)
{
    int rc = downgrade_judge(lock, t, f, err);

    if (rc == HF__DONE || rc == HF__PENDING || rc == HF_ELOST ||
        rc == HF_ENOTOWNER || rc == HF_ECLOSED)
        return rc;
    if (err) {
        err->code = HF_EUNKNOWN;
        err->may_pass = 0;
    }
    return HF_EUNKNOWN;
}

static const struct hf__verb downgrade = {"the downgrade", downgrade_begin,
                                          downgrade_answered};

static const struct hf__verb_call what = {.verb = &downgrade};

int hf_lock_downgrade(hf_lock *lock, hf_error *err)
{
    return hf__verb_run(lock, &what, err);
}

int hf_lock_downgrade_async(hf_lock *lock, hf_done_fn done, void *arg,
                            hf_error *err)
{
    return hf__verb_run_async(lock, &what, (union hf__done){done}, arg, err);
}
