#include "core/name_table.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/hash.h"
#include "base/thread_id.h"
#include "base/time.h"
#include "base/timer.h"
#include "core/client.h"
#include "core/counters.h"
#include "core/events.h"
#include "core/hooks.h"
#include "core/last_error.h"
#include "core/line.h"
#include "core/line_list.h"
#include "core/name_text.h"
#include "policy/line_set.h"
#include "policy/local_queue.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define GAP_MS 20 /* the pause between two attempts to attach a name */

/* A first line is in the bucket of its name, because it is looked up by the
 * name. The other lines of a name are never looked up. They are spread by their
 * addresses, because in the bucket of the name they would make one long
 * chain. */
static size_t names_bucket_of(struct hf__line *n, size_t buckets_len)
{
    uint64_t at = (uintptr_t)n;

    if (hf__line_first(n) == n)
        return hf__hash32(HF__HASH32, n->text, n->remote.name_len) &
               (buckets_len - 1);
    return (at * 0x9e3779b97f4a7c15u >> 32) & (buckets_len - 1);
}

static bool names_is_as(const struct hf__line *n, const struct hf__remote *as)
{
    return n->remote.kind == as->kind && n->remote.fair == as->fair &&
           n->remote.permits == as->permits;
}

/* Returns the first line for a new handle of that name, or NULL if a new line
 * is needed. A line without a handle exists only because its hold or attempt
 * has not been let go yet. Such a line does not determine the kind of the name,
 * so a handle of a different kind gets another first line. In shared memory a
 * name cannot have two first lines, and never needs them: there a release is
 * refused only if a process breaks the rules. */
static struct hf__line *names_find_locked(hf_client *c,
                                          const struct hf__remote *as)
{
    uint32_t hash = hf__hash32(HF__HASH32, as->name, as->name_len);
    struct hf__line *n, *left = NULL;

    if (!c->buckets_len)
        return NULL;
    n = c->buckets[hash & (c->buckets_len - 1)];
    for (; n; n = n->next_in_bucket) {
        if (n->remote.name_len != as->name_len || hf__line_first(n) != n ||
            memcmp(n->text, as->name, as->name_len) != 0)
            continue;
        if (n->timer.handles || c->direct)
            return n;
        if (names_is_as(n, as))
            left = n;
    }
    return left;
}

static int grow_table_locked(hf_client *c)
{
    size_t len = c->buckets_len ? c->buckets_len * 2 : 16;
    struct hf__line **buckets;

    if (c->names_len < 2 * c->buckets_len) /* at two lines per bucket the table
                                              is doubled, so its buckets then
                                              take 8 bytes per line */
        return 0;
    buckets = hf__alloc(c, len * sizeof(*buckets));
    if (!buckets)
        return HF_ENOMEM;
    for (size_t i = 0; i < c->buckets_len; i++) {
        struct hf__line *n, *next;

        for (n = c->buckets[i]; n; n = next) {
            size_t bucket = names_bucket_of(n, len);

            next = n->next_in_bucket;
            n->next_in_bucket = buckets[bucket];
            buckets[bucket] = n;
        }
    }
    hf__free(c, c->buckets);
    c->buckets = buckets;
    c->buckets_len = len;
    return 0;
}

/* Returns the size of the memory in front of a line: see
 * hf__event_of_loss(). */
static size_t names_front_of(const hf_client *c)
{
    return c->on_event ? sizeof(struct hf__event) : 0;
}

static void names_free_line(hf_client *c, struct hf__line *n)
{
    if (!n)
        return;
    if (n->kin) {
        hf__lines_free_readers(n);
        hf__free(c, n->kin);
    }
    hf__free(c, (char *)n - names_front_of(c));
}

/* Creates a line like `as`. `first` is the first line of its name, or NULL if
 * the new line is the first. */
static struct hf__line *names_make(hf_client *c, const struct hf__remote *as,
                                   struct hf__line *first)
{
    bool own_label = !first && as->label != c->label;
    size_t label = own_label ? strlen(as->label) + 1 : 0;
    size_t front = names_front_of(c);
    char *memory = hf__alloc(c, front + offsetof(struct hf__line, text) +
                                    as->name_len + 1 + label);
    struct hf__line *n;

