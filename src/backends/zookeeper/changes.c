#include "changes.h"

#include "call.h"
#include "outcome.h"
#include "path.h"
#include "query.h"
#include "zookeeper.h"

#include <string.h>

struct zk_changes {
    struct zk_query base;    /* its `q` is NULL once LISTEN is answered */
    struct hf__listener *on; /* NULL if the program no longer listens */
    bool due; /* the watches must be set when the connection is up and no call
                 of this listener is unanswered */
};

static void changes_on_event(zhandle_t *zh, int type, int state,
                             const char *path, void *arg)
{
    struct zk_changes *l = arg;

    (void)zh;
    (void)state;
    (void)path;
    if (type != ZOO_SESSION_EVENT) /* session events reach every watcher */
        l->due = true;
}

/* Runs when the requests that set the watches are answered. Answers LISTEN, or
 * reports a change if LISTEN was answered before. If a request failed with
 * HF_EUNKNOWN or HF_ENOMEM, reports no change, and the watches must be set
 * again. Any other failure is reported as a change. */
static void changes_watches_set(struct zk_query *base)
{
    struct zk_changes *l = (struct zk_changes *)base;
    struct zk *z = base->z;
    struct hf__query *q = base->q;
    int rc = base->rc;
    bool failed = rc == HF_EUNKNOWN || rc == HF_ENOMEM;

    base->q = NULL;
    base->rc = 0;
    l->due = l->due || failed;
    if (q)
        hf__zk_finish(z, &q->req, rc);
    else if (l->on && !failed)
        z->core->changed(z->client, l->on, NULL, 0);
}

static void changes_on_set(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_changes *l = owner;

    (void)reply;
    hf__zk_query_back(&l->base, hf__zk_query_code(&l->base, rc));
}

/* Handles the answer to the exists that is sent after a list got ZNONODE. If
 * the node exists now, it was created between the two requests, so the watches
 * must be set again. */
static void changes_on_exists(void *owner, int rc, const struct zk_reply *reply)
{
    struct zk_changes *l = owner;

    l->due = l->due || rc == ZOK;
    changes_on_set(owner, rc, reply);
}

static void changes_on_children(void *owner, int rc,
                                const struct zk_reply *reply)
{
    struct zk_changes *l = owner;
    struct zk_query *base = &l->base;
    char path[ZK_WHOLE_MAX];

    for (int32_t i = 0; rc == ZOK && i < reply->children->count; i++) {
        const char *child = reply->children->data[i];

        hf__zk_join(path, base->path, child);
        if (strcmp(child, ZK_LOCKS) == 0 || strcmp(child, ZK_LEASES) == 0)
            hf__zk_query_sent(base, hf__zk_list(base->z, path, changes_on_event,
                                                changes_on_set, l));
        else if (strcmp(child, ZK_LATCH) == 0)
            hf__zk_query_sent(base, hf__zk_get(base->z, path, changes_on_event,
                                               changes_on_set, l));
    }
    if (rc == ZNONODE)
        hf__zk_query_sent(base,
                          hf__zk_exists(base->z, base->path, changes_on_event,
                                        changes_on_exists, l));
    changes_on_set(owner, rc, reply);
}

static void changes_set_watches(struct zk_changes *l)
{
    struct zk_query *base = &l->base;

    l->due = false;
    hf__zk_query_sent(base, hf__zk_list(base->z, base->path, changes_on_event,
                                        changes_on_children, l));
    hf__zk_query_wait(base, changes_watches_set);
}

/* Returns the listener after l, or the first one if l is NULL. Returns NULL if
 * there is none. */
static struct zk_changes *changes_next_of(struct zk *z, struct zk_changes *l)
{
    struct zk_query *base = l ? l->base.next : z->queries;

    while (base && base->step != changes_watches_set)
        base = base->next;
    return (struct zk_changes *)base;
}

/* Starts a listener. advance() then sets the watches, and LISTEN is answered
 * when the server has answered. */
int hf__zk_changes_listen(struct zk *z, struct hf__query *q)
{
    struct zk_changes *l, *old = NULL;
    int rc;

    if (q->listener->is_prefix)
        return z->core->why(z->client, HF_ENOTSUP,
                            "changes of all names with a prefix cannot be "
                            "watched, because libzookeeper has no recursive "
                            "watches; single names can");
    l = hf__zk_query_new(z, q, sizeof(*l), &rc);
    if (!l)
        return rc;
    while ((old = changes_next_of(z, old)))
        if (!old->on && !old->base.q && !old->base.calls &&
            !strcmp(old->base.path, l->base.path))
            break;
    if (old) {
        hf__zk_query_free(&l->base);
        l = old;
    }
    l->base.step = changes_watches_set;
    l->base.q = q;
    l->on = q->listener;
    l->on->impl = l;
    l->due = true;
    z->core->due(z->client, 0);
    return HF__PENDING;
}

void hf__zk_changes_unlisten(void *self, struct hf__listener *on)
{
    struct zk_changes *l = on->impl;

    (void)self;
    if (l)
        l->on = NULL;
    on->impl = NULL;
}

void hf__zk_changes_move(struct zk *z)
{
    for (struct zk_changes *l = NULL; (l = changes_next_of(z, l));) {
        l->due = l->on && (l->due || !z->up);
        if (l->due && z->up && !l->base.calls)
            changes_set_watches(l);
    }
}

void hf__zk_changes_lost(struct zk *z)
{
    struct zk_changes *l, *next;

    for (l = changes_next_of(z, NULL); l; l = next) {
        next = changes_next_of(z, l);
        if (!l->on)
            hf__zk_query_free(&l->base);
    }
}
