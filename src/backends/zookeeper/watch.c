/*
 * Watches: one on a path, however many lines wait for it, kept until it fires
 * even if nobody waits any more. So who waits again for the same one (a
 * timeout, then another try) leaves nothing more behind.
 *
 * A watch that is set tells of what happens after the server has answered the
 * request that set it, and its word comes before any later answer. So a line
 * that has seen a node in a list and finds a watch on it may rely on it.
 */
#include "zookeeper.h"

#include <string.h>

struct zk_watch {
    struct zk_watch *next; /* of the same bucket */
    struct zk *z;
    struct zk_line *lines;
    uint32_t hash;
    uint8_t kind;
    char path[];
};

static uint32_t hash_of(uint8_t kind, const char *path)
{
    uint32_t hash = 2166136261U ^ kind;

    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * 16777619U;
    return hash;
}

static struct zk_watch **place_of(struct zk *z, uint8_t kind, const char *path,
                                  uint32_t hash)
{
    struct zk_watch **at = &z->watches[hash & (z->watches_cap - 1)];

    while (*at && ((*at)->hash != hash || (*at)->kind != kind ||
                   strcmp((*at)->path, path) != 0))
        at = &(*at)->next;
    return at;
}

/* Room for one more. */
static int grow(struct zk *z)
{
    size_t cap = z->watches_cap ? z->watches_cap * 2 : 16;
    struct zk_watch **table;

    if (z->watches_len < z->watches_cap)
        return 0;
    table = z->core->alloc(z->client, cap * sizeof(*table));
    if (!table)
        return z->watches_cap ? 0 : HF_ENOMEM; /* slower, that is all */
    for (size_t i = 0; i < z->watches_cap; i++)
        while (z->watches[i]) {
            struct zk_watch *w = z->watches[i];

            z->watches[i] = w->next;
            w->next = table[w->hash & (cap - 1)];
            table[w->hash & (cap - 1)] = w;
        }
    z->core->free(z->client, z->watches);
    z->watches = table;
    z->watches_cap = cap;
    return 0;
}

void hf__zk_unwatch(struct zk_line *line)
{
    if (!line->watch)
        return;
    if (line->prev_watcher)
        line->prev_watcher->next_watcher = line->next_watcher;
    else
        line->watch->lines = line->next_watcher;
    if (line->next_watcher)
        line->next_watcher->prev_watcher = line->prev_watcher;
    line->watch = NULL;
}

static void join(struct zk_watch *w, struct zk_line *line)
{
    line->watch = w;
    line->prev_watcher = NULL;
    line->next_watcher = w->lines;
    if (w->lines)
        w->lines->prev_watcher = line;
    w->lines = line;
}

static void take_out(struct zk *z, struct zk_watch *w)
{
    struct zk_watch **at = &z->watches[w->hash & (z->watches_cap - 1)];

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    z->watches_len--;
}

/* deleted: what it watches is gone. */
static void ring(struct zk_watch *w, bool deleted)
{
    struct zk *z = w->z;

    while (w->lines) {
        struct zk_line *line = w->lines;

        hf__zk_unwatch(line);
        line->deleted = deleted;
        z->core->bell(z->client, line->remote);
    }
}

/* It is over. */
static void fire(struct zk_watch *w, bool deleted)
{
    take_out(w->z, w);
    ring(w, deleted);
    w->z->core->free(w->z->client, w);
}

static void on_event(zhandle_t *zh, int type, int state, const char *path,
                     void *arg)
{
    (void)zh;
    (void)state;
    (void)path;
    if (type != ZOO_SESSION_EVENT) /* those reach every watcher */
        fire(arg, type == ZOO_DELETED_EVENT);
}

static bool is_listed(const struct zk_watch *w,
                      const struct String_vector *children)
{
    const char *name = strrchr(w->path, '/') + 1;

    for (int32_t i = 0; i < children->count; i++)
        if (strcmp(children->data[i], name) == 0)
            return true;
    return false;
}

/* Of its siblings, in its place. */
static void on_siblings(struct zk *z, void *owner, int rc,
                        const struct zk_reply *reply)
{
    struct zk_watch *w = owner;

    (void)z;
    if (rc == ZOK) { /* on_event() will be called */
        if (!is_listed(w, reply->children))
            ring(w, true);
        return;
    }
    if (rc == ZNOAUTH)
        for (struct zk_line *line = w->lines; line; line = line->next_watcher)
            line->blind = true;
    fire(w, rc == ZNONODE);
}

/* It may not be read: whatever comes or goes beside it rings as well. (That it
 * exists could be asked for, but later servers do not tell of its end.) */
static int watch_siblings(struct zk_watch *w)
{
    char dir[ZK_WHOLE_MAX];

    strcpy(dir, w->path);
    *strrchr(dir, '/') = '\0';
    return hf__zk_list_watched(w->z, dir, on_event, w, on_siblings, w);
}

static void on_set(struct zk *z, void *owner, int rc,
                   const struct zk_reply *reply)
{
    struct zk_watch *w = owner;

    (void)z;
    (void)reply;
    if (rc == ZOK)
        return; /* on_event() will be called */
    if (rc == ZNOAUTH && w->kind == ZK_WATCH_NODE && watch_siblings(w) == 0)
        return;
    fire(w, rc == ZNONODE);
}

int hf__zk_watch(struct zk *z, struct zk_line *line, enum zk_watch_kind kind,
                 const char *path)
{
    uint32_t hash = hash_of((uint8_t)kind, path);
    struct zk_watch **at, *w;
    int rc;

    line->deleted = false;
    if (grow(z))
        return HF_ENOMEM;
    hf__zk_unwatch(line);
    at = place_of(z, (uint8_t)kind, path, hash);
    if (*at) {
        join(*at, line);
        return 0;
    }
    w = z->core->alloc(z->client, sizeof(*w) + strlen(path) + 1);
    if (!w)
        return HF_ENOMEM;
    w->z = z;
    w->kind = (uint8_t)kind;
    w->hash = hash;
    strcpy(w->path, path);
    rc = kind == ZK_WATCH_NODE
             ? hf__zk_get_watched(z, path, on_event, w, on_set, w)
             : hf__zk_list_watched(z, path, on_event, w, on_set, w);
    if (rc) {
        z->core->free(z->client, w);
        return rc;
    }
    *at = w;
    z->watches_len++;
    join(w, line);
    return 0;
}

void hf__zk_watches_lost(struct zk *z)
{
    for (size_t i = 0; i < z->watches_cap; i++)
        while (z->watches[i])
            fire(z->watches[i], false);
}

void hf__zk_watches_fini(struct zk *z)
{
    for (size_t i = 0; i < z->watches_cap; i++)
        while (z->watches[i]) {
            struct zk_watch *w = z->watches[i];

            z->watches[i] = w->next;
            z->core->free(z->client, w);
        }
    z->core->free(z->client, z->watches);
    z->watches = NULL;
    z->watches_cap = z->watches_len = 0;
}
