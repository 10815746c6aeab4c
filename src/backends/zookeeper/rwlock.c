/*
 * From write to read. The entry for reading gets the sequence of the one for
 * writing, as a writer of Curator's that goes on reading does it, so that it
 * stays before all who wait; both change in one transaction. If the answer is
 * lost the same is sent again, with the next renewal: the new name tells
 * whether it was done.
 */
#include "rwlock.h"

#include "call.h"
#include "cleanup.h"
#include "entry.h"
#include "lock.h"
#include "node.h"
#include "node_data.h"
#include "notify.h"
#include "outcome.h"
#include "path.h"
#include "zookeeper.h"

int hf__zk_lower(struct zk_node *node, zk_done_fn *done, void *owner)
{
    struct zk *z = node->z;
    char old[ZK_WHOLE_MAX], data[ZK_ABOUT_MAX];
    int len = hf__zk_node_describe(node, data);
    zoo_op_t op[2];

    hf__zk_node_unlowered(node, old);
    zoo_create_op_init(&op[0], node->path, data, len, z->acl, ZOO_EPHEMERAL,
                       NULL, 0);
    zoo_delete_op_init(&op[1], old, -1);
    return hf__zk_multi(z, 2, op, done, owner);
}

int hf__zk_lower_result(struct zk_node *node, int rc)
{
    if (hf__zk_lost(rc))
        return HF_EUNKNOWN;
    /* If it was refused, the next renewal tries it again, and a release
     * deletes what is there under either name. */
    if (rc != ZOK && rc != ZNODEEXISTS && rc != ZNONODE)
        return hf__zk_denied(node->z, rc, "CREATE and DELETE beside",
                             node->path);
    if (hf__zk_node_is_lowered(node))
        node->state =
            node->state == ZK_NODE_LOWERING ? ZK_NODE_THERE : ZK_NODE_DELETING;
    if (node->lock && rc == ZNONODE)
        hf__zk_node_vanished(node);
    else if (node->lock)
        hf__zk_notify_listen(node);
    return rc == ZNONODE ? HF_ENOTOWNER : HF__DONE;
}

static void rwlock_on_lower(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct hf__query *q = owner;
    struct zk_node *node = hf__zk_node_of(z, q->req.hold_id);

    hf__zk_finish(z, &q->req,
                  node              ? hf__zk_lower_result(node, rc)
                  : hf__zk_lost(rc) ? HF_EUNKNOWN
                                    : HF_ENOTOWNER);
}

/* At the end of the sequence czxid alone tells who was first: a new entry would
 * be behind those who wait. Then the old one stays, and nobody reads beside
 * it. */
static bool rwlock_can_be_renamed(const struct zk_node *node)
{
    struct zk_entry e;

    hf__zk_entry_parse(hf__zk_node_name(node), &e);
    return e.seq < ZK_SEQ_LAST;
}

int hf__zk_downgrade_query(struct zk *z, struct hf__query *q)
{
    struct zk_lock *from = q->line->impl, *into = q->into->impl;
    struct zk_node *node = from->node;

    (void)z;
    if (!node || node->hold_id != q->req.hold_id || node->role != ZK_ROLE_HELD)
        return HF_ENOTOWNER;
    from->node = NULL;
    if (into->node)
        hf__zk_node_drop(into->node, NULL);
    into->node = node;
    node->lock = into;
    if (!rwlock_can_be_renamed(node))
        return HF__DONE;
    hf__zk_node_lower(node);
    if (hf__zk_lower(node, rwlock_on_lower, q) != 0)
        return HF_EUNKNOWN; /* the next renewal tells it */
    return HF__PENDING;
}
