/*
 * Renewals. The session keeps all holds: that it lives is proved by a write
 * that the leader has acknowledged, and one is enough for all. It is made of
 * checks that each entry is still there, in one transaction, so that a hold
 * that somebody has taken away is noticed as well. If one is not, the
 * transaction is refused, and the answer tells of the first alone: then each
 * hold is asked about in a transaction of its own, all in one go. A hold of
 * more permits than fit into one transaction has several for itself.
 */
#include "zookeeper.h"

#include <string.h>

#define CHUNK_LEN 256
#define CHUNK_SIZE (256u << 10) /* bytes of paths: the server takes 1 MB */

struct zk_chunk {
    struct zk_chunk *next, *prev;
    struct hf__batch *batch;
    size_t from;   /* of the entries of its hold: the first */
    size_t checks; /* that were sent */
    size_t len;
    size_t item[]; /* of the batch: indices */
};

static void landed(struct zk *z, struct hf__batch *b)
{
    if (--b->chunks == 0)
        hf__zk_finish(z, &b->req, HF__DONE);
}

/* With room for so many items. */
static struct zk_chunk *chunk_new(struct zk *z, struct hf__batch *b, size_t cap)
{
    struct zk_chunk *c =
        z->core->alloc(z->client, sizeof(*c) + cap * sizeof(*c->item));

    if (!c)
        return NULL;
    c->batch = b;
    hf__list_add(z->chunks, c);
    return c;
}

static void chunk_free(struct zk *z, struct zk_chunk *c)
{
    hf__list_remove(z->chunks, c);
    z->core->free(z->client, c);
}

void hf__zk_renew_fini(struct zk *z)
{
    while (z->chunks)
        chunk_free(z, z->chunks);
}

static struct zk_node *node_of(const struct hf__renewal *item)
{
    const struct zk_line *line = item->remote->impl;
    struct zk_node *node = line->node;

    return node && node->hold_id == item->hold_id && node->held &&
                   node->state == ZK_NODE_THERE
               ? node
               : NULL;
}

/* Of a hold in several chunks the worst counts. */
static void tell(struct hf__renewal *item, int result)
{
    if (item->result == HF__PENDING || item->result == HF__DONE ||
        result == HF_ENOTOWNER)
        item->result = (int16_t)result;
}

static void settle(struct zk *z, struct zk_chunk *c, int result)
{
    for (size_t i = 0; i < c->len; i++) {
        struct hf__renewal *item = &c->batch->item[c->item[i]];

        tell(item, result);
        item->session_ms = hf__zk_session_ms(z, c->batch->req.sent_at);
    }
}

static void over(struct zk *z, struct zk_chunk *c, int result)
{
    struct hf__batch *b = c->batch;

    settle(z, c, result);
    chunk_free(z, c);
    landed(z, b);
}

/* Of one hold: it is not ours any more, or we may not see it. */
static int refusal_of(struct zk *z, const struct zk_chunk *c,
                      const zoo_op_result_t *result)
{
    const struct hf__renewal *item = &c->batch->item[c->item[0]];
    struct zk_line *line = item->remote->impl;
    size_t i = 0;

    while (i < c->checks - 1 &&
           (result[i].err == ZOK || result[i].err == ZRUNTIMEINCONSISTENCY))
        i++;
    if (result[i].err != ZNONODE)
        return hf__zk_denied(z, result[i].err, "READ below", line->path);
    if (node_of(item))
        hf__zk_taken_away(line);
    return HF_ENOTOWNER;
}

/* Fixed leases that the program asked to begin anew: for those who look. */
static void date_leases(const struct zk_chunk *c)
{
    for (size_t i = 0; i < c->len && !c->from; i++) {
        const struct hf__renewal *item = &c->batch->item[c->item[i]];
        struct zk_node *node = node_of(item);

        if (node && node->lease_ms && item->lease_ms)
            hf__zk_node_lease(node, item->lease_ms);
    }
}

static void send_alone(struct zk *, struct hf__batch *, size_t i, size_t from);

