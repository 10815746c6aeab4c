/* Renewal: many holds in one request, or one that the program asked for. */
#include "core/client.h"

#include <string.h>

static struct hf__request *hf__renewals_batch(hf_client *c, size_t room,
                                              hf_error *err)
{
    struct hf__request *f =
        hf__request_new(c, HF__RENEW, room * sizeof(struct hf__renewal), err);

    if (f)
        f->batch.item = (struct hf__renewal *)(f + 1);
    return f;
}

/* A renewal of the hold that the line has; name->mu is held. */
static struct hf__renewal hf__renewals_of(struct hf__line *n, uint32_t ms)
{
    return (struct hf__renewal){.remote = &n->remote,
                                .hold_id = n->queue.lease.hold_id,
                                .lease_ms = ms,
                                .permits = n->kin ? n->kin->permits : 1,
                                .result = HF_EUNKNOWN};
}

/* Puts the holds into the batch; each name's reference goes along. One that was
 * let go since it was found due stays out, and one that another thread has
 * renewed meanwhile. When all of them are over the batch is not meant any more.
 */
static void fill(struct hf__batch *b, const struct hf__due *due, size_t len,
                 hf__time now)
{
    b->req.meant_until = 0;
    for (size_t i = 0; i < len; i++) {
        struct hf__line *n = due[i].name;
        struct hf__lease *l = &n->queue.lease;
        bool held;

        hf__line_lock(n);
        held = l->state == HF__HELD && l->hold_id == due[i].hold_id &&
               !l->drop && !l->renewing;
        if (held) {
            b->item[b->len++] = hf__renewals_of(n, hf__lease_renew_ms(l));
            hf__lease_renewing(l, hf__lease_renew_ms(l), now);
            if (l->deadline > b->req.meant_until)
                b->req.meant_until = l->deadline;
        }
        hf__line_unlock(n);
        if (!held)
            hf__line_unref(n);
    }
}

/* Each is looked at again then. One that needs renewal has been put off already
 * (hf__line_timer). */
static void put_off(hf_client *c, const struct hf__due *due, size_t len,
                    hf__time again)
{
    for (size_t i = 0; i < len; i++) {
        struct hf__timer *t = &due[i].name->timer;

        hf__mutex_lock(&c->mu);
        if (again < hf__timer_at(t))
            hf__timers_set(&c->timers, t, again);
        hf__helper_due_locked(c, again);
        hf__line_unref_locked(due[i].name);
        hf__mutex_unlock(&c->mu);
    }
}

void hf__renewals_due(hf_client *c, const struct hf__due *due, size_t len,
                      hf__time now)
{
    struct hf__request *f = hf__renewals_batch(c, len, NULL);

    if (!f) { /* out of memory */
        put_off(c, due, len, now + 100 * HF__MS);
        return;
    }
    fill(&f->batch, due, len, now);
    if (!f->batch.len) {
        hf__request_free(c, f);
        return;
    }
    hf__request_submit(c, f);
    hf__helper_check_later(c);
}

/* What became of one of them; all of them, if the request was not sent. */
static int hf__renewals_result(const struct hf__request *f, size_t i)
{
    int result = f->batch.item[i].result;

    return result == HF_EUNKNOWN && f->req.result < 0 ? f->req.result : result;
}

/* A hold that has been let go meanwhile is rightly unknown to the server. */
static void count(hf_client *c, const struct hf__lease *l, uint64_t hold_id,
                  int result)
{
    bool ours = l->state == HF__HELD && l->hold_id == hold_id && !l->drop;

    if (result == HF__DONE)
        hf__count(&c->counts.renewed, 1);
    else if (result != HF_ENOTOWNER || ours)
        hf__count(&c->counts.renewals_failed, 1);
}

void hf__renewals_landed(hf_client *c, struct hf__request *f)
{
    /* Not when the round began: if this process was stopped since, the deadline
     * has passed, and that is why the server does not have it any more. */
    hf__time now = hf__now();

    for (size_t i = 0; i < f->batch.len; i++) {
        struct hf__renewal *r = &f->batch.item[i];
        struct hf__line *n = hf__container(r->remote, struct hf__line, remote);
        int result = hf__renewals_result(f, i);

        if (hf__is_refusal(result))
            hf__note_refusal(c, result, &f->why);
        hf__line_lock(n);
        if (r->session_ms)
            n->queue.lease.session_ms = r->session_ms;
        count(c, &n->queue.lease, r->hold_id, result);
        hf__queue_renewed(&n->queue, r->hold_id, result, f->req.sent_at,
                          r->no_longer ? 0 : r->lease_ms, now);
        if (n->queue.owner)
            hf__loss_fd_moved(n);
        hf__line_run(n, now);
        hf__line_unlock(n);
        hf__line_unref(n);
    }
}

int hf__renew_send(hf_client *c, struct hf__verb_call *t, uint32_t ms,
                   bool no_longer, hf_error *err)
{
    struct hf__request *f = hf__renewals_batch(c, 1, err);
    struct hf__line *n = t->line;

    if (!f)
        return HF_ENOMEM;
    f->batch.item[0] = hf__renewals_of(n, ms);
    f->batch.item[0].no_longer = no_longer;
    f->batch.len = 1;
    t->hold_id = n->queue.lease.hold_id;
    hf__lease_renewing(&n->queue.lease, ms, hf__now());
    hf__mutex_lock(&c->mu);
    n->refs++; /* the flight's */
    hf__mutex_unlock(&c->mu);
    hf__verb_send(c, t, f);
    hf__loss_fd_moved(n);
    hf__line_run(n, hf__now()); /* it may end sooner now */
    return 0;
}

static int begin(hf_lock *lock, struct hf__verb_call *t, hf_error *err)
{
    const struct hf__lease *l;
    int rc =
        hf__lock_lease_valid("lease_ms", t->lease_ms, "as long as before", err);

    if (!rc)
        rc = hf__pick_check(lock, &t->line, err);
    if (rc)
        return rc;
    l = &t->line->queue.lease;
    if (t->lease_ms && !l->fixed)
        return hf__fail(err, HF_EINVAL,
                        "the hold of \"%s\" is renewed by itself: lease_ms "
                        "must be 0",
                        hf__line_shown(lock->name).text);
    return hf__renew_send(lock->name->client, t,
                          t->lease_ms ? (uint32_t)t->lease_ms : l->lease_ms,
                          false, err);
}

int hf__renew_answered(hf_lock *lock, struct hf__verb_call *t,
                       const struct hf__request *f, hf_error *err)
{
    return hf__verb_judge(lock, t, f, hf__renewals_result(f, 0), err);
}

static const struct hf__verb renew = {"the renewal", begin, hf__renew_answered};

int hf_lock_renew(hf_lock *lock, int64_t lease_ms, hf_error *err)
{
    struct hf__verb_call what = {.verb = &renew, .lease_ms = lease_ms};

    return hf__verb_run(lock, &what, err);
}

int hf_lock_renew_async(hf_lock *lock, int64_t lease_ms, hf_done_fn done,
                        void *arg, hf_error *err)
{
    struct hf__verb_call what = {.verb = &renew, .lease_ms = lease_ms};

    return hf__verb_run_async(lock, &what, (union hf__done){done}, arg, err);
}
