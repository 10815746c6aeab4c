/*
 * Reports who holds a name and who waits for it, and acts on holders for
 * another client: a break deletes their entries, an ask requests that they
 * release the lock.
 */
#include "inspect.h"

#include "backends/common/order.h"
#include "call.h"
#include "entry.h"
#include "node.h"
#include "outcome.h"
#include "parties.h"
#include "path.h"
#include "query.h"
#include "zookeeper.h"

#include <stdio.h>

/* ---- inspect ------------------------------------------------------------ */

/* Returns whether an entry is reported. A client that has its leases is
 * reported only as a holder, even while its turn is still in `locks`. */
static bool inspect_is_shown(const struct zk_parties *parties,
                             const struct zk_party *s)
{
    if (s->where == ZK_AT_LEASES)
        return s->holds;
    for (const struct zk_party *o = parties->first;
         o && s->where == ZK_AT_LOCKS; o = o->next)
        if (o->holds && hf__zk_party_same_owner(o, s))
            return false;
    return true;
}

static int inspect_show(struct zk_parties *parties, const struct zk_party *s,
                        hf_party **last)
{
    struct zk *z = parties->base.z;
    struct hf__query *q = parties->base.q;
    hf_party *p = z->core->add_party(z->client, q, s->holds);

    if (!p)
        return HF_ENOMEM;
    hf__zk_party_fill(s, p);
    /* info->token is the token of a write hold. A read hold has such a token
     * only if it was downgraded: its data then contains the token that it had
     * as a write hold, which is not the entry's czxid. */
    if (s->holds && parties->kind != HF_SEMAPHORE &&
        (p->mode == HF_WRITE || p->token != (uint64_t)s->entry.czxid))
        q->info->token = p->token;
    *last = p;
    return 0;
}

static void inspected(struct zk_parties *parties)
{
    hf_info *info = parties->base.q->info;
    const struct zk_party *before = NULL;
    hf_party *last = NULL;
    int rc = 0;

    info->kind = parties->kind;
    info->count = parties->count;
    info->permits = parties->kind == HF_SEMAPHORE ? parties->permits : 0;
    info->fairness = parties->unfair ? HF_UNFAIR : HF_FAIR;
    /* Waiters for these kinds have only a watch, which other clients cannot
     * see. */
    info->waiters_unknown = parties->unfair || parties->is_latch;
    for (const struct zk_party *s = parties->first; s && !rc; s = s->next) {
        if (!inspect_is_shown(parties, s))
            continue;
        if (s->where == ZK_AT_LEASES && before &&
            hf__zk_party_same_owner(before, s)) {
            last->permits++; /* this lease belongs to the same hold */
            continue;
        }
        rc = inspect_show(parties, s, &last);
        before = s->where == ZK_AT_LEASES ? s : NULL;
    }
    hf__zk_query_end(&parties->base, rc);
}

int hf__zk_inspect_query(struct zk *z, struct hf__query *q)
{
    return hf__zk_parties_read(z, q, inspected);
}

/* ---- break, ask --------------------------------------------------------- */

static void inspect_break(struct zk_parties *);

static void inspect_done(struct zk_query *base)
{
    struct zk_parties *parties = (struct zk_parties *)base;
    struct hf__query *q = base->q;
    struct zk *z = base->z;
    void (*then)(struct zk_parties *) = parties->then;
    int rc = base->rc;

    /* The entry that the query means was deleted in the meantime. If the hold
     * was downgraded, it has another entry with the same token, so everything
     * is read again. */
    if (!rc && parties->meant && !parties->reached && !hf__order_means_all(q)) {
        hf__zk_query_free(base);
        rc = hf__zk_parties_read(z, q, then);
        if (rc != HF__PENDING)
            hf__zk_finish(z, &q->req, rc);
        return;
    }
    if (!rc && !parties->reached)
        rc = parties->others
                 ? HF_EBUSY
                 : z->core->why(z->client, HF_ENOTOWNER, "it is not held");
    hf__zk_query_end(base, rc);
}

static void inspect_on_done(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_parties *parties = owner;
    const char *right =
        parties->base.q->req.op == HF__ASK ? "WRITE below" : "DELETE below";

    (void)reply;
    if (rc == ZBADVERSION) /* another client has asked in the meantime */
        rc = ZOK;
    if (rc == ZOK)
        parties->reached++;
    hf__zk_query_back(&parties->base,
                      hf__zk_query_refusal(&parties->base, rc, right));
}

/* Deletes both nodes or neither. */
static void inspect_delete_both(struct zk_parties *parties, const char *one,
                                const char *other)
{
    zoo_op_t op[2];

    zoo_delete_op_init(&op[0], one, -1);
    zoo_delete_op_init(&op[1], other, -1);
    hf__zk_query_sent(&parties->base, hf__zk_multi(parties->base.z, 2, op,
                                                   inspect_on_done, parties));
}

