/* Verbs that tell a holder about its hold without a network request. */
#include "api/lock_verb.h"
#include "base/error.h"
#include "base/time.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/line_pick.h"
#include "core/lock.h"
#include "core/loss_reason.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

/* Returns how many permits the caller holds. line->mu is held. */
static unsigned hold_permits_held(const hf_lock *lock)
{
    hf__time now = hf__now();
    unsigned sum = 0;

    for (struct hf__line *n = hf__lines_newest(lock->line); n;
         n = hf__lines_after(n))
        if (n->queue.owner == lock->owner &&
            !hf__lease_expired(&n->queue.lease, now))
            sum += n->kin->permits;
    return sum;
}

/* Copies the lease of the caller's hold, and sets *count to how many times the
 * caller has acquired it. Returns 0, or an error code with a message. */
static int hold_read(hf_lock *lock, struct hf__lease *lease, unsigned *count,
                     hf_error *err)
{
    struct hf__line *line;
    int rc = hf__lock_begin(lock, err);

    if (rc)
        return rc;
    rc = hf__pick_check(lock, &line, err);
    *lease = line->queue.lease;
    if (count && lock->line->remote.kind == HF_SEMAPHORE)
        *count = hold_permits_held(lock);
    else if (count)
        *count = hf__queue_count(&line->queue, hf__owner_of(lock, NULL));
    hf__line_unlock(lock->line);
    return rc;
}

int hf_lock_check(hf_lock *lock)
{
    struct hf__lease lease;

    return hold_read(lock, &lease, NULL, NULL);
}

int hf_lock_explain(hf_lock *lock, hf_error *why)
{
    struct hf__lease lease;
    int rc = hold_read(lock, &lease, NULL, why);

    if (rc || !why)
        return rc;
    *why = (hf_error)HF_ERROR_INIT;
    if (lease.renew_at != HF__NEVER)
        hf__fail(why, HF_OK, "%s",
                 hf__doubt(lock->line->client, lease.refused).text);
    return 0;
}

int hf_lock_token(hf_lock *lock, uint64_t *token)
{
    struct hf__lease lease;
    int rc = token ? hold_read(lock, &lease, NULL, NULL) : HF_EINVAL;

    if (!rc)
        *token = lease.token;
    return rc;
}

int hf_lock_deadline(hf_lock *lock, int64_t *boottime_ns)
{
    struct hf__lease lease;
    int rc = boottime_ns ? hold_read(lock, &lease, NULL, NULL) : HF_EINVAL;

    if (!rc)
        *boottime_ns = lease.deadline;
    return rc;
}

int hf_lock_count(hf_lock *lock, unsigned *count)
{
    struct hf__lease lease;
    unsigned held;
    int rc = count ? hold_read(lock, &lease, &held, NULL) : HF_EINVAL;

    if (!rc)
        *count = held;
    return rc;
}

int hf_lock_upgrade(hf_lock *lock, hf_error *err)
{
    int rc = hf_lock_explain(lock, err);

    if (rc)
        return rc;
    return hf__fail(
        err, HF_ENOTSUP,
        "a read hold cannot become a write hold, because two callers "
        "that try would wait for each other for ever; release it first");
}
