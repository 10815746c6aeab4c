#include "semaphore.h"

#include "call.h"
#include "child_stats.h"
#include "cleanup.h"
#include "entry.h"
#include "keepalive.h"
#include "lock.h"
#include "node.h"
#include "node_create.h"
#include "outcome.h"
#include "path.h"
#include "query.h"
#include "watch.h"
#include "zookeeper.h"

#include <stdio.h>
#include <string.h>

/* How long an attempt that may not queue waits for the turn before its own. */
#define PASS (500 * HF__MS)

struct visit {
    struct zk_query base;
    struct zk_node *turn; /* our turn; if its lock is NULL, the result is
                             unwanted */
    bool here;            /* the list of `locks` contains our turn */
    bool no_leases;       /* the node `leases` does not exist */
    bool unnumbered;      /* the node `leases` has no data */
    bool again;           /* strangers were requested: visit again */
    uint32_t ahead;       /* number of turns before ours */
    uint32_t others;      /* number of leases of other holds */
    uint32_t ours;        /* number of leases of our hold */
    uint32_t size;        /* the size in the data of `leases`, or 0 */
    char before[ZK_CHILD_MAX], other[ZK_CHILD_MAX];
};

/* Drops the leases of a turn that cannot have its permits now, or whose leases
 * must be created again. */
static void semaphore_drop_leases(struct zk_node *turn)
{
    if (turn->sibling)
        hf__zk_node_drop(turn->sibling, NULL);
    turn->sibling = NULL;
}

/* ---- a visit ------------------------------------------------------------ */

static void semaphore_keep(char to[ZK_CHILD_MAX], const char *name)
{
    snprintf(to, ZK_CHILD_MAX, "%s", name);
}

/* The rule for strangers. A semaphore has no entry directly below the name's
 * node. Therefore only strangers that look like entries count, and not those
 * that Curator merely sorts before a sequence (entry.h). */
#define RULE ZK_RULE_UNFAIR

static int semaphore_see_to_strangers(struct visit *v,
                                      const struct String_vector *children)
{
    struct zk_node *turn = v->turn;
    int rc;

    if (!turn->lock)
        return 0;
    for (int32_t i = 0; i < children->count; i++)
        if (hf__zk_child_czxid(turn, children->data[i]) > 0)
            semaphore_keep(v->other, children->data[i]);
    rc = hf__zk_child_stats_refused(turn, children);
    if (!rc)
        rc = hf__zk_strangers_check(turn, children, RULE, ZK_SEQ_LAST);
    v->again = rc == HF__PENDING;
    return v->again ? 0 : rc;
}

static void semaphore_on_siblings(void *owner, int rc,
                                  const struct zk_reply *reply)
{
    struct visit *v = owner;
    int code = rc == ZOK ? semaphore_see_to_strangers(v, reply->children)
                         : hf__zk_query_code(&v->base, rc);

    for (int32_t i = 0; rc == ZOK && i < reply->children->count; i++) {
        struct zk_entry e;

        hf__zk_entry_parse(reply->children->data[i], &e);
        if (e.form != ZK_FORM_NONE && e.form != ZK_FORM_SEMAPHORE &&
            e.form != ZK_FORM_MARK)
            semaphore_keep(v->other, e.name);
    }
    v->turn->siblings_known = rc == ZOK && !code && !v->again && !v->other[0];
    hf__zk_query_back(&v->base, code);
}

static void semaphore_on_locks(void *owner, int rc,
                               const struct zk_reply *reply)
{
    struct visit *v = owner;
    struct zk_node *turn = v->turn;
    const struct String_vector *children = reply->children;
    struct zk_entry mine;
    struct zk_place place;

    if (rc == ZNONODE && turn->lock && turn->state == ZK_NODE_UNSURE) {
        turn->state = ZK_NODE_GONE; /* the turn was never created */
        turn->refusal = ZNONODE;
    }
    if (rc == ZOK && turn->lock) {
        if (turn->state == ZK_NODE_UNSURE)
            hf__zk_node_find(turn, children);
        hf__zk_entry_parse(hf__zk_node_name(turn), &mine);
        hf__zk_place(children->data, (size_t)children->count, &mine,
                     ZK_RULE_MUTEX, NULL, NULL, &place);
        v->here = place.here;
        v->ahead = (uint32_t)place.ahead;
        if (place.watch != ZK_NOBODY)
            semaphore_keep(v->before, children->data[place.watch]);
    }
    hf__zk_query_back(&v->base, hf__zk_query_code(&v->base, rc));
}

