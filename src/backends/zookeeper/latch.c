/*
 * The latch. The node <path>/latch has the count as its data and one child, the
 * round. Both are created together and deleted together, when the count reaches
 * 0.
 *
 * - A set or down is one transaction that also creates a mark, an ephemeral
 *   node for this session and this request. If the answer is lost and the
 *   request is sent again, the mark shows that the request was counted. The
 *   mark is deleted after the answer. If the session ends first, the mark is
 *   removed with it, and it is unknown whether the request was counted.
 * - The transaction of a down also checks that the round still exists. The
 *   version of the node `latch` is not enough, because versions start again at
 *   0 in each round, so a late down could count in a later round.
 * - A waiter watches the round, which does not change until it is deleted.
 *   Therefore the waiter is notified only of the end, and a round that begins
 *   later does not keep it waiting.
 */
#include "latch.h"

#include "call.h"
#include "cleanup.h"
#include "entry.h"
#include "lock.h"
#include "node.h"
#include "outcome.h"
#include "path.h"
#include "query.h"
#include "session_proof.h"
#include "watch.h"
#include "zookeeper.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A query about a latch, either from the core or from a lock that waits. In the
 * second case base.q is NULL, and the lock may no longer want the answer when
 * it arrives. */
struct count {
    struct zk_query base;
    uint8_t op;       /* HF__LATCH_SET, DOWN or GET */
    uint64_t hold_id; /* hold id of the lock's attempt */
    char latch[ZK_WHOLE_MAX], mark[ZK_WHOLE_MAX], round[ZK_WHOLE_MAX];
    char data[ZK_COUNT_MAX];
    char other[ZK_CHILD_MAX]; /* for SET: an entry of another kind of lock, or
                                 "" */
    uint64_t left;
    int32_t version;
    int failed;    /* index of the first refused operation; or -1 */
    int refusal;   /* error of that operation */
    bool is_set;   /* the latch exists */
    bool marked;   /* the mark exists */
    bool has_node; /* the name's node exists */
    bool made;     /* creates of missing parents were sent */
    bool swept;    /* deletes of the nodes of an idle semaphore were sent */
    bool was_sent; /* the transaction was sent, by this or an earlier query */
};

static void latch_put_count(struct count *c, uint64_t count)
{
    const char *round = strrchr(c->round, '/') + 1;

    snprintf(c->data, sizeof(c->data), ZK_COUNT "%" PRIu64 " %s", count, round);
}

/* ---- reading ------------------------------------------------------------ */

static void on_latch(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct count *c = owner;
    char round[ZK_UUID_MAX];
    int code = hf__zk_query_code(&c->base, rc);

    c->is_set = rc == ZOK;
    c->left = 0;
    if (rc == ZOK &&
        !hf__zk_count_parse(reply->text, reply->len, &c->left, round)) {
        code = z->core->why(z->client, HF_EMISMATCH,
                            "%.120s is not a holdfast latch", c->latch);
    } else if (rc == ZOK) {
        c->version = reply->stat->version;
        hf__zk_join(c->round, c->latch, round);
    }
    hf__zk_query_back(&c->base, code);
}

static void latch_on_siblings(void *owner, int rc, const struct zk_reply *reply)
{
    struct count *c = owner;

    c->has_node = rc == ZOK;
    c->marked = false;
    c->other[0] = '\0';
    for (int32_t i = 0; rc == ZOK && i < reply->children->count; i++) {
        const char *child = reply->children->data[i];
        struct zk_entry e;

        hf__zk_entry_parse(child, &e);
        if (e.form != ZK_FORM_NONE && e.form != ZK_FORM_LATCH &&
            e.form != ZK_FORM_MARK)
            snprintf(c->other, sizeof(c->other), "%s", child);
        if (strcmp(child, strrchr(c->mark, '/') + 1) == 0)
            c->marked = true;
    }
    hf__zk_query_back(&c->base, hf__zk_query_code(&c->base, rc));
}

static void latch_send_read(struct count *c)
{
    struct zk *z = c->base.z;

    hf__zk_sync(z, NULL, NULL);
    if (c->op == HF__LATCH_SET)
        hf__zk_query_sent(
            &c->base, hf__zk_list(z, c->base.path, NULL, latch_on_siblings, c));
    hf__zk_query_sent(&c->base, hf__zk_get(z, c->latch, NULL, on_latch, c));
}

