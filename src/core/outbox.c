#include "core/outbox.h"

#include "base/list.h"
#include "base/time.h"
#include "core/client.h"
#include "core/last_error.h"
#include "core/report.h"

static void outbox_park(hf_client *c, struct hf__req *req, bool first)
{
    struct hf__query *q = (struct hf__query *)req;

    if (req->op == HF__DOWNGRADE) /* the lines may be freed while q is parked */
        q->line = q->into = NULL;
    req->parked = true;
    if (first && c->outbox)
        hf__list_add(c->outbox, req);
    else
        hf__deque_add(c->outbox, c->outbox_tail, req);
}

void hf__outbox_return(hf_client *c, struct hf__req *req)
{
    if (req->flying) /* an attempt that is not flying is being abandoned */
        outbox_park(c, req, true);
}

void hf__outbox_remove_locked(hf_client *c, struct hf__req *req)
{
    if (!req->parked)
        return;
    req->parked = false;
    hf__deque_remove(c->outbox, c->outbox_tail, req);
}

static int outbox_lacks(hf_client *c, const char *what)
{
    return hf__fail_why_set(c, HF_ENOTSUP, "it has no %s", what);
}

static int outbox_hand_over(hf_client *c, struct hf__req *req)
{
    const struct hf__backend *be = c->be;

    if (req->meant_until != HF__NEVER && hf__now() >= req->meant_until)
        return hf__fail_why_set(c, HF_EUNKNOWN, "not sent in time");
    switch (req->op) {
    case HF__ATTEMPT:
        return be->attempt(c->self, req);
    case HF__RELEASE:
        return be->release(c->self, req);
    case HF__ABANDON:
        return be->abandon(c->self, req);
    case HF__RENEW:
        return be->renew ? be->renew(c->self, (struct hf__batch *)req)
                         : outbox_lacks(c, "renewals");
    default:
        return be->query ? be->query(c->self, (struct hf__query *)req)
                         : outbox_lacks(c, "such query");
    }
}

int hf__outbox_submit_locked(hf_client *c, struct hf__req *req)
{
    int rc = outbox_hand_over(c, req);

    if (rc != HF__LATER)
        return rc;
    outbox_park(c, req, false);
    return HF__PENDING;
}

static void outbox_finish(hf_client *c, struct hf__req *req, int result)
{
    req->result = (int16_t)result;
    hf__report_done(c, req);
}

void hf__outbox_flush_locked(hf_client *c)
{
    struct hf__req *req;

    while ((req = c->outbox)) {
        int rc;

        hf__outbox_remove_locked(c, req);
        req->parked = true; /* read by the backend's function that is called
                               next */
        rc = outbox_hand_over(c, req);
        req->parked = false;
        if (rc == HF__LATER) {
            outbox_park(c, req, true);
            return;
        }
        if (rc != HF__PENDING)
            outbox_finish(c, req, rc);
    }
}

void hf__outbox_finish_locked(hf_client *c, struct hf__req *req, int result)
{
    if (!req->parked)
        return;
    hf__outbox_remove_locked(c, req);
    outbox_finish(c, req, result);
}

void hf__outbox_give_up_locked(hf_client *c, struct hf__req *req)
{
    if (req->meant_until == HF__NEVER)
        return;
    req->meant_until = 0; /* in case the backend gives the request back */
    hf__outbox_finish_locked(c, req, HF_EUNKNOWN);
}

void hf__outbox_refuse(hf_client *c, int code)
{
    while (c->outbox) {
        c->outbox->untouched = true;
        hf__outbox_finish_locked(c, c->outbox, code);
    }
}
