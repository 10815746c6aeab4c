/*
 * What is done to holders from outside: their locks are broken, or they are
 * asked to hand over.
 */
#include "query.h"

#include <stdio.h>
#include <string.h>

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

    if (*before && s->where == ZK_AT_LEASES &&
        hf__zk_seen_same_owner(*before, s))
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

int hf__zk_break(struct zk *z, struct hf__query *q)
{
    return hf__zk_look(z, q, take_from_all);
}

int hf__zk_ask(struct zk *z, struct hf__query *q)
{
    return hf__zk_look(z, q, ask_all);
}
