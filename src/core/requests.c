/* Requests that are not of one hold: renewals of many, and questions about
 * names. */
#include "core/client.h"

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
    hf__mutex_lock(&c->mu);
    hf__list_add(c->flights, f);
    hf__mutex_unlock(&c->mu);
    return f;
}

void hf__request_free(hf_client *c, struct hf__request *f)
{
    hf__mutex_lock(&c->mu);
    hf__list_remove(c->flights, f);
    if (f->req.op != HF__RENEW)
        hf__query_destroy(&f->query);
    hf__mutex_unlock(&c->mu);
    hf__free(c, f);
}

void hf__request_submit(hf_client *c, struct hf__request *f)
{
    int rc;

    hf__mutex_lock(&c->mu);
    f->req.flying = true;
    c->under_way++;
    rc = hf__outbox_submit_locked(c, &f->req);
    if (rc != HF__PENDING) {
        f->req.result = (int16_t)rc;
        hf__core.done(c, &f->req);
    }
    hf__mutex_unlock(&c->mu);
}

struct request_wait {
    hf_client *client;
    struct hf__request *flight;
    hf__time until, last; /* last: of all steps */
};

enum { STEPS = 100 }; /* times op_timeout: how long a list may take */

static bool request_ready(void *arg, hf__time now, hf__time *until)
{
    struct request_wait *w = arg;
    bool over;

    hf__mutex_lock(&w->client->mu);
    over = w->flight->delivered;
    /* The backend moves the time on with each step of a list. */
    if (w->flight->req.op == HF__LIST && w->flight->req.meant_until > w->until)
        w->until = hf__min_time(w->flight->req.meant_until, w->last);
    hf__mutex_unlock(&w->client->mu);
    *until = w->until;
    return over || now >= w->until;
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
    f->sleeper = NULL; /* delivery frees it from now on */
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
    f->req.meant_until = until; /* the backend's, once it is submitted */
    hf__request_submit(c, f);
    return hf__request_await(c, f, until);
}
