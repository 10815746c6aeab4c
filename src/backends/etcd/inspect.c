/*
 * Reads the entries of a name, the oldest first, and decides which of them hold
 * the lock. Entries of Go's clients count, too.
 */
#include "inspect.h"

#include "backends/common/about.h"
#include "backends/common/order.h"

#include "entry.h"
#include "etcd.h"
#include "query.h"
#include "txn.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE 500      /* a page has at most this many entries */
#define SEEN_MAX 5000 /* no further page is read after this many entries */
#define DOOMED 16     /* at most this many holders in one transaction */

struct seen {
    struct seen *next;
    int64_t rev, lease;
    enum et_form form;
    uint32_t permits, size;
    bool is_marked, holds;
    bool is_doomed; /* BREAK: will be deleted; ASK: its holder will be asked */
    size_t key_len, value_len;
    char data[]; /* the key, one spare byte to form the key of its mark, the
                    value */
};

struct inspection {
    struct et_query base;
    int64_t from; /* create revision at which the next page begins */
    size_t seen_len;
    struct seen *seen, **last; /* the entries, the oldest first */
    bool is_known;             /* all entries of the name were read */
    bool is_sent;              /* BREAK: an unanswered deletion was sent */
    bool is_unsure; /* BREAK: a deletion was repeated, and the first one may
                       have been carried out */
    char tokens[ET_WISHES]; /* ASK: the tokens of up to DOOMED holders */
};

static void inspect_forget(struct inspection *k)
{
    struct etcd *e = k->base.e;
    struct seen *s;

    while ((s = k->seen)) {
        k->seen = s->next;
        e->core->free(e->client, s);
    }
    k->last = &k->seen;
    k->seen_len = 0;
    k->from = 0;
    k->is_known = false;
}

static void inspect_fini(struct et_query *x)
{
    inspect_forget((struct inspection *)x);
}

/* ---- reading ------------------------------------------------------------- */

static int inspect_add(struct inspection *k, const Etcd__KeyValue *kv)
{
    struct etcd *e = k->base.e;
    size_t dir = k->base.len, len = kv->key.len;
    uint32_t permits = 0, size = 0;
    enum et_form form = ET_FORM_NONE;
    struct seen *s;

    if (len > dir && memcmp(kv->key.data, k->base.key, dir) == 0)
        form =
            hf__et_form((char *)kv->key.data + dir, len - dir, &permits, &size);
    if (form == ET_FORM_NONE)
        return 0;
    s = e->core->alloc(e->client, sizeof(*s) + len + 1 + kv->value.len);
    if (!s)
        return HF_ENOMEM;
    s->rev = kv->create_revision;
    s->lease = kv->lease;
    s->form = form;
    s->permits = permits;
    s->size = size;
    s->key_len = len;
    s->value_len = kv->value.len;
    memcpy(s->data, kv->key.data, len);
    if (kv->value.len)
        memcpy(s->data + len + 1, kv->value.data, kv->value.len);
    *k->last = s;
    k->last = &s->next;
    k->seen_len++;
    return 0;
}

/* Returns the create revision at which the next page begins. More keys of this
 * page's last revision may follow on the next page. Therefore all keys of that
 * revision are taken from the next page, unless they fill this page by
 * themselves. */
static int64_t inspect_page_end(const Etcd__RangeAnswer *r)
{
    int64_t last = r->kvs[r->n_kvs - 1]->create_revision;

    return r->more && r->kvs[0]->create_revision < last ? last : last + 1;
}

/* Adds the entries of a page. Returns PENDING if another page must be read, 0
 * if not, or an error code. */
static int inspect_read_page(struct inspection *k, const Etcd__TxnAnswer *t)
{
    const Etcd__RangeAnswer *r = hf__et_ranged(t, 0);
    int64_t end;
    int rc = 0;

    if (!r)
        return HF_EPROTO;
    if (!r->n_kvs)
        return 0;
    end = inspect_page_end(r);
    for (size_t i = 0; i < r->n_kvs && !rc; i++) {
        int64_t rev = r->kvs[i]->create_revision;

        if (rev < k->from)
            return HF_EPROTO;
        if (rev < end)
            rc = inspect_add(k, r->kvs[i]);
    }
    k->from = end;
    if (rc)
        return rc;
    return r->more && k->seen_len < SEEN_MAX ? HF__PENDING : 0;
}

