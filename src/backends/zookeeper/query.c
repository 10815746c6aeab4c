#include "query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what all questions share ------------------------------------------- */

const char *hf__zk_join(char out[ZK_WHOLE_MAX], const char *path,
                        const char *child)
{
    size_t len = strnlen(path, ZK_WHOLE_MAX - 2);
    size_t more = strnlen(child, ZK_WHOLE_MAX - 2 - len);

    memcpy(out, path, len);
    out[len++] = '/';
    memcpy(out + len, child, more);
    out[len + more] = '\0';
    return out;
}

static int path_of(struct zk *z, struct hf__query *q, char out[ZK_WHOLE_MAX])
{
    int len = hf__zk_path(q->name, q->name_len, z->root, out, ZK_WHOLE_MAX);

    if (len >= 0)
        return 0;
    return hf__zk_bad_name(z, q->req.op == HF__PUT ? "key" : "name", q->name,
                           q->name_len);
}

void *hf__zk_query_new(struct zk *z, struct hf__query *q, size_t size, int *rc)
{
    struct zk_query *base = z->core->alloc(z->client, size);

    *rc = HF_ENOMEM;
    if (!base)
        return NULL;
    *rc = q->req.op == HF__LIST || q->req.op == HF__DIAGNOSE
              ? 0
              : path_of(z, q, base->path);
    if (*rc) {
        z->core->free(z->client, base);
        return NULL;
    }
    base->q = q;
    base->z = z;
    hf__list_add(z->queries, base);
    return base;
}

void *hf__zk_query_of(struct zk_line *line, size_t size)
{
    struct zk *z = line->z;
    struct zk_query *base = z->core->alloc(z->client, size);

    if (!base)
        return NULL;
    memcpy(base->path, line->path, line->path_len + 1);
    base->z = z;
    base->line = line;
    hf__list_add(z->queries, base);
    return base;
}

static void fail(struct zk_query *base, int rc)
{
    if (!base->rc)
        base->rc = rc;
}

void hf__zk_query_sent(struct zk_query *base, int rc)
{
    if (rc)
        fail(base, rc);
    else
        base->calls++;
}

void hf__zk_query_back(struct zk_query *base, int rc)
{
    if (rc)
        fail(base, rc);
    if (--base->calls == 0)
        base->step(base);
}

int hf__zk_query_wait(struct zk_query *base, void (*step)(struct zk_query *))
{
    base->step = step;
    if (!base->calls)
        step(base);
    return HF__PENDING;
}

void hf__zk_query_free(struct zk_query *base)
{
    struct zk *z = base->z;

    if (base->fini)
        base->fini(base);
    hf__list_remove(z->queries, base);
    z->core->free(z->client, base);
}

bool hf__zk_query_is_over(const struct zk_query *base)
{
    return base->z->core->now() >= base->q->req.meant_until;
}

void hf__zk_query_end(struct zk_query *base, int result)
{
    struct hf__query *q = base->q;
    struct zk *z = base->z;

    hf__zk_query_free(base);
    hf__zk_finish(z, &q->req, result);
}

int hf__zk_query_refusal(struct zk_query *base, int rc, const char *right)
{
    if (rc == ZOK || rc == ZNONODE)
        return 0;
    return hf__zk_lost(rc) ? HF_EUNKNOWN
                           : hf__zk_denied(base->z, rc, right, base->path);
}

int hf__zk_query_code(struct zk_query *base, int rc)
{
    return hf__zk_query_refusal(base, rc, "READ");
}

void hf__zk_queries_fini(struct zk *z)
{
    while (z->queries)
        hf__zk_query_free(z->queries);
}

/* ---- inspect ------------------------------------------------------------ */

static bool same_owner(const struct zk_seen *a, const struct zk_seen *b)
{
    return a->entry.uuid_len && a->entry.uuid_len == b->entry.uuid_len &&
           memcmp(a->entry.uuid, b->entry.uuid, a->entry.uuid_len) == 0;
}

/* Who waits for permits has an entry in locks until it has seen that it may
 * go: by its leases it is known as a holder. */
static bool is_shown(const struct zk_look *look, const struct zk_seen *s)
{
    if (s->where == ZK_AT_LEASES)
        return s->holds;
    for (const struct zk_seen *o = look->first; o && s->where == ZK_AT_LOCKS;
         o = o->next)
        if (o->holds && same_owner(o, s))
            return false;
    return true;
}

