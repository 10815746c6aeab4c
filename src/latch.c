/* The latch. No backend declares one yet, so that making one says ENOTSUP;
 * the other verbs exist for handles, of which there are none. */
#include "core.h"

int hf_latch_new(hf_client *c, const void *name, size_t name_len,
                 hf_latch **out, hf_error *err)
{
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
    return hf__fail(err, HF_ENOTSUP, "the %s backend has no latches",
                    c->be->name);
}

static int no_latch(hf_error *err)
{
    return hf__fail(err, HF_EINVAL, "the latch is NULL");
}

int hf_latch_free(hf_latch *latch)
{
    (void)latch;
    return 0;
}

int hf_latch_set(hf_latch *latch, uint64_t count, hf_error *err)
{
    (void)latch;
    (void)count;
    return no_latch(err);
}

int hf_latch_down(hf_latch *latch, uint64_t *left, hf_error *err)
{
    (void)latch;
    (void)left;
    return no_latch(err);
}

int hf_latch_get(hf_latch *latch, uint64_t *left, hf_error *err)
{
    (void)latch;
    (void)left;
    return no_latch(err);
}

int hf_latch_wait(hf_latch *latch, int64_t wait_ms, hf_cancel *cancel,
                  hf_error *err)
{
    (void)latch;
    (void)wait_ms;
    (void)cancel;
    return no_latch(err);
}

int hf_latch_wait_async(hf_latch *latch, int64_t wait_ms, hf_latch_done_fn done,
                        void *arg, hf_error *err)
{
    (void)latch;
    (void)wait_ms;
    (void)done;
    (void)arg;
    return no_latch(err);
}

int hf_latch_cancel(hf_latch *latch)
{
    (void)latch;
    return HF_EINVAL;
}
