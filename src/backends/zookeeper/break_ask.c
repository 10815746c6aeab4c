/*
 * What is done to holders from outside: their locks are broken, or they are
 * asked to hand over.
 */
#include "break_ask.h"

#include "backends/common/order.h"
#include "call.h"
#include "entry.h"
#include "node_data.h"
#include "outcome.h"
#include "parties.h"
#include "path.h"
#include "query.h"
#include "zookeeper.h"

#include <stdio.h>
#include <string.h>

static void ask_take_from_all(struct zk_parties *);

static void ask_reported(struct zk_query *base)
{
    struct zk_parties *parties = (struct zk_parties *)base;
    struct hf__query *q = base->q;
    struct zk *z = base->z;
    int rc = base->rc;

    /* The entry that was meant has gone since we looked. The hold may have gone
     * down to a read hold, which is another entry with the same token. */
    if (!rc && parties->meant && !parties->reached && !hf__order_means_all(q)) {
        hf__zk_query_free(base);
        rc = hf__zk_parties_read(z, q, ask_take_from_all);
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

static void ask_on_reported(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_parties *parties = owner;
    const char *right =
        parties->base.q->req.op == HF__ASK ? "WRITE below" : "DELETE below";

    (void)reply;
    if (rc == ZBADVERSION) /* somebody else asks just now */
        rc = ZOK;
    if (rc == ZOK)
        parties->reached++;
    hf__zk_query_back(&parties->base,
                      hf__zk_query_refusal(&parties->base, rc, right));
}

/* With its lock; or alone, if that is not there. */
static int ask_take_pair(const struct zk_party *s, struct zk_parties *parties)
{
    char path[ZK_WHOLE_MAX], unfair[ZK_WHOLE_MAX];
    zoo_op_t op[2];

    zoo_delete_op_init(&op[0], hf__zk_party_path(s, path), -1);
    zoo_delete_op_init(&op[1],
                       hf__zk_join(unfair, parties->base.path, ZK_UNFAIR), -1);
    hf__zk_query_sent(&parties->base, hf__zk_multi(parties->base.z, 2, op,
                                                   ask_on_reported, parties));
    return hf__zk_delete(parties->base.z, path, ask_on_reported, parties);
}

static int ask_take_away(const struct zk_party *s, struct zk_parties *parties)
{
    char path[ZK_WHOLE_MAX];

    if (s->entry.form == ZK_FORM_HOLDER)
        return ask_take_pair(s, parties);
    return hf__zk_delete(parties->base.z, hf__zk_party_path(s, path),
                         ask_on_reported, parties);
}

/* Curator's holder looks for that word and nothing else; one of ours goes on
 * saying who it is. */
static int ask_for(const struct zk_party *s, struct zk_parties *parties)
{
    char path[ZK_WHOLE_MAX], data[sizeof(ZK_REVOKE) + 1 + ZK_DATA_MAX];
    bool ours = hf__zk_party_is_ours(s);
    int len = snprintf(data, sizeof(data), ZK_REVOKE "%s%s", ours ? "\n" : "",
                       ours ? hf__zk_party_words(s) : "");

    return hf__zk_set(parties->base.z, hf__zk_party_path(s, path), data, len,
                      s->version, ask_on_reported, parties);
}

/* What has several entries has the token of the first. */
static bool ask_is_meant(struct zk_parties *parties, const struct zk_party *s,
                         const struct zk_party **before, bool *was_meant)
{
    struct hf__query *q = parties->base.q;
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

/* Does something to all who hold it, or to those who are meant. */
static void ask_to_holders(struct zk_parties *parties,
                           int (*send)(const struct zk_party *,
                                       struct zk_parties *))
{
    struct zk *z = parties->base.z;
    const struct zk_party *before = NULL;
    bool was_meant = false;

    for (const struct zk_party *s = parties->first; s && !parties->base.rc;
         s = s->next) {
        if (!s->holds)
            continue;
        if (!ask_is_meant(parties, s, &before, &was_meant)) {
            parties->others = true;
            continue;
        }
        parties->meant = true;
        /* The server deletes by name, and the next holder has the same one. */
        if (s->entry.form == ZK_FORM_UNFAIR &&
            !hf__order_means_all(parties->base.q))
            parties->base.rc = z->core->why(
                z->client, HF_ENOTSUP,
                "%s/" ZK_UNFAIR " is of another program and has no name of its "
                "own; it can be broken without a token only",
                parties->base.path);
        else
            hf__zk_query_sent(&parties->base, send(s, parties));
    }
    hf__zk_query_wait(&parties->base, ask_reported);
}

/* Its round, and no other: somebody may count it down to 0 just now. */
static void ask_open_latch(struct zk_parties *parties)
{
    char latch[ZK_WHOLE_MAX], round[ZK_WHOLE_MAX];
    zoo_op_t op[2];

    hf__zk_join(latch, parties->base.path, ZK_LATCH);
    zoo_delete_op_init(&op[0], hf__zk_join(round, latch, parties->round), -1);
    zoo_delete_op_init(&op[1], latch, -1);
    hf__zk_query_sent(&parties->base, hf__zk_multi(parties->base.z, 2, op,
                                                   ask_on_reported, parties));
    hf__zk_query_wait(&parties->base, ask_reported);
}

static void ask_take_from_all(struct zk_parties *parties)
{
    if (hf__zk_query_is_over(&parties->base))
        hf__zk_query_end(&parties->base, HF_EUNKNOWN);
    else if (!parties->is_latch)
        ask_to_holders(parties, ask_take_away);
    else if (hf__order_means_all(parties->base.q))
        ask_open_latch(parties);
    else
        ask_reported(&parties->base); /* a latch has no holds */
}

static void ask_all(struct zk_parties *parties)
{
    if (hf__zk_query_is_over(&parties->base))
        hf__zk_query_end(&parties->base, HF_EUNKNOWN);
    else
        ask_to_holders(parties, ask_for);
}

int hf__zk_break_query(struct zk *z, struct hf__query *q)
{
    return hf__zk_parties_read(z, q, ask_take_from_all);
}

int hf__zk_ask_query(struct zk *z, struct hf__query *q)
{
    return hf__zk_parties_read(z, q, ask_all);
}
