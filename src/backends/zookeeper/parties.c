#include "parties.h"

#include "backends/common/order.h"
#include "call.h"
#include "entry.h"
#include "node.h"
#include "path.h"
#include "query.h"
#include "zookeeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A query other than a break reads at most this many entries of each list. */
#define MANY 1000

/* ---- the data of an entry ------------------------------------------------ */

/* Returns whether the data has our format, "<pid>[ ...]\n<host>\n<label>". */
static bool parties_is_ours(const char *data, const char *end)
{
    size_t digits = strspn(data, "0123456789");
    const char *host = memchr(data, '\n', (size_t)(end - data));

    return digits && (data[digits] == '\n' || data[digits] == ' ') && host &&
           memchr(host + 1, '\n', (size_t)(end - host - 1));
}

/* Reads the first line of our data, "<pid>[ <lease>[ <token> <since>]]". */
static void parties_read_numbers(const struct zk_party *s, const char *text,
                                 hf_party *p)
{
    int64_t lease = 0;
    char *more;

    p->pid = strtoll(text, &more, 10);
    if (*more == ' ')
        lease = strtoll(more, &more, 10);
    if (lease > 0 && s->holds) {
        p->left_ms = hf__left_ms(lease, s->mtime, hf__wall_ms());
        p->since_unix_ms = s->mtime;
    }
    if (*more == ' ') {
        p->token = strtoull(more, &more, 10);
        p->since_unix_ms = strtoll(more, &more, 10);
    }
}

const char *hf__zk_party_words(const struct zk_party *s)
{
    const char *words = s->data;

    if (hf__zk_is_revoke(s->data, s->data_len))
        words += strlen(ZK_REVOKE);
    return words > s->data && *words == '\n' ? words + 1 : words;
}

bool hf__zk_party_is_ours(const struct zk_party *s)
{
    const char *words = hf__zk_party_words(s);

    return parties_is_ours(words, s->data + s->data_len);
}

/* Reads the data of an entry. Curator writes an address; kazoo writes an
 * identifier that the user chose. */
static void parties_read_data(const struct zk_party *s, hf_party *p)
{
    const char *data = hf__zk_party_words(s), *end = s->data + s->data_len;
    bool kazoo = s->entry.form == ZK_FORM_KAZOO_LOCK ||
                 s->entry.form == ZK_FORM_KAZOO_READ;
    size_t len;

    if (parties_is_ours(data, end)) {
        parties_read_numbers(s, hf__cut(&data, end, '\n', &len), p);
        hf__about_read(p, data, end);
    } else if (kazoo) {
        hf__copy_text(p->label, sizeof(p->label), data, (size_t)(end - data));
    } else {
        hf__copy_text(p->host, sizeof(p->host), data, (size_t)(end - data));
    }
}

void hf__zk_party_fill(const struct zk_party *s, hf_party *p)
{
    bool reads =
        s->entry.form == ZK_FORM_READ || s->entry.form == ZK_FORM_KAZOO_READ;

    if (s->entry.uuid_len)
        hf__copy_text(p->owner, sizeof(p->owner), s->entry.uuid,
                      s->entry.uuid_len);
    else
        snprintf(p->owner, sizeof(p->owner), "session 0x%llx",
                 (unsigned long long)s->session);
    p->since_unix_ms = s->ctime;
    p->left_ms = -1;
    p->token = (uint64_t)s->entry.czxid;
    parties_read_data(s, p);
    p->mode = reads ? HF_READ : HF_WRITE;
    p->permits = s->where == ZK_AT_LEASES;
}

const char *hf__zk_party_path(const struct zk_party *s, char out[ZK_WHOLE_MAX])
{
    return hf__zk_join(out, s->parties->dirs[s->where].path, s->name);
}

/* ---- order -------------------------------------------------------------- */

/* Compares two entries by their places. Leases have no queue; their czxids show
 * the order of their grants. */
static int parties_compare(const void *one, const void *other)
{
    const struct zk_party *a = *(struct zk_party *const *)one;
    const struct zk_party *b = *(struct zk_party *const *)other;
    int order = a->where - b->where;

    if (!order && a->where != ZK_AT_LEASES)
        order = hf__zk_entry_order(&a->entry, &b->entry);
    return order ? order
                 : (a->entry.czxid > b->entry.czxid) -
                       (a->entry.czxid < b->entry.czxid);
}

static int parties_sort(struct zk_parties *parties)
{
    struct zk_party **sorted, **at, **tail = &parties->first;

    if (!parties->len)
        return 0;
    at = sorted =
        hf__arena_take(&parties->base.memory, parties->len * sizeof(*sorted));
    if (!sorted)
        return HF_ENOMEM;
    for (struct zk_party *s = parties->first; s; s = s->next)
        *at++ = s;
    qsort(sorted, parties->len, sizeof(*sorted), parties_compare);
    for (at = sorted; at < sorted + parties->len; at++) {
        *tail = *at;
        tail = &(*at)->next;
    }
    *tail = NULL;
    return 0;
}

