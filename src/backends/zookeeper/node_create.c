#include "node_create.h"

#include "call.h"
#include "cleanup.h"
#include "entry.h"
#include "lock.h"
#include "node.h"
#include "path.h"
#include "zookeeper.h"

#include <string.h>

/* ---- creating it --------------------------------------------------------- */

static void created(struct zk_node *node, int rc)
{
    node->calls--;
    node->state = rc == ZOK         ? ZK_NODE_THERE
                  : hf__zk_lost(rc) ? ZK_NODE_UNSURE
                                    : ZK_NODE_GONE;
    node->refusal = rc;
}

static void on_create(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    created(node, rc);
    if (rc == ZOK) {
        node->czxid = reply->stat->czxid;
        if (!reply->text ||
            strncmp(reply->text, node->path, node->stem_len) != 0 ||
            !hf__zk_node_set_name(node, reply->text + node->dir_len + 1))
            node->state = ZK_NODE_UNSURE;
    }
    if (node->state != ZK_NODE_UNSURE)
        hf__zk_node_end_step(node);
    else if (!node->lock)
        hf__zk_node_sweep_later(node);
}

static void create_on_said(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    /* After a downgrade there is a new entry, but this answer contains the
     * version of the old one. */
    if (rc == ZOK && !hf__zk_node_is_lowered(node))
        node->version = reply->stat->version;
    hf__zk_node_called(node);
}

/* Writes the data with a version check, which fails if another client has asked
 * for the lock in the meantime. Therefore the write cannot overwrite that
 * client's request. */
void hf__zk_node_date(struct zk_node *node)
{
    char data[ZK_ABOUT_MAX];
    int len = hf__zk_node_describe(node, data);

    if (hf__zk_set(node->z, node->path, data, len, node->version,
                   create_on_said, node) == 0)
        node->calls++;
}

void hf__zk_node_lease(struct zk_node *node, uint32_t lease_ms)
{
    int64_t now = hf__wall_ms(), granted_ms = node->granted_ms;

    for (; node; node = node->sibling) {
        node->lease_ms = lease_ms;
        node->leased_ms = now;
        node->granted_ms = granted_ms;
        node->restated = true;
        hf__zk_node_date(node);
    }
}

static void on_pair_created(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    (void)reply;
    created(node, rc);
    if (!node->lock && !node->calls)
        hf__zk_node_end_step(node);
}

/* Creates the entry and the node `lock` in one transaction. The answer has no
 * czxid, so an exists is sent with the transaction. The exists also finds an
 * entry that an earlier request has created. */
static int create_pair(struct zk_node *node, const char *data, int len)
{
    struct zk *z = node->z;
    char unfair[ZK_WHOLE_MAX];
    zoo_op_t op[2];
    int rc;

    zoo_create_op_init(&op[0], hf__zk_node_unfair(node, unfair), data, len,
                       z->acl, ZOO_EPHEMERAL, NULL, 0);
    zoo_create_op_init(&op[1], node->path, data, len, z->acl, ZOO_EPHEMERAL,
                       NULL, 0);
    rc = hf__zk_multi(z, 2, op, on_pair_created, node);
    if (rc)
        return rc;
    node->calls++;
    hf__zk_node_check(node); /* if it fails, the czxid is requested later */
    return 0;
}

static int create_it(struct zk_node *node, const char *data, int len)
{
    int rc;

    if (node->form == ZK_FORM_HOLDER)
        return create_pair(node, data, len);
    rc = hf__zk_create(node->z, node->path, data, len,
                       hf__zk_node_is_numbered(node) ? ZOO_EPHEMERAL
                                                     : ZOO_EPHEMERAL_SEQUENTIAL,
                       on_create, node);
    node->calls += rc == 0;
    return rc;
}

int hf__zk_node_create(struct zk_node *node, bool parents)
{
    const struct hf__req *attempt = node->lock->attempt;
    struct zk *z = node->z;
    char data[ZK_ABOUT_MAX], dir[ZK_WHOLE_MAX];
    int len, rc = 0;

    if (parents)
        rc = hf__zk_make_parents(z, hf__zk_node_dir(node, dir));
    node->czxid = 0; /* the old value belonged to an earlier entry */
    node->role = ZK_ROLE_PLACE;
    node->strangers_requested = node->siblings_known = false;
    hf__zk_node_forget_child_stats(node);
    node->lease_ms = attempt && attempt->fixed ? attempt->lease_ms : 0;
    len = hf__zk_node_describe(node, data);
    node->path[node->stem_len] = '\0';
    if (!rc)
        rc = create_it(node, data, len);
    if (!rc)
        node->state = ZK_NODE_CREATING;
    return rc;
}

/* ---- among its siblings ------------------------------------------------- */

static void create_on_list(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    node->calls--;
    node->lists--;
    if (!node->lock)
        hf__zk_node_end_step(node);
    else if (!node->lists)
        node->listed(node, rc, reply);
}

int hf__zk_node_list(struct zk_node *node, zk_done_fn *listed)
{
    char dir[ZK_WHOLE_MAX];
    int rc = hf__zk_list(node->z, hf__zk_node_dir(node, dir), NULL,
                         create_on_list, node);

    if (rc)
        return rc;
    node->listed = listed;
    node->calls++;
    node->lists++;
    return HF__PENDING;
}

int hf__zk_node_enter(struct zk_node *node, bool parents, zk_done_fn *listed)
{
    int rc = hf__zk_node_create(node, parents);

    return rc ? rc : hf__zk_node_list(node, listed);
}

static void create_on_stat(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_node *node = owner;

    node->calls--;
    if (!hf__zk_node_is_gone(node)) /* else the refusal of the create is kept */
        node->refusal = ZOK;
    if (rc == ZOK && reply->stat->ephemeralOwner == z->session_id) {
        node->czxid = reply->stat->czxid;
        node->state = ZK_NODE_THERE;
    } else if (rc == ZOK || rc == ZNONODE) {
        node->state = ZK_NODE_GONE;
    }
    hf__zk_node_end_step(node);
}

int hf__zk_node_check(struct zk_node *node)
{
    int rc = hf__zk_exists(node->z, node->path, NULL, create_on_stat, node);

    if (rc)
        return rc;
    node->calls++;
    node->state = ZK_NODE_UNSURE;
    return 0;
}

bool hf__zk_node_find(struct zk_node *node,
                      const struct String_vector *children)
{
    hf__zk_node_match(node, children);
    node->refusal = ZOK;
    if (node->state == ZK_NODE_GONE)
        return false;
    node->state = ZK_NODE_UNSURE;
    hf__zk_node_check(node);
    return true;
}
