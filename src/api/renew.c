#include "api/renew.h"

#include "api/lock_verb.h"
#include "api/request_verb.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/time.h"
#include "core/async.h"
#include "core/client.h"
#include "core/line.h"
#include "core/line_pick.h"
#include "core/lock.h"
#include "core/loss_fd.h"
#include "core/name_text.h"
#include "core/requests.h"
#include "loop/renewals.h"
#include "policy/lease.h"

int hf__renew_send(hf_client *c, struct hf__verb_call *t, uint32_t ms,
                   bool no_longer, hf_error *err)
{
    struct hf__request *f = hf__renewals_batch(c, 1, err);
    struct hf__line *n = t->line;

    if (!f)
        return HF_ENOMEM;
    f->batch.item[0] = hf__renewals_of(n, ms);
    f->batch.item[0].no_longer = no_longer;
    f->batch.len = 1;
    t->hold_id = n->queue.lease.hold_id;
    hf__lease_renewing(&n->queue.lease, ms, hf__now());
    hf__mutex_lock(&c->mu);
    n->refs++; /* the request's reference */
    hf__mutex_unlock(&c->mu);
    hf__verb_send(c, t, f);
    hf__loss_fd_moved(n);
    hf__line_run(n, hf__now()); /* the hold's deadline may be earlier now */
    return 0;
}

static int renew_begin(hf_lock *lock, struct hf__verb_call *t, hf_error *err)
{
    const struct hf__lease *l;
    int rc =
        hf__lock_lease_valid("lease_ms", t->lease_ms, "as long as before", err);

    if (!rc)
        rc = hf__pick_check(lock, &t->line, err);
    if (rc)
        return rc;
    l = &t->line->queue.lease;
    if (t->lease_ms && !l->fixed)
        return hf__fail(err, HF_EINVAL,
                        "the hold of \"%s\" is renewed by itself: lease_ms "
                        "must be 0",
                        hf__line_shown(lock->line).text);
    return hf__renew_send(lock->line->client, t,
                          t->lease_ms ? (uint32_t)t->lease_ms : l->lease_ms,
                          false, err);
}

int hf__renew_answered(hf_lock *lock, struct hf__verb_call *t,
                       const struct hf__request *f, hf_error *err)
{
    return hf__verb_judge(lock, t, f, hf__renewals_result(f, 0), err);
}

static const struct hf__verb renew = {"the renewal", renew_begin,
                                      hf__renew_answered};

int hf_lock_renew(hf_lock *lock, int64_t lease_ms, hf_error *err)
{
    struct hf__verb_call what = {.verb = &renew, .lease_ms = lease_ms};

    return hf__verb_run(lock, &what, err);
}

int hf_lock_renew_async(hf_lock *lock, int64_t lease_ms, hf_done_fn done,
                        void *arg, hf_error *err)
{
    struct hf__verb_call what = {.verb = &renew, .lease_ms = lease_ms};

    return hf__verb_run_async(lock, &what, (union hf__done){done}, arg, err);
}
