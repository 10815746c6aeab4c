#include "loop/backend_services.h"

#include "base/list.h"
#include "base/text.h"
#include "base/time.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/last_error.h"
#include "core/outbox.h"
#include "core/report.h"
#include "core/requests.h"
#include "core/watches.h"
#include "loop/driver.h"
#include "loop/resolve.h"
#include "loop/url.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static int services_random(void *buf, size_t len)
{
    char *p = buf;

    while (len) {
        ssize_t n = getrandom(p, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return HF_EBACKEND;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static void services_go_on(hf_client *c)
{
    c->may_go_on = true;
}

static void *services_grow(hf_client *c, void *old, size_t len, size_t size)
{
    void *p;

    if (len & (len - 1)) /* there is room up to the next power of two */
        return old;
    p = hf__alloc(c, (len ? len * 2 : 1) * size);
    if (p && len)
        memcpy(p, old, len * size);
    if (p)
        hf__free(c, old);
    return p;
}

static hf_party *services_add_party(hf_client *c, struct hf__query *q,
                                    bool holds)
{
    hf_party **list = holds ? &q->info->holders : &q->info->waiters;
    size_t *len = holds ? &q->info->holders_len : &q->info->waiters_len;
    hf_party *p = services_grow(c, *list, *len, sizeof(**list));

    if (!p)
        return NULL;
    *list = p;
    return &p[(*len)++];
}

/* A server that lists names without end must not use up the memory of the
 * program. The limit is about a million names of 30 bytes. */
enum { HF__NAMES_BYTES = 64 << 20 };

static int services_add_name(hf_client *c, struct hf__query *q,
                             const char *bytes, size_t len)
{
    struct hf__request *f = hf__container(q, struct hf__request, query);
    struct hf_name *names;
    size_t skip = strlen(c->prefix);
    char *copy;

    if (len < skip)
        return 0;
    f->names_bytes += sizeof(*names) + 16 + len; /* 16: the allocator's
                                                    overhead */
    if (f->names_bytes > HF__NAMES_BYTES)
        return hf__fail_why_set(
            c, HF_EBACKEND,
            "the list has more than %zu names, which take more "
            "than %d MB: list those with a longer prefix",
            q->names->len, HF__NAMES_BYTES >> 20);
    names = services_grow(c, q->names->names, q->names->len, sizeof(*names));
    if (!names)
        return HF_ENOMEM;
    q->names->names = names;
    copy = hf__alloc(c, len - skip + 1);
    if (!copy)
        return HF_ENOMEM;
    memcpy(copy, bytes + skip, len - skip);
    names[q->names->len++] = (struct hf_name){len - skip, copy};
    return 0;
}

/* How many findings a diagnosis keeps; some servers can cause any number of
 * them. The few that are always shown are kept even beyond this limit. */
enum { HF__FINDINGS_MAX = 100 };

static bool services_is_always_shown(const char *subject)
{
    return !strcmp(subject, HF__PROMISE) || !strcmp(subject, "locking") ||
           !strcmp(subject, "latency");
}

static void services_find(hf_client *c, struct hf__query *q,
                          enum hf_level level, const char *subject,
                          const char *fmt, ...)
{
    hf_diagnosis *d = q->diagnosis;
    hf_finding *f = NULL;
    va_list ap;

    if (d->len >= HF__FINDINGS_MAX && !services_is_always_shown(subject))
        return;
    f = services_grow(c, d->findings, d->len, sizeof(*f));
    if (!f) {
        q->cut = true;
        return;
    }
    d->findings = f;
    f += d->len++;
    f->level = level;
    d->level = level > d->level ? level : d->level;
    snprintf(f->subject, sizeof(f->subject), "%s", subject);
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof(f->text), fmt, ap);
    va_end(ap);
    hf__printable(f->text, sizeof(f->text));
}

const struct hf__core hf__core = {
    .abi = HF__ABI,
    .now = hf__now,
    .random = services_random,
    .alloc = hf__alloc,
    .free = hf__free,
    .log = hf__log,
    .why = hf__fail_why_set,
    .lasts = hf__fail_lasts_set,
    .trouble = hf__trouble_set,
    .done = hf__report_done,
    .unsent = hf__outbox_return,
    .go_on = services_go_on,
    .refuse = hf__outbox_refuse,
    .bell = hf__report_bell,
    .lost = hf__report_lost,
    .wanted = hf__report_wanted,
    .changed = hf__watch_changed,
    .session = hf__report_session,
    .watch = hf__driver_watch,
    .due = hf__driver_due_locked,
    .lookup = hf__lookup,
    .lookup_over = hf__lookup_over,
    .lookup_leave = hf__lookup_leave,
    .option = hf__url_option,
    .parse_ms = hf__parse_ms,
    .add_party = services_add_party,
    .add_name = services_add_name,
    .find = services_find,
};