static void latch_decide(struct zk_query *);

static void latch_read(struct count *c)
{
    latch_send_read(c);
    hf__zk_query_wait(&c->base, latch_decide);
}

/* ---- ends --------------------------------------------------------------- */

static void latch_end_wait(struct count *c, int rc);

static void latch_finish(struct count *c, int rc, uint64_t left)
{
    struct zk *z = c->base.z;

    if (!c->base.q) {
        latch_end_wait(c, rc);
        return;
    }
    if (c->was_sent && rc != HF_EUNKNOWN)
        hf__zk_node_of_nobody(z, c->mark, ZK_FORM_MARK);
    c->base.q->count = left;
    hf__zk_query_end(&c->base, rc);
}

/* If the query has failed, ends it and returns true. */
static bool latch_failed(struct count *c)
{
    int rc = c->base.rc;

    if (rc)
        latch_finish(c, rc, 0);
    return rc;
}

static int latch_mismatch(const struct count *c)
{
    return hf__zk_used_as(c->base.z, c->base.q->name, c->base.q->name_len, NULL,
                          c->other);
}

/* ---- the transaction ---------------------------------------------------- */

static void latch_on_done(void *owner, int rc, const struct zk_reply *reply)
{
    struct count *c = owner;
    const char *right = c->op == HF__LATCH_SET
                            ? "CREATE below"
                            : "CREATE, WRITE and DELETE below";

    c->failed = -1;
    for (int i = 2; rc != ZOK && !hf__zk_lost(rc) && i >= 0; i--)
        if (reply->results[i].err != ZOK &&
            reply->results[i].err != ZRUNTIMEINCONSISTENCY) {
            c->failed = i;
            c->refusal = reply->results[i].err;
        }
    /* If another client was quicker, the query does not fail: latch_committed()
     * reads the latch again. */
    hf__zk_query_back(&c->base,
                      c->failed >= 0 && (rc == ZNODEEXISTS || rc == ZNONODE ||
                                         rc == ZBADVERSION || rc == ZNOTEMPTY)
                          ? 0
                          : hf__zk_query_refusal(&c->base, rc, right));
}

static void latch_undo(struct count *);

/* Handles the answer to the transaction. If its create of the mark was refused
 * because the mark exists, the request was counted earlier. */
static void latch_committed(struct zk_query *base)
{
    struct count *c = (struct count *)base;
    bool is_counted = c->failed < 0, is_set = c->op == HF__LATCH_SET;
    bool is_marked = c->failed == 0 && c->refusal == ZNODEEXISTS;
    int above = hf__zk_parents_refused(base->z, base->path);

    if (latch_failed(c))
        return;
    if (is_counted && c->other[0])
        latch_undo(c);
    else if (is_counted || is_marked)
        latch_finish(c, HF__DONE,
                     is_set ? base->q->count : c->left - is_counted);
    else if (c->refusal == ZNONODE && above && c->made)
        latch_finish(
            c, hf__zk_denied(base->z, above, "CREATE above", base->path), 0);
    else
        latch_read(c);
}

static void latch_commit(struct count *c, zoo_op_t op[3])
{
    struct zk *z = c->base.z;

    zoo_create_op_init(&op[0], c->mark, "", 0, z->acl, ZOO_EPHEMERAL, NULL, 0);
    c->was_sent = true;
    hf__zk_query_sent(&c->base, hf__zk_multi(z, 3, op, latch_on_done, c));
    /* List the children in the same round trip: if a lock of another kind was
     * created under this name before the latch, latch_committed() undoes the
     * latch. */
    if (c->op == HF__LATCH_SET)
        hf__zk_query_sent(
            &c->base, hf__zk_list(z, c->base.path, NULL, latch_on_siblings, c));
    hf__zk_query_wait(&c->base, latch_committed);
}

/* ---- a latch that is not set --------------------------------------------- */

static void latch_on_not_set(void *owner, int rc, const struct zk_reply *reply)
{
    struct count *c = owner;
    int code = hf__zk_query_code(&c->base, rc);

    (void)reply;
    if (rc == ZOK)
        latch_read(c);
    else
        latch_finish(c, code, 0);
}

