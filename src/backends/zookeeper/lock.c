#include "lock.h"

#include "call.h"
#include "cleanup.h"
#include "node.h"
#include "node_create.h"
#include "notify.h"
#include "outcome.h"
#include "path.h"
#include "query.h"
#include "session_proof.h"
#include "watch.h"
#include "zookeeper.h"

#include <string.h>

/* The missing parents of an entry are created at most this many times. The
 * server may delete empty parents before the entry exists, but hardly so
 * often. */
#define PARENTS_MAX 100

int hf__zk_lock_attach(void *self, struct hf__remote *remote)
{
    struct zk *z = self;
    char path[ZK_WHOLE_MAX];
    int len = hf__zk_path(remote->name, remote->name_len, z->root, path,
                          sizeof(path));
    struct zk_lock *lock;

    if (len < 0)
        return hf__zk_bad_name(z, "name", remote->name, remote->name_len);
    lock = z->core->alloc(z->client, sizeof(*lock) + (size_t)len + 1);
    if (!lock)
        return HF_ENOMEM;
    lock->remote = remote;
    lock->z = z;
    lock->path_len = (size_t)len;
    memcpy(lock->path, path, (size_t)len + 1);
    remote->impl = lock;
    return 0;
}

/* Returns the counter of waiting locks that includes this lock. A latch grants
 * no hold, so its waiters need no proof of the session and have a counter of
 * their own. */
static unsigned *lock_count_of(const struct zk_lock *lock)
{
    struct zk *z = lock->z;

    return lock->remote->kind == HF_LATCH ? &z->waiting_latch : &z->waiting;
}

void hf__zk_lock_stop_waiting(struct zk_lock *lock)
{
    hf__zk_unwatch(lock);
    lock->passed = NULL;
    lock->pass_until = 0;
    if (lock->queued)
        --*lock_count_of(lock);
    lock->queued = false;
}

/* ---- attempts and answers ------------------------------------------------ */

/* Cleans up after an attempt: an attempt that was refused or is BUSY keeps
 * neither node nor watch. */
static int lock_finished(struct zk_lock *lock, int rc)
{
    if (rc == HF__BUSY || (rc < 0 && rc != HF_EUNKNOWN)) {
        hf__zk_lock_stop_waiting(lock);
        if (lock->node)
            hf__zk_node_drop(lock->node, NULL);
    }
    return rc;
}

int hf__zk_lock_attempt(const struct zk *z, struct hf__req *req,
                        zk_attempt_fn *begin)
{
    struct zk_lock *lock = req->remote->impl;
    int rc;

    if (!z->up)
        return HF__LATER;
    lock->attempt = req;
    rc = lock_finished(lock, begin(lock, req));
    if (rc != HF__PENDING)
        lock->attempt = NULL;
    return rc == HF_EUNKNOWN ? HF__LATER : rc;
}

void hf__zk_lock_answer(struct zk_lock *lock, int rc)
{
    if (rc != HF__PENDING)
        hf__zk_finish(lock->z, lock->attempt, lock_finished(lock, rc));
}

bool hf__zk_lock_parents_again(struct zk_node *node)
{
    if (node->parents == PARENTS_MAX ||
        (node->parents && hf__zk_parents_refused(node->z, node->path)))
        return false;
    node->parents++;
    return true;
}

struct zk_node *hf__zk_lock_node(struct zk_lock *lock,
                                 const struct hf__req *req)
{
    if (lock->node && lock->node->hold_id != req->hold_id)
        hf__zk_node_drop(lock->node,
                         NULL); /* the node belongs to an earlier attempt */
    return lock->node;
}

int hf__zk_lock_grant(struct zk_lock *lock, struct hf__req *req)
{
    struct zk *z = lock->z;
    struct zk_node *node = lock->node;
    hf__time at = hf__zk_proof_doubt(z);

    if (at && req->may_queue) {
        node->role = ZK_ROLE_PLACE;
        hf__zk_lock_queued(lock, req);
        req->poll_at = at;
        return HF__QUEUED;
    }
    if (lock->queued && req->fixed)
        hf__zk_node_date(node);
    hf__zk_lock_stop_waiting(lock);
    node->role = ZK_ROLE_HELD;
    node->granted_ms = node->leased_ms = hf__wall_ms();
    hf__zk_notify_listen(node);
    req->token = (uint64_t)node->czxid;
    req->sent_at = z->proved;
    req->session_ms = hf__zk_proof_ms(z, z->proved);
    return HF__GRANTED;
}

int hf__zk_lock_queued(struct zk_lock *lock, struct hf__req *req)
{
    if (!lock->queued) {
        hf__zk_watches_begin(lock->z);
        ++*lock_count_of(lock);
    }
    lock->queued = true;
    req->poll_at = HF__NEVER;
    return HF__QUEUED;
}

/* ---- letting go --------------------------------------------------------- */

static int lock_let_go(struct zk_lock *lock, struct hf__req *req)
{
    struct zk_node *node = lock->node;

    if (!node || node->hold_id != req->hold_id)
        node = hf__zk_node_of(lock->z, lock, req->hold_id);
    if (!node)
        return req->op == HF__ABANDON ? HF__DONE : HF_ENOTOWNER;
    hf__zk_node_drop(node, req);
    return HF__PENDING;
}

int hf__zk_lock_release(void *self, struct hf__req *req)
{
    (void)self;
    return lock_let_go(req->remote->impl, req);
}

int hf__zk_lock_abandon(void *self, struct hf__req *req)
{
    struct zk_lock *lock = req->remote->impl;

    (void)self;
    /* A repeated abandon may be about an earlier hold id. Then the current
     * attempt goes on. */
    if (req->remote->attempt->hold_id == req->hold_id) {
        lock->attempt = NULL;
        hf__zk_lock_stop_waiting(lock);
    }
    return lock_let_go(lock, req);
}

void hf__zk_lock_detach(void *self, struct hf__remote *remote)
{
    struct zk *z = self;
    struct zk_lock *lock = remote->impl;

    if (!lock)
        return;
    hf__zk_lock_stop_waiting(lock);
    hf__zk_queries_leave(z, lock);
    if (lock->node)
        hf__zk_node_drop(lock->node, NULL);
    remote->impl = NULL;
    z->core->free(z->client, lock->round);
    z->core->free(z->client, lock);
}
