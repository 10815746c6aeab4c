#include "loop/request_wait.h"

#include "base/futex.h"
#include "base/time.h"
#include "core/client.h"
#include "core/outbox.h"
#include "core/requests.h"
#include "core/wakeup.h"
#include "loop/deliver.h"
#include "loop/driver.h"

struct request_wait {
    hf_client *client;
    struct hf__request *request;
    hf__time until, last; /* last: the limit for all steps of a list */
};

enum { STEPS = 100 }; /* the limit for an hf_list() is STEPS times op_timeout */

static bool request_ready(void *arg, hf__time now, hf__time *until)
{
    struct request_wait *w = arg;

    HF__HOLDING(&w->client->mu);
    /* With each step of a list a backend may set meant_until to a later
     * time. */
    if (w->request->req.op == HF__LIST &&
        w->request->req.meant_until > w->until)
        w->until = hf__min_time(w->request->req.meant_until, w->last);
    *until = w->until;
    return w->request->delivered || now >= w->until;
}

bool hf__request_await(hf_client *c, struct hf__request *f, hf__time until)
{
    struct request_wait w = {c, f, until,
                             until + (STEPS - 1) * (c->op_timeout_ms * HF__MS)};
    bool over;

    hf__deliver(c, hf__now());
    hf__driver_wait(c, f->sleeper, request_ready, &w);
    hf__mutex_lock(&c->mu);
    over = f->delivered;
    f->sleeper = NULL; /* from now on delivery frees f */
    if (!over)
        hf__outbox_give_up_locked(c, &f->req);
    hf__mutex_unlock(&c->mu);
    if (!over)
        hf__deliver(c, hf__now());
    return over;
}

bool hf__request_run(hf_client *c, struct hf__request *f)
{
    hf__time until = hf__op_deadline(c);
    struct hf__sleeper s;

    hf__sleeper_init(&s, NULL);
    /* cppcheck-suppress autoVariables ; hf__request_await takes it out */
    f->sleeper = &s;
    f->req.meant_until = until; /* later the backend may extend it (LIST) */
    hf__request_submit(c, f);
    return hf__request_await(c, f, until);
}