/* Ends the query with count 0 if a transaction confirms that the latch is not
 * set. A read is not enough, even after a sync: it shows what a server has
 * applied, and the leader itself may not yet have applied a set that a follower
 * has already confirmed to another client. A transaction that fails has its
 * place in the order of all writes, so its answer is final. */
static void latch_end_if_not_set(struct count *c)
{
    zoo_op_t op;
    int rc;

    zoo_check_op_init(&op, c->latch, -1);
    rc = hf__zk_multi(c->base.z, 1, &op, latch_on_not_set, c);
    if (rc)
        latch_finish(c, rc, 0);
}

/* ---- down --------------------------------------------------------------- */

static void latch_send_down(struct count *c)
{
    zoo_op_t op[3];

    latch_put_count(c, c->left - 1);
    if (c->left > 1) {
        zoo_check_op_init(&op[1], c->round, -1);
        zoo_set_op_init(&op[2], c->latch, c->data, (int)strlen(c->data),
                        c->version, NULL);
    } else {
        zoo_delete_op_init(&op[1], c->round, -1);
        zoo_delete_op_init(&op[2], c->latch, c->version);
    }
    latch_commit(c, op);
}

/* ---- set ---------------------------------------------------------------- */

static void latch_on_undone(void *owner, int rc, const struct zk_reply *reply)
{
    struct count *c = owner;

    (void)reply;
    if (rc == ZOK)
        c->was_sent = false;
    latch_finish(c, hf__zk_lost(rc) ? HF_EUNKNOWN : latch_mismatch(c), 0);
}

/* Deletes the latch again, because another client used the name for a lock
 * between the read and the set. The transaction deletes our round, whose name
 * is unique, so it cannot delete another client's latch. It also deletes the
 * mark: if the answer is lost and the set is repeated, the set must not find
 * the mark and conclude that it was counted before. */
static void latch_undo(struct count *c)
{
    zoo_op_t op[3];
    int rc;

    zoo_delete_op_init(&op[0], c->round, -1);
    zoo_delete_op_init(&op[1], c->latch, -1);
    zoo_delete_op_init(&op[2], c->mark, -1);
    rc = hf__zk_multi(c->base.z, 3, op, latch_on_undone, c);
    if (rc)
        latch_finish(c, rc, 0);
}

static void latch_send_set(struct count *c)
{
    struct zk *z = c->base.z;
    char uuid[ZK_UUID_MAX];
    uint8_t random[16];
    zoo_op_t op[3];

    if (z->core->random(random, sizeof(random))) {
        latch_finish(
            c, z->core->why(z->client, HF_EBACKEND, "getrandom failed"), 0);
        return;
    }
    hf__uuid(random, uuid);
    hf__zk_join(c->round, c->latch, uuid);
    latch_put_count(c, c->base.q->count);
    c->made = !c->has_node;
    if (c->made)
        hf__zk_make_parents(z, c->base.path);
    zoo_create_op_init(&op[1], c->latch, c->data, (int)strlen(c->data), z->acl,
                       0, NULL, 0);
    zoo_create_op_init(&op[2], c->round, "", 0, z->acl, 0, NULL, 0);
    latch_commit(c, op);
}

static void latch_decide_set(struct count *c)
{
    struct zk *z = c->base.z;
    struct zk_entry e;

    hf__zk_entry_parse(c->other, &e);
    if (c->is_set || c->marked) {
        latch_finish(c, c->marked ? HF__DONE : HF_EBUSY, c->left);
    } else if (e.form == ZK_FORM_SEMAPHORE && !c->swept) {
        c->swept = true;
        hf__zk_sweep_semaphore(z, c->base.path);
        latch_read(c);
    } else if (c->other[0]) {
        latch_finish(c, latch_mismatch(c), 0);
    } else {
        latch_send_set(c);
    }
}

/* ---- get, set and count-down -------------------------------------------- */

/* Runs when the latch was read: chooses the next step of the query. */
static void latch_decide(struct zk_query *base)
{
    struct count *c = (struct count *)base;

    if (!base->rc && c->op != HF__LATCH_GET && hf__zk_query_is_over(base))
        base->rc = HF_EUNKNOWN;
    if (latch_failed(c))
        return;
    if (c->op == HF__LATCH_SET)
        latch_decide_set(c);
    else if (!c->is_set)
        latch_end_if_not_set(c);
    else if (c->op == HF__LATCH_DOWN)
        latch_send_down(c);
    else
        latch_finish(c, HF__DONE, c->left);
}

