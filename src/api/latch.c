/*
 * The latch. Its handle is a lock of the kind HF_LATCH, whose lines wait until
 * the count is 0 (see backend.h). The count is changed and read by means of
 * queries.
 */
#include "api/async.h"
#include "api/handle.h"
#include "api/query.h"
#include "api/request_verb.h"
#include "base/error.h"
#include "base/thread_id.h"
#include "core/async.h"
#include "core/client.h"
#include "core/last_error.h"
#include "core/lock.h"
#include "core/requests.h"

static hf_lock *latch_lock_of(hf_latch *latch)
{
    return (hf_lock *)latch;
}

int hf_latch_new(hf_client *c, const void *name, size_t name_len,
                 hf_latch **out, hf_error *err)
{
    hf_lock_options opt = {
        .size = sizeof(opt), .kind = HF_LATCH, .flags = HF_OWNER_HANDLE};
    hf_lock *lock = NULL;
    int rc = hf__lock_new(c, name, name_len, &opt, HF_LATCH, out ? &lock : NULL,
                          err);

    if (out)
        *out = (hf_latch *)lock;
    return rc;
}

int hf_latch_free(hf_latch *latch)
{
    return hf_lock_free(latch_lock_of(latch));
}

static int no_latch(hf_error *err)
{
    return hf__fail(err, HF_EINVAL, "the latch is NULL");
}

/* Sends the query. If its answer is lost, latch_answered() sends it again under
 * the same request id, so that the server does not count it twice. */
static int latch_send(hf_lock *lock, struct hf__verb_call *t, hf_error *err)
{
    struct hf__request *f = hf__query_new_of(lock, t->op, err);

    if (!f)
        return HF_ENOMEM;
    f->query.count = t->count;
    f->query.request = t->request_id;
    hf__verb_send(lock->line->client, t, f);
    return 0;
}

static int latch_answered(hf_lock *lock, struct hf__verb_call *t,
                          const struct hf__request *f, hf_error *err)
{
    int rc = f->req.result;

    if (rc == HF_EUNKNOWN && f->query.request && hf__verb_may_go_on(lock, t) &&
        !latch_send(lock, t, NULL))
        return HF__PENDING;
    if (rc == HF_EBUSY)
        return hf__fail(err, rc, "the latch is set already: %llu left",
                        (unsigned long long)f->query.count);
    if (rc)
        return hf__fail_word(lock->line->client, &f->why, err, rc);
    if (t->left)
        *t->left = f->query.count;
    return 0;
}

static const struct hf__verb set = {"the setting", latch_send, latch_answered};

static const struct hf__verb down = {"the count-down", latch_send,
                                     latch_answered};

static const struct hf__verb get = {"the question", latch_send, latch_answered};

static int latch_check(const hf_latch *latch, enum hf__op op, uint64_t count,
                       const uint64_t *left, hf_error *err)
{
    if (!latch)
        return no_latch(err);
    if (op == HF__LATCH_SET && (count < 1 || count > INT32_MAX))
        return hf__fail(err, HF_EINVAL, "count is %llu; it must be 1 to %d",
                        (unsigned long long)count, INT32_MAX);
    if (op == HF__LATCH_GET && !left)
        return hf__fail(err, HF_EINVAL, "left is NULL");
    return 0;
}

/* Runs a verb of a latch. `done` is NULL if the caller waits. */
static int latch_run(hf_latch *latch, enum hf__op op, uint64_t count,
                     uint64_t *left, const hf_latch_done_fn *done, void *arg,
                     hf_error *err)
{
    struct hf__verb_call what = {.verb = op == HF__LATCH_SET    ? &set
                                         : op == HF__LATCH_DOWN ? &down
                                                                : &get,
                                 .op = op,
                                 .count = count,
                                 .left = left,
                                 .request_id = hf__owner_number()};
    int rc = latch_check(latch, op, count, left, err);

    if (rc)
        return rc;
    if (!done)
        return hf__verb_run(latch_lock_of(latch), &what, err);
    return hf__verb_run_async(latch_lock_of(latch), &what,
                              (union hf__done){.latch = *done}, arg, err);
}

int hf_latch_set(hf_latch *latch, uint64_t count, hf_error *err)
{
    return latch_run(latch, HF__LATCH_SET, count, NULL, NULL, NULL, err);
}

int hf_latch_down(hf_latch *latch, uint64_t *left, hf_error *err)
{
    return latch_run(latch, HF__LATCH_DOWN, 0, left, NULL, NULL, err);
}

int hf_latch_get(hf_latch *latch, uint64_t *left, hf_error *err)
{
    return latch_run(latch, HF__LATCH_GET, 0, left, NULL, NULL, err);
}

int hf_latch_set_async(hf_latch *latch, uint64_t count, hf_latch_done_fn done,
                       void *arg, hf_error *err)
{
    return latch_run(latch, HF__LATCH_SET, count, NULL, &done, arg, err);
}

int hf_latch_down_async(hf_latch *latch, uint64_t *left, hf_latch_done_fn done,
                        void *arg, hf_error *err)
{
    return latch_run(latch, HF__LATCH_DOWN, 0, left, &done, arg, err);
}

int hf_latch_get_async(hf_latch *latch, uint64_t *left, hf_latch_done_fn done,
                       void *arg, hf_error *err)
{
    return latch_run(latch, HF__LATCH_GET, 0, left, &done, arg, err);
}

int hf_latch_wait(hf_latch *latch, int64_t wait_ms, hf_cancel *cancel,
                  hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    if (!latch)
        return no_latch(err);
    opt.wait_ms = wait_ms;
    opt.cancel = cancel;
    return hf_lock_acquire(latch_lock_of(latch), &opt, err);
}

int hf_latch_wait_async(hf_latch *latch, int64_t wait_ms, hf_latch_done_fn done,
                        void *arg, hf_error *err)
{
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    if (!latch)
        return no_latch(err);
    opt.wait_ms = wait_ms;
    return hf__acquire_async(latch_lock_of(latch), &opt,
                             (union hf__done){.latch = done}, arg, err);
}

int hf_latch_cancel(hf_latch *latch)
{
    return latch ? hf_lock_cancel(latch_lock_of(latch)) : HF_EINVAL;
}
