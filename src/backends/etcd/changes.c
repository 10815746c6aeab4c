#include "changes.h"

#include "base/list.h"

#include "entry.h"
#include "etcd.h"
#include "lock_state.h"
#include "slot.h"
#include "watch.h"

#include <string.h>

struct et_changes {
    struct et_changes *next, *prev; /* etcd.changes */
    struct hf__listener *on;
    struct hf__query *q;    /* the LISTEN that is not answered yet; or NULL */
    struct et_watch *watch; /* NULL if not created yet */
    size_t len;
    char key[]; /* the prefix that is watched */
};

static void changes_answer(struct etcd *e, struct et_changes *r, int result)
{
    struct hf__query *q = r->q;

    r->q = NULL;
    hf__et_finish(e, &q->req, result);
}

static void changes_confirmed(struct etcd *e, struct et_changes *r)
{
    if (r->q)
        changes_answer(e, r, HF__DONE);
    else
        e->core->changed(e->client, r->on, NULL, 0);
}

/* Reports that a key was written or deleted. If a prefix is watched, reports
 * which name has changed, and ignores keys that are not entries. */
static void changes_written(struct etcd *e, struct et_changes *r,
                            const char *key, size_t len)
{
    size_t root = strlen(e->root), name = 0;

    if (r->on->is_prefix && len > root)
        name = hf__et_name_len(key + root, len - root);
    if (r->on->is_prefix && !name)
        return;
    e->core->changed(e->client, r->on, name ? key + root : NULL, name);
}

static void changes_refused(struct etcd *e, struct et_changes *r,
                            const char *why)
{
    int code = strstr(why, "ermission") ? HF_EAUTH : HF_EBACKEND;

    if (r->q)
        changes_answer(
            e, r,
            e->core->why(e->client, code, "%s: %.160s", e->g.link.where, why));
    else
        e->core->changed(e->client, r->on, NULL, 0);
}

static const struct et_watch_events events = {.confirmed = changes_confirmed,
                                              .written = changes_written,
                                              .refused = changes_refused};

static void changes_begin(struct etcd *e, struct et_changes *r)
{
    if (!r->watch)
        hf__et_watch_changes(e, &events, r, &r->watch, r->key, r->len);
    e->lacks_watch = e->lacks_watch || !r->watch;
}

static void changes_free(struct etcd *e, struct et_changes *r)
{
    if (r->watch)
        hf__et_watch_end(e, r->watch);
    hf__list_remove(e->changes, r);
    e->core->free(e->client, r);
}

void hf__et_unlisten(void *self, struct hf__listener *on)
{
    if (on->impl)
        changes_free(self, on->impl);
    on->impl = NULL;
}

int hf__et_listen(struct etcd *e, struct hf__query *q)
{
    struct hf__listener *on = q->listener;
    size_t root = strlen(e->root);
    struct et_changes *r = on->impl;

    if (!r) {
        r = e->core->alloc(e->client, sizeof(*r) + root + on->name_len + 2);
        if (!r)
            return HF_ENOMEM;
        memcpy(r->key, e->root, root);
        memcpy(r->key + root, on->name, on->name_len);
        r->len = root + on->name_len;
        if (!on->is_prefix)
            r->key[r->len++] = '/';
        r->on = on;
        on->impl = r;
        hf__list_add(e->changes, r);
    }
    r->q = q;
    changes_begin(e, r);
    /* If the watch is missing although the stream of watches has not failed
     * recently (stream_at), memory was short. After a recent failure, the
     * stream and the watch are created later. */
    if (!r->watch && e->core->now() >= e->stream_at) {
        hf__et_unlisten(e, on);
        return HF_ENOMEM;
    }
    hf__et_sent(e, &q->req);
    return HF__PENDING;
}

void hf__et_changes_fini(struct etcd *e)
{
    while (e->changes)
        changes_free(e, e->changes);
}

void hf__et_changes_up(struct etcd *e)
{
    for (struct et_changes *r = e->changes; r; r = r->next)
        changes_begin(e, r);
}

void hf__et_changes_down(struct etcd *e)
{
    for (struct et_changes *r = e->changes; r; r = r->next)
        if (r->q)
            changes_answer(e, r, HF_EUNKNOWN);
}
