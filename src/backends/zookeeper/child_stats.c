/*
 * What is requested about children of a lock's node, beside their names: when
 * they were made, and whether they are ephemeral. What was learned is kept with
 * the node of who requested it.
 *
 * Children with the same sequence need it. At 2^31-1 the server's counter stays
 * where it is, and Curator makes one with the number of another: then the order
 * of creation decides, by czxid. And strangers do (foreign_entries.c).
 */
#include "child_stats.h"

#include "call.h"
#include "cleanup.h"
#include "entry.h"
#include "lock.h"
#include "node.h"
#include "outcome.h"
#include "path.h"
#include "zookeeper.h"

#include <stdio.h>
#include <string.h>

static void on_child_stat(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_child_stat *child = owner;

    child->requested = false;
    if (rc == ZOK)
        child->czxid = reply->stat->ephemeralOwner ? reply->stat->czxid
                                                   : -reply->stat->czxid;
    else if (rc == ZNONODE) /* what comes later comes behind us */
        child->czxid = ZK_CHILD_GONE;
    else if (!hf__zk_lost(rc)) /* else it is requested again */
        child->refusal = rc;
    hf__zk_node_called(child->node);
}

static struct zk_child_stat *stats_find(const struct zk_node *node,
                                        const char *name)
{
    struct zk_child_stat *child = node->child_stats;

    while (child && strcmp(child->name, name) != 0)
        child = child->next;
    return child;
}

bool hf__zk_child_stat_is_open(const struct zk_node *node, const char *name)
{
    const struct zk_child_stat *child = stats_find(node, name);

    return child && !child->czxid;
}

static struct zk_child_stat *child_stat_new(struct zk_node *node,
                                            const char *name, size_t len)
{
    struct zk *z = node->z;
    struct zk_child_stat *child =
        z->core->alloc(z->client, sizeof(*child) + len + 1);

    if (!child)
        return NULL;
    memcpy(child->name, name, len + 1);
    child->node = node;
    child->next = node->child_stats;
    node->child_stats = child;
    return child;
}

static void stats_path_of(const struct zk_node *node, const char *name,
                          char out[ZK_WHOLE_MAX])
{
    snprintf(out, ZK_WHOLE_MAX, "%s/%s", node->lock->path, name);
}

int hf__zk_child_stat_request(struct zk_node *node, const char *name)
{
    struct zk *z = node->z;
    size_t len = strlen(name);
    struct zk_child_stat *child = stats_find(node, name);
    char path[ZK_WHOLE_MAX];
    int rc;

    if (child && (child->requested || child->czxid))
        return 0;
    if (node->lock->path_len + 1 + len >= sizeof(path))
        return z->core->why(z->client, HF_EPROTO,
                            "%.100s has a child whose name has %zu bytes: "
                            "%.40s...",
                            node->lock->path, len, name);
    if (!child)
        child = child_stat_new(node, name, len);
    if (!child)
        return HF_ENOMEM;
    stats_path_of(node, name, path);
    rc = hf__zk_exists(z, path, on_child_stat, child);
    if (rc)
        return rc;
    child->requested = true;
    node->calls++;
    return 0;
}

int hf__zk_child_stats_request_tied(struct zk_node *node,
                                    const struct String_vector *children)
{
    struct zk_entry mine, e;
    int rc = 0;

    hf__zk_entry_parse(hf__zk_node_name(node), &mine);
    for (int32_t i = 0; i < children->count && !rc; i++)
        if (hf__zk_entry_parse(children->data[i], &e) && e.seq == mine.seq &&
            strcmp(e.name, mine.name) != 0)
            rc = hf__zk_child_stat_request(node, e.name);
    return rc ? rc : HF__PENDING;
}

static int stats_refused(const struct zk_child_stat *child)
{
    char path[ZK_WHOLE_MAX];

    stats_path_of(child->node, child->name, path);
    return hf__zk_denied(child->node->z, child->refusal, "READ", path);
}

int hf__zk_child_stats_known(const struct zk_node *node,
                             const struct String_vector *children,
                             int64_t **czxid)
{
    struct zk *z = node->z;
    int rc = 0;

    *czxid = NULL;
    if (!node->child_stats || children->count <= 0)
        return 0;
    *czxid =
        z->core->alloc(z->client, (size_t)children->count * sizeof(**czxid));
    if (!*czxid)
        return HF_ENOMEM;
    for (int32_t i = 0; i < children->count && !rc; i++) {
        const struct zk_child_stat *child = stats_find(node, children->data[i]);

        (*czxid)[i] = child ? child->czxid : 0;
        rc = child && child->refusal ? stats_refused(child) : 0;
    }
    if (rc) {
        z->core->free(z->client, *czxid);
        *czxid = NULL;
    }
    return rc;
}