/* ---- holders ------------------------------------------------------------- */

static void inspect_find_marks(struct inspection *k)
{
    for (const struct seen *m = k->seen; m; m = m->next)
        for (struct seen *s = k->seen; m->form == ET_FORM_MARK && s != m;
             s = s->next)
            if (s->key_len + 1 == m->key_len &&
                memcmp(s->data, m->data, s->key_len) == 0)
                s->is_marked = true;
}

static void inspect_find_holders(struct inspection *k)
{
    struct hf__order order = {0};
    uint64_t permits = 0;

    inspect_find_marks(k);
    for (struct seen *s = k->seen; s; s = s->next) {
        permits += s->permits;
        switch (s->form) {
        case ET_FORM_MUTEX:
        case ET_FORM_UNFAIR:
        case ET_FORM_LATCH:
            s->holds = s == k->seen;
            break;
        case ET_FORM_READ:
        case ET_FORM_WRITE:
            s->holds =
                hf__order_holds(&order, s->form == ET_FORM_READ, s->is_marked);
            break;
        case ET_FORM_PERMIT:
            s->holds = permits <= s->size;
            break;
        default:
            break;
        }
    }
}

static void inspect_party_of(const struct seen *s, hf_party *p)
{
    snprintf(p->owner, sizeof(p->owner), "%" PRIx64, s->lease);
    p->token = (uint64_t)s->rev;
    p->left_ms = -1;
    p->mode = s->form == ET_FORM_READ || s->is_marked ? HF_READ : HF_WRITE;
    p->permits = s->permits;
    hf__et_value_read(p, s->data + s->key_len + 1, s->value_len, hf__wall_ms());
    if (!s->holds)
        p->left_ms = -1;
}

static uint64_t inspect_count_of(const struct seen *s)
{
    uint64_t count = 0;

    hf__et_count_parse(s->data + s->key_len + 1, s->value_len, &count);
    return count;
}

static int inspect_show(struct inspection *k)
{
    struct etcd *e = k->base.e;
    struct hf__query *q = k->base.q;
    hf_info *info = q->info;

    inspect_find_holders(k);
    for (const struct seen *s = k->seen; s; s = s->next) {
        hf_party *p;

        if (!info->kind) {
            info->kind = hf__et_kind(s->form);
            info->fairness = s->form == ET_FORM_UNFAIR ? HF_UNFAIR : HF_FAIR;
            info->permits = s->size;
            info->waiters_unknown =
                s->form == ET_FORM_UNFAIR || s->form == ET_FORM_LATCH;
        }
        if (s->form == ET_FORM_LATCH)
            info->count = inspect_count_of(s);
        if (s->form == ET_FORM_LATCH || s->form == ET_FORM_MARK)
            continue;
        p = e->core->add_party(e->client, q, s->holds);
        if (!p)
            return HF_ENOMEM;
        inspect_party_of(s, p);
        if (s->holds && s->form != ET_FORM_READ && info->kind != HF_SEMAPHORE)
            info->token = p->token;
    }
    return 0;
}

/* ---- inspect ------------------------------------------------------------- */

static void send_inspect(struct et_query *x, struct et_txn *t)
{
    struct inspection *k = (struct inspection *)x;

    hf__et_range_below(x, t, k->from, PAGE)->keys_only = false;
}

static int inspected(struct et_query *x, const Etcd__TxnAnswer *t)
{
    int rc = inspect_read_page((struct inspection *)x, t);

    return rc ? rc : inspect_show((struct inspection *)x);
}

/* ---- break, ask ---------------------------------------------------------- */

static bool inspect_is_meant(const struct hf__query *q, const struct seen *s)
{
    hf_party p = {0};

    inspect_party_of(s, &p);
    return hf__order_means(q, p.token, p.owner);
}

/* Sets is_doomed for the holders to which the query applies. Returns PENDING if
 * there are such holders, otherwise the result of the query. */
