#include "renew.h"

#include "base/list.h"
#include "call.h"
#include "cleanup.h"
#include "entry.h"
#include "lock.h"
#include "node.h"
#include "node_create.h"
#include "notify.h"
#include "outcome.h"
#include "path.h"
#include "session_proof.h"
#include "zookeeper.h"

#include <string.h>

#define CHUNK_LEN 256
/* The paths in one transaction have at most this many bytes. (The server
 * accepts 1 MB.) */
#define CHUNK_SIZE (256u << 10)

struct zk_chunk {
    struct zk_chunk *next, *prev; /* zk.chunks */
    struct hf__batch *batch;
    size_t len; /* number of checks */
    /* For each check, the index of its hold in the batch. */
    uint32_t item[CHUNK_LEN];
};

/* A transaction that is being filled. */
struct sending {
    struct zk *z;
    struct hf__batch *batch;
    struct zk_chunk *chunk; /* NULL if no chunk was begun */
    size_t size;            /* bytes of the chunk's paths */
    zoo_op_t op[CHUNK_LEN];
};

static struct zk_chunk *renew_chunk_new(struct zk *z, struct hf__batch *b)
{
    struct zk_chunk *c = z->core->alloc(z->client, sizeof(*c));

    if (!c)
        return NULL;
    c->batch = b;
    hf__list_add(z->chunks, c);
    return c;
}

static void renew_chunk_free(struct zk *z, struct zk_chunk *c)
{
    hf__list_remove(z->chunks, c);
    z->core->free(z->client, c);
}

void hf__zk_renew_fini(struct zk *z)
{
    while (z->chunks)
        renew_chunk_free(z, z->chunks);
}

static struct zk_node *renew_node_of(const struct hf__renewal *item)
{
    const struct zk_lock *lock = item->remote->impl;
    struct zk_node *node = lock->node;

    return node && node->hold_id == item->hold_id &&
                   node->role == ZK_ROLE_HELD && hf__zk_node_is_there(node)
               ? node
               : NULL;
}

/* Sets the result of a hold. If a hold is in several chunks, the worst result
 * counts. */
static void renew_report(struct hf__renewal *item, int result)
{
    if (item->result == HF__PENDING || item->result == HF__DONE ||
        result == HF_ENOTOWNER)
        item->result = (int16_t)result;
}

static void renew_finish_chunk(struct zk *z, struct zk_chunk *c, int result)
{
    for (size_t i = 0; i < c->len; i++) {
        struct hf__renewal *item = &c->batch->item[c->item[i]];

        renew_report(item, result);
        item->session_ms = hf__zk_proof_ms(z, c->batch->req.sent_at);
    }
    renew_chunk_free(z, c);
}

static void renew_over(struct zk *z, struct zk_chunk *c, int result)
{
    struct hf__batch *b = c->batch;

    renew_finish_chunk(z, c, result);
    if (--b->chunks == 0)
        hf__zk_finish(z, &b->req, HF__DONE);
}

/* Returns the code for a refused chunk with one hold. If an entry is gone,
 * reports the hold as lost, unless it was let go, and returns HF_ENOTOWNER.
 * Otherwise returns the code of the server's refusal to read the entry. */
static int renew_refusal_of(struct zk *z, const struct zk_chunk *c,
                            const zoo_op_result_t *result)
{
    const struct hf__renewal *item = &c->batch->item[c->item[0]];
    struct zk_lock *lock = item->remote->impl;
    size_t i = 0;

    while (i < c->len - 1 &&
           (result[i].err == ZOK || result[i].err == ZRUNTIMEINCONSISTENCY))
        i++;
    if (result[i].err != ZNONODE)
        return hf__zk_denied(z, result[i].err, "READ below", lock->path);
    if (renew_node_of(item))
        hf__zk_taken_away(lock);
    return HF_ENOTOWNER;
}

/* Returns true if check k is the first one of its hold. */
static bool renew_is_first(const struct zk_chunk *c, size_t k)
{
    return !k || c->item[k] != c->item[k - 1];
}

