#include "loop/renewals.h"

#include "base/list.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/line.h"
#include "core/loss_fd.h"
#include "core/loss_reason.h"
#include "core/name_table.h"
#include "core/requests.h"
#include "core/wakeup.h"
#include "policy/lease.h"
#include "policy/local_queue.h"

struct hf__request *hf__renewals_batch(hf_client *c, size_t room, hf_error *err)
{
    struct hf__request *f =
        hf__request_new(c, HF__RENEW, room * sizeof(struct hf__renewal), err);

    if (f)
        f->batch.item = (struct hf__renewal *)(f + 1);
    return f;
}

struct hf__renewal hf__renewals_of(struct hf__line *n, uint32_t ms)
{
    return (struct hf__renewal){.remote = &n->remote,
                                .hold_id = n->queue.lease.hold_id,
                                .lease_ms = ms,
                                .permits = n->kin ? n->kin->permits : 1,
                                .result = HF_EUNKNOWN};
}

/* Puts the holds into the batch, each with the reference to its line. Leaves
 * out a hold that was let go in the meantime, or whose renewal another thread
 * has sent, and drops that reference. Sets meant_until so that the batch is not
 * sent once all its holds have expired. */
static void renewals_fill(struct hf__batch *b, const struct hf__due *due,
                          size_t len, hf__time now)
{
    b->req.meant_until = 0;
    for (size_t i = 0; i < len; i++) {
        struct hf__line *n = due[i].line;
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

/* Sets the timer of each line to `again`, unless it is set to an earlier time,
 * and drops the references to the lines. The renewals themselves were put off
 * by hf__line_timer(). */
static void renewals_put_off(hf_client *c, const struct hf__due *due,
                             size_t len, hf__time again)
{
    for (size_t i = 0; i < len; i++) {
        struct hf__line *n = due[i].line;

        hf__helper_timer(c, &n->timer,
                         hf__min_time(again, hf__timer_at(&n->timer)));
        hf__line_unref(n);
    }
}

void hf__renewals_due(hf_client *c, const struct hf__due *due, size_t len,
                      hf__time now)
{
    struct hf__request *f = hf__renewals_batch(c, len, NULL);

    if (!f) { /* out of memory */
        renewals_put_off(c, due, len, now + 100 * HF__MS);
        return;
    }
    renewals_fill(&f->batch, due, len, now);
    if (!f->batch.len) {
        hf__request_free(c, f);
        return;
    }
    hf__request_submit(c, f);
    hf__helper_check_later(c);
}

int hf__renewals_result(const struct hf__request *f, size_t i)
{
    int result = f->batch.item[i].result;

    return result == HF_EUNKNOWN && f->req.result < 0 ? f->req.result : result;
}

/* Counts a renewal by its result. If the hold was let go in the meantime,
 * ENOTOWNER is not a failure. */
static void renewals_count(hf_client *c, const struct hf__lease *l,
                           uint64_t hold_id, int result)
{
    bool ours = l->state == HF__HELD && l->hold_id == hold_id && !l->drop;

    if (result == HF__DONE)
        hf__count(&c->counts.renewed, 1);
    else if (result != HF_ENOTOWNER || ours)
        hf__count(&c->counts.renewals_failed, 1);
}

void hf__renewals_landed(hf_client *c, struct hf__request *f)
{
    /* The clock is read again, because this process may have been stopped since
     * the round began. If the server no longer has a hold, the current time
     * shows whether its deadline has passed, and so why it was lost. */
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
        renewals_count(c, &n->queue.lease, r->hold_id, result);
        hf__queue_renewed(&n->queue, r->hold_id, result, f->req.sent_at,
                          r->no_longer ? 0 : r->lease_ms, now);
        if (n->queue.owner)
            hf__loss_fd_moved(n);
        hf__line_run(n, now);
        hf__line_unlock(n);
        hf__line_unref(n);
    }
}