static void on_checked(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_chunk *c = owner;

    if (rc == ZOK) {
        date_leases(c);
        over(z, c, HF__DONE);
    } else if (hf__zk_lost(rc)) {
        over(z, c, HF_EUNKNOWN);
    } else if (c->len == 1) {
        over(z, c, refusal_of(z, c, reply->results));
    } else {
        for (size_t i = 0; i < c->len; i++)
            send_alone(z, c->batch, c->item[i], 0);
        c->len = 0;
        over(z, c, HF__PENDING);
    }
}

/* Those that were let go meanwhile stay out. */
static int check_all(struct zk *z, struct zk_chunk *c)
{
    zoo_op_t op[CHUNK_LEN];
    size_t len = 0, checks = 0;

    for (size_t i = 0; i < c->len; i++) {
        struct hf__renewal *item = &c->batch->item[c->item[i]];
        const struct zk_node *node = node_of(item);

        for (size_t skip = c->from; node && skip; skip--)
            node = node->sibling;
        if (!node) {
            tell(item, HF_EUNKNOWN);
            continue;
        }
        for (; node && checks < CHUNK_LEN; node = node->sibling)
            zoo_check_op_init(&op[checks++], node->path, -1);
        c->item[len++] = c->item[i];
    }
    c->len = len;
    c->checks = checks;
    return len ? hf__zk_multi(z, checks, op, on_checked, c) : HF_EUNKNOWN;
}

static void on_lower(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct zk_chunk *c = owner;
    struct zk_node *node = node_of(&c->batch->item[c->item[0]]);

    over(z, c, node ? hf__zk_lower_result(node, rc) : HF_EUNKNOWN);
}

/* One that may still be known as a write hold is alone in its chunk: telling
 * that it is not is a write, too. */
static void begin(struct zk *z, struct zk_chunk *c)
{
    struct hf__batch *b = c->batch;
    struct zk_node *node = c->len == 1 ? node_of(&b->item[c->item[0]]) : NULL;
    int rc = node && node->lowered ? hf__zk_lower(node, on_lower, c)
                                   : check_all(z, c);

    if (!rc) {
        b->chunks++;
        return;
    }
    settle(z, c, rc);
    chunk_free(z, c);
}

static size_t checks_of(const struct zk_node *node)
{
    size_t len = 0;

    for (; node; node = node->sibling)
        len++;
    return len;
}

/* One hold, or a part of it. */
static void send_alone(struct zk *z, struct hf__batch *b, size_t i, size_t from)
{
    struct zk_chunk *c = chunk_new(z, b, 1);

    if (!c) {
        tell(&b->item[i], HF_ENOMEM);
        return;
    }
    c->item[c->len++] = i;
    c->from = from;
    begin(z, c);
}

/* Sends from item i on; where the next chunk begins. */
static size_t send_some(struct zk *z, struct hf__batch *b, size_t i)
{
    struct zk_chunk *c = chunk_new(z, b, CHUNK_LEN);
    size_t size = 0, checks = 0;

    for (; !c && i < b->len; i++)
        tell(&b->item[i], HF_ENOMEM);
    if (!c)
        return i;
    for (; i < b->len && size < CHUNK_SIZE; i++) {
        struct zk_node *node = node_of(&b->item[i]);
        size_t more = checks_of(node);

        if (!node) {
            tell(&b->item[i], HF_ENOTOWNER);
        } else if (node->lowered || more > CHUNK_LEN) {
            for (size_t from = 0; from < more; from += CHUNK_LEN)
                send_alone(z, b, i, from);
        } else if (checks + more > CHUNK_LEN) {
            break;
        } else {
            c->item[c->len++] = i;
            checks += more;
            size += more * (strlen(node->path) + 16);
        }
    }
    begin(z, c);
    return i;
}

int hf__zk_renew(void *self, struct hf__batch *b)
{
    struct zk *z = self;

    if (!z->up)
        return HF__LATER;
    b->req.sent_at = z->core->now();
    b->req.result = HF__DONE;
    b->chunks = 1; /* while it is being sent */
    for (size_t i = 0; i < b->len; i++)
        b->item[i].result = HF__PENDING;
    for (size_t i = 0; i < b->len;)
        i = send_some(z, b, i);
    return --b->chunks ? HF__PENDING : HF__DONE;
}