/* Removes the entries that were deleted between the two round trips. */
static void parties_drop_gone(struct zk_parties *parties)
{
    struct zk_party **at = &parties->first;

    while (*at)
        if ((*at)->here) {
            at = &(*at)->next;
        } else {
            *at = (*at)->next;
            parties->len--;
        }
}

/* ---- who holds ---------------------------------------------------------- */

static bool parties_is_unfair(const struct zk_party *s)
{
    return s->entry.form == ZK_FORM_UNFAIR || s->entry.form == ZK_FORM_HOLDER;
}

/* An unfair mutex has two nodes, `lock` and the entry of its holder. If both
 * are in the list, drops `lock` from it, so that the hold is reported once. (If
 * the holder released the mutex between the two round trips, its entry is gone
 * and `lock` is dropped, too. The list then shows no holder, which was true for
 * a moment.) */
static void parties_drop_paired(struct zk_parties *parties)
{
    bool holder = false;

    for (struct zk_party *s = parties->first; s; s = s->next)
        holder = holder || s->entry.form == ZK_FORM_HOLDER;
    for (struct zk_party *s = parties->first; s && holder; s = s->next)
        if (s->entry.form == ZK_FORM_UNFAIR)
            s->here = false;
}

static void parties_judge_queue(struct zk_parties *parties)
{
    struct hf__order order = {0};

    for (struct zk_party *s = parties->first; s && s->where == ZK_AT_NODE;
         s = s->next) {
        bool reads = s->entry.form == ZK_FORM_READ ||
                     s->entry.form == ZK_FORM_KAZOO_READ;

        if (s == parties->first)
            parties->kind =
                reads || s->entry.form == ZK_FORM_WRITE ? HF_RWLOCK : HF_MUTEX;
        parties->unfair = parties->unfair || parties_is_unfair(s);
        s->holds =
            hf__order_holds(&order, reads, false) || parties_is_unfair(s);
    }
}

/* Counts leases as holders. A Curator client that has the turn creates its
 * lease even if no permit is free, and then waits. Therefore, if there are more
 * leases than permits and a client has the turn, the newest lease does not
 * count: its owner waits. */
static void parties_judge_leases(struct zk_parties *parties)
{
    struct zk_party *last = NULL;
    uint32_t out = 0;
    bool queue = false;

    for (struct zk_party *s = parties->first; s; s = s->next) {
        queue = queue || s->where == ZK_AT_LOCKS;
        if (s->where != ZK_AT_LEASES)
            continue;
        s->holds = true;
        last = s;
        out++;
    }
    if (parties->first && !parties->kind)
        parties->kind = HF_SEMAPHORE;
    if (!queue || !parties->permits || out <= parties->permits)
        return;
    for (struct zk_party *s = parties->first; s; s = s->next)
        if (s->where == ZK_AT_LEASES && s->session == last->session &&
            s->entry.czxid == last->entry.czxid)
            s->holds = false;
}

static void parties_judge(struct zk_query *base)
{
    struct zk_parties *parties = (struct zk_parties *)base;

    parties_drop_paired(parties);
    parties_drop_gone(parties);
    if (!base->rc)
        base->rc = parties_sort(parties);
    if (base->rc) {
        hf__zk_query_end(base, base->rc);
        return;
    }
    parties_judge_queue(parties);
    parties_judge_leases(parties);
    if (parties->is_latch)
        parties->kind = HF_LATCH;
    parties->then(parties);
}

/* ---- the second round trip ----------------------------------------------- */

static void parties_on_entry(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_party *s = owner;

    if (rc == ZOK && (!s->stranger || reply->stat->ephemeralOwner)) {
        s->here = true;
        s->entry.czxid = reply->stat->czxid;
        s->ctime = reply->stat->ctime;
        s->mtime = reply->stat->mtime;
        s->session = reply->stat->ephemeralOwner;
        s->version = reply->stat->version;
        s->data_len = reply->len > ZK_DATA_MAX ? ZK_DATA_MAX : reply->len;
        if (s->data_len > 0)
            memcpy(s->data, reply->text, (size_t)s->data_len);
        else
            s->data_len = 0;
    }
    hf__zk_query_back(&s->parties->base,
                      hf__zk_query_code(&s->parties->base, rc));
}

static void parties_request_each(struct zk_query *base)
{
    struct zk_parties *parties = (struct zk_parties *)base;
    unsigned requested[ZK_AT_LEASES + 1] = {0};
    char path[ZK_WHOLE_MAX];

    if (!base->rc)
        base->rc = parties_sort(parties);
    for (struct zk_party *s = parties->first; s && !base->rc; s = s->next)
        if (requested[s->where]++ < MANY || base->q->req.op == HF__BREAK)
            hf__zk_query_sent(base,
                              hf__zk_get(base->z, hf__zk_party_path(s, path),
                                         NULL, parties_on_entry, s));
    hf__zk_query_wait(base, parties_judge);
}

