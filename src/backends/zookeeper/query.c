#include "query.h"

#include "base/list.h"
#include "call.h"
#include "lock.h"
#include "outcome.h"
#include "path.h"
#include "zookeeper.h"

#include <string.h>

static int query_path_of(struct zk *z, struct hf__query *q,
                         char out[ZK_WHOLE_MAX])
{
    int len = hf__zk_path(q->name, q->name_len, z->root, out, ZK_WHOLE_MAX);

    if (len >= 0)
        return 0;
    return hf__zk_bad_name(z, q->req.op == HF__PUT ? "key" : "name", q->name,
                           q->name_len);
}

static struct zk_query *query_alloc(struct zk *z, size_t size)
{
    struct zk_query *base = z->core->alloc(z->client, size);

    if (!base)
        return NULL;
    base->z = z;
    hf__arena_init(&base->memory, z->core, z->client, SIZE_MAX);
    hf__list_add(z->queries, base);
    return base;
}

void *hf__zk_query_new(struct zk *z, struct hf__query *q, size_t size, int *rc)
{
    struct zk_query *base = query_alloc(z, size);

    *rc = HF_ENOMEM;
    if (!base)
        return NULL;
    base->q = q;
    *rc = q->req.op == HF__LIST || q->req.op == HF__DIAGNOSE
              ? 0
              : query_path_of(z, q, base->path);
    if (*rc) {
        hf__zk_query_free(base);
        return NULL;
    }
    return base;
}

void *hf__zk_query_of(struct zk_lock *lock, size_t size)
{
    struct zk_query *base = query_alloc(lock->z, size);

    if (!base)
        return NULL;
    memcpy(base->path, lock->path, lock->path_len + 1);
    base->lock = lock;
    return base;
}

void hf__zk_query_sent(struct zk_query *base, int rc)
{
    if (!base->rc)
        base->rc = rc;
    base->calls += rc == 0;
}

void hf__zk_query_back(struct zk_query *base, int rc)
{
    if (!base->rc)
        base->rc = rc;
    if (--base->calls == 0)
        base->step(base);
}

int hf__zk_query_wait(struct zk_query *base, void (*step)(struct zk_query *))
{
    base->step = step;
    if (!base->calls)
        step(base);
    return HF__PENDING;
}

void hf__zk_query_free(struct zk_query *base)
{
    struct zk *z = base->z;

    hf__arena_fini(&base->memory);
    hf__list_remove(z->queries, base);
    z->core->free(z->client, base);
}

bool hf__zk_query_is_over(const struct zk_query *base)
{
    return base->z->core->now() >= base->q->req.meant_until;
}

void hf__zk_query_end(struct zk_query *base, int result)
{
    struct hf__query *q = base->q;
    struct zk *z = base->z;

    hf__zk_query_free(base);
    hf__zk_finish(z, &q->req, result);
}

int hf__zk_query_refusal(struct zk_query *base, int rc, const char *right)
{
    if (rc == ZOK || rc == ZNONODE)
        return 0;
    return hf__zk_lost(rc) ? HF_EUNKNOWN
                           : hf__zk_denied(base->z, rc, right, base->path);
}

int hf__zk_query_code(struct zk_query *base, int rc)
{
    return hf__zk_query_refusal(base, rc, "READ");
}

void hf__zk_queries_fini(struct zk *z)
{
    while (z->queries)
        hf__zk_query_free(z->queries);
}

void hf__zk_queries_leave(struct zk *z, const struct zk_lock *lock)
{
    for (struct zk_query *base = z->queries; base; base = base->next)
        if (base->lock == lock)
            base->lock = NULL;
}
