#include "notify.h"

#include "base/list.h"
#include "call.h"
#include "cleanup.h"
#include "lock.h"
#include "node.h"
#include "zookeeper.h"

#include <string.h>

static void notify_free(struct zk_notify *notify)
{
    struct zk *z = notify->z;

    if (notify->node)
        notify->node->notify = NULL;
    hf__list_remove(z->listening, notify);
    z->core->free(z->client, notify);
}

void hf__zk_notify_fini(struct zk *z)
{
    while (z->listening)
        notify_free(z->listening);
}

static void notify_listen_to(struct zk_node *);

/* Frees a zk_notify whose watch has fired or could not be set. If the node was
 * renamed, watches the new entry; otherwise reports the hold as lost if
 * `deleted` says that the entry is gone. */
static void notify_hear_no_more(struct zk_notify *notify, bool deleted)
{
    struct zk_node *node = notify->node;
    bool renamed = node && strcmp(node->path, notify->path) != 0;

    notify_free(notify);
    if (renamed)
        notify_listen_to(node);
    else if (node && node->lock && deleted)
        hf__zk_taken_away(node->lock);
}

/* Handles the answer to the request that set the watch. */
static void notify_on_data(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_notify *notify = owner;
    const struct zk_node *node = notify->node;

    if (rc == ZNONODE) /* the entry was deleted before the watch was set */
        notify_hear_no_more(notify, true);
    else if (rc != ZOK)
        notify_free(notify); /* the server has set no watch */
    else if (node && node->lock && node->lock->node == node &&
             hf__zk_is_revoke(reply->text, reply->len))
        z->core->wanted(z->client, node->lock->remote, (uint64_t)node->czxid);
}

static void notify_on_event(zhandle_t *zh, int type, int state,
                            const char *path, void *arg);

static int open_notify(struct zk_notify *notify)
{
    return hf__zk_get(notify->z, notify->path, notify_on_event, notify_on_data,
                      notify);
}

static void notify_on_event(zhandle_t *zh, int type, int state,
                            const char *path, void *arg)
{
    struct zk_notify *notify = arg;

    (void)zh;
    (void)state;
    (void)path;
    if (type == ZOO_SESSION_EVENT) /* session events reach every watcher */
        return;
    if (notify->node && type == ZOO_CHANGED_EVENT && open_notify(notify) == 0)
        return;
    notify_hear_no_more(notify, type == ZOO_DELETED_EVENT);
}

/* Watches the entry of one node. A lowered node is left out, because its new
 * entry may not exist yet; renew_lower_result() watches it later. */
static void notify_listen_to(struct zk_node *node)
{
    struct zk *z = node->z;
    struct zk_notify *notify;

    if (!z->listens || node->notify || hf__zk_node_is_lowered(node))
        return;
    notify =
        z->core->alloc(z->client, sizeof(*notify) + strlen(node->path) + 1);
    if (!notify)
        return;
    notify->z = z;
    notify->node = node;
    strcpy(notify->path, node->path);
    hf__list_add(z->listening, notify);
    node->notify = notify;
    if (open_notify(notify) != 0)
        notify_free(notify);
}

void hf__zk_notify_listen(struct zk_node *node)
{
    for (; node; node = node->sibling)
        notify_listen_to(node);
}

static void notify_on_confirmed(void *owner, int rc,
                                const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    (void)reply;
    if (rc == ZNONODE && node->lock && node->role == ZK_ROLE_HELD) {
        node->calls--;
        hf__zk_taken_away(node->lock);
    } else {
        hf__zk_node_called(node);
    }
}

void hf__zk_notify_confirm(struct zk_node *node)
{
    if (node->notify) /* the request that set the watch checks the entry, too */
        return;
    if (hf__zk_exists(node->z, node->path, NULL, notify_on_confirmed, node) ==
        0)
        node->calls++;
}
