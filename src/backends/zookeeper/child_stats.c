#include "child_stats.h"

#include "base/hash.h"
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
    else if (rc == ZNONODE) /* a new child with this name would come after our
                               entry */
        child->czxid = ZK_CHILD_GONE;
    else if (!hf__zk_lost(rc)) /* after a lost answer the stat is requested
                                  again */
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

static struct zk_child_stat *stats_new(struct zk_node *node, const char *name,
                                       size_t len)
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

static int stats_request(struct zk_node *node, const char *name)
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
        child = stats_new(node, name, len);
    if (!child)
        return HF_ENOMEM;
    stats_path_of(node, name, path);
    rc = hf__zk_exists(z, path, NULL, on_child_stat, child);
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
            rc = stats_request(node, e.name);
    return rc ? rc : HF__PENDING;
}

int64_t hf__zk_child_czxid(const void *node, const char *name)
{
    const struct zk_child_stat *child = stats_find(node, name);

    return child ? child->czxid : 0;
}

int hf__zk_child_stats_refused(const struct zk_node *node,
                               const struct String_vector *children)
{
    char path[ZK_WHOLE_MAX];

    for (int32_t i = 0; node->child_stats && i < children->count; i++) {
        const struct zk_child_stat *child = stats_find(node, children->data[i]);

        if (child && child->refusal) {
            stats_path_of(node, child->name, path);
            return hf__zk_denied(node->z, child->refusal, "READ", path);
        }
    }
    return 0;
}

/* ---- strangers ---------------------------------------------------------- */

/* Returns true for a stranger that a client with that rule and sequence would
 * count as an entry if the stranger is ephemeral. */
static bool stats_is_stranger(const char *child, enum zk_rule rule, int64_t seq)
{
    struct zk_entry e;

    return !hf__zk_entry_parse(child, &e) &&
           hf__zk_entry_guess(child, rule, seq, &e);
}

/* Returns a hash of the strangers that does not depend on their order, or 0 if
 * there are none. If `node` is not NULL, only strangers that the node knows to
 * be persistent count. */
static uint64_t stats_sum_of(const struct String_vector *children,
                             const struct zk_node *node, enum zk_rule rule,
                             int64_t seq)
{
    uint64_t sum = 0;

    for (int32_t i = 0; i < children->count; i++) {
        const char *child = children->data[i];
        int64_t czxid = node ? hf__zk_child_czxid(node, child) : 0;

        if ((!node || (czxid < 0 && czxid != ZK_CHILD_GONE)) &&
            stats_is_stranger(child, rule, seq))
            sum += hf__hash64(HF__HASH64, child, strlen(child));
    }
    return sum;
}

/* Returns true if every stat that was requested for these children is known. */
static bool stats_are_known(const struct zk_node *node,
                            const struct String_vector *children)
{
    for (int32_t i = 0; i < children->count; i++) {
        const struct zk_child_stat *child = stats_find(node, children->data[i]);

        if (child && !child->czxid)
            return false;
    }
    return true;
}

int hf__zk_strangers_check(struct zk_node *node,
                           const struct String_vector *children,
                           enum zk_rule rule, int64_t seq)
{
    uint64_t sum = stats_sum_of(children, NULL, rule, seq);
    int rc = 0;

    if (!sum || sum == node->lock->strangers)
        return 0;
    if (node->strangers_requested && stats_are_known(node, children)) {
        node->lock->strangers = stats_sum_of(children, node, rule, seq);
        return 0;
    }
    for (int32_t i = 0; i < children->count && !rc; i++)
        if (stats_is_stranger(children->data[i], rule, seq))
            rc = stats_request(node, children->data[i]);
    node->strangers_requested = !rc;
    return rc ? rc : HF__PENDING;
}