static int show(struct zk_look *look, const struct zk_seen *s, hf_party **last)
{
    struct zk *z = look->base.z;
    struct hf__query *q = look->base.q;
    hf_party *p = z->core->add_party(z->client, q, s->holds);

    if (!p)
        return HF_ENOMEM;
    hf__zk_seen_party(s, p);
    /* A hold that has another token than its entry had it when it wrote. */
    if (s->holds && look->kind != HF_SEMAPHORE &&
        (p->mode == HF_WRITE || p->token != (uint64_t)s->entry.czxid))
        q->info->token = p->token;
    *last = p;
    return 0;
}

static void inspected(struct zk_look *look)
{
    hf_info *info = look->base.q->info;
    const struct zk_seen *before = NULL;
    hf_party *last = NULL;
    int rc = 0;

    info->kind = look->kind;
    info->count = look->count;
    info->permits = look->kind == HF_SEMAPHORE ? look->permits : 0;
    info->fairness = look->unfair ? HF_UNFAIR : HF_FAIR;
    /* Who waits for these has a watch, and nothing that others could see. */
    info->waiters_unknown = look->unfair || look->is_latch;
    for (const struct zk_seen *s = look->first; s && !rc; s = s->next) {
        if (!is_shown(look, s))
            continue;
        if (s->where == ZK_AT_LEASES && before && same_owner(before, s)) {
            last->permits++; /* one more of the same hold */
            continue;
        }
        rc = show(look, s, &last);
        before = s->where == ZK_AT_LEASES ? s : NULL;
    }
    hf__zk_query_end(&look->base, rc);
}

/* ---- break, ask --------------------------------------------------------- */

static void take_from_all(struct zk_look *);

static bool is_meant_for_all(const struct hf__query *q)
{
    return !q->token && !q->owner[0];
}

static void told(struct zk_query *base)
{
    struct zk_look *look = (struct zk_look *)base;
    struct hf__query *q = base->q;
    struct zk *z = base->z;
    int rc = base->rc;

    /* The entry that was meant has gone since we looked. The hold may have gone
     * down to a read hold, which is another entry with the same token. */
    if (!rc && look->meant && !look->reached && !is_meant_for_all(q)) {
        hf__zk_query_free(base);
        rc = hf__zk_look(z, q, take_from_all);
        if (rc != HF__PENDING)
            hf__zk_finish(z, &q->req, rc);
        return;
    }
    if (!rc && !look->reached)
        rc = look->others
                 ? HF_EBUSY
                 : z->core->why(z->client, HF_ENOTOWNER, "it is not held");
    hf__zk_query_end(base, rc);
}

static void on_told(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_look *look = owner;
    const char *right =
        look->base.q->req.op == HF__ASK ? "WRITE below" : "DELETE below";

    (void)reply;
    if (rc == ZBADVERSION) /* somebody else asks just now */
        rc = ZOK;
    if (rc == ZOK)
        look->reached++;
    hf__zk_query_back(&look->base,
                      hf__zk_query_refusal(&look->base, rc, right));
}

/* With its lock; or alone, if that is not there. */
static int take_pair(const struct zk_seen *s, struct zk_look *look)
{
    char path[ZK_WHOLE_MAX], lock[ZK_WHOLE_MAX];
    zoo_op_t op[2];

    zoo_delete_op_init(&op[0], hf__zk_seen_path(s, path), -1);
    zoo_delete_op_init(&op[1], hf__zk_join(lock, look->base.path, ZK_UNFAIR),
                       -1);
    hf__zk_query_sent(&look->base,
                      hf__zk_multi(look->base.z, 2, op, on_told, look));
    return hf__zk_delete(look->base.z, path, on_told, look);
}

static int take_away(const struct zk_seen *s, struct zk_look *look)
{
    char path[ZK_WHOLE_MAX];

    if (s->entry.form == ZK_FORM_HOLDER)
        return take_pair(s, look);
    return hf__zk_delete(look->base.z, hf__zk_seen_path(s, path), on_told,
                         look);
}

/* Curator's holder looks for that word and nothing else; one of ours goes on
 * saying who it is. */