/* Writes the new lengths of renewed fixed leases to their entries, for
 * inspections. */
static void renew_date_leases(const struct zk_chunk *c)
{
    for (size_t k = 0; k < c->len; k++) {
        const struct hf__renewal *item = &c->batch->item[c->item[k]];
        struct zk_node *node =
            renew_is_first(c, k) ? renew_node_of(item) : NULL;

        if (node && node->lease_ms && item->lease_ms)
            hf__zk_node_lease(node, item->lease_ms);
    }
}

/* ---- from write to read -------------------------------------------------- */

static int renew_send_lower(struct zk_node *node, zk_done_fn *done, void *owner)
{
    struct zk *z = node->z;
    char old[ZK_WHOLE_MAX], data[ZK_ABOUT_MAX];
    int len = hf__zk_node_describe(node, data);
    zoo_op_t op[2];

    hf__zk_node_unlowered(node, old);
    zoo_create_op_init(&op[0], node->path, data, len, z->acl, ZOO_EPHEMERAL,
                       NULL, 0);
    zoo_delete_op_init(&op[1], old, -1);
    return hf__zk_multi(z, 2, op, done, owner);
}

static int renew_lower_result(struct zk_node *node, int rc)
{
    if (hf__zk_lost(rc))
        return HF_EUNKNOWN;
    /* After a refusal, the next renewal tries again, and a release deletes the
     * entry under either name. */
    if (rc != ZOK && rc != ZNODEEXISTS && rc != ZNONODE)
        return hf__zk_denied(node->z, rc, "CREATE and DELETE beside",
                             node->path);
    if (hf__zk_node_is_lowered(node))
        node->state =
            node->state == ZK_NODE_LOWERING ? ZK_NODE_THERE : ZK_NODE_DELETING;
    if (node->lock && rc == ZNONODE)
        hf__zk_node_vanished(node);
    else if (node->lock)
        hf__zk_notify_listen(node);
    return rc == ZNONODE ? HF_ENOTOWNER : HF__DONE;
}

static void renew_on_downgrade(void *owner, int rc,
                               const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct hf__query *q = owner;
    struct zk_node *node = hf__zk_node_of(z, NULL, q->req.hold_id);

    hf__zk_finish(z, &q->req,
                  node              ? renew_lower_result(node, rc)
                  : hf__zk_lost(rc) ? HF_EUNKNOWN
                                    : HF_ENOTOWNER);
}

/* Returns false if the entry has the last sequence, which all later entries
 * get, too. Among these only the czxid shows the order, so a new entry for
 * reading would come after the waiters. In this case the hold keeps its entry
 * for writing, which also keeps other readers out. */
static bool renew_can_be_renamed(const struct zk_node *node)
{
    struct zk_entry e;

    hf__zk_entry_parse(hf__zk_node_name(node), &e);
    return e.seq < ZK_SEQ_LAST;
}

int hf__zk_downgrade_query(struct zk *z, struct hf__query *q)
{
    struct zk_lock *from = q->line->impl, *into = q->into->impl;
    struct zk_node *node = from->node;

    (void)z;
    if (!node || node->hold_id != q->req.hold_id || node->role != ZK_ROLE_HELD)
        return HF_ENOTOWNER;
    from->node = NULL;
    if (into->node)
        hf__zk_node_drop(into->node, NULL);
    into->node = node;
    node->lock = into;
    if (!renew_can_be_renamed(node))
        return HF__DONE;
    hf__zk_node_lower(node);
    if (renew_send_lower(node, renew_on_downgrade, q) != 0)
        return HF_EUNKNOWN; /* the next renewal sends the downgrade */
    return HF__PENDING;
}

/* ---- answers ------------------------------------------------------------- */

static void renew_request_each(struct zk *, const struct zk_chunk *);