static bool semaphore_is_ours(const struct zk_node *turn, const char *name)
{
    for (const struct zk_node *node = turn->sibling; node; node = node->sibling)
        if (strcmp(hf__zk_node_name(node), name) == 0)
            return true;
    return false;
}

/* Counts the leases. As in Curator, every child is a lease, whatever its
 * name. */
static void semaphore_on_leases(void *owner, int rc,
                                const struct zk_reply *reply)
{
    struct visit *v = owner;

    for (int32_t i = 0; rc == ZOK && i < reply->children->count; i++) {
        if (semaphore_is_ours(v->turn, reply->children->data[i]))
            v->ours++;
        else
            v->others++;
    }
    hf__zk_query_back(&v->base, hf__zk_query_code(&v->base, rc));
}

static void semaphore_on_size(void *owner, int rc, const struct zk_reply *reply)
{
    struct visit *v = owner;

    v->no_leases = rc == ZNONODE;
    if (rc == ZOK) {
        v->size = hf__zk_permits_parse(reply->text, reply->len);
        v->unnumbered = reply->len <= 0;
    }
    hf__zk_query_back(&v->base, hf__zk_query_code(&v->base, rc));
}

static void semaphore_judge(struct zk_query *);

/* Starts a visit. Returns PENDING or an error code. */
static int semaphore_visit_begin(struct zk_lock *lock)
{
    struct zk_node *turn = lock->node;
    struct zk *z = lock->z;
    struct visit *v = hf__zk_query_of(lock, sizeof(*v));
    char dir[ZK_WHOLE_MAX];
    int rc;

    if (!v)
        return HF_ENOMEM;
    v->turn = turn;
    v->base.step = semaphore_judge;
    if (!turn->siblings_known)
        hf__zk_query_sent(&v->base, hf__zk_list(z, lock->path, NULL,
                                                semaphore_on_siblings, v));
    hf__zk_join(dir, lock->path, ZK_LOCKS);
    hf__zk_query_sent(&v->base,
                      hf__zk_list(z, dir, NULL, semaphore_on_locks, v));
    hf__zk_join(dir, lock->path, ZK_LEASES);
    hf__zk_query_sent(&v->base, hf__zk_get(z, dir, NULL, semaphore_on_size, v));
    /* The watch is set before the list, so that no change after the list is
     * missed. */
    if (turn->role == ZK_ROLE_FIRST && lock->attempt->may_queue &&
        (rc = hf__zk_watch(z, lock, ZK_WATCH_CHILDREN, dir)) != 0)
        hf__zk_query_sent(&v->base, rc);
    hf__zk_query_sent(&v->base,
                      hf__zk_list(z, dir, NULL, semaphore_on_leases, v));
    if (v->base.calls) {
        turn->calls++;
        return HF__PENDING;
    }
    rc = v->base.rc;
    hf__zk_query_free(&v->base);
    return rc;
}

/* ---- entries ------------------------------------------------------------ */

static int semaphore_take_turn(struct zk_lock *lock, bool parents)
{
    struct zk_node *turn = lock->node;
    int rc;

    semaphore_drop_leases(turn);
    turn->role = ZK_ROLE_PLACE;
    rc = hf__zk_node_create(turn, parents);
    return rc ? rc : semaphore_visit_begin(lock);
}

static int semaphore_add_lease(struct zk_lock *lock)
{
    struct zk_node *turn = lock->node, *node;
    char dir[ZK_WHOLE_MAX];

    node = hf__zk_node_new(lock, hf__zk_join(dir, lock->path, ZK_LEASES),
                           ZK_FORM_LEASE, turn->hold_id);
    if (!node)
        return HF_ENOMEM;
    hf__zk_node_number(node, turn->made++);
    node->sibling = turn->sibling;
    turn->sibling = node;
    return 0;
}

static uint32_t semaphore_count_leases(const struct zk_node *turn)
{
    uint32_t len = 0;

    for (const struct zk_node *node = turn->sibling; node; node = node->sibling)
        len++;
    return len;
}

/* If needed, creates the node `leases` and writes the size. These requests are
 * sent before those that create the leases, so all clients know the size before
 * any of these leases exists. */
