/*
 * Several locks at once. They are acquired one after the other, in an order
 * that every process can derive (by name, then kind, then the place of the
 * client, which is its URL without user, password and options), and released in
 * the opposite order. Callers that follow this order cannot wait for each other
 * in a cycle. If a lock is listed both for writing and for reading, it is
 * acquired for writing first: a read within a write is possible, a write within
 * a read is not.
 */
#include "api/acquire.h"
#include "api/release.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/time.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/last_error.h"
#include "core/lock.h"
#include "core/name_text.h"
#include "core/wakeup.h"

#include <stdlib.h>
#include <string.h>

static int multi_by_name(const void *a, const void *b)
{
    const hf_lock *x = ((const hf_part *)a)->lock;
    const hf_lock *y = ((const hf_part *)b)->lock;
    const struct hf__remote *p = &x->line->remote, *q = &y->line->remote;
    size_t len = p->name_len < q->name_len ? p->name_len : q->name_len;
    int rc = memcmp(p->name, q->name, len);

    if (!rc)
        rc = (int)p->name_len - (int)q->name_len;
    if (!rc)
        rc = (int)p->kind - (int)q->kind;
    if (!rc)
        rc = strcmp(x->line->client->place, y->line->client->place);
    return rc;
}

static int multi_by_turn(const void *a, const void *b)
{
    int rc = multi_by_name(a, b);

    return rc ? rc
              : (int)((const hf_part *)a)->mode -
                    (int)((const hf_part *)b)->mode;
}

/* Refuses a semaphore that is listed twice: two callers that each take some
 * permits, and then some more, could wait for each other. */
static int multi_check_sorted(const hf_part *parts, size_t n, hf_error *err)
{
    for (size_t i = 1; i < n; i++)
        if (parts[i].lock->line->remote.kind == HF_SEMAPHORE &&
            !multi_by_name(&parts[i - 1], &parts[i]))
            return hf__fail(err, HF_EINVAL,
                            "a semaphore is given twice; give it one part with "
                            "all the permits");
    return 0;
}

static int multi_check(const hf_part *parts, size_t n, hf_error *err)
{
    if (!parts || !n)
        return hf__fail(err, HF_EINVAL,
                        "no locks were given; there must be at least one part");
    for (size_t i = 0; i < n; i++)
        if (!parts[i].lock)
            return hf__fail(err, HF_EINVAL, "lock %zu is NULL", i);
    return 0;
}

/* Returns until when to wait for the servers' answers. The limit applies to all
 * parts together, as if they were one verb. */
static hf__time multi_latest_of(const hf_part *part,
                                const hf_acquire_options *opt, hf__time until)
{
    if (until == HF__NEVER)
        return HF__NEVER;
    if (opt->wait_ms)
        return until + HF__GRACE_MS * HF__MS;
    return hf__answer_by(part->lock->line->client, 0, until);
}

static int multi_take(const hf_part *part, const hf_acquire_options *opt,
                      hf__time until, hf_error *err)
{
    hf_acquire_options one = *opt;
    hf__time latest = multi_latest_of(part, opt, until);
    int rc;

    one.mode = part->mode;
    one.permits = part->permits;

    if (until != HF__NEVER) {
        hf__time left = until - hf__now();

        /* Each part gets at least one attempt, even if the preceding parts have
         * used up the time. */
        one.wait_ms = left > 0 ? (left + HF__MS - 1) / HF__MS : 0;
    }
    rc = hf__acquire_by(part->lock, &one, latest, err);
    if (opt->wait_ms &&
        (rc == HF_EBUSY || (rc == HF_EBACKEND && hf__now() >= latest)))
        rc = hf__fail(err, HF_ETIMEDOUT,
                      "\"%s\" was not granted within %s, the limit for all "
                      "together%s",
                      hf__line_shown(part->lock->line).text,
                      hf__span(opt->wait_ms).text,
                      hf__trouble(part->lock->line->client).text);
    return rc;
}

static void multi_give_back(const hf_part *parts, size_t n)
{
    while (n--)
        hf_lock_release_nowait(parts[n].lock, NULL);
}

/* Checks that all parts are still held: a hold that was granted early may have
 * been lost before the last one was granted. */
static int multi_still_held(const hf_part *parts, size_t n, hf_error *err)
{
    hf_error why = HF_ERROR_INIT;
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++)
        rc = hf_lock_explain(parts[i].lock, &why);
    if (rc && err)
        *err = why;
    return rc;
}

