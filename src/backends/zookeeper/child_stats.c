/*
 * What is asked about children of a lock's node, beside their names: when they
 * were made, and whether they are ephemeral. What was learned is kept with the
 * node of who asked.
 *
 * Children with the same sequence need it. At 2^31-1 the server's counter stays
 * where it is, and Curator makes one with the number of another: then the order
 * of creation decides, by czxid. And strangers do (foreign_entries.c).
 */
#include "zookeeper.h"

#include "entry.h"

#include <stdio.h>
#include <string.h>

static void on_tie(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_tie *tie = owner;

    tie->asked = false;
    if (rc == ZOK)
        tie->czxid = reply->stat->ephemeralOwner ? reply->stat->czxid
                                                 : -reply->stat->czxid;
    else if (rc == ZNONODE) /* what comes later comes behind us */
        tie->czxid = ZK_TIE_GONE;
    else if (!hf__zk_lost(rc)) /* else it is asked for again */
        tie->refusal = rc;
    hf__zk_node_called(tie->node);
}

static struct zk_tie *find(const struct zk_node *node, const char *name)
{
    struct zk_tie *tie = node->ties;

    while (tie && strcmp(tie->name, name) != 0)
        tie = tie->next;
    return tie;
}

bool hf__zk_tie_is_open(const struct zk_node *node, const char *name)
{
    const struct zk_tie *tie = find(node, name);

    return tie && !tie->czxid;
}

static struct zk_tie *tie_new(struct zk_node *node, const char *name,
                              size_t len)
{
    struct zk *z = node->z;
    struct zk_tie *tie = z->core->alloc(z->client, sizeof(*tie) + len + 1);

    if (!tie)
        return NULL;
    memcpy(tie->name, name, len + 1);
    tie->node = node;
    tie->next = node->ties;
    node->ties = tie;
    return tie;
}

static void path_of(const struct zk_node *node, const char *name,
                    char out[ZK_WHOLE_MAX])
{
    snprintf(out, ZK_WHOLE_MAX, "%s/%s", node->line->path, name);
}

int hf__zk_tie_ask(struct zk_node *node, const char *name)
{
    struct zk *z = node->z;
    size_t len = strlen(name);
    struct zk_tie *tie = find(node, name);
    char path[ZK_WHOLE_MAX];
    int rc;

    if (tie && (tie->asked || tie->czxid))
        return 0;
    if (node->line->path_len + 1 + len >= sizeof(path))
        return z->core->why(z->client, HF_EPROTO,
                            "%.100s has a child whose name has %zu bytes: "
                            "%.40s...",
                            node->line->path, len, name);
    if (!tie)
        tie = tie_new(node, name, len);
    if (!tie)
        return HF_ENOMEM;
    path_of(node, name, path);
    rc = hf__zk_exists(z, path, on_tie, tie);
    if (rc)
        return rc;
    tie->asked = true;
    node->calls++;
    return 0;
}

int hf__zk_ties_ask(struct zk_node *node, const struct String_vector *children)
{
    struct zk_entry mine, e;
    int rc = 0;

    hf__zk_entry_parse(hf__zk_node_name(node), &mine);
    for (int32_t i = 0; i < children->count && !rc; i++)
        if (hf__zk_entry_parse(children->data[i], &e) && e.seq == mine.seq &&
            strcmp(e.name, mine.name) != 0)
            rc = hf__zk_tie_ask(node, e.name);
    return rc ? rc : HF__PENDING;
}

static int refused(const struct zk_tie *tie)
{
    char path[ZK_WHOLE_MAX];

    path_of(tie->node, tie->name, path);
    return hf__zk_denied(tie->node->z, tie->refusal, "READ", path);
}

int hf__zk_ties_known(const struct zk_node *node,
                      const struct String_vector *children, int64_t **czxid)
{
    struct zk *z = node->z;
    int rc = 0;

    *czxid = NULL;
    if (!node->ties || children->count <= 0)
        return 0;
    *czxid =
        z->core->alloc(z->client, (size_t)children->count * sizeof(**czxid));
    if (!*czxid)
        return HF_ENOMEM;
    for (int32_t i = 0; i < children->count && !rc; i++) {
        const struct zk_tie *tie = find(node, children->data[i]);

        (*czxid)[i] = tie ? tie->czxid : 0;
        rc = tie && tie->refusal ? refused(tie) : 0;
    }
    if (rc) {
        z->core->free(z->client, *czxid);
        *czxid = NULL;
    }
    return rc;
}
