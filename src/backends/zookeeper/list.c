/*
 * Lists the names in use: walks over all nodes below the URL's path. A node
 * that has an entry as a child is a lock, whatever other children it has. A
 * child that is not an entry may itself be the node of a lock.
 */
#include "list.h"

#include "call.h"
#include "entry.h"
#include "path.h"
#include "query.h"
#include "zookeeper.h"

#include <stdio.h>
#include <string.h>

#define AT_ONCE 64 /* lists that may be unanswered at the same time */

struct dir {
    struct dir *next;
    struct walk *walk;
    size_t below; /* if this is `locks` or `leases`, the length of the
                     semaphore's path; otherwise 0 */
    char path[];
};

struct walk {
    struct zk_query base;
    struct dir *todo;
};

static int list_push(struct walk *w, const char *path, size_t len,
                     const char *child, bool of_semaphore)
{
    struct dir *d = hf__arena_take(&w->base.memory,
                                   sizeof(*d) + len + 1 + strlen(child) + 1);

    if (!d)
        return HF_ENOMEM;
    d->walk = w;
    memcpy(d->path, path, len);
    strcpy(stpcpy(d->path + len, *child ? "/" : ""), child);
    d->below = of_semaphore ? len : 0;
    d->next = w->todo;
    w->todo = d;
    return 0;
}

/* Reports the name of the lock whose node has that path. */
static int list_found(struct walk *w, const char *path, size_t len)
{
    struct zk *z = w->base.z;
    struct hf__query *q = w->base.q;
    char name[HF_NAME_MAX + 1], whole[ZK_WHOLE_MAX];
    int n;

    if (len >= sizeof(whole))
        return 0;
    snprintf(whole, sizeof(whole), "%.*s", (int)len, path);
    n = hf__zk_name(whole, z->root, name, sizeof(name));
    if (n < 0 || (size_t)n < q->name_len ||
        memcmp(name, q->name, q->name_len) != 0)
        return 0;
    return z->core->add_name(z->client, q, name, (size_t)n);
}

static int list_take(struct dir *d, const struct String_vector *children)
{
    struct walk *w = d->walk;
    bool is_root = strlen(d->path) == strlen(w->base.z->root);
    bool in_use = false;
    int rc = 0;

    if (d->below)
        return children->count ? list_found(w, d->path, d->below) : 0;
    for (int32_t i = 0; i < children->count && !rc; i++) {
        const char *child = children->data[i];
        struct zk_entry e;

        if (!hf__zk_entry_parse(child, &e) || is_root)
            rc = list_push(w, d->path, strlen(d->path), child, false);
        else if (e.form == ZK_FORM_SEMAPHORE)
            rc = list_push(w, d->path, strlen(d->path), child, true);
        else
            in_use = in_use || e.form != ZK_FORM_MARK;
    }
    return !rc && in_use ? list_found(w, d->path, strlen(d->path)) : rc;
}

static void on_list(void *, int, const struct zk_reply *);

/* Sends as many lists as AT_ONCE allows; ends the query if none is
 * unanswered. */
static void list_go_on(struct walk *w)
{
    struct zk_query *base = &w->base;

    while (w->todo && base->calls < AT_ONCE && !base->rc) {
        struct dir *d = w->todo;

        w->todo = d->next;
        hf__zk_query_sent(base, hf__zk_list(base->z, *d->path ? d->path : "/",
                                            NULL, on_list, d));
    }
    if (!base->calls)
        hf__zk_query_end(base, base->rc);
}

/* Handles the answer to a list. A node that the client has no right to read is
 * left out. */
static void on_list(void *owner, int rc, const struct zk_reply *reply)
{
    struct dir *d = owner;
    struct walk *w = d->walk;
    int code = 0;

    w->base.calls--;
    if (rc == ZOK)
        code = list_take(d, reply->children);
    else if (rc != ZNOAUTH)
        code = hf__zk_query_code(&w->base, rc);
    if (code && !w->base.rc)
        w->base.rc = code;
    list_go_on(w);
}

/* Starts the walk at the deepest node that is above all locks whose names have
 * the prefix. The prefix may end inside a component. */
static int list_start(struct walk *w)
{
    const struct hf__query *q = w->base.q;
    struct zk *z = w->base.z;
    char path[ZK_WHOLE_MAX];
    size_t len = q->name_len;
    int n;

    while (len && q->name[len - 1] != '/')
        len--;
    if (!len)
        return list_push(w, z->root, strlen(z->root), "", false);
    n = hf__zk_path(q->name, len - 1, z->root, path, sizeof(path));
    return n < 0 ? 0 : list_push(w, path, (size_t)n, "", false);
}

int hf__zk_list_query(struct zk *z, struct hf__query *q)
{
    struct walk *w;
    int rc;

    w = hf__zk_query_new(z, q, sizeof(*w), &rc);
    if (!w)
        return rc;
    w->base.rc = list_start(w);
    hf__zk_sync(z, NULL, NULL);
    list_go_on(w);
    return HF__PENDING;
}
