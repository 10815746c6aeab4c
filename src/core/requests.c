#include "core/requests.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/list.h"
#include "base/time.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/outbox.h"
#include "core/report.h"

struct hf__request *hf__request_new(hf_client *c, enum hf__op op, size_t extra,
                                    hf_error *err)
{
    struct hf__request *f = hf__alloc(c, sizeof(*f) + extra);

    if (!f) {
        hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    f->req.op = (uint8_t)op;
    f->req.meant_until = HF__NEVER;
    HF__HOLDING(&c->mu);
    hf__list_add(c->requests, f);
    return f;
}

void hf__request_free(hf_client *c, struct hf__request *f)
{
    hf__mutex_lock(&c->mu);
    hf__list_remove(c->requests, f);
    if (f->destroy)
        f->destroy(f);
    hf__mutex_unlock(&c->mu);
    hf__free(c, f);
}

void hf__request_submit(hf_client *c, struct hf__request *f)
{
    HF__HOLDING(&c->mu);
    int rc;

    f->req.flying = true;
    c->under_way++;
    rc = hf__outbox_submit_locked(c, &f->req);
    if (rc != HF__PENDING) {
        f->req.result = (int16_t)rc;
        hf__report_done(c, &f->req);
    }
}