static void renew_on_checked(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_chunk *c = owner;

    if (rc == ZOK) {
        renew_date_leases(c);
        renew_over(z, c, HF__DONE);
    } else if (hf__zk_lost(rc)) {
        renew_over(z, c, HF_EUNKNOWN);
    } else if (c->item[0] == c->item[c->len - 1]) {
        renew_over(z, c, renew_refusal_of(z, c, reply->results));
    } else {
        renew_request_each(z, c);
        c->len = 0;
        renew_over(z, c, HF__PENDING);
    }
}

static void renew_on_lower(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_chunk *c = owner;
    struct zk_node *node = renew_node_of(&c->batch->item[c->item[0]]);

    renew_over(z, c, node ? renew_lower_result(node, rc) : HF_EUNKNOWN);
}

/* ---- sending ------------------------------------------------------------- */

/* Counts a chunk that was sent. `rc` is the result of sending; if it is an
 * error, ends the chunk with that error instead. */
static void renew_sent(struct zk *z, struct zk_chunk *c, int rc)
{
    if (rc)
        renew_finish_chunk(z, c, rc);
    else
        c->batch->chunks++;
}

static void renew_flush(struct sending *s)
{
    struct zk_chunk *c = s->chunk;

    if (c)
        renew_sent(s->z, c,
                   hf__zk_multi(s->z, c->len, s->op, renew_on_checked, c));
    s->chunk = NULL;
    s->size = 0;
}

/* Adds a check to the current chunk, or to a new chunk if there is none.
 * Returns false if memory is short. */
static bool renew_add(struct sending *s, size_t i)
{
    if (!s->chunk)
        s->chunk = renew_chunk_new(s->z, s->batch);
    if (s->chunk)
        s->chunk->item[s->chunk->len++] = (uint32_t)i;
    else
        renew_report(&s->batch->item[i], HF_ENOMEM);
    return s->chunk;
}

static void renew_check(struct sending *s, size_t i, const struct zk_node *node)
{
    if (!renew_add(s, i))
        return;
    zoo_check_op_init(&s->op[s->chunk->len - 1], node->path, -1);
    s->size += strlen(node->path) + 16;
    if (s->chunk->len == CHUNK_LEN || s->size >= CHUNK_SIZE)
        renew_flush(s);
}

/* Sends the downgrade again, because the server may still have the entry for
 * writing. The downgrade is a write, so it proves the session, too. */
static void renew_lower(struct sending *s, size_t i, struct zk_node *node)
{
    renew_flush(s);
    if (renew_add(s, i))
        renew_sent(s->z, s->chunk,
                   renew_send_lower(node, renew_on_lower, s->chunk));
    s->chunk = NULL;
}

/* Renews one hold. `missing` is the result if the lock no longer has the
 * hold. */
static void renew(struct sending *s, size_t i, int missing)
{
    struct zk_node *node = renew_node_of(&s->batch->item[i]);

    if (!node)
        renew_report(&s->batch->item[i], missing);
    else if (hf__zk_node_is_lowered(node))
        renew_lower(s, i, node);
    else
        for (; node; node = node->sibling)
            renew_check(s, i, node);
}

/* Checks each hold of a chunk in a chunk of its own, except holds that were
 * released in the meantime. */
static void renew_request_each(struct zk *z, const struct zk_chunk *c)
{
    struct sending s = {.z = z, .batch = c->batch};

    for (size_t k = 0; k < c->len; k++)
        if (renew_is_first(c, k)) {
            renew(&s, c->item[k], HF_EUNKNOWN);
            renew_flush(&s);
        }
}

int hf__zk_renew(void *self, struct hf__batch *b)
{
    struct zk *z = self;
    struct sending s = {.z = z, .batch = b};

    if (!z->up)
        return HF__LATER;
    b->req.sent_at = z->core->now();
    b->req.result = HF__DONE;
    b->chunks = 1; /* this function counts as a chunk until it has sent all
                      chunks */
    for (size_t i = 0; i < b->len; i++)
        b->item[i].result = HF__PENDING;
    for (size_t i = 0; i < b->len; i++)
        renew(&s, i, HF_ENOTOWNER);
    renew_flush(&s);
    return --b->chunks ? HF__PENDING : HF__DONE;
}
