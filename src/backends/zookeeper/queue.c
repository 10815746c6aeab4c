/*
 * The queue: a fair mutex, and both sides of a read-write lock. An entry is
 * created and the queue listed in one go; whoever has nothing before it that it
 * must not overtake has the lock. Else it watches the last of those before it,
 * and nobody else does, so that a release wakes one (a release by a writer, the
 * readers behind it).
 *
 * A question that is asked again finds the entry that the first one made, by
 * its uuid, or makes it anew if there is none.
 */
#include "zookeeper.h"

#include "entry.h"

#include <string.h>

#define SEQUENCE_LATE (ZK_SEQ_LAST - (1 << 27))

static zk_done_fn listed;

static enum zk_rule rule_of(const struct zk_line *line)
{
    if (line->remote->kind == HF_MUTEX)
        return ZK_RULE_MUTEX;
    return line->remote->mode == HF_READ ? ZK_RULE_READ : ZK_RULE_WRITE;
}

static enum zk_form form_of(const struct zk_line *line)
{
    bool kazoo = line->z->kazoo;

    switch (rule_of(line)) {
    case ZK_RULE_READ:
        return kazoo ? ZK_FORM_KAZOO_READ : ZK_FORM_READ;
    case ZK_RULE_WRITE:
        return kazoo ? ZK_FORM_KAZOO_LOCK : ZK_FORM_WRITE;
    default:
        return kazoo ? ZK_FORM_KAZOO_LOCK : ZK_FORM_LOCK;
    }
}

static int begin(struct zk_line *line, const struct hf__req *req)
{
    struct zk_node *node =
        hf__zk_node_new(line, NULL, form_of(line), req->hold_id);

    return node ? hf__zk_node_enter(node, false, listed) : HF_ENOMEM;
}

/* We were second, and the first has gone: nobody can have come between. Only a
 * writer that goes on reading takes a place before others, and the first was
 * none. (If somebody has deleted our own entry meanwhile, the next one was told
 * the same: so it is looked for afterwards.) */
static bool is_next(const struct zk_line *line, const struct zk_node *node)
{
    return node->state == ZK_NODE_THERE && node->czxid && node->second &&
           line->deleted && hf__zk_proved(line->z);
}

static int queue_ask(struct zk_line *line, struct hf__req *req)
{
    struct zk_node *node = hf__zk_node_asked(line, req);
    int rc;

    if (!node)
        return begin(line, req);
    if (!req->fixed && is_next(line, node)) {
        rc = hf__zk_granted(line, req);
        if (rc == HF__GRANTED)
            hf__zk_confirm(node);
        return rc;
    }
    /* What a list shows may be old news by the time of a grant. */
    hf__zk_prove(line->z, req);
    rc = hf__zk_node_list(node, listed);
    return rc ? rc : HF__PENDING;
}

/* ---- answers ------------------------------------------------------------- */

/* At its end the server gives the same number to all, and who came first is
 * not to be seen. It begins anew when nobody has used the lock for a while. */
static void mind_sequence(struct zk_line *line, int64_t seq)
{
    struct zk *z = line->z;

    if (seq < SEQUENCE_LATE || z->warned)
        return;
    z->warned = true;
    z->core->log(z->client,
                 "zookeeper: %.100s: the sequence is at %lld and ends at %d; "
                 "let the lock rest for a minute",
                 line->path, (long long)seq, ZK_SEQ_LAST);
}

int hf__zk_look_around(struct zk_node *node,
                       const struct String_vector *children, enum zk_rule rule,
                       struct zk_place *place, int64_t *seq)
{
    struct zk *z = node->z;
    struct zk_entry mine;
    int64_t *czxid;
    int rc = hf__zk_ties_known(node, children, &czxid);

    if (rc)
        return rc;
    hf__zk_entry_parse(hf__zk_node_name(node), &mine);
    mine.czxid = node->czxid;
    mind_sequence(node->line, mine.seq);
    hf__zk_place(children->data, czxid, (size_t)children->count, &mine, rule,
                 place);
    z->core->free(z->client, czxid);
    if (place->ignored != ZK_NOBODY)
        hf__zk_ignore(node->line, children, rule, mine.seq);
    *seq = mine.seq;
    return 0;
}

/* And not a writer, as one in kazoo's form may be. */
static bool is_mutex(const char *child)
{
    struct zk_entry e;

    hf__zk_entry_parse(child, &e);
    return e.form == ZK_FORM_LOCK;
}

static void judge(struct zk_line *line, struct zk_node *node,
                  const struct String_vector *children)
{
    enum zk_rule rule = rule_of(line);
    struct zk_place place;
    int64_t seq;
    int rc = hf__zk_look_around(node, children, rule, &place, &seq);

    if (rc) {
        hf__zk_fail(line, rc);
    } else if (!place.here) {
        node->refusal = ZOK;
        hf__zk_enter_again(line, false, listed);
    } else if (place.tied != ZK_NOBODY) {
        rc = hf__zk_ties_ask(node, children, listed);
        if (rc)
            hf__zk_fail(line, rc);
    } else if (place.stranger != ZK_NOBODY &&
               hf__zk_strangers(node, children, rule, seq, listed)) {
        return;
    } else if (place.mismatch != ZK_NOBODY) {
        hf__zk_mismatch(line, children->data[place.mismatch], listed);
    } else if (place.ahead) {
        node->second = rule == ZK_RULE_MUTEX && place.ahead == 1 &&
                       is_mutex(children->data[place.watch]);
        hf__zk_wait_for(line, children->data[place.watch]);
    } else {
        hf__zk_finish(line->z, line->ask, hf__zk_granted(line, line->ask));
    }
}

static void listed(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_node *node = owner;
    struct zk_line *line = node->line;

    if (!line->ask)
        return;
    if (hf__zk_lost(rc)) {
        hf__zk_finish(z, line->ask, HF_EUNKNOWN);
    } else if (node->state == ZK_NODE_GONE) {
        hf__zk_not_created(line, listed);
    } else if (rc == ZNONODE) { /* with its parent, it has gone */
        node->refusal = ZOK;
        hf__zk_enter_again(line, false, listed);
    } else if (rc != ZOK) {
        hf__zk_refuse(line, hf__zk_denied(z, rc, "READ", line->path));
    } else if (node->state == ZK_NODE_UNSURE) {
        if (!hf__zk_node_find(node, reply->children))
            hf__zk_enter_again(line, false, listed);
        else if (hf__zk_node_list(node, listed) != 0)
            hf__zk_finish(z, line->ask, HF_EUNKNOWN);
    } else {
        judge(line, node, reply->children);
    }
}

const struct zk_kind hf__zk_queue = {.ask = queue_ask, .let_go = hf__zk_let_go};