    if (!memory)
        return NULL;
    n = (struct hf__line *)(void *)(memory + front);
    memcpy(n->text, as->name, as->name_len);
    n->client = c;
    n->refs = 1;
    n->timer.handles = !first;
    n->timer.is_line = true;
    n->timer.at = HF__NEVER;
    n->remote = *as;
    n->remote.name = n->text;
    if (own_label)
        n->remote.label = memcpy(n->text + as->name_len + 1, as->label, label);
    if (as->kind != HF_MUTEX) {
        n->kin = hf__alloc(c, sizeof(*n->kin));
        if (!n->kin) {
            names_free_line(c, n);
            return NULL;
        }
        n->kin->first = first ? first : n;
        n->kin->permits = 1;
        n->kin->line.queue = &n->queue;
        hf__line_set_init(&n->kin->lines, as->kind, &n->kin->line);
    }
    /* A hold id is unique in the client: the line's serial number, followed by
     * a count. It stays positive, for formats without unsigned numbers. (Ids
     * repeat after 2^31 lines, or 2^32 attempts of one line.) */
    hf__queue_init(&n->queue, as->fair, c->endless,
                   (uint64_t)(++c->serial & 0x7fffffff) << 32);
    n->queue.lease.session = c->session;
    n->queue.latch = as->kind == HF_LATCH;
    n->queue.shared = as->mode == HF_READ;
    return n;
}

/* Creates a line and puts it into the table. Returns 0, or an error code with a
 * message; or LATER, with EBACKEND in err, if the backend could not attach the
 * line now. */
static int names_add_locked(hf_client *c, const struct hf__remote *as,
                            struct hf__line *first, struct hf__line **out,
                            hf_error *err)
{
    struct hf__line *n = names_make(c, as, first);
    int rc = n ? grow_table_locked(c) : HF_ENOMEM;
    size_t bucket;

    if (!rc)
        rc = hf__timers_reserve(&c->hooks, &c->timers);
    if (rc) {
        names_free_line(c, n);
        return hf__fail(err, rc, "%s", hf_error_text(rc));
    }
    rc = c->be->attach(c->self, &n->remote);
    if (rc) {
        hf__timers_unreserve(&c->timers);
        names_free_line(c, n);
        hf__fail_why(c, err, rc == HF__LATER ? HF_EBACKEND : rc);
        return rc;
    }
    bucket = names_bucket_of(n, c->buckets_len);
    n->next_in_bucket = c->buckets[bucket];
    c->buckets[bucket] = n;
    c->names_len++;
    *out = n;
    return 0;
}

static int names_mismatch(struct hf__line *n, hf_error *err)
{
    char size[24] = "";

    if (n->remote.permits)
        snprintf(size, sizeof(size), " of %u permits", n->remote.permits);
    return hf__fail(err, HF_EMISMATCH,
                    "this client uses the name \"%s\" as %s %s%s already",
                    hf__line_shown(n).text,
                    n->remote.fair ? "a fair" : "an unfair",
                    hf__kind_name(n->remote.kind), size);
}

static int names_get_locked(hf_client *c, const struct hf__remote *as,
                            int64_t ttl_ms, struct hf__line **out,
                            hf_error *err)
{
    struct hf__line *n = names_find_locked(c, as);
    int rc = 0;

    if (__atomic_load_n(&c->closed, __ATOMIC_ACQUIRE))
        return hf__fail(err, HF_ECLOSED, "the client was closed");
    if (n && !names_is_as(n, as))
        return names_mismatch(n, err);
    if (n) {
        n->refs++;
        n->timer.handles++;
        *out = n;
    } else {
        rc = names_add_locked(c, as, NULL, out, err);
    }
    if (rc)
        return rc;
    /* client->mu has been locked since `closed` was checked, so hf_close()
     * cannot have begun. If it begins later, it finds this handle counted, and
     * the client stays until the handle is freed. */
    c->handles++;
    if (ttl_ms && ttl_ms < c->least_ttl_ms)
        c->least_ttl_ms = (uint32_t)ttl_ms;
    return 0;
}

int hf__names_add_line(struct hf__line *first, enum hf_mode mode,
                       struct hf__line **out, hf_error *err)
{
    hf_client *c = first->client;
    struct hf__remote as = first->remote;
    int rc;