/* ---- the first round trip ------------------------------------------------ */

static bool parties_belongs(enum zk_form form, enum zk_where where)
{
    switch (form) {
    case ZK_FORM_LOCK:
        return where != ZK_AT_LEASES;
    case ZK_FORM_READ:
    case ZK_FORM_WRITE:
    case ZK_FORM_KAZOO_LOCK:
    case ZK_FORM_KAZOO_READ:
    case ZK_FORM_UNFAIR:
    case ZK_FORM_HOLDER:
        return where == ZK_AT_NODE;
    case ZK_FORM_LEASE:
        return where == ZK_AT_LEASES;
    default:
        return false;
    }
}

/* Parses the name of a child. If the child is a stranger, guesses its form and
 * returns false. */
static bool parties_read_name(const char *name, struct zk_entry *e)
{
    bool is_known = hf__zk_entry_parse(name, e);

    if (!is_known)
        hf__zk_entry_guess(name, ZK_RULE_UNFAIR, ZK_SEQ_LAST, e);
    return is_known;
}

static int parties_add(struct zk_parties *parties, const char *name,
                       enum zk_where where)
{
    struct zk *z = parties->base.z;
    struct zk_entry e;
    struct zk_party *s;
    bool stranger = !parties_read_name(name, &e);

    if (e.form == ZK_FORM_LEADER && where == ZK_AT_NODE && !stranger)
        return z->core->why(z->client, HF_EMISMATCH,
                            "the name is in use as a LeaderLatch: %s", name);
    if (!parties_belongs(e.form, where) || strlen(name) >= ZK_CHILD_MAX)
        return 0;
    s = hf__arena_take(&parties->base.memory, sizeof(*s));
    if (!s)
        return HF_ENOMEM;
    *s = (struct zk_party){.next = parties->first,
                           .parties = parties,
                           .where = (uint8_t)where,
                           .stranger = stranger};
    strcpy(s->name, name);
    parties_read_name(s->name, &s->entry);
    parties->first = s;
    parties->len++;
    return 0;
}

static void parties_on_list(void *owner, int rc, const struct zk_reply *reply)
{
    const struct zk_dir *dir = owner;
    struct zk_query *base = &dir->parties->base;
    int code = hf__zk_query_code(base, rc);

    for (int32_t i = 0; rc == ZOK && !code && i < reply->children->count; i++)
        code = parties_add(dir->parties, reply->children->data[i], dir->where);
    hf__zk_query_back(base, code);
}

static void parties_on_permits(void *owner, int rc,
                               const struct zk_reply *reply)
{
    struct zk_parties *parties = owner;

    if (rc == ZOK)
        parties->permits = hf__zk_permits_parse(reply->text, reply->len);
    hf__zk_query_back(&parties->base, hf__zk_query_code(&parties->base, rc));
}

static void parties_on_latch(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_parties *parties = owner;

    parties->is_latch =
        rc == ZOK && hf__zk_count_parse(reply->text, reply->len,
                                        &parties->count, parties->round);
    hf__zk_query_back(&parties->base, hf__zk_query_code(&parties->base, rc));
}

int hf__zk_parties_read(struct zk *z, struct hf__query *q,
                        void (*then)(struct zk_parties *))
{
    char path[ZK_WHOLE_MAX];
    struct zk_parties *parties;
    struct zk_query *base;
    int rc;

    parties = hf__zk_query_new(z, q, sizeof(*parties), &rc);
    if (!parties)
        return rc;
    base = &parties->base;
    parties->then = then;
    hf__zk_sync(z, NULL, NULL);
    strcpy(parties->dirs[ZK_AT_NODE].path, base->path);
    hf__zk_join(parties->dirs[ZK_AT_LOCKS].path, base->path, ZK_LOCKS);
    hf__zk_join(parties->dirs[ZK_AT_LEASES].path, base->path, ZK_LEASES);
    for (int i = ZK_AT_NODE; i <= ZK_AT_LEASES; i++) {
        struct zk_dir *dir = &parties->dirs[i];

        dir->parties = parties;
        dir->where = (enum zk_where)i;
        hf__zk_query_sent(
            base, hf__zk_list(z, dir->path, NULL, parties_on_list, dir));
    }
    hf__zk_query_sent(base, hf__zk_get(z, parties->dirs[ZK_AT_LEASES].path,
                                       NULL, parties_on_permits, parties));
    hf__zk_join(path, base->path, ZK_LATCH);
    hf__zk_query_sent(base,
                      hf__zk_get(z, path, NULL, parties_on_latch, parties));
    return hf__zk_query_wait(base, parties_request_each);
}

bool hf__zk_party_same_owner(const struct zk_party *a, const struct zk_party *b)
{
    return a->entry.uuid_len && a->entry.uuid_len == b->entry.uuid_len &&
           memcmp(a->entry.uuid, b->entry.uuid, a->entry.uuid_len) == 0;
}
