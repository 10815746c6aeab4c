/*
 * Deletes the entries of nodes that no longer have a lock. An entry is deleted
 * as soon as possible, and again after each lost connection. This ends when the
 * server says that the entry was deleted or does not exist, or when the session
 * has ended. The next step depends on the state of the node (node.h):
 *
 * - UNSURE: the entry is looked up.
 * - THERE: the entry is deleted.
 * - GONE: the release or abandon that waits for the deletion (let_go) is
 *   completed, and the node is freed after its last call was answered.
 *
 * A step that is impossible now (no memory, no right) is repeated after a pause
 * (zk.sweep_at). While the connection is down, no step is taken; session.c
 * resumes all of them when it is up again.
 */
#include "cleanup.h"

#include "call.h"
#include "entry.h"
#include "lock.h"
#include "node.h"
#include "outcome.h"
#include "path.h"
#include "zookeeper.h"

#include <poll.h>

#define PAUSE (200 * HF__MS)       /* pause after a step that was impossible */
#define PAUSE_MAX (30000 * HF__MS) /* longest pause, after many refusals */

/* ---- steps that are impossible now --------------------------------------- */

/* Schedules another try of a step that was refused, or for which memory was
 * short. Does nothing while the connection is down: all steps are resumed when
 * it is up again. */
void hf__zk_node_sweep_later(struct zk_node *node)
{
    struct zk *z = node->z;

    if (!z->up)
        return;
    node->again_at = z->core->now() + (node->pause ? node->pause : PAUSE);
    if (z->sweep_at && z->sweep_at <= node->again_at)
        return;
    z->sweep_at = node->again_at;
    if (!z->moving)
        z->core->due(z->client, z->sweep_at);
}

/* Lengthens the pause before the next try, because the refusal may be permanent
 * if the ACL was changed. */
static void cleanup_refused(struct zk_node *node, int rc)
{
    struct zk *z = node->z;

    if (!node->pause)
        z->core->log(z->client,
                     "zookeeper: %.200s cannot be deleted: %s; trying again, "
                     "less and less often, until the session ends",
                     node->path, zerror(rc));
    node->pause = node->pause ? node->pause * 2 : PAUSE;
    if (node->pause > PAUSE_MAX)
        node->pause = PAUSE_MAX;
}

/* ---- looking an entry up, deleting it ------------------------------------ */

/* Returns true if nothing is left to delete. A mark that the client has no
 * right to delete stays: it disturbs no other client, and is removed with the
 * session. */
static bool cleanup_is_over(const struct zk_node *node, int rc)
{
    return rc == ZOK || rc == ZNONODE ||
           (node->form == ZK_FORM_MARK && !hf__zk_lost(rc));
}

static void cleanup_on_delete(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_node *node = owner;
    struct hf__req *let_go = node->let_go;
    char dir[ZK_WHOLE_MAX];

    node->calls--;
    if (cleanup_is_over(node, rc))
        node->state = rc == ZNONODE && !node->maybe_deleted ? ZK_NODE_TAKEN
                                                            : ZK_NODE_GONE;
    else
        node->state = node->state == ZK_NODE_DELETING_OLD ? ZK_NODE_LOWERING
                                                          : ZK_NODE_THERE;
    node->maybe_deleted = node->maybe_deleted || hf__zk_lost(rc);
    if (hf__zk_node_is_gone(node)) {
        hf__zk_node_end_step(node);
        return;
    }
    if (!hf__zk_lost(rc))
        cleanup_refused(node, rc);
    if (node->hurried) { /* the delete that failed was sent before let_go came;
                            another delete is now sent for let_go */
        node->hurried = false;
        hf__zk_node_sweep(node);
        return;
    }
    if (!hf__zk_lost(rc) && let_go) {
        node->let_go = NULL; /* the core will send a new one */
        hf__zk_finish(
            z, let_go,
            hf__zk_denied(z, rc, "DELETE below", hf__zk_node_dir(node, dir)));
    }
    hf__zk_node_sweep_later(node);
}

static void cleanup_on_found(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_node *node = owner;

    node->calls--;
    if (rc == ZNONODE)
        node->state = ZK_NODE_GONE;
    else if (rc == ZOK && reply->children)
        hf__zk_node_match(node, reply->children);
    else if (rc == ZOK)
        node->state = reply->stat->ephemeralOwner == z->session_id
                          ? ZK_NODE_THERE
                          : ZK_NODE_GONE;
    else if (!hf__zk_lost(rc))
        cleanup_refused(node, rc);
    if (node->state != ZK_NODE_UNSURE)
        hf__zk_node_sweep(node);
    else
        hf__zk_node_sweep_later(node);
}

