#include "queue.h"

#include "call.h"
#include "child_stats.h"
#include "cleanup.h"
#include "entry.h"
#include "keepalive.h"
#include "lock.h"
#include "node.h"
#include "node_create.h"
#include "notify.h"
#include "outcome.h"
#include "path.h"
#include "session_proof.h"
#include "watch.h"
#include "zookeeper.h"

#define SEQUENCE_LATE (ZK_SEQ_LAST - (1 << 27))

static zk_done_fn queue_listed;

static enum zk_rule queue_rule_of(const struct zk_lock *lock)
{
    if (lock->remote->kind == HF_MUTEX)
        return lock->remote->fair ? ZK_RULE_MUTEX : ZK_RULE_UNFAIR;
    return lock->remote->mode == HF_READ ? ZK_RULE_READ : ZK_RULE_WRITE;
}

static enum zk_form queue_form_of(const struct zk_lock *lock)
{
    bool kazoo = lock->z->kazoo;

    switch (queue_rule_of(lock)) {
    case ZK_RULE_READ:
        return kazoo ? ZK_FORM_KAZOO_READ : ZK_FORM_READ;
    case ZK_RULE_WRITE:
        return kazoo ? ZK_FORM_KAZOO_LOCK : ZK_FORM_WRITE;
    case ZK_RULE_UNFAIR:
        return ZK_FORM_HOLDER;
    default:
        return kazoo ? ZK_FORM_KAZOO_LOCK : ZK_FORM_LOCK;
    }
}

static int queue_begin(struct zk_lock *lock, const struct hf__req *req)
{
    lock->node = hf__zk_node_new(lock, NULL, queue_form_of(lock), req->hold_id);
    return lock->node ? hf__zk_node_enter(lock->node, false, queue_listed)
                      : HF_ENOMEM;
}

/* Returns true if the attempt can be granted without another list: the only
 * entry before ours was that of a mutex, and it has been deleted. No other
 * entry can have taken a place before ours since the last list, because only a
 * downgraded writer does so, and mutexes have no writers. (If our own entry was
 * deleted, too, the next waiter was woken and may get the lock. Therefore our
 * entry is checked after the grant.) */
static bool queue_is_next(const struct zk_lock *lock,
                          const struct zk_node *node)
{
    return node->state == ZK_NODE_THERE && node->czxid &&
           node->role == ZK_ROLE_SECOND && lock->deleted &&
           hf__zk_proof_is_good(lock->z);
}

int hf__zk_queue_attempt(struct zk_lock *lock, struct hf__req *req)
{
    struct zk_node *node = hf__zk_lock_node(lock, req);
    int rc;

    if (!node)
        return queue_begin(lock, req);
    if (!req->fixed && queue_is_next(lock, node)) {
        rc = hf__zk_lock_grant(lock, req);
        if (rc == HF__GRANTED)
            hf__zk_notify_confirm(node);
        return rc;
    }
    /* Unless the last proof is recent, another one is sent with the list. By
     * the time of the grant the session could otherwise have ended, and with it
     * the entry that the list contains. */
    hf__zk_keepalive_prove(lock->z, req);
    rc = node->form == ZK_FORM_HOLDER ? hf__zk_node_check(node) : 0;
    return rc ? rc : hf__zk_node_list(node, queue_listed);
}

/* ---- answers ------------------------------------------------------------- */

/* Warns near the end of the sequence. At the end all entries get the same
 * number, which no longer shows their order. The sequence starts again at 0
 * after the server has deleted the name's node. The server does so when the
 * lock was unused for a while, but not with dialect=kazoo. */
static void queue_mind_sequence(struct zk_lock *lock, int64_t seq)
{
    struct zk *z = lock->z;

    if (seq < SEQUENCE_LATE || z->warned)
        return;
    z->warned = true;
    z->core->log(z->client,
                 "zookeeper: %.100s: the sequence is at %lld and ends at %d; "
                 "let the lock rest for a minute",
                 lock->path, (long long)seq, ZK_SEQ_LAST);
}

/* Returns whether the child is certainly the entry of a mutex. An entry in
 * kazoo's form may also be that of a writer. */
static bool queue_is_mutex(const char *child)
{
    struct zk_entry e;

    hf__zk_entry_parse(child, &e);
    return e.form == ZK_FORM_LOCK;
}

/* Enters the queue again, because the entry is gone or was never created. */
static int queue_enter_again(struct zk_node *node)
{
    node->state = ZK_NODE_GONE;
    node->refusal = ZOK;
    return hf__zk_node_enter(node, false, queue_listed);
}