static int semaphore_prepare_leases(const struct zk_lock *lock,
                                    const struct visit *v)
{
    char dir[ZK_WHOLE_MAX], data[sizeof(ZK_PERMITS) + 10];
    int len =
        snprintf(data, sizeof(data), ZK_PERMITS "%u", lock->remote->permits);
    int rc = 0;

    hf__zk_join(dir, lock->path, ZK_LEASES);
    if (v->no_leases)
        rc = hf__zk_make_parents(lock->z, dir);
    if (!rc && (v->no_leases || v->unnumbered ||
                (v->size && v->size != lock->remote->permits)))
        rc = hf__zk_set(lock->z, dir, data, len, -1, NULL, NULL);
    return rc;
}

/* Creates the leases that are missing, and checks those whose answer was
 * lost. */
static int semaphore_take_leases(struct zk_lock *lock, const struct visit *v,
                                 uint32_t permits)
{
    struct zk_node *turn = lock->node;
    int rc = 0;

    for (uint32_t len = semaphore_count_leases(turn); !rc && len < permits;
         len++)
        rc = semaphore_add_lease(lock);
    if (!rc)
        rc = semaphore_prepare_leases(lock, v);
    for (struct zk_node *node = turn->sibling; node && !rc;
         node = node->sibling) {
        bool is_gone = node->state == ZK_NODE_GONE;

        if (is_gone && node->refusal != ZNODEEXISTS)
            rc = hf__zk_node_create(node, false);
        else if (is_gone || node->state == ZK_NODE_UNSURE)
            rc = hf__zk_node_check(node); /* the answer was lost */
        node->parents = v->no_leases;
    }
    return rc ? rc : semaphore_visit_begin(lock);
}

/* ---- the result of a visit ---------------------------------------------- */

static int semaphore_mismatch(const struct zk_lock *lock, const struct visit *v)
{
    struct zk *z = lock->z;

    if (v->other[0])
        return hf__zk_used_as(z, lock->remote->name, lock->remote->name_len,
                              lock->remote, v->other);
    return z->core->why(z->client, HF_EMISMATCH,
                        "the semaphore has %u permits, not %u", v->size,
                        lock->remote->permits);
}

static int semaphore_watch_before(struct zk_lock *lock, const struct visit *v)
{
    char path[ZK_WHOLE_MAX];

    snprintf(path, sizeof(path), "%s/" ZK_LOCKS "/%s", lock->path, v->before);
    return hf__zk_watch(lock->z, lock, ZK_WATCH_NODE, path);
}

/* Lets the lock wait, because permits are missing or another turn is first. */
static int semaphore_wait_for(struct zk_lock *lock, const struct visit *v)
{
    struct zk_node *turn = lock->node;
    int rc;

    if (turn->role == ZK_ROLE_FIRST) /* `leases` is already watched */
        return hf__zk_lock_queued(lock, lock->attempt);
    if (!v->ahead) { /* `leases` was not watched: visit again */
        turn->role = ZK_ROLE_FIRST;
        return semaphore_visit_begin(lock);
    }
    rc = semaphore_watch_before(lock, v);
    return rc ? rc : hf__zk_lock_queued(lock, lock->attempt);
}

static int semaphore_grant(struct zk_lock *lock)
{
    struct zk_node *turn = lock->node;
    int rc;

    lock->node = turn->sibling;
    rc = hf__zk_lock_grant(lock, lock->attempt);
    if (rc == HF__GRANTED) {
        turn->sibling = NULL;
        hf__zk_node_drop(turn, NULL);
    } else {
        lock->node = turn; /* the attempt will be repeated */
    }
    return rc;
}

static bool semaphore_are_there(const struct zk_node *turn)
{
    for (const struct zk_node *node = turn->sibling; node; node = node->sibling)
        if (node->state != ZK_NODE_THERE || !node->czxid)
            return false;
    return turn->sibling;
}

/* Returns 0, or the error code if the server refuses to create a lease and
 * would refuse it again. (If the server has deleted the empty node `leases`,
 * that node is created again and the lease is tried once more.) */
static int semaphore_lease_refusal(const struct zk_node *turn)
{
    for (const struct zk_node *node = turn->sibling; node; node = node->sibling)
        if (node->state == ZK_NODE_GONE && node->refusal != ZOK &&
            node->refusal != ZNODEEXISTS &&
            (node->refusal != ZNONODE ||
             (node->parents && hf__zk_parents_refused(node->z, node->path))))
            return hf__zk_not_made(node);
    return 0;
}

/* Takes the permits, or waits until enough are free. Called if our turn is
 * first. */