static int inspect_choose(struct inspection *k)
{
    struct etcd *e = k->base.e;
    struct hf__query *q = k->base.q;
    bool any = false, others = false;

    inspect_find_holders(k);
    for (struct seen *s = k->seen; s; s = s->next) {
        if (!s->holds)
            continue;
        if (s->form == ET_FORM_LATCH && q->req.op == HF__ASK)
            continue;
        s->is_doomed = s->form == ET_FORM_LATCH ? hf__order_means_all(q)
                                                : inspect_is_meant(q, s);
        any = any || s->is_doomed;
        if (s->is_doomed)
            continue;
        others = true;
        q->count = (uint64_t)s->rev;
    }
    k->is_known = true;
    if (any)
        return HF__PENDING;
    if (k->is_unsure) /* their holds were ended, by us or by other clients */
        return HF__DONE;
    if (others)
        return HF_EBUSY;
    return e->core->why(e->client, HF_ENOTOWNER, "it is not held");
}

static void inspect_send_break(struct et_query *x, struct et_txn *t)
{
    struct inspection *k = (struct inspection *)x;
    unsigned len = 0;

    if (!k->is_known) {
        send_inspect(x, t);
        return;
    }
    k->is_unsure = k->is_unsure || k->is_sent;
    k->is_sent = true;
    for (struct seen *s = k->seen; s && len < DOOMED; s = s->next) {
        if (!s->is_doomed)
            continue;
        len++;
        hf__et_if_created(t, s->data, s->key_len, s->rev);
        hf__et_delete(t, ET_THEN, s->data, s->key_len);
        s->data[s->key_len] = ET_MARK;
        if (s->is_marked)
            hf__et_delete(t, ET_THEN, s->data, s->key_len + 1);
    }
}

/* Clears is_doomed of the entries that the last transaction has handled.
 * Returns true if other entries are still doomed. */
static bool inspect_strike(struct inspection *k)
{
    unsigned len = 0;
    bool more = false;

    for (struct seen *s = k->seen; s; s = s->next) {
        if (!s->is_doomed)
            continue;
        more = len >= DOOMED;
        if (len++ < DOOMED)
            s->is_doomed = false;
    }
    return more;
}

static int inspect_broke(struct et_query *x, const Etcd__TxnAnswer *t)
{
    struct inspection *k = (struct inspection *)x;
    int rc;

    if (!k->is_known) {
        rc = inspect_read_page(k, t);
        return rc ? rc : inspect_choose(k);
    }
    k->is_sent = false;
    if (t->succeeded)
        return inspect_strike(k) ? HF__PENDING : HF__DONE;
    inspect_forget(k); /* an entry has gone since: read all of them again */
    return HF__PENDING;
}

/* Writes the tokens of the holders to ask_key. The key belongs to the client's
 * lease and is deleted with it. A repeated or late write does no harm, because
 * each token identifies one hold. */
static void inspect_send_ask(struct et_query *x, struct et_txn *t)
{
    struct inspection *k = (struct inspection *)x;
    size_t len = 0, n = 0;

    if (!k->is_known) {
        send_inspect(x, t);
        return;
    }
    for (const struct seen *s = k->seen; s && n < DOOMED; s = s->next) {
        if (!s->is_doomed)
            continue;
        n++;
        len += (size_t)snprintf(k->tokens + len, sizeof(k->tokens) - len,
                                "%" PRId64 " ", s->rev);
    }
    hf__et_put(t, ET_THEN, x->e->ask_key, strlen(x->e->ask_key), k->tokens, len,
               x->e->lease);
}

int hf__et_inspect(struct etcd *e, struct hf__query *q)
{
#define PLAY(s, a)                                                             \
    {                                                                          \
        .size = sizeof(struct inspection), .send = s, .answered = a,           \
        .fini = inspect_fini                                                   \
    }
    static const struct et_play plays[] = {
        [HF__INSPECT] = PLAY(send_inspect, inspected),
        [HF__BREAK] = PLAY(inspect_send_break, inspect_broke),
        [HF__ASK] = PLAY(inspect_send_ask, inspect_broke)};
    int rc;
    struct inspection *k = hf__et_query_new(e, q, &plays[q->req.op], "/", &rc);

    if (!k)
        return rc;
    inspect_forget(k);
    return hf__et_query_begin(&k->base);
}