int hf__zk_latch_query(struct zk *z, struct hf__query *q)
{
    char uuid[ZK_UUID_MAX], mark[ZK_CHILD_MAX];
    enum hf__latch_sending sending = HF__LATCH_FIRST;
    struct count *c;
    int rc;

    if (q->req.op != HF__LATCH_GET)
        sending =
            hf__latch_request(&z->latch_requests, z->session_id, q->request);
    if (sending == HF__LATCH_IN_DOUBT) {
        q->request = 0;
        return z->core->why(z->client, HF_EUNKNOWN,
                            "the session ended before the answer arrived");
    }
    c = hf__zk_query_new(z, q, sizeof(*c), &rc);
    if (!c)
        return rc;
    c->op = q->req.op;
    c->was_sent = sending == HF__LATCH_AGAIN;
    hf__uuid(z->salt, uuid);
    snprintf(mark, sizeof(mark), "_d_%s-%" PRIu64, uuid, q->request);
    hf__zk_join(c->mark, c->base.path, mark);
    hf__zk_join(c->latch, c->base.path, ZK_LATCH);
    latch_read(c);
    return HF__PENDING;
}

/* ---- waiting ------------------------------------------------------------ */

/* The round that a lock waits for. */
struct zk_round {
    uint64_t hold_id; /* hold id of the attempt that found the round */
    char path[ZK_WHOLE_MAX];
};

static int latch_is_zero(struct zk_lock *lock, struct hf__req *req)
{
    hf__zk_lock_stop_waiting(lock);
    req->token = 0;
    req->sent_at = lock->z->core->now();
    req->session_ms = hf__zk_proof_ms(lock->z, req->sent_at);
    return HF__GRANTED;
}

static int latch_watch_round(struct zk_lock *lock, struct hf__req *req)
{
    const char *path = lock->round->path;
    int rc;

    if (!req->may_queue)
        return HF__BUSY;
    if (lock->blind)
        return hf__zk_denied(lock->z, ZNOAUTH, "READ", path);
    rc = hf__zk_watch(lock->z, lock, ZK_WATCH_NODE, path);
    return rc ? rc : hf__zk_lock_queued(lock, req);
}

/* Grants the attempt if the latch is not set; otherwise lets the lock wait for
 * the round that was found. */
static int latch_judge(struct zk_lock *lock, const struct count *c)
{
    struct zk *z = lock->z;

    if (!c->is_set)
        return latch_is_zero(lock, lock->attempt);
    if (!lock->round)
        lock->round = z->core->alloc(z->client, sizeof(*lock->round));
    if (!lock->round)
        return HF_ENOMEM;
    lock->round->hold_id = c->hold_id;
    strcpy(lock->round->path, c->round);
    return latch_watch_round(lock, lock->attempt);
}

static void latch_end_wait(struct count *c, int rc)
{
    struct zk_lock *lock = c->base.lock;

    if (lock && lock->attempt && lock->attempt->hold_id == c->hold_id)
        hf__zk_lock_answer(lock, rc ? rc : latch_judge(lock, c));
    hf__zk_query_free(&c->base);
}

static int latch_begin(struct zk_lock *lock, const struct hf__req *req)
{
    struct count *c = hf__zk_query_of(lock, sizeof(*c));
    int rc;

    if (!c)
        return HF_ENOMEM;
    c->op = HF__LATCH_GET;
    c->hold_id = req->hold_id;
    hf__zk_join(c->latch, lock->path, ZK_LATCH);
    c->base.step = latch_decide;
    latch_send_read(c);
    if (c->base.calls)
        return HF__PENDING;
    rc = c->base.rc;
    hf__zk_query_free(&c->base);
    return rc;
}

int hf__zk_latch_attempt(struct zk_lock *lock, struct hf__req *req)
{
    if (lock->round && lock->round->hold_id == req->hold_id)
        return lock->deleted ? latch_is_zero(lock, req)
                             : latch_watch_round(lock, req);
    lock->blind = false;
    return latch_begin(lock, req);
}
