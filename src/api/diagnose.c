/* hf_diagnose(): finds out what the server guarantees as it is configured. The
 * backend finds most of it; the rest is the same for all backends. */
#include "api/query.h"
#include "base/error.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/lock.h"
#include "core/requests.h"
#include "loop/backend_services.h"

#include <string.h>

#define SCRATCH "holdfast-diagnose"

/* Judges how long an acquire and a release took, in ms. This time must be much
 * shorter than a third of the TTL, because a hold is renewed each time a third
 * of the TTL has passed. */
static void diagnose_judge_speed(hf_client *c, struct hf__query *q, int64_t ms)
{
    enum hf_level level = ms * 3 >= c->ttl_ms    ? HF_LEVEL_ERROR
                          : ms * 20 >= c->ttl_ms ? HF_LEVEL_WARNING
                                                 : HF_LEVEL_OK;

    hf__core.find(c, q, level, "latency",
                  "an acquire and a release took %s%lld ms; the ttl is %u ms%s",
                  ms ? "" : "less than ", (long long)(ms ? ms : 1), c->ttl_ms,
                  level ? ", which is little beside that: set a longer ttl "
                          "in the URL, or use a server that is nearer"
                        : "");
}

/* Acquires and releases a lock, so that any missing permission is found. */
static int diagnose_try_lock(hf_client *c, struct hf__query *q, hf_error *why)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    hf_lock *lock = NULL;
    int64_t ms = 0;
    int rc;

    opt.flags = HF_OWNER_HANDLE;
    rc = hf_lock_new(c, SCRATCH, HF_CSTRING, &opt, &lock, &err);
    for (int i = 0; !rc && i < 2; i++) { /* the first may load scripts */
        hf__time began = hf__now();

        rc = hf_lock_timed(lock, c->op_timeout_ms, &err);
        if (!rc)
            rc = hf_lock_release(lock, &err);
        ms = (hf__now() - began) / HF__MS;
    }
    hf_lock_free(lock);
    if (rc == HF_ENOMEM || rc == HF_ECLOSED || rc == HF_EFORK)
        return hf__fail(why, rc, "%s", err.text);
    if (rc) {
        hf__core.find(c, q, HF_LEVEL_ERROR, "locking",
                      "a mutex \"" SCRATCH "\" cannot be acquired and "
                      "released: %s",
                      err.text);
    } else {
        hf__core.find(c, q, HF_LEVEL_OK, "locking",
                      "a mutex can be acquired and released");
        diagnose_judge_speed(c, q, ms);
    }
    return 0;
}

/* Moves the finding HF__PROMISE, which is found last, to the front, because it
 * must be read first. */
static void diagnose_put_promise_first(hf_diagnosis *d)
{
    hf_finding *f = d->findings, promise;
    size_t at = 0;

    while (at < d->len && strcmp(f[at].subject, HF__PROMISE) != 0)
        at++;
    if (at == d->len)
        return;
    promise = f[at];
    memmove(f + 1, f, at * sizeof(*f));
    f[0] = promise;
}

int hf_diagnose(hf_client *c, hf_diagnosis **out, hf_error *err)
{
    HF__UNCANCELLED;
    struct hf__request *f;
    int rc;

    if (!out)
        return hf__fail(err, HF_EINVAL, "out is NULL");
    *out = NULL;
    f = hf__query_begin(c, HF__DIAGNOSE, "", 0, &rc, err);
    if (!f)
        return rc;
    f->query.diagnosis = hf__result_alloc(c, sizeof(hf_diagnosis));
    f->query.req.lease_ms = c->ttl_ms;
    rc = hf__query_run(c, f, f->query.diagnosis, err);
    if (rc)
        return rc;
    rc = diagnose_try_lock(c, &f->query, err);
    if (!rc && f->query.cut)
        rc = hf__fail(err, HF_ENOMEM, "out of memory");
    if (!rc) {
        diagnose_put_promise_first(f->query.diagnosis);
        *out = f->query.diagnosis;
        f->query.diagnosis = NULL;
    }
    hf__query_end(c, f);
    return rc;
}