    as.mode = mode == HF_READ;
    as.impl = NULL;
    as.attempt = NULL;
    HF__HOLDING(&c->mu);
    /* hf_close() visits every line, and may already have passed this name. */
    if (__atomic_load_n(&c->closed, __ATOMIC_ACQUIRE))
        return hf__fail(err, HF_ECLOSED, "the client was closed");
    rc = names_add_locked(c, &as, first, out, err);
    first->refs += !rc;
    return rc == HF__LATER ? HF_EBACKEND : rc;
}

/* Returns whether the lock is fair: the lock's options decide, then the URL,
 * then the backend's default. The last two apply only if the kind can be
 * either. */
static bool names_is_fair(const hf_client *c, const hf_lock_options *opt)
{
    int caps = c->caps[opt->kind];
    bool fair = c->be->fair_by_default;

    if (opt->fairness || c->fairness)
        fair = (opt->fairness ? (int)opt->fairness : c->fairness) == HF_FAIR;
    return fair ? caps & HF_CAP_FAIR : !(caps & HF_CAP_UNFAIR);
}

/* Repeats names_get_locked() while the backend returns LATER, for op_timeout at
 * most. The pause between two calls lets other threads take the mutex. The time
 * limit is checked with the mutex held, so a thread that has waited for the
 * mutex too long does not ask the backend again. */
static int names_get(hf_client *c, const struct hf__remote *as, int64_t ttl_ms,
                     struct hf__line **out, hf_error *err)
{
    hf__time until = hf__op_deadline(c);
    hf_error why = HF_ERROR_INIT;
    int rc = HF__LATER;

    for (bool again = false; rc == HF__LATER; again = true) {
        if (again)
            poll(NULL, 0, GAP_MS);
        hf__mutex_lock(&c->mu);
        rc = again && hf__now() >= until
                 ? HF_EBACKEND
                 : names_get_locked(c, as, ttl_ms, out, &why);
        hf__mutex_unlock(&c->mu);
    }
    if (rc && err)
        *err = why;
    return rc;
}

int hf__names_get(hf_client *c, const void *name, size_t len,
                  const hf_lock_options *opt, struct hf__line **out,
                  hf_error *err)
{
    size_t prefix = strlen(c->prefix);
    char text[2 * HF_NAME_MAX + 1];
    struct hf__remote as = {.name = text,
                            .name_len = (uint16_t)(prefix + len),
                            .kind = (uint8_t)opt->kind,
                            .fair = names_is_fair(c, opt),
                            .permits = opt->permits,
                            .label = opt->label ? opt->label : c->label};

    if (prefix + len > HF_NAME_MAX)
        return hf__fail(err, HF_EINVAL,
                        "the name has %zu bytes with the client's prefix; at "
                        "most %d are allowed",
                        prefix + len, HF_NAME_MAX);
    memcpy(text, c->prefix, prefix);
    memcpy(text + prefix, name, len);
    return names_get(c, &as, opt->ttl_ms, out, err);
}

void hf__line_unref_locked(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__line *first = hf__line_first(n);
    struct hf__line **p;

    if (--n->refs)
        return;
    hf__event_detach_locked(n);
    hf__timers_set(&c->timers, &n->timer, HF__NEVER);
    hf__timers_unreserve(&c->timers);
    p = &c->buckets[names_bucket_of(n, c->buckets_len)];
    while (*p != n)
        p = &(*p)->next_in_bucket;
    *p = n->next_in_bucket;
    c->names_len--;
    if (c->self)
        c->be->detach(c->self, &n->remote);
    hf__tally_carry_locked(n);
    hf__thread_unref(n->owner_thread);
    if (n->remote.attempt)
        hf__words_free(c, hf__exchange_of(n));
    hf__free(c, hf__exchange_of(n));
    names_free_line(c, n);
    if (first != n)
        hf__line_unref_locked(first);
}

void hf__line_unref(struct hf__line *n)
{
    hf_client *c = n->client;

    HF__HOLDING(&c->mu);
    hf__line_unref_locked(n);
}

void hf__names_put(struct hf__line *n)
{
    hf_client *c = n->client;
    struct hf__line *lines = NULL, *line;

    hf__line_lock(n);
    HF__HOLDING(&c->mu);
    if (!n->timer.handles && n->kin) /* `handles` is not 0 if a new handle was
                                        made in the meantime */
        lines = hf__lines_all_but_first(n);
    hf__line_unlock(n);
    while ((line = lines)) {
        lines = hf__lines_after(line);
        hf__line_unref_locked(line);
    }
    hf__line_unref_locked(n);
}
