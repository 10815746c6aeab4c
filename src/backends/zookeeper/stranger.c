/*
 * Children of no known form. One that lasts is the node of another lock, whose
 * name goes on below ours, and does not matter. One that is ephemeral may be
 * the entry of somebody who locks in a way that we do not know: it would be
 * wrong to guess whether it excludes us. Nothing but asking for each of them
 * tells; so the sum of those that were found to last is remembered, and as long
 * as the strangers are the same they are not asked for again.
 *
 * They are asked for once in a look: whoever comes after its first list came
 * behind us, as those do who come after a grant. (Names below ours may come and
 * go all the time: there need not be two lists that are the same.)
 */
#include "zookeeper.h"

#include "entry.h"

#include <stdio.h>
#include <string.h>

struct zk_stranger {
    struct zk_stranger *next, *prev;
    struct zk_node *node;
    char path[]; /* whose length nobody has limited */
};

uint64_t hf__zk_stranger_hash(const char *name)
{
    uint64_t hash = 14695981039346656037ULL;

    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 1099511628211ULL;
    return hash;
}

static bool is_stranger(const char *child)
{
    struct zk_entry e;

    return !hf__zk_entry_parse(child, &e);
}

uint64_t hf__zk_strangers_sum(const struct String_vector *children)
{
    uint64_t sum = 0;

    for (int32_t i = 0; i < children->count; i++)
        if (is_stranger(children->data[i]))
            sum += hf__zk_stranger_hash(children->data[i]);
    return sum;
}

static void destroy(struct zk *z, struct zk_stranger *s)
{
    if (s->prev)
        s->prev->next = s->next;
    else
        z->strangers = s->next;
    if (s->next)
        s->next->prev = s->prev;
    z->core->free(z->client, s);
}

void hf__zk_strangers_fini(struct zk *z)
{
    while (z->strangers)
        destroy(z, z->strangers);
}

static void on_stranger(struct zk *z, void *owner, int rc,
                        const struct zk_reply *reply)
{
    struct zk_stranger *s = owner;
    struct zk_line *line = s->node->line;
    const char *name = s->path + s->node->dir_len + 1;

    if (line && rc == ZOK && reply->stat->ephemeralOwner)
        snprintf(line->odd, sizeof(line->odd), "%s", name);
    else if (line && rc == ZOK)
        line->lasting += hf__zk_stranger_hash(name);
    else if (line && rc != ZNONODE)
        line->asked = false; /* not told: ask again */
    hf__zk_node_called(s->node);
    destroy(z, s);
}

static int ask_for(struct zk_node *node, const char *name)
{
    struct zk *z = node->z;
    size_t dir_len = node->dir_len, len = strlen(name);
    struct zk_stranger *s =
        z->core->alloc(z->client, sizeof(*s) + dir_len + 1 + len + 1);
    int rc;

    if (!s)
        return HF_ENOMEM;
    memcpy(s->path, node->path, dir_len);
    s->path[dir_len] = '/';
    memcpy(s->path + dir_len + 1, name, len + 1);
    s->node = node;
    s->next = z->strangers;
    if (s->next)
        s->next->prev = s;
    z->strangers = s;
    rc = hf__zk_exists(z, s->path, on_stranger, s);
    if (rc)
        destroy(z, s);
    else
        node->calls++;
    return rc;
}

static int ask_for_all(struct zk_node *node,
                       const struct String_vector *children, zk_done_fn *listed)
{
    int rc = 0;

    for (int32_t i = 0; i < children->count && !rc; i++)
        if (is_stranger(children->data[i]))
            rc = ask_for(node, children->data[i]);
    return rc ? rc : hf__zk_node_list(node, listed);
}

bool hf__zk_strangers(struct zk_line *line,
                      const struct String_vector *children, zk_done_fn *listed)
{
    struct zk *z = line->z;
    uint64_t sum = hf__zk_strangers_sum(children);
    int rc;

    if (line->odd[0]) {
        rc = z->core->why(z->client, HF_EPROTO,
                          "%.100s has an ephemeral child of no known form: "
                          "%.60s",
                          line->path, line->odd);
        line->odd[0] = '\0';
        hf__zk_refuse(line, rc);
        return true;
    }
    if (line->asked) {
        line->strangers = line->lasting;
        line->asked = false;
        return false;
    }
    if (!sum || sum == line->strangers)
        return false;
    line->asked = true;
    line->lasting = 0;
    rc = ask_for_all(line->node, children, listed);
    if (rc) {
        line->asked = false;
        hf__zk_finish(z, line->ask, rc);
    }
    return true;
}

void hf__zk_strangers_forget(struct zk_line *line)
{
    line->asked = false;
    line->odd[0] = '\0';
}