static int queue_not_created(struct zk_node *node)
{
    bool parents = node->refusal == ZNONODE && hf__zk_lock_parents_again(node);

    if (node->refusal != ZOK && !parents)
        return hf__zk_not_made(node);
    return hf__zk_node_enter(node, parents, queue_listed);
}

static int queue_wait_for(struct zk_lock *lock, const char *child)
{
    char path[ZK_WHOLE_MAX];
    int rc;

    if (!lock->attempt->may_queue)
        return HF__BUSY;
    rc = hf__zk_watch(lock->z, lock, ZK_WATCH_NODE,
                      hf__zk_join(path, lock->path, child));
    return rc ? rc : hf__zk_lock_queued(lock, lock->attempt);
}

/* Handles a child of another kind of lock. If it is a node that an idle
 * semaphore has left, deletes the nodes of that semaphore first and lists the
 * children again. */
static int queue_mismatch(struct zk_lock *lock, const char *child)
{
    struct zk_node *node = lock->node;
    struct zk *z = lock->z;
    struct zk_entry e;

    hf__zk_entry_parse(child, &e);
    if (e.form == ZK_FORM_SEMAPHORE && !node->swept) {
        node->swept = true;
        hf__zk_sweep_semaphore(z, lock->path);
        return hf__zk_node_list(node, queue_listed);
    }
    return hf__zk_used_as(z, lock->remote->name, lock->remote->name_len,
                          lock->remote, child);
}

static int queue_judge(struct zk_lock *lock, struct zk_node *node,
                       const struct String_vector *children)
{
    enum zk_rule rule = queue_rule_of(lock);
    struct zk_entry mine;
    struct zk_place place;
    int rc = hf__zk_child_stats_refused(node, children);

    if (rc)
        return rc;
    hf__zk_entry_parse(hf__zk_node_name(node), &mine);
    mine.czxid = node->czxid;
    queue_mind_sequence(lock, mine.seq);
    hf__zk_place(children->data, (size_t)children->count, &mine, rule,
                 hf__zk_child_czxid, node, &place);
    if (!place.here && rule != ZK_RULE_UNFAIR)
        return queue_enter_again(node);
    if (place.tied != ZK_NOBODY)
        rc = hf__zk_child_stats_request_tied(node, children);
    else if (place.stranger != ZK_NOBODY)
        rc = hf__zk_strangers_check(node, children, rule, mine.seq);
    if (rc)
        return rc == HF__PENDING ? hf__zk_node_list(node, queue_listed) : rc;
    if (place.mismatch != ZK_NOBODY)
        return queue_mismatch(lock, children->data[place.mismatch]);
    if (!place.ahead)
        return hf__zk_lock_grant(lock, lock->attempt);
    /* Our node "lock" could be created because the holder's was deleted, but
     * the holder's entry still exists. Withdraw ours, and wait for that entry.
     */
    if (rule == ZK_RULE_UNFAIR)
        hf__zk_node_drop(node, NULL);
    else
        node->role = rule == ZK_RULE_MUTEX && place.ahead == 1 &&
                             queue_is_mutex(children->data[place.watch])
                         ? ZK_ROLE_SECOND
                         : ZK_ROLE_PLACE;
    return queue_wait_for(lock, children->data[place.watch]);
}

static int queue_decide(struct zk_lock *lock, struct zk_node *node, int rc,
                        const struct String_vector *children)
{
    bool is_taken = node->state == ZK_NODE_GONE && node->refusal == ZNODEEXISTS;

    if (hf__zk_lost(rc))
        return HF_EUNKNOWN;
    if (node->state == ZK_NODE_GONE && !is_taken)
        return queue_not_created(node);
    if (rc == ZNONODE) /* without its parent the entry does not exist */
        return queue_enter_again(node);
    if (rc != ZOK)
        return hf__zk_denied(lock->z, rc, "READ", lock->path);
    if (is_taken) {
        hf__zk_node_vanished(node);
        return queue_wait_for(lock, ZK_UNFAIR);
    }
    if (node->state == ZK_NODE_UNSURE || !node->czxid)
        return hf__zk_node_find(node, children)
                   ? hf__zk_node_list(node, queue_listed)
                   : queue_enter_again(node);
    return queue_judge(lock, node, children);
}

static void queue_listed(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_node *node = owner;
    struct zk_lock *lock = node->lock;

    if (lock->attempt)
        hf__zk_lock_answer(lock, queue_decide(lock, node, rc, reply->children));
}