static int cleanup_search_for(struct zk_node *node)
{
    char dir[ZK_WHOLE_MAX];

    if (hf__zk_node_is_numbered(node))
        return hf__zk_exists(node->z, node->path, NULL, cleanup_on_found, node);
    return hf__zk_list(node->z, hf__zk_node_dir(node, dir), NULL,
                       cleanup_on_found, node);
}

static void cleanup_on_unlowered_deleted(void *owner, int rc,
                                         const struct zk_reply *reply)
{
    struct zk_node *node = owner;

    if (rc != ZOK && rc != ZNONODE) {
        cleanup_on_delete(owner, rc, reply);
        return;
    }
    node->calls--;
    node->state = ZK_NODE_THERE;
    /* The entry had only one of its two names. If that was the name for
     * writing, it is deleted by now, and the next delete finds nothing. */
    node->maybe_deleted = true;
    hf__zk_node_sweep(node);
}

static void cleanup_on_lock_deleted(void *owner, int rc,
                                    const struct zk_reply *reply)
{
    cleanup_on_delete(owner, rc == ZOK ? ZNONODE : rc, reply);
}

/* Deletes the node `lock` if it belongs to this entry. One transaction created
 * both, so they have the same czxid. */
static void cleanup_on_lock(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_node *node = owner;
    bool ours = rc == ZOK && reply->stat->czxid == node->czxid;
    char unfair[ZK_WHOLE_MAX];

    if (ours && hf__zk_delete(z, hf__zk_node_unfair(node, unfair),
                              cleanup_on_lock_deleted, node) == 0)
        return;
    cleanup_on_delete(owner,
                      ours        ? ZCONNECTIONLOSS
                      : rc == ZOK ? ZNONODE
                                  : rc,
                      reply);
}

/* Handles the delete of an entry together with its node `lock`. If only `lock`
 * is missing, the entry is deleted by itself. If the entry is missing, another
 * client has deleted it. Then our `lock` may still exist and would stay until
 * the session ends, so it is looked up and deleted. (Between this lookup and
 * the delete, our `lock` may be replaced by that of another client, which is
 * then deleted. The other client still holds the mutex, because its entry
 * excludes others, too.) */
static void cleanup_on_pair_deleted(void *owner, int rc,
                                    const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_node *node = owner;
    bool is_single = rc == ZNONODE && reply->results[0].err == ZOK;
    char unfair[ZK_WHOLE_MAX];
    int sent;

    if (rc != ZNONODE || (!is_single && !node->czxid)) {
        cleanup_on_delete(owner, rc, reply);
        return;
    }
    sent = is_single ? hf__zk_delete(z, node->path, cleanup_on_delete, node)
                     : hf__zk_exists(z, hf__zk_node_unfair(node, unfair), NULL,
                                     cleanup_on_lock, node);
    if (sent != 0)
        cleanup_on_delete(owner, ZCONNECTIONLOSS, reply);
}

static int cleanup_delete_it(struct zk_node *node)
{
    char unfair[ZK_WHOLE_MAX], unlowered[ZK_WHOLE_MAX];
    zoo_op_t op[2];

    if (node->state == ZK_NODE_LOWERING) {
        hf__zk_node_unlowered(node, unlowered);
        return hf__zk_delete(node->z, unlowered, cleanup_on_unlowered_deleted,
                             node);
    }
    if (node->form != ZK_FORM_HOLDER)
        return hf__zk_delete(node->z, node->path, cleanup_on_delete, node);
    zoo_delete_op_init(&op[0], node->path, -1);
    zoo_delete_op_init(&op[1], hf__zk_node_unfair(node, unfair), -1);
    return hf__zk_multi(node->z, 2, op, cleanup_on_pair_deleted, node);
}

/* ---- what comes next ----------------------------------------------------- */

/* Returns true if the node is about to be released and the server has closed
 * the connection, which the library has not noticed yet. A release that is sent
 * now would be lost. If the session has ended, too, the client could not tell
 * whether the release was carried out before that. */
static bool cleanup_is_cut(const struct zk_node *node)
{
    struct pollfd p = {.fd = node->z->own_fd, .events = POLLRDHUP};

    return node->let_go && node->let_go->op == HF__RELEASE &&
           poll(&p, 1, 0) > 0;
}

void hf__zk_node_sweep(struct zk_node *node)
{
    node->again_at = 0;
    if (hf__zk_node_is_gone(node)) {
        hf__zk_node_end_step(node);
    } else if (node->state == ZK_NODE_UNSURE && !node->calls) {
        if (cleanup_search_for(node) == 0)
            node->calls++;
        else
            hf__zk_node_sweep_later(node);
    } else if (hf__zk_node_is_there(node)) {
        if (!cleanup_is_cut(node) && cleanup_delete_it(node) == 0) {
            node->calls++;
            node->state = hf__zk_node_is_lowered(node) ? ZK_NODE_DELETING_OLD
                                                       : ZK_NODE_DELETING;
        } else {
            hf__zk_node_sweep_later(node);
        }
    }
}

