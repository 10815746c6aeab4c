/* Requests that are not of one hold: renewals of many, and questions about
 * names. */
#include "core/client.h"

struct hf__flight *hf__flight_new(hf_client *c, enum hf__op op, size_t extra,
                                  hf_error *err)
{
    struct hf__flight *f = hf__alloc(c, sizeof(*f) + extra);

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

void hf__flight_free(hf_client *c, struct hf__flight *f)
{
    hf__mutex_lock(&c->mu);
    hf__list_remove(c->flights, f);
    if (f->req.op != HF__RENEW)
        hf__query_free(&f->query);
    hf__mutex_unlock(&c->mu);
    hf__free(c, f);
}

void hf__flight_submit(hf_client *c, struct hf__flight *f)
{
    int rc;

    hf__mutex_lock(&c->mu);
    f->req.flying = true;
    c->under_way++;
    rc = hf__submit_locked(c, &f->req);
    if (rc != HF__PENDING) {
        f->req.result = (int16_t)rc;
        hf__core.done(c, &f->req);
    }
    hf__mutex_unlock(&c->mu);
}

struct flight_wait {
    hf_client *client;
    struct hf__flight *flight;
    hf__time until, last; /* last: of all steps */
};

enum { STEPS = 100 }; /* times op_timeout: how long a list may take */

static bool flight_ready(void *arg, hf__time now, hf__time *until)
{
    struct flight_wait *w = arg;
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

bool hf__flight_end(hf_client *c, struct hf__flight *f, hf__time until)
{
    struct flight_wait w = {c, f, until,
                            until + (STEPS - 1) * (c->op_timeout_ms * HF__MS)};
    bool over;

    hf__engine_deliver(c, hf__now());
    hf__engine_wait(c, f->sleeper, flight_ready, &w);
    hf__mutex_lock(&c->mu);
    over = f->delivered;
    f->sleeper = NULL; /* delivery frees it from now on */
    if (!over)
        hf__give_up_locked(c, &f->req);
    hf__mutex_unlock(&c->mu);
    if (!over)
        hf__engine_deliver(c, hf__now());
    return over;
}

bool hf__flight_wait(hf_client *c, struct hf__flight *f)
{
    hf__time until = hf__patience(c);
    struct hf__sleeper s;

    hf__sleeper_init(&s, NULL);
    /* cppcheck-suppress autoVariables ; hf__flight_end takes it out */
    f->sleeper = &s;
    f->req.meant_until = until; /* the backend's, once it is submitted */
    hf__flight_submit(c, f);
    return hf__flight_end(c, f, until);
}
