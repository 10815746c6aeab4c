/* The answer of hf_inspect: who holds a name, and who waits. */
#include "inspect.h"

#include "parties.h"
#include "query.h"
#include "zookeeper.h"

/* Who waits for permits has an entry in locks until it has seen that it may
 * go: by its leases it is known as a holder. */
static bool inspect_is_shown(const struct zk_parties *parties,
                             const struct zk_party *s)
{
    if (s->where == ZK_AT_LEASES)
        return s->holds;
    for (const struct zk_party *o = parties->first;
         o && s->where == ZK_AT_LOCKS; o = o->next)
        if (o->holds && hf__zk_party_same_owner(o, s))
            return false;
    return true;
}

static int inspect_show(struct zk_parties *parties, const struct zk_party *s,
                        hf_party **last)
{
    struct zk *z = parties->base.z;
    struct hf__query *q = parties->base.q;
    hf_party *p = z->core->add_party(z->client, q, s->holds);

    if (!p)
        return HF_ENOMEM;
    hf__zk_party_fill(s, p);
    /* A hold that has another token than its entry had it when it wrote. */
    if (s->holds && parties->kind != HF_SEMAPHORE &&
        (p->mode == HF_WRITE || p->token != (uint64_t)s->entry.czxid))
        q->info->token = p->token;
    *last = p;
    return 0;
}

static void inspected(struct zk_parties *parties)
{
    hf_info *info = parties->base.q->info;
    const struct zk_party *before = NULL;
    hf_party *last = NULL;
    int rc = 0;

    info->kind = parties->kind;
    info->count = parties->count;
    info->permits = parties->kind == HF_SEMAPHORE ? parties->permits : 0;
    info->fairness = parties->unfair ? HF_UNFAIR : HF_FAIR;
    /* Who waits for these has a watch, and nothing that others could see. */
    info->waiters_unknown = parties->unfair || parties->is_latch;
    for (const struct zk_party *s = parties->first; s && !rc; s = s->next) {
        if (!inspect_is_shown(parties, s))
            continue;
        if (s->where == ZK_AT_LEASES && before &&
            hf__zk_party_same_owner(before, s)) {
            last->permits++; /* one more of the same hold */
            continue;
        }
        rc = inspect_show(parties, s, &last);
        before = s->where == ZK_AT_LEASES ? s : NULL;
    }
    hf__zk_query_end(&parties->base, rc);
}

int hf__zk_inspect_query(struct zk *z, struct hf__query *q)
{
    return hf__zk_parties_read(z, q, inspected);
}