static int ask_for(const struct zk_seen *s, struct zk_look *look)
{
    char path[ZK_WHOLE_MAX], data[sizeof(ZK_REVOKE) + 1 + ZK_DATA_MAX];
    bool ours = hf__zk_seen_is_ours(s);
    int len = snprintf(data, sizeof(data), ZK_REVOKE "%s%s", ours ? "\n" : "",
                       ours ? hf__zk_seen_words(s) : "");

    return hf__zk_set(look->base.z, hf__zk_seen_path(s, path), data, len,
                      s->version, on_told, look);
}

/* What has several entries has the token of the first. */
static bool is_meant(struct zk_look *look, const struct zk_seen *s,
                     const struct zk_seen **before, bool *was_meant)
{
    struct hf__query *q = look->base.q;
    hf_party p = {0};

    if (*before && s->where == ZK_AT_LEASES && same_owner(*before, s))
        return *was_meant;
    *before = s;
    hf__zk_seen_party(s, &p);
    *was_meant = (!q->token || q->token == p.token) &&
                 (!q->owner[0] || strcmp(q->owner, p.owner) == 0);
    if (!*was_meant)
        q->count = p.token;
    return *was_meant;
}

/* Does something to all who hold it, or to those who are meant. */
static void to_holders(struct zk_look *look,
                       int (*send)(const struct zk_seen *, struct zk_look *))
{
    struct zk *z = look->base.z;
    const struct zk_seen *before = NULL;
    bool was_meant = false;

    for (const struct zk_seen *s = look->first; s && !look->base.rc;
         s = s->next) {
        if (!s->holds)
            continue;
        if (!is_meant(look, s, &before, &was_meant)) {
            look->others = true;
            continue;
        }
        look->meant = true;
        /* The server deletes by name, and the next holder has the same one. */
        if (s->entry.form == ZK_FORM_UNFAIR && !is_meant_for_all(look->base.q))
            look->base.rc = z->core->why(
                z->client, HF_ENOTSUP,
                "%s/" ZK_UNFAIR " is of another program and has no name of its "
                "own; it can be broken without a token only",
                look->base.path);
        else
            hf__zk_query_sent(&look->base, send(s, look));
    }
    hf__zk_query_wait(&look->base, told);
}

/* Its round, and no other: somebody may count it down to 0 just now. */
static void open_latch(struct zk_look *look)
{
    char latch[ZK_WHOLE_MAX], round[ZK_WHOLE_MAX];
    zoo_op_t op[2];

    hf__zk_join(latch, look->base.path, ZK_LATCH);
    zoo_delete_op_init(&op[0], hf__zk_join(round, latch, look->round), -1);
    zoo_delete_op_init(&op[1], latch, -1);
    hf__zk_query_sent(&look->base,
                      hf__zk_multi(look->base.z, 2, op, on_told, look));
    hf__zk_query_wait(&look->base, told);
}

static void take_from_all(struct zk_look *look)
{
    if (hf__zk_query_is_over(&look->base))
        hf__zk_query_end(&look->base, HF_EUNKNOWN);
    else if (!look->is_latch)
        to_holders(look, take_away);
    else if (is_meant_for_all(look->base.q))
        open_latch(look);
    else
        told(&look->base); /* a latch has no holds */
}

static void ask_all(struct zk_look *look)
{
    if (hf__zk_query_is_over(&look->base))
        hf__zk_query_end(&look->base, HF_EUNKNOWN);
    else
        to_holders(look, ask_for);
}

/* ---- all of them -------------------------------------------------------- */

int hf__zk_query(void *self, struct hf__query *q)
{
    struct zk *z = self;

    if (!z->up && q->req.op != HF__PUT && q->req.op != HF__DOWNGRADE)
        return HF__LATER;
    switch (q->req.op) {
    case HF__INSPECT:
        return hf__zk_look(z, q, inspected);
    case HF__LIST:
        return hf__zk_list_names(z, q);
    case HF__BREAK:
        return hf__zk_look(z, q, take_from_all);
    case HF__ASK:
        return hf__zk_look(z, q, ask_all);
    case HF__PUT:
        return hf__zk_put(z, q);
    case HF__DOWNGRADE:
        return hf__zk_downgrade(z, q);
    case HF__DIAGNOSE:
        return hf__zk_diagnose(z, q);
    case HF__LISTEN:
        return hf__zk_lookout(z, q);
    default:
        return hf__zk_latch(z, q);
    }
}
