/*
 * Children of no known form (entry.h). Those that no known client counts as an
 * entry are ignored. The others count if they are ephemeral: one that lasts is
 * the node of another lock, whose name goes on below ours. Nothing but a
 * request for each of them tells; so the sum of those that were found to last
 * is remembered, and as long as the strangers are the same they are not
 * requested again.
 *
 * They are requested once for a place: a child that comes after the first list
 * came behind us, as those do that come after a grant. (Names below ours may
 * come and go all the time: there need not be two lists that are the same.)
 */
#include "foreign_entries.h"

#include "base/hash.h"
#include "child_stats.h"
#include "entry.h"
#include "lock.h"
#include "node.h"

#include <string.h>

/* If it is ephemeral, a client with that rule and sequence counts it as an
 * entry. */
static bool entries_is_stranger(const char *child, enum zk_rule rule,
                                int64_t seq)
{
    struct zk_entry e;

    return !hf__zk_entry_parse(child, &e) &&
           hf__zk_entry_guess(child, rule, seq, &e);
}

/* Which there are, whatever their order; 0: none. Or, if czxid is not NULL (as
 * for hf__zk_place), which of them last. */
static uint64_t entries_sum_of(const struct String_vector *children,
                               const int64_t *czxid, enum zk_rule rule,
                               int64_t seq)
{
    uint64_t sum = 0;

    for (int32_t i = 0; i < children->count; i++)
        if ((!czxid || (czxid[i] < 0 && czxid[i] != ZK_CHILD_GONE)) &&
            entries_is_stranger(children->data[i], rule, seq))
            sum += hf__hash64(HF__HASH64, children->data[i],
                              strlen(children->data[i]));
    return sum;
}

/* All that were requested are known. */
static bool entries_are_known(const struct zk_node *node,
                              const struct String_vector *children)
{
    for (int32_t i = 0; i < children->count; i++)
        if (hf__zk_child_stat_is_open(node, children->data[i]))
            return false;
    return true;
}

int hf__zk_foreign_entries_check(struct zk_node *node,
                                 const struct String_vector *children,
                                 enum zk_rule rule, int64_t seq)
{
    uint64_t sum = entries_sum_of(children, NULL, rule, seq);
    int64_t *czxid;
    int rc = 0;

    if (!sum || sum == node->lock->strangers)
        return 0;
    if (node->strangers_requested && entries_are_known(node, children)) {
        if (!hf__zk_child_stats_known(node, children, &czxid) && czxid)
            node->lock->strangers = entries_sum_of(children, czxid, rule, seq);
        node->z->core->free(node->z->client, czxid);
        return 0;
    }
    for (int32_t i = 0; i < children->count && !rc; i++)
        if (entries_is_stranger(children->data[i], rule, seq))
            rc = hf__zk_child_stat_request(node, children->data[i]);
    node->strangers_requested = !rc;
    return rc ? rc : HF__PENDING;
}
