/*
 * The latch. Its handle is a lock of the kind HF_LATCH, whose lines wait for
 * the count to be 0 (see backend.h); what changes or reads the count is a
 * question about the name.
 */
#include "core.h"

#include <string.h>

static hf_lock *lock_of(hf_latch *latch)
{
    return (hf_lock *)latch;
}

int hf_latch_new(hf_client *c, const void *name, size_t name_len,
                 hf_latch **out, hf_error *err)
{
    hf_lock_options opt = {
        .size = sizeof(opt), .kind = HF_LATCH, .flags = HF_OWNER_HANDLE};
    hf_lock *lock;
    int rc;

    if (!c || !out)
        return hf__fail(err, HF_EINVAL, "%s is NULL", c ? "out" : "client");
    *out = NULL;
    rc = hf__client_check(c);
    if (rc)
        return hf__fail(err, rc, "%s", hf_error_text(rc));
    rc = hf__name_valid(name, &name_len, err);
    if (rc)
        return rc;
    if (!c->caps[HF_LATCH])
        return hf__fail(err, HF_ENOTSUP, "the %s backend has no latches",
                        c->be->name);
    rc = hf__lock_make(c, name, name_len, &opt, &lock, err);
    if (!rc)
        *out = (hf_latch *)lock;
    return rc;
}

int hf_latch_free(hf_latch *latch)
{
    return hf_lock_free(lock_of(latch));
}

static int no_latch(hf_error *err)
{
    return hf__fail(err, HF_EINVAL, "the latch is NULL");
}

/* One answer about the latch. A lost one is asked for again under the same
 * request id, for as long as a single one would have been waited for. */
static int converse(hf_client *c, struct hf__name *n, enum hf__op op,
                    uint64_t *count, hf_error *err)
{
    hf__time until = hf__now() + (hf__time)c->op_timeout_ms * HF__MS;
    size_t prefix = strlen(c->prefix);
    uint64_t request = hf__owner_number();
    int rc;

    do {
        struct hf__flight *f = hf__query_new(c, op, n->text + prefix,
                                             n->remote.name_len - prefix, err);

        if (!f)
            return HF_ENOMEM;
        f->query.count = *count;
        f->query.request = request;
        if (!hf__flight_wait(c, f))
            return hf__fail(err, HF_EUNKNOWN, "%s: no answer within %u ms",
                            c->be->name, c->op_timeout_ms);
        rc = f->req.result;
        if (rc == HF__DONE || rc == HF_EBUSY)
            *count = f->query.count;
        hf__flight_free(c, f);
    } while (rc == HF_EUNKNOWN && hf__now() < until);
    return rc && rc != HF_EBUSY ? hf__fail_why(c, err, rc) : rc;
}

static int ask(hf_latch *latch, enum hf__op op, uint64_t *count, hf_error *err)
{
    hf_client *c;
    int rc;

    if (!latch)
        return no_latch(err);
    rc = hf__lock_check(lock_of(latch), err);
    if (rc)
        return rc;
    c = lock_of(latch)->name->client;
    if (!hf__client_enter(c))
        return hf__fail(err, HF_ECLOSED, "the client was closed");
    rc = converse(c, lock_of(latch)->name, op, count, err);
    hf__client_leave(c);
    return rc;
}

int hf_latch_set(hf_latch *latch, uint64_t count, hf_error *err)
{
    int rc;

    if (latch && (count < 1 || count > INT32_MAX))
        return hf__fail(err, HF_EINVAL, "count is %llu; 1 to %d would be right",
                        (unsigned long long)count, INT32_MAX);
    rc = ask(latch, HF__LATCH_SET, &count, err);
    if (rc == HF_EBUSY)
        return hf__fail(err, rc, "the latch is set already: %llu are left",
                        (unsigned long long)count);
    return rc;
}

int hf_latch_down(hf_latch *latch, uint64_t *left, hf_error *err)
{
    uint64_t count = 0;
    int rc = ask(latch, HF__LATCH_DOWN, &count, err);

    if (!rc && left)
        *left = count;
    return rc;
}

int hf_latch_get(hf_latch *latch, uint64_t *left, hf_error *err)
{
    uint64_t count = 0;
    int rc;

    if (latch && !left)
        return hf__fail(err, HF_EINVAL, "left is NULL");
    rc = ask(latch, HF__LATCH_GET, &count, err);
    if (!rc)
        *left = count;
    return rc;
}

int hf_latch_wait(hf_latch *latch, int64_t wait_ms, hf_cancel *cancel,
                  hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    if (!latch)
        return no_latch(err);
    opt.wait_ms = wait_ms;
    opt.cancel = cancel;
    return hf_lock_acquire(lock_of(latch), &opt, err);
}

int hf_latch_wait_async(hf_latch *latch, int64_t wait_ms, hf_latch_done_fn done,
                        void *arg, hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock *lock = lock_of(latch);
    int rc;

    if (!latch)
        return no_latch(err);
    if (!done)
        return hf__fail(err, HF_EINVAL, "done is NULL");
    opt.wait_ms = wait_ms;
    rc = hf__lock_check(lock, err);
    if (!rc)
        rc = hf__acquire_check_options(lock, &opt, err);
    if (!rc)
        rc = hf__lock_enter(lock, err);
    if (rc)
        return rc;
    rc = hf__acquire_async(lock, &opt, (union hf__done){.latch = done}, arg,
                           err);
    hf__name_unlock(lock->name);
    return rc;
}

int hf_latch_cancel(hf_latch *latch)
{
    return latch ? hf_lock_cancel(lock_of(latch)) : HF_EINVAL;
}
