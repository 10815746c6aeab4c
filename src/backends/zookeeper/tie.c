/*
 * What is asked about children of a lock's node, beside their names: when they
 * were made, and whether they are ephemeral. What was learned is kept with the
 * node of who asked.
 *
 * Children with the same sequence need it. At 2^31-1 the server's counter stays
 * where it is, and Curator makes one with the number of another: then the order
 * of creation decides, by czxid. And strangers do (stranger.c).
 */
#include "zookeeper.h"

#include "entry.h"

#include <stdio.h>
#include <string.h>

struct zk_tie {
    struct zk_tie *next; /* zk.ties */
    struct zk_node *node;
    bool asked;    /* and not answered yet */
    int64_t czxid; /* as for hf__zk_place() */
    char name[];
};

/* Those of the node that are answered; all, if it is NULL. */
void hf__zk_ties_forget(struct zk *z, const struct zk_node *node)
{
    struct zk_tie **at = &z->ties, *tie;

    while ((tie = *at)) {
        if (node && (tie->node != node || tie->asked)) {
            at = &tie->next;
            continue;
        }
        *at = tie->next;
        z->core->free(z->client, tie);
    }
}

static void on_tie(struct zk *z, void *owner, int rc,
                   const struct zk_reply *reply)
{
    struct zk_tie *tie = owner;

    (void)z;
    tie->asked = false;
    if (rc == ZOK)
        tie->czxid = reply->stat->ephemeralOwner ? reply->stat->czxid
                                                 : -reply->stat->czxid;
    else if (rc == ZNONODE) /* what comes later comes behind us */
        tie->czxid = -1;
    else
        tie->node->asked = false; /* not told: ask again */
    hf__zk_node_called(tie->node);
}

static struct zk_tie *find(const struct zk_node *node, const char *name)
{
    struct zk_tie *tie = node->z->ties;

    while (tie && (tie->node != node || strcmp(tie->name, name) != 0))
        tie = tie->next;
    return tie;
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
    if (node->dir_len + 1 + len >= sizeof(path))
        return z->core->why(z->client, HF_EPROTO,
                            "%.100s has a child whose name has %zu bytes: "
                            "%.40s...",
                            node->line->path, len, name);
    tie = z->core->alloc(z->client, sizeof(*tie) + len + 1);
    if (!tie)
        return HF_ENOMEM;
    memcpy(tie->name, name, len + 1);
    tie->node = node;
    snprintf(path, sizeof(path), "%.*s/%s", (int)node->dir_len, node->path,
             name);
    rc = hf__zk_exists(z, path, on_tie, tie);
    if (rc) {
        z->core->free(z->client, tie);
        return rc;
    }
    tie->asked = true;
    tie->next = z->ties;
    z->ties = tie;
    node->calls++;
    return 0;
}

int hf__zk_ties_ask(struct zk_node *node, const struct String_vector *children,
                    zk_done_fn *listed)
{
    struct zk_entry mine, e;
    int rc = 0;

    hf__zk_entry_parse(hf__zk_node_name(node), &mine);
    for (int32_t i = 0; i < children->count && !rc; i++)
        if (hf__zk_entry_parse(children->data[i], &e) && e.seq == mine.seq &&
            strcmp(e.name, mine.name) != 0)
            rc = hf__zk_tie_ask(node, e.name);
    return rc ? rc : hf__zk_node_list(node, listed);
}

int64_t *hf__zk_ties_known(const struct zk_node *node,
                           const struct String_vector *children)
{
    struct zk *z = node->z;
    int64_t *czxid = NULL;

    if (z->ties && children->count > 0)
        czxid =
            z->core->alloc(z->client, (size_t)children->count * sizeof(*czxid));
    for (int32_t i = 0; czxid && i < children->count; i++) {
        const struct zk_tie *tie = find(node, children->data[i]);

        czxid[i] = tie ? tie->czxid : 0;
    }
    return czxid;
}
