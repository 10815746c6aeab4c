/* A write hold becomes a read hold, with nobody between. */
#include "core.h"

/* What is sent, and where from and to; name->mu is held. */
static int begin(hf_lock *lock, struct hf__name **into, hf_error *err)
{
    struct hf__thread *thread;
    uint64_t owner = hf__owner_of(lock, &thread);
    struct hf__name *first = lock->name;
    hf__time now = hf__now();
    int rc =
        owner ? hf__gate_check(&hf__line_held(first, owner)->gate, owner, now)
              : HF_ENOTOWNER;

    if (rc)
        return hf__fail(err, rc, "%s", hf_error_text(rc));
    if (first->remote.kind != HF_RWLOCK)
        return hf__fail(err, HF_ENOTSUP,
                        "only the write hold of a read-write lock can be "
                        "downgraded");
    if (first->gate.owner != owner)
        return hf__fail(err, HF_ENOTOWNER, "the caller reads already");
    return hf__line_downgrade(first, thread, now, into, err);
}

/* The answer was lost. A renewal tells the server the same; that of a fixed
 * lease leaves its end where it is. */
static int tell_again(hf_lock *lock, struct hf__name *into, hf_error *err)
{
    const struct hf__lease *l = &into->gate.lease;
    int64_t left_ms = 0; /* of a renewed one: as long as before */
    bool over = false;

    hf__name_lock(into);
    if (l->fixed) {
        left_ms =
            ((l->session ? l->kept_until : l->until) - hf__now()) / HF__MS;
        over = left_ms <= 0;
    }
    hf__name_unlock(into);
    return over ? hf__fail(err, HF_ELOST, "the lease is over")
                : hf__renew(lock, left_ms, err);
}

/* The hold is `into`'s, whatever the server will say. */
static int tell(hf_lock *lock, struct hf__flight *f, struct hf__name *into,
                hf_error *err)
{
    hf_client *c = lock->name->client;
    uint64_t hold_id = f->req.hold_id;
    int rc;

    if (!hf__flight_end(c, f))
        return hf__fail(err, HF_EUNKNOWN,
                        "%s: no answer to the downgrade within %u ms; the hold "
                        "is a read hold, but others may not be let in yet",
                        c->be->name, c->op_timeout_ms);
    rc = f->req.result;
    hf__flight_free(c, f);
    if (rc == HF_EUNKNOWN)
        return tell_again(lock, into, err);
    if (rc != HF_ENOTOWNER)
        return rc ? hf__fail_why(c, err, rc) : 0;
    hf__name_lock(into);
    if (into->gate.lease.hold_id == hold_id && into->gate.owner)
        hf__gate_lose(&into->gate, true);
    hf__name_run(into, hf__now());
    hf__name_unlock(into);
    return hf__fail(err, HF_ELOST, "the hold was lost");
}

static int downgrade(hf_lock *lock, hf_error *err)
{
    hf_client *c = lock->name->client;
    struct hf__flight *f = hf__flight_new(c, 0);
    struct hf__sleeper s;
    struct hf__name *into = NULL;
    int rc;

    if (!f)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = hf__lock_enter(lock, err);
    if (!rc) {
        rc = begin(lock, &into, err);
        if (rc)
            hf__name_unlock(lock->name);
    }
    if (rc || !into) {
        hf__flight_free(c, f);
        return rc;
    }
    f->req.op = HF__DOWNGRADE;
    f->req.hold_id = into->gate.lease.hold_id;
    f->req.lease_ms = into->gate.lease.lease_ms;
    f->query.line = &lock->name->remote;
    f->query.into = &into->remote;
    hf__flight_begin(c, f, &s);
    hf__name_run(lock->name, hf__now()); /* the next writer asks after it */
    hf__name_run(into, hf__now());
    hf__name_unlock(lock->name);
    return tell(lock, f, into, err);
}

int hf_lock_downgrade(hf_lock *lock, hf_error *err)
{
    int rc = hf__lock_check(lock, err);

    if (rc)
        return rc;
    if (!hf__client_enter(lock->name->client))
        return hf__fail(err, HF_ECLOSED, "the client of this lock was closed");
    rc = downgrade(lock, err);
    hf__client_leave(lock->name->client);
    return rc;
}
