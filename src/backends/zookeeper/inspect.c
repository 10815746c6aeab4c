/* The answer of hf_inspect: who holds a name, and who waits. */
#include "query.h"

#include <string.h>

/* Who waits for permits has an entry in locks until it has seen that it may
 * go: by its leases it is known as a holder. */
static bool is_shown(const struct zk_look *look, const struct zk_seen *s)
{
    if (s->where == ZK_AT_LEASES)
        return s->holds;
    for (const struct zk_seen *o = look->first; o && s->where == ZK_AT_LOCKS;
         o = o->next)
        if (o->holds && hf__zk_seen_same_owner(o, s))
            return false;
    return true;
}

static int show(struct zk_look *look, const struct zk_seen *s, hf_party **last)
{
    struct zk *z = look->base.z;
    struct hf__query *q = look->base.q;
    hf_party *p = z->core->add_party(z->client, q, s->holds);

    if (!p)
        return HF_ENOMEM;
    hf__zk_seen_party(s, p);
    /* A hold that has another token than its entry had it when it wrote. */
    if (s->holds && look->kind != HF_SEMAPHORE &&
        (p->mode == HF_WRITE || p->token != (uint64_t)s->entry.czxid))
        q->info->token = p->token;
    *last = p;
    return 0;
}

static void inspected(struct zk_look *look)
{
    hf_info *info = look->base.q->info;
    const struct zk_seen *before = NULL;
    hf_party *last = NULL;
    int rc = 0;

    info->kind = look->kind;
    info->count = look->count;
    info->permits = look->kind == HF_SEMAPHORE ? look->permits : 0;
    info->fairness = look->unfair ? HF_UNFAIR : HF_FAIR;
    /* Who waits for these has a watch, and nothing that others could see. */
    info->waiters_unknown = look->unfair || look->is_latch;
    for (const struct zk_seen *s = look->first; s && !rc; s = s->next) {
        if (!is_shown(look, s))
            continue;
        if (s->where == ZK_AT_LEASES && before &&
            hf__zk_seen_same_owner(before, s)) {
            last->permits++; /* one more of the same hold */
            continue;
        }
        rc = show(look, s, &last);
        before = s->where == ZK_AT_LEASES ? s : NULL;
    }
    hf__zk_query_end(&look->base, rc);
}

int hf__zk_inspect(struct zk *z, struct hf__query *q)
{
    return hf__zk_look(z, q, inspected);
}