void hf__zk_node_end_step(struct zk_node *node)
{
    struct hf__req *let_go = node->let_go;

    if (node->lock) /* the lock handles the node itself */
        return;
    if (!hf__zk_node_is_gone(node)) {
        hf__zk_node_sweep(node);
        return;
    }
    node->let_go = NULL;
    if (let_go)
        hf__zk_finish(node->z, let_go,
                      node->state == ZK_NODE_TAKEN && let_go->op == HF__RELEASE
                          ? HF_ENOTOWNER
                          : HF__DONE);
    if (!node->calls)
        hf__zk_node_free(node);
}

void hf__zk_node_called(struct zk_node *node)
{
    node->calls--;
    hf__zk_node_end_step(node);
}

void hf__zk_node_drop(struct zk_node *node, struct hf__req *let_go)
{
    struct zk_node *next;

    if (node->lock && node->lock->node == node)
        node->lock->node = NULL;
    for (; node; node = next) {
        next = node->sibling;
        node->sibling = NULL;
        hf__zk_node_stop_notify(node);
        node->lock = NULL;
        node->let_go = next ? NULL : let_go;
        node->hurried = node->let_go && (node->state == ZK_NODE_DELETING ||
                                         node->state == ZK_NODE_DELETING_OLD);
        hf__zk_node_sweep(node);
    }
}

void hf__zk_node_of_nobody(struct zk *z, const char *path, uint8_t form)
{
    struct zk_node *node = hf__zk_node_alloc(z, path, form);

    if (!node) {
        hf__zk_delete(z, path, NULL, NULL);
        return;
    }
    node->state = ZK_NODE_THERE;
    hf__zk_node_drop(node, NULL);
}

void hf__zk_node_vanished(struct zk_node *node)
{
    node->state = ZK_NODE_GONE;
    hf__zk_node_drop(node, NULL);
}

void hf__zk_taken_away(struct zk_lock *lock)
{
    struct zk *z = lock->z;

    /* The loss is reported first, because deleting the rest of the hold lets
     * the next client in. */
    z->core->lost(z->client, lock->remote, lock->node->hold_id, NULL);
    hf__zk_node_drop(lock->node, NULL);
}

void hf__zk_sweep_semaphore(struct zk *z, const char *path)
{
    char dir[ZK_WHOLE_MAX];

    hf__zk_delete(z, hf__zk_join(dir, path, ZK_LEASES), NULL, NULL);
    hf__zk_delete(z, hf__zk_join(dir, path, ZK_LOCKS), NULL, NULL);
}

/* ---- all nodes --------------------------------------------------------- */

void hf__zk_nodes_sweep(struct zk *z, hf__time now)
{
    struct zk_node *next;

    if (!z->sweep_at || now < z->sweep_at)
        return;
    z->sweep_at = 0;
    for (struct zk_node *node = z->nodes; node; node = next) {
        next = node->next;
        if (!node->again_at)
            continue;
        if (node->again_at <= now)
            hf__zk_node_sweep(node);
        else if (!z->sweep_at || node->again_at < z->sweep_at)
            z->sweep_at = node->again_at;
    }
}

/* Completes the release or abandon of a node whose session has ended. A release
 * that was never sent fails with HF_ENOTOWNER, because the hold was lost
 * before. A release that was sent may have been executed, which can no longer
 * be found out, so it ends as HF__DONE. An abandon also ends as HF__DONE: it
 * only requires that the entry is gone. */
static void cleanup_let_go_with_session(struct zk_node *node)
{
    bool late = node->let_go->op == HF__RELEASE && !node->maybe_deleted &&
                hf__zk_node_is_there(node);

    hf__zk_finish(node->z, node->let_go, late ? HF_ENOTOWNER : HF__DONE);
}

void hf__zk_nodes_lost(struct zk *z, const char *why)
{
    z->sweep_at = 0;
    while (z->nodes) {
        struct zk_node *node = z->nodes;
        struct zk_lock *lock = node->lock;

        if (lock && lock->node == node)
            lock->node = NULL;
        if (lock && node->role == ZK_ROLE_HELD)
            z->core->lost(z->client, lock->remote, node->hold_id, why);
        if (node->let_go)
            cleanup_let_go_with_session(node);
        hf__zk_node_free(node);
    }
}

void hf__zk_nodes_fini(struct zk *z)
{
    while (z->nodes)
        hf__zk_node_free(z->nodes);
}
