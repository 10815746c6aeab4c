/*
 * Children of no known form (entry.h). Those that no known client counts as an
 * entry are ignored. The others count if they are ephemeral: one that lasts is
 * the node of another lock, whose name goes on below ours. Nothing but asking
 * for each of them tells; so the sum of those that were found to last is
 * remembered, and as long as the strangers are the same they are not asked for
 * again.
 *
 * They are asked for once for a place: a child that comes after the first list
 * came behind us, as those do that come after a grant. (Names below ours may
 * come and go all the time: there need not be two lists that are the same.)
 *
 * An ephemeral child that is ignored is somebody's mistake: the log names it,
 * once. It is asked for without waiting for the answer, some at a time.
 */
#include "query.h"

#include "../../hash.h"

#include <string.h>

#define AT_ONCE 16
#define PAUSE (1000 * HF__MS)

/* One that is to be ignored, and is asked for. */
struct stranger {
    struct zk_query base; /* whose path is that of the lock */
    uint64_t hash;
    char path[]; /* its length has no limit but the server's */
};

static uint64_t hash_of(const char *name)
{
    return hf__hash64(HF__HASH64, name, strlen(name));
}

/* If it is ephemeral, a client with that rule and sequence counts it as an
 * entry. */
static bool is_stranger(const char *child, enum zk_rule rule, int64_t seq)
{
    struct zk_entry e;

    return !hf__zk_entry_parse(child, &e) &&
           hf__zk_entry_guess(child, rule, seq, &e);
}

/* Which there are, whatever their order; 0: none. Or, if czxid is not NULL (as
 * for hf__zk_place), which of them last. */
static uint64_t sum_of(const struct String_vector *children,
                       const int64_t *czxid, enum zk_rule rule, int64_t seq)
{
    uint64_t sum = 0;

    for (int32_t i = 0; i < children->count; i++)
        if ((!czxid || (czxid[i] < 0 && czxid[i] != ZK_TIE_GONE)) &&
            is_stranger(children->data[i], rule, seq))
            sum += hash_of(children->data[i]);
    return sum;
}

/* All that were asked for are known. */
static bool are_known(const struct zk_node *node,
                      const struct String_vector *children)
{
    for (int32_t i = 0; i < children->count; i++)
        if (hf__zk_tie_is_open(node, children->data[i]))
            return false;
    return true;
}

int hf__zk_strangers_ask(struct zk_node *node,
                         const struct String_vector *children,
                         enum zk_rule rule, int64_t seq)
{
    uint64_t sum = sum_of(children, NULL, rule, seq);
    struct zk *z = node->z;
    int64_t *czxid;
    int rc = 0;

    if (!sum || sum == node->line->strangers)
        return 0;
    if (node->asked && are_known(node, children)) {
        if (!hf__zk_ties_known(node, children, &czxid) && czxid)
            node->line->strangers = sum_of(children, czxid, rule, seq);
        z->core->free(z->client, czxid);
        return 0;
    }
    for (int32_t i = 0; i < children->count && !rc; i++)
        if (is_stranger(children->data[i], rule, seq))
            rc = hf__zk_tie_ask(node, children->data[i]);
    node->asked = !rc;
    return rc ? rc : HF__PENDING;
}

/* ---- those that are ignored ---------------------------------------------- */

static uint64_t *slot_of(struct zk *z, uint64_t hash)
{
    return &z->ignored[hash % (sizeof(z->ignored) / sizeof(*z->ignored))];
}

static void on_ignored(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk *z = reply->z;
    struct stranger *s = owner;

    if (rc == ZOK && reply->stat->ephemeralOwner)
        z->core->log(z->client,
                     "zookeeper: %.100s has an ephemeral child that is no "
                     "entry of a lock, and is ignored: %.60s",
                     s->base.path, s->path + strlen(s->base.path) + 1);
    else if (rc != ZOK && *slot_of(z, s->hash) == s->hash)
        *slot_of(z, s->hash) = 0; /* it may be looked at again */
    hf__zk_query_free(&s->base);
}

static bool ask_who_it_is(struct zk_line *line, const char *child,
                          uint64_t hash)
{
    size_t len = strlen(child);
    struct stranger *s =
        hf__zk_query_of(line, sizeof(*s) + line->path_len + 1 + len + 1);

    if (!s)
        return false;
    memcpy(s->path, line->path, line->path_len);
    s->path[line->path_len] = '/';
    memcpy(s->path + line->path_len + 1, child, len + 1);
    s->hash = hash;
    if (hf__zk_exists(line->z, s->path, on_ignored, s) == 0)
        return true;
    hf__zk_query_free(&s->base);
    return false;
}

void hf__zk_ignore(struct zk_line *line, const struct String_vector *children,
                   enum zk_rule rule, int64_t seq)
{
    struct zk *z = line->z;
    uint64_t dir = hash_of(line->path);
    int asked = 0;

    if (z->core->now() < z->ignore_at)
        return;
    for (int32_t i = 0; i < children->count && asked < AT_ONCE; i++) {
        const char *child = children->data[i];
        uint64_t hash = hf__hash64(dir, child, strlen(child));
        struct zk_entry e;

        if (*slot_of(z, hash) == hash || hf__zk_entry_parse(child, &e) ||
            hf__zk_entry_guess(child, rule, seq, &e))
            continue;
        if (!ask_who_it_is(line, child, hash))
            break;
        *slot_of(z, hash) = hash;
        asked++;
    }
    if (asked == AT_ONCE)
        z->ignore_at = z->core->now() + PAUSE;
}
