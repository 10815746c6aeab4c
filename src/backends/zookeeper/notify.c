/*
 * Holders that listen: a watch on the hold's own entry. The word __REVOKE__ in
 * its data, by Curator's Revoker or hf_ask(), asks for the lock; that it is
 * gone says that somebody took the lock away. Costs a question more for each
 * grant, so it is for programs that hear of events. (Whoever was granted a lock
 * unseen asks one in any case: hf__zk_confirm().)
 *
 * A hold of several permits has an ear on each of its leases, of which the
 * first is the one that is asked. An ear lives until its watch has fired, or
 * the session is over; its node may be gone before.
 */
#include "query.h"

#include <string.h>

static void ear_free(struct zk_ear *ear)
{
    struct zk *z = ear->z;

    if (ear->node)
        ear->node->ear = NULL;
    hf__list_remove(z->ears, ear);
    z->core->free(z->client, ear);
}

void hf__zk_ears_fini(struct zk *z)
{
    while (z->ears)
        ear_free(z->ears);
}

static void listen_to(struct zk_node *);

static bool is_asked(const struct zk_reply *reply)
{
    size_t len = strlen(ZK_REVOKE);

    return reply->len >= (int)len && memcmp(reply->text, ZK_REVOKE, len) == 0;
}

/* deleted: there is no such node any more. */
static void hear_no_more(struct zk_ear *ear, bool deleted)
{
    struct zk_node *node = ear->node;
    bool renamed = node && strcmp(node->path, ear->path) != 0;

    ear_free(ear);
    if (renamed)
        listen_to(node);
    else if (node && node->line && deleted)
        hf__zk_taken_away(node->line);
}

/* The answer to the question that set the watch. */
static void on_data(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_ear *ear = owner;
    const struct zk_node *node = ear->node;

    if (rc == ZNONODE) /* it went between the grant and this */
        hear_no_more(ear, true);
    else if (rc != ZOK)
        ear_free(ear); /* no watch was set */
    else if (node && node->line && node->line->node == node && is_asked(reply))
        z->core->wanted(z->client, node->line->remote, (uint64_t)node->czxid);
}

static void on_event(zhandle_t *zh, int type, int state, const char *path,
                     void *arg);

static int open_ear(struct zk_ear *ear)
{
    return hf__zk_get_watched(ear->z, ear->path, on_event, ear, on_data, ear);
}

static void on_event(zhandle_t *zh, int type, int state, const char *path,
                     void *arg)
{
    struct zk_ear *ear = arg;

    (void)zh;
    (void)state;
    (void)path;
    if (type == ZOO_SESSION_EVENT) /* those reach every watcher */
        return;
    if (ear->node && type == ZOO_CHANGED_EVENT && open_ear(ear) == 0)
        return;
    hear_no_more(ear, type == ZOO_DELETED_EVENT);
}

/* One that is lowered has no name to listen by: it may not have come to the
 * server yet. When it has, hf__zk_lower_result() sees to it. */
static void listen_to(struct zk_node *node)
{
    struct zk *z = node->z;
    struct zk_ear *ear;

    if (!z->listens || node->ear || node->lowered)
        return;
    ear = z->core->alloc(z->client, sizeof(*ear) + strlen(node->path) + 1);
    if (!ear)
        return;
    ear->z = z;
    ear->node = node;
    strcpy(ear->path, node->path);
    hf__list_add(z->ears, ear);
    node->ear = ear;
    if (open_ear(ear) != 0)
        ear_free(ear);
}

void hf__zk_listen(struct zk_node *node)
{
    for (; node; node = node->sibling)
        listen_to(node);
}

static void on_confirmed(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    (void)reply;
    if (rc == ZNONODE && node->line && node->held) {
        node->calls--;
        hf__zk_taken_away(node->line);
    } else {
        hf__zk_node_called(node);
    }
}

void hf__zk_confirm(struct zk_node *node)
{
    if (node->ear) /* the question that opened it says the same */
        return;
    if (hf__zk_exists(node->z, node->path, on_confirmed, node) == 0)
        node->calls++;
}