static int multi_take_all(const hf_part *sorted, size_t n,
                          const hf_acquire_options *opt, hf__time until,
                          hf_error *err)
{
    size_t got = 0;
    int rc = 0;

    while (got < n && !(rc = multi_take(&sorted[got], opt, until, err)))
        got++;
    if (!rc)
        rc = multi_still_held(sorted, n, err);
    if (rc)
        multi_give_back(sorted, got);
    return rc;
}

int hf_lock_acquire_all(const hf_part *parts, size_t n,
                        const hf_acquire_options *opt, hf_error *err)
{
    HF__UNCANCELLED;
    hf__time until = HF__NEVER;
    hf_client *c;
    hf_part *sorted;
    int rc = multi_check(parts, n, err);

    if (rc)
        return rc;
    opt = opt ? opt : &hf__acquire_default;
    if (opt->size == sizeof(*opt) && opt->wait_ms >= 0 &&
        opt->wait_ms <= HF_TIME_MAX_MS)
        until = hf__now() + opt->wait_ms * HF__MS;
    c = parts[0].lock->line->client;
    rc = hf__client_usable(c, err);
    if (rc)
        return rc;
    sorted = hf__alloc(c, n * sizeof(*sorted));
    if (!sorted)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    memcpy(sorted, parts, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), multi_by_turn);
    rc = multi_check_sorted(sorted, n, err);
    if (!rc)
        rc = multi_take_all(sorted, n, opt, until, err);
    hf__free(c, sorted);
    return rc;
}

/* Returns the unfinished release with the earliest time limit, or NULL if all
 * have finished. The caller ends the releases in this order, so that a client
 * with a short op_timeout does not wait for the server of another client. */
static struct hf__releasing *multi_soonest(struct hf__releasing *all, size_t n)
{
    struct hf__releasing *first = NULL;

    for (size_t i = 0; i < n; i++)
        if (all[i].lock && (!first || all[i].until < first->until))
            first = &all[i];
    return first;
}

static int multi_begin_all(const hf_part *parts, size_t n,
                           struct hf__releasing *all, hf_error *err)
{
    int first = 0;

    while (n--) {
        int rc = hf__release_begin(parts[n].lock, &all[n], first ? NULL : err);

        if (rc == HF__PENDING)
            continue;
        all[n].lock = NULL;
        first = first ? first : rc;
    }
    return first;
}

static int multi_wait_for_all(struct hf__releasing *all, size_t n,
                              hf_error *err)
{
    struct hf__releasing *r = multi_soonest(all, n);
    int first = 0;

    /* While this thread drives one client, the helper threads of the other
     * clients must handle the requests there. */
    for (size_t i = 0; r && i < n; i++)
        if (all[i].lock && all[i].lock->line->client != r->lock->line->client)
            hf__helper_check_later(all[i].lock->line->client);
    for (; r; r = multi_soonest(all, n)) {
        int rc = hf__release_end(r, first ? NULL : err);

        r->lock = NULL;
        first = first ? first : rc;
    }
    return first;
}

static int multi_release(const hf_part *parts, size_t n,
                         struct hf__releasing *all, hf_error *err)
{
    int rc = multi_begin_all(parts, n, all, err);
    int later = multi_wait_for_all(all, n, rc ? NULL : err);

    return rc ? rc : later;
}

#define FEW 8

int hf_lock_release_all(const hf_part *parts, size_t n, hf_error *err)
{
    HF__UNCANCELLED;
    struct hf__releasing few[FEW], *all = few;
    hf_hooks hooks;
    int rc = multi_check(parts, n, err), later;

    if (rc)
        return rc;
    /* The hooks are copied, because once a hold is released, another thread may
     * free the handle, and then the client may be freed, too. */
    hooks = parts[0].lock->line->client->hooks;
    if (n > FEW)
        all = hf__alloc(parts[0].lock->line->client, n * sizeof(*all));
    for (; !all && n > FEW; n -= FEW) { /* if out of memory, release a few at a
                                           time */
        later = multi_release(parts + n - FEW, FEW, few, rc ? NULL : err);
        rc = rc ? rc : later;
    }
    later = multi_release(parts, n, all ? all : few, rc ? NULL : err);
    if (all != few)
        hf__free_by(&hooks, all);
    return rc ? rc : later;
}
