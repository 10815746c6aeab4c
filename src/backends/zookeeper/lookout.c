/*
 * Changes of a name: watches on all that hf__zk_look() reads, which are the
 * children of the name's node (or that it is created), those of `locks` and of
 * `leases`, and the data of `latch`. A watch fires once. After each event all
 * are set again, and only when the server has answered that is the change told:
 * so whoever looks then sees what happened while nothing was watched.
 *
 * The library keeps watches over the connections of a session, and has each of
 * them once, however often it is set. It cannot be trusted to give them back:
 * so a lookout that nobody wants any more stays until the session is over, and
 * is used again for the same name.
 */
#include "query.h"

#include <string.h>

struct zk_lookout {
    struct zk_lookout *next, *prev; /* zk.lookouts */
    struct zk *z;
    struct hf__listener *on; /* NULL: nobody wants it any more */
    struct hf__query *asked; /* LISTEN is not answered yet; else NULL */
    unsigned calls;          /* under way */
    int rc;                  /* the first failure of these */
    bool due;                /* the watches are to be set as soon as it is up */
    char path[];
};

static void set_watches(struct zk_lookout *);

static void on_event(zhandle_t *zh, int type, int state, const char *path,
                     void *arg)
{
    struct zk_lookout *l = arg;

    (void)zh;
    (void)state;
    (void)path;
    if (type != ZOO_SESSION_EVENT && l->on) /* those reach every watcher */
        set_watches(l);
}

/* If all calls are answered: then LISTEN is, or a change is told (which may be
 * that nothing can be read any more). */
static void settle(struct zk_lookout *l)
{
    struct zk *z = l->z;
    struct hf__query *q = l->asked;
    int rc = l->rc;

    if (l->calls)
        return;
    l->asked = NULL;
    l->rc = 0;
    l->due = rc == HF_EUNKNOWN || rc == HF_ENOMEM;
    if (q)
        hf__zk_finish(z, &q->req, rc);
    else if (l->on && !l->due)
        z->core->changed(z->client, l->on, NULL, 0);
}

static void fail(struct zk_lookout *l, int rc)
{
    if (!l->rc)
        l->rc = rc;
}

static void sent(struct zk_lookout *l, int rc)
{
    if (rc)
        fail(l, rc);
    else
        l->calls++;
}

static void back(struct zk_lookout *l, int rc)
{
    l->calls--;
    if (hf__zk_lost(rc))
        fail(l, HF_EUNKNOWN);
    else if (rc != ZOK && rc != ZNONODE)
        fail(l, hf__zk_denied(l->z, rc, "READ", l->path));
    settle(l);
}

static void on_set(void *owner, int rc, const struct zk_reply *reply)
{
    (void)reply;
    back(owner, rc);
}

/* It was not there a moment ago. */
static void on_exists(void *owner, int rc, const struct zk_reply *reply)
{
    (void)reply;
    if (rc == ZOK)
        set_watches(owner);
    back(owner, rc);
}

static void on_children(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_lookout *l = owner;
    char path[ZK_WHOLE_MAX];

    for (int32_t i = 0; rc == ZOK && i < reply->children->count; i++) {
        const char *child = reply->children->data[i];

        hf__zk_join(path, l->path, child);
        if (strcmp(child, ZK_LOCKS) == 0 || strcmp(child, ZK_LEASES) == 0)
            sent(l, hf__zk_list_watched(l->z, path, on_event, l, on_set, l));
        else if (strcmp(child, ZK_LATCH) == 0)
            sent(l, hf__zk_get_watched(l->z, path, on_event, l, on_set, l));
    }
    if (rc == ZNONODE)
        sent(l,
             hf__zk_exists_watched(l->z, l->path, on_event, l, on_exists, l));
    back(l, rc);
}

static void set_watches(struct zk_lookout *l)
{
    l->due = false;
    sent(l, hf__zk_list_watched(l->z, l->path, on_event, l, on_children, l));
    settle(l);
}

static struct zk_lookout *lookout_at(struct zk *z, const char *path)
{
    struct zk_lookout *l = z->lookouts;

    while (l && (l->on || l->calls || strcmp(l->path, path) != 0))
        l = l->next;
    if (l)
        return l;
    l = z->core->alloc(z->client, sizeof(*l) + strlen(path) + 1);
    if (!l)
        return NULL;
    l->z = z;
    strcpy(l->path, path);
    hf__list_add(z->lookouts, l);
    return l;
}

/* The first answer, or failure, is reported from advance(). */
int hf__zk_lookout(struct zk *z, struct hf__query *q)
{
    char path[ZK_WHOLE_MAX];
    struct zk_lookout *l;

    if (q->listener->is_prefix)
        return z->core->why(z->client, HF_ENOTSUP,
                            "changes of all names with a prefix cannot be "
                            "watched, because libzookeeper has no recursive "
                            "watches; single names can");
    if (hf__zk_path(q->name, q->name_len, z->root, path, sizeof(path)) < 0)
        return hf__zk_bad_name(z, "name", q->name, q->name_len);
    l = lookout_at(z, path);
    if (!l)
        return HF_ENOMEM;
    l->on = q->listener;
    l->on->impl = l;
    l->asked = q;
    l->due = true;
    z->core->due(z->client, 0);
    return HF__PENDING;
}

void hf__zk_unlisten(void *self, struct hf__listener *on)
{
    struct zk_lookout *l = on->impl;

    (void)self;
    if (l)
        l->on = NULL;
    on->impl = NULL;
}

void hf__zk_lookouts_move(struct zk *z)
{
    for (struct zk_lookout *l = z->lookouts; l; l = l->next) {
        l->due = l->on && (l->due || !z->up);
        if (l->due && z->up)
            set_watches(l);
    }
}

void hf__zk_lookouts_lost(struct zk *z)
{
    struct zk_lookout *l, *next;

    for (l = z->lookouts; l; l = next) {
        next = l->next;
        if (l->on && !z->closing)
            continue;
        hf__list_remove(z->lookouts, l);
        z->core->free(z->client, l);
    }
}