/* Deletes a holder. The entry of an unfair mutex is deleted together with the
 * node `lock`, in a transaction. If `lock` is missing, the transaction fails,
 * and the single delete of the entry, which is sent after it, succeeds. */
static int inspect_delete(const struct zk_party *s)
{
    struct zk_parties *parties = s->parties;
    char path[ZK_WHOLE_MAX], unfair[ZK_WHOLE_MAX];

    hf__zk_party_path(s, path);
    if (s->entry.form == ZK_FORM_HOLDER)
        inspect_delete_both(parties, path,
                            hf__zk_join(unfair, parties->base.path, ZK_UNFAIR));
    return hf__zk_delete(parties->base.z, path, inspect_on_done, parties);
}

/* Writes the word that asks the holder to release the lock. A holder that uses
 * Curator expects only this word; in an entry that holdfast created, the
 * description of the owner follows the word. */
static int inspect_write_ask(const struct zk_party *s)
{
    char path[ZK_WHOLE_MAX], data[sizeof(ZK_REVOKE) + 1 + ZK_DATA_MAX];
    bool ours = hf__zk_party_is_ours(s);
    int len = snprintf(data, sizeof(data), ZK_REVOKE "%s%s", ours ? "\n" : "",
                       ours ? hf__zk_party_words(s) : "");

    return hf__zk_set(s->parties->base.z, hf__zk_party_path(s, path), data, len,
                      s->version, inspect_on_done, s->parties);
}

/* Returns whether the query means this holder. All leases of one hold share the
 * answer for the first lease, whose token is that of the hold. */
static bool inspect_is_meant(const struct zk_party *s,
                             const struct zk_party **before, bool *was_meant)
{
    struct hf__query *q = s->parties->base.q;
    hf_party p = {0};

    if (*before && s->where == ZK_AT_LEASES &&
        hf__zk_party_same_owner(*before, s))
        return *was_meant;
    *before = s;
    hf__zk_party_fill(s, &p);
    *was_meant = hf__order_means(q, p.token, p.owner);
    if (!*was_meant)
        q->count = p.token;
    return *was_meant;
}

/* Calls send() for every holder that the query means. */
static void inspect_holders(struct zk_parties *parties,
                            int (*send)(const struct zk_party *))
{
    struct zk_query *base = &parties->base;
    const struct zk_party *before = NULL;
    bool was_meant = false;

    if (hf__zk_query_is_over(base))
        base->rc = HF_EUNKNOWN;
    for (const struct zk_party *s = parties->first; s && !base->rc;
         s = s->next) {
        if (!s->holds)
            continue;
        if (!inspect_is_meant(s, &before, &was_meant)) {
            parties->others = true;
            continue;
        }
        parties->meant = true;
        /* A `lock` without an entry belongs to another program. A request for
         * this path could reach the `lock` of the next holder instead, which
         * has the same path. */
        if (s->entry.form == ZK_FORM_UNFAIR && !hf__order_means_all(base->q))
            base->rc = base->z->core->why(
                base->z->client, HF_ENOTSUP,
                "%s/" ZK_UNFAIR " belongs to another program and has no unique "
                "name; break it without a token or an owner",
                base->path);
        else
            hf__zk_query_sent(base, send(s));
    }
    hf__zk_query_wait(base, inspect_done);
}

/* Deletes the holders. For a latch, deletes only the round that was read,
 * because another client may end that round and set the latch again in the
 * meantime. A query that names a token or an owner deletes no latch, because a
 * latch has no holders. */
static void inspect_break(struct zk_parties *parties)
{
    struct zk_query *base = &parties->base;
    char latch[ZK_WHOLE_MAX], round[ZK_WHOLE_MAX];

    if (!parties->is_latch) {
        inspect_holders(parties, inspect_delete);
        return;
    }
    if (hf__zk_query_is_over(base))
        base->rc = HF_EUNKNOWN;
    hf__zk_join(latch, base->path, ZK_LATCH);
    if (!base->rc && hf__order_means_all(base->q))
        inspect_delete_both(parties, hf__zk_join(round, latch, parties->round),
                            latch);
    hf__zk_query_wait(base, inspect_done);
}

static void inspect_ask(struct zk_parties *parties)
{
    inspect_holders(parties, inspect_write_ask);
}

int hf__zk_break_query(struct zk *z, struct hf__query *q)
{
    return hf__zk_parties_read(z, q, inspect_break);
}

int hf__zk_ask_query(struct zk *z, struct hf__query *q)
{
    return hf__zk_parties_read(z, q, inspect_ask);
}
