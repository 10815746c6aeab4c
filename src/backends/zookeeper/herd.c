/*
 * The unfair mutex: one node, <path>/lock, and whoever can create it has the
 * lock. All others watch it, and when it goes all of them try.
 *
 * All who have had it have had the same node. So that nobody lets go of what
 * is somebody else's by now (theirs was taken away), a second one of our own
 * name is created and deleted with it, each time in one transaction.
 */
#include "zookeeper.h"

#include "path.h"

static zk_done_fn listed;

static int herd_ask(struct zk_line *line, struct hf__req *req)
{
    struct zk_node *node = hf__zk_node_asked(line, req);
    int rc;

    if (!node) {
        node = hf__zk_node_new(line, NULL, ZK_FORM_HOLDER, req->hold_id);
        return node ? hf__zk_node_enter(node, false, listed) : HF_ENOMEM;
    }
    hf__zk_prove(line->z, req);
    rc = hf__zk_node_check(node);
    if (!rc)
        rc = hf__zk_node_list(node, listed);
    return rc ? rc : HF__PENDING;
}

static void is_taken(struct zk_line *line)
{
    hf__zk_node_vanished(line->node);
    hf__zk_wait_for(line, ZK_UNFAIR);
}

/* We have what somebody else has not let go of: his lock was deleted, and he
 * was not. */
static void give_back(struct zk_line *line, const char *holder)
{
    hf__zk_node_drop(line->node, NULL);
    hf__zk_wait_for(line, holder);
}

static void judge(struct zk_line *line, const struct String_vector *children)
{
    struct zk_place place;
    int64_t seq;
    int rc =
        hf__zk_look_around(line->node, children, ZK_RULE_UNFAIR, &place, &seq);

    if (rc)
        hf__zk_fail(line, rc);
    else if (place.stranger != ZK_NOBODY &&
             hf__zk_strangers(line->node, children, ZK_RULE_UNFAIR, seq,
                              listed))
        return;
    else if (place.mismatch != ZK_NOBODY)
        hf__zk_mismatch(line, children->data[place.mismatch], listed);
    else if (place.ahead)
        give_back(line, children->data[place.watch]);
    else
        hf__zk_finish(line->z, line->ask, hf__zk_granted(line, line->ask));
}

static void listed(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_node *node = owner;
    struct zk_line *line = node->line;

    if (!line->ask)
        return;
    if (hf__zk_lost(rc) || node->state == ZK_NODE_UNSURE)
        hf__zk_finish(z, line->ask, HF_EUNKNOWN);
    else if (rc == ZNOAUTH) /* nor could its end be watched */
        hf__zk_refuse(line, hf__zk_denied(z, rc, "READ", line->path));
    else if (node->state == ZK_NODE_GONE && node->refusal == ZNODEEXISTS)
        is_taken(line);
    else if (node->state == ZK_NODE_GONE)
        hf__zk_not_created(line, listed);
    else if (rc == ZNONODE) /* taken away at once */
        hf__zk_enter_again(line, false, listed);
    else if (rc != ZOK)
        hf__zk_refuse(line, hf__zk_denied(z, rc, "READ", line->path));
    else if (!node->czxid) /* it was not asked for */
        hf__zk_finish(z, line->ask, HF_EUNKNOWN);
    else
        judge(line, reply->children);
}

/* What is left of the two goes as well. */
static void herd_taken_away(struct zk_line *line)
{
    hf__zk_node_drop(line->node, NULL);
}

const struct zk_kind hf__zk_herd = {
    .ask = herd_ask, .let_go = hf__zk_let_go, .taken_away = herd_taken_away};
