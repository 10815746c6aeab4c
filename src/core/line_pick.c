#include "core/line_pick.h"

#include "base/error.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/hooks.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/lock.h"
#include "core/loss_fd.h"
#include "core/loss_reason.h"
#include "core/name_table.h"
#include "policy/lease.h"
#include "policy/line_set.h"
#include "policy/local_queue.h"

/* Sets *out to the line whose entry is `line`, or to a new line if `line` is
 * NULL. Returns 0, or an error code with a message. */
static int pick_use(struct hf__line *first, struct hf__line_entry *line,
                    enum hf_mode mode, struct hf__line **out, hf_error *err)
{
    int rc = line ? 0 : hf__names_add_line(first, mode, out, err);

    if (line)
        *out = hf__lines_of_entry(line);
    else if (!rc)
        hf__line_set_add(&first->kin->lines, &(*out)->kin->line);
    return rc;
}

/* Makes sure that there is an unused entry for a reader. Returns 0 or
 * ENOMEM. */
static int pick_reserve_entry(struct hf__line *first, hf_error *err)
{
    struct hf__kin *k = first->kin;

    if (!k->spare)
        k->spare = hf__alloc(first->client, sizeof(*k->spare));
    return k->spare ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

/* Takes an unused entry for that thread. Unused entries keep a reference to
 * their last thread, because the same thread is likely to use them next. */
static struct hf__reader *pick_take_entry(struct hf__line *first,
                                          struct hf__thread *thread)
{
    struct hf__reader *r = first->kin->spare;

    first->kin->spare = r->next;
    if (r->thread == thread)
        return r;
    hf__thread_unref(r->thread);
    r->thread = thread;
    if (thread)
        hf__thread_ref(thread);
    return r;
}

struct hf__line *hf__pick_quiet(struct hf__line *first, struct hf__waiter *w,
                                enum hf_mode mode)
{
    struct hf__line_entry *line = hf__line_set_quiet(&first->kin->lines, mode);

    if (!line || (line->queue->shared && !first->kin->spare))
        return NULL;
    if (line->queue->shared)
        w->reader = pick_take_entry(first, w->thread);
    return hf__lines_of_entry(line);
}

void hf__pick_went(struct hf__line *n, struct hf__waiter *w, bool had)
{
    struct hf__kin *f = n->kin->first->kin;

    if (had)
        hf__line_set_take(&f->lines, &n->kin->line);
    if (w->reader) {
        w->reader->next = f->spare;
        f->spare = w->reader;
        w->reader = NULL;
    }
}

static int pick_refused(int rc, hf_error *err)
{
    return hf__fail(
        err, rc,
        "the caller holds it for reading; a read hold cannot become a "
        "write hold, because two callers that try would wait for each "
        "other for ever");
}

/* Forgets the lost holds of threads that have exited, so that their lines are
 * free again. Returns whether there was any such hold. */
static bool pick_forget_the_gone(struct hf__line *first)
{
    struct hf__line *n, *next;
    bool any = false;

    for (n = hf__lines_newest(first); n; n = next) {
        next = hf__lines_after(n);
        if (!hf__line_forget_the_gone(n))
            continue;
        hf__lines_rest(n);
        any = true;
    }
    return any;
}

int hf__pick_for(const hf_lock *lock, struct hf__waiter *w, enum hf_mode mode,
                 hf__time now, struct hf__line **out, hf_error *err)
{
    struct hf__line *first = lock->line;
    struct hf__line_entry *line;
    int rc = 0;

    if (lock->acquiring)
        return hf__fail(err, HF_EDEADLK,
                        "another acquire through this handle, which is one "
                        "owner, is under way");
    *out = first;
    if (!first->kin)
        return 0;
    if (mode == HF_READ)
        rc = pick_reserve_entry(first, err);
    if (rc)
        return rc;
    rc = hf__line_set_for(&first->kin->lines, w, mode, now, &line);
    if (rc == HF_ELOST) {
        /* If hf__line_set_for() has just found the loss, this call reports
         * it. */
        hf__line_run(hf__lines_of_entry(line), now);
        return hf__fail_unreleased(hf__lines_of_entry(line), w->owner, err);
    }
    if (rc)
        return pick_refused(rc, err);
    if (!line && pick_forget_the_gone(first))
        line = hf__line_set_unused(&first->kin->lines, mode);
    rc = pick_use(first, line, mode, out, err);
    if (!rc && (*out)->queue.shared)
        w->reader = pick_take_entry(first, w->thread);
    /* A new waiter of a latch needs a new answer, so ask the server again. */
    if (!rc && (*out)->queue.latch)
        hf__lease_bell(&(*out)->queue.lease, now);
    return rc;
}

int hf__pick_downgrade(struct hf__line *first, struct hf__thread *thread,
                       hf__time now, struct hf__line **into, hf_error *err)
{
    int rc = pick_reserve_entry(first, err);
    struct hf__line_entry *line;
    struct hf__reader *r;

    if (rc)
        return rc;
    line = hf__line_set_unused(&first->kin->lines, HF_READ);
    rc = pick_use(first, line, HF_READ, into, err);
    if (rc)
        return rc;
    /* The line for reading may never have sent an attempt, but it needs an
     * exchange for its release. */
    if (!first->client->direct && !hf__exchange_make(*into)) {
        hf__lines_rest(*into);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    r = pick_take_entry(first, thread);
    hf__queue_downgrade(&first->queue, &(*into)->queue, r, now);
    r->thread = thread;
    (*into)->orphaned = false;
    hf__tally_hold(first);
    hf__tally_hold(*into);
    if (first->watchers)
        hf__loss_fd_arm(*into, false);
    return 0;
}

struct hf__line *hf__pick_held(struct hf__line *first, uint64_t owner)
{
    return first->kin ? hf__lines_of_entry(
                            hf__line_set_held(&first->kin->lines, owner))
                      : first;
}

/* Fails because the hold of this line cannot be used. Runs the line first, in
 * order to report a loss that was just found. */
static int pick_unusable(struct hf__line *line, uint64_t owner, int rc,
                         hf__time now, hf_error *err)
{
    HF__UNCANCELLED;

    hf__line_run(line, now);
    return hf__fail_hold(line, owner, rc, err);
}

int hf__pick_check(const hf_lock *lock, struct hf__line **line, hf_error *err)
{
    uint64_t owner = hf__owner_of(lock, NULL);
    hf__time now = hf__now();
    int rc = HF_ENOTOWNER; /* kept if owner is 0 (out of memory): such a thread
                              holds nothing */

    *line = hf__pick_held(lock->line, owner);
    if (owner)
        rc = hf__queue_check(&(*line)->queue, owner, now);
    return rc ? pick_unusable(*line, owner, rc, now, err) : 0;
}
