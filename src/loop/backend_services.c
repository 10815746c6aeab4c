/* What the core lends to backends: memory, log, chance, and marks. */
#include "core/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void *hf__alloc(hf_client *c, size_t size)
{
    void *p;

    if (!c->hooks.alloc)
        return calloc(1, size);
    p = c->hooks.alloc(c->hooks.ctx, size);
    return p ? memset(p, 0, size) : NULL;
}

void hf__free_by(const hf_hooks *hooks, void *p)
{
    if (!p)
        return;
    if (hooks->free)
        hooks->free(hooks->ctx, p);
    else
        free(p);
}

void hf__free(hf_client *c, void *p)
{
    hf__free_by(&c->hooks, p);
}

char *hf__strdup(hf_client *c, const char *s)
{
    size_t size = strlen(s) + 1;
    char *copy = hf__alloc(c, size);

    return copy ? memcpy(copy, s, size) : NULL;
}

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

void hf__log(hf_client *c, const char *fmt, ...)
{
    char text[800];
    va_list ap;

    if (!c->hooks.log)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    hf__printable(text, sizeof(text));
    c->hooks.log(c->hooks.ctx, text);
}

static void hf__fail_set(hf_client *c, int code, bool may_pass, const char *fmt,
                         va_list ap)
{
    char text[720];

    vsnprintf(text, sizeof(text), fmt, ap);
    hf__mutex_lock(&c->why_mu);
    hf__fail(&c->why, code, "%s: %s", c->be->name, text);
    c->why.may_pass = may_pass;
    hf__mutex_unlock(&c->why_mu);
}

static int hf__fail_why_set(hf_client *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hf__fail_set(c, code, hf__may_pass(c, code), fmt, ap);
    va_end(ap);
    return code;
}

static int hf__fail_lasts(hf_client *c, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    hf__fail_set(c, code, false, fmt, ap);
    va_end(ap);
    return code;
}

static void hf__trouble_set(hf_client *c, const char *text)
{
    hf__mutex_lock(&c->why_mu);
    snprintf(c->trouble, sizeof(c->trouble), "%s", text ? text : "");
    hf__printable(c->trouble, sizeof(c->trouble));
    hf__mutex_unlock(&c->why_mu);
    if (text)
        hf__note(c, HF__LOSS_SILENT, text);
    else
        hf__note_over(c, HF__LOSS_SILENT);
}

static void news(hf_client *c, struct hf__line *n)
{
    if (n->in_news)
        return;
    n->in_news = true;
    n->refs++;
    hf__fifo_add(c->news, c->news_tail, n, next_news);
}

static void hf__report_done(hf_client *c, struct hf__req *req)
{
    struct hf__line *n;
    struct hf__request *f;

    /* A question that is being abandoned: its answer came before the backend
     * heard of that (forget_attempt), and it has been counted. */
    if (req->remote && !req->flying)
        return;
    c->under_way--;
    req->flying = false;
    if (!req->remote) {
        f = hf__container(req, struct hf__request, req);
        /* Of a batch, each renewal of which may have failed in its own way:
         * whatever was said last. */
        hf__mutex_lock(&c->why_mu);
        f->why = c->why;
        hf__mutex_unlock(&c->why_mu);
        hf__fifo_add(c->landed, c->landed_tail, f, next_landed);
        return;
    }
    n = hf__container(req->remote, struct hf__line, remote);
    hf__keep_word_locked(c, hf__exchange_of(n), req->op != HF__ATTEMPT,
                         req->result);
    if (req->op == HF__ATTEMPT)
        n->attempt_ready = true;
    else
        n->let_go_ready = true;
    news(c, n);
    hf__line_unref_locked(n); /* the request's; news has one of its own */
}

static void services_go_on(hf_client *c)
{
    c->may_go_on = true;
}

static void hf__outbox_refuse(hf_client *c, int code)
{
    while (c->outbox) {
        c->outbox->untouched = true;
        hf__outbox_finish_locked(c, c->outbox, code);
    }
}

static void hf__report_bell(hf_client *c, struct hf__remote *remote)
{
    struct hf__line *n = hf__container(remote, struct hf__line, remote);

    n->rang = true;
    news(c, n);
}

static void hf__report_lost(hf_client *c, struct hf__remote *remote,
                            uint64_t hold_id, const char *session)
{
    struct hf__line *n = hf__container(remote, struct hf__line, remote);
    struct hf__exchange *x = hf__exchange_of(n);

    if (c->direct) { /* see for yourself: it may be held anew by now */
        hf__timers_set(&c->timers, &n->timer, 0);
        return;
    }
    if (!x)
        return; /* it holds nothing any more */
    x->lost_id = hold_id;
    x->session_over = session != NULL;
    if (session)
        hf__note(c, HF__LOSS_SESSION, session);
    news(c, n);
}

static void hf__report_wanted(hf_client *c, struct hf__remote *remote,
                              uint64_t token)
{
    hf__event_queue_locked(c, HF_EVENT_WANTED,
                           hf__container(remote, struct hf__line, remote),
                           token, hf__no_loss);
}

/* May come from a direct backend on any thread: the helper thread spreads it.
 */
static void hf__report_session(hf_client *c, int event, const char *why)
{
    if (event == HF_EVENT_LOST) {
        hf__note(c, HF__LOSS_SESSION, why);
        __atomic_store_n(&c->session_lost, 1, __ATOMIC_RELEASE);
        __atomic_add_fetch(&c->helper_word, 1, __ATOMIC_RELEASE);
        hf__futex_wake(&c->helper_word, 1);
    } else {
        hf__count(event == HF_EVENT_DOWN ? &c->counts.disconnects
                                         : &c->counts.reconnects,
                  1);
        hf__event_queue_locked(c, event, NULL, 0, hf__no_loss);
    }
}

void hf__report_session_locked(hf_client *c)
{
    for (size_t i = 0; i < c->buckets_len; i++)
        for (struct hf__line *n = c->buckets[i]; n; n = n->next_in_bucket) {
            n->session_lost = true;
            news(c, n);
        }
}

static void *grow(hf_client *c, void *old, size_t len, size_t size)
{
    void *p;

    if (len & (len - 1)) /* room until the next power of two */
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
    hf_party *p = grow(c, *list, *len, sizeof(**list));

    if (!p)
        return NULL;
    *list = p;
    return &p[(*len)++];
}

/* A server that lists without end must not eat the memory of the program. Of
 * names of 30 bytes these are a million. */
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
    f->names_bytes += sizeof(*names) + 16 + len; /* 16: of the allocator */
    if (f->names_bytes > HF__NAMES_BYTES)
        return hf__fail_why_set(
            c, HF_EBACKEND,
            "the list has more than %zu names, which take more "
            "than %d MB: list those with a longer prefix",
            q->names->len, HF__NAMES_BYTES >> 20);
    names = grow(c, q->names->names, q->names->len, sizeof(*names));
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

/* A server decides how many there are of some kinds, but not of these. */
enum { HF__FINDINGS_MAX = 100 };

static bool is_always_shown(const char *subject)
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

    if (d->len >= HF__FINDINGS_MAX && !is_always_shown(subject))
        return;
    f = grow(c, d->findings, d->len, sizeof(*f));
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
    .lasts = hf__fail_lasts,
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