static int semaphore_serve(struct zk_lock *lock, const struct visit *v)
{
    struct zk_node *turn = lock->node;
    uint32_t wanted = lock->attempt->permits ? lock->attempt->permits : 1;
    int rc = semaphore_lease_refusal(turn);

    if (rc)
        return rc;
    if (v->others + wanted > lock->remote->permits) {
        semaphore_drop_leases(turn);
        return lock->attempt->may_queue ? semaphore_wait_for(lock, v)
                                        : HF__BUSY;
    }
    if (semaphore_are_there(turn) && v->ours < semaphore_count_leases(turn))
        semaphore_drop_leases(
            turn); /* a lease was deleted by hand: create all leases again */
    if (!semaphore_are_there(turn))
        return semaphore_take_leases(lock, v, wanted);
    return semaphore_grant(lock);
}

static void semaphore_passed(struct zk_lock *lock)
{
    lock->passed = NULL;
    hf__zk_lock_answer(lock, semaphore_visit_begin(lock));
}

/* Handles an attempt that may not queue while other turns are before its own.
 * The clients with these turns may be about to give them up, or may themselves
 * wait for permits. Such a client may already have its leases; as `leases` is
 * listed after `locks`, they are counted. If the permits that its turn asks for
 * were counted, too, our attempt would be refused although permits are free.
 * Therefore, if the leases leave enough permits, our attempt watches the turn
 * before its own, for PASS at most. If that turn still exists then, its process
 * is stopped or waits for more permits, and the attempt is BUSY. */
static int semaphore_pass(struct zk_lock *lock, const struct visit *v)
{
    uint32_t wanted = lock->attempt->permits ? lock->attempt->permits : 1;
    struct zk *z = lock->z;
    hf__time now = z->core->now();
    int rc;

    if (v->others + wanted > lock->remote->permits)
        return HF__BUSY;
    if (!lock->pass_until)
        lock->pass_until = now + PASS;
    if (now >= lock->pass_until)
        return HF__BUSY;
    rc = semaphore_watch_before(lock, v);
    if (rc)
        return rc;
    lock->passed = semaphore_passed;
    z->pass_at = hf__min_time(z->pass_at, lock->pass_until);
    return HF__PENDING;
}

/* Handles a visit that did not find our turn in the list of `locks`. */
static int semaphore_turn_missing(struct zk_lock *lock)
{
    struct zk_node *turn = lock->node;
    int why = turn->refusal;

    if (turn->state == ZK_NODE_UNSURE)
        return semaphore_visit_begin(lock);
    if (turn->state != ZK_NODE_GONE || why == ZOK ||
        (why == ZNONODE && hf__zk_lock_parents_again(turn)))
        return semaphore_take_turn(lock, why == ZNONODE);
    return hf__zk_not_made(turn);
}

static int semaphore_decide(struct zk_lock *lock, const struct visit *v)
{
    if (v->base.rc)
        return v->base.rc;
    if (v->again)
        return semaphore_visit_begin(lock);
    if (!v->here)
        return semaphore_turn_missing(lock);
    if (v->other[0] ||
        (v->size && v->size != lock->remote->permits && v->others))
        return semaphore_mismatch(lock, v);
    if (!v->ahead)
        return semaphore_serve(lock, v);
    return lock->attempt->may_queue ? semaphore_wait_for(lock, v)
                                    : semaphore_pass(lock, v);
}

static void semaphore_judge(struct zk_query *base)
{
    struct visit *v = (struct visit *)base;
    struct zk_node *turn = v->turn;
    struct zk_lock *lock = turn->lock;

    if (lock)
        hf__zk_lock_answer(lock, semaphore_decide(lock, v));
    hf__zk_query_free(base);
    hf__zk_node_called(turn);
}

int hf__zk_semaphore_attempt(struct zk_lock *lock, struct hf__req *req)
{
    const struct zk_node *node = hf__zk_lock_node(lock, req);
    char dir[ZK_WHOLE_MAX];

    if (node && node->role == ZK_ROLE_HELD)
        return hf__zk_lock_grant(lock, req);
    hf__zk_keepalive_prove(lock->z, req);
    if (lock->passed)
        hf__zk_unwatch(lock);
    lock->passed = NULL;
    if (node)
        return semaphore_visit_begin(lock);
    lock->node = hf__zk_node_new(lock, hf__zk_join(dir, lock->path, ZK_LOCKS),
                                 ZK_FORM_LOCK, req->hold_id);
    return lock->node ? semaphore_take_turn(lock, false) : HF_ENOMEM;
}
