/*
 * Watches: a program is told that something about a name, or about the names
 * that begin with a prefix, may have changed.
 *
 * The backend marks a watch (hf__core.changed), which needs no memory: so no
 * change is lost, and several may be one call. A watch that is marked is in
 * client->changed, unless its callback is running: then it is put there when
 * the callback is over. All of it is guarded by client->mu.
 */
#include "core.h"

#include <string.h>

struct hf_watch {
    struct hf__listener on;
    hf_watch *next, *prev; /* client->changed: if it is changed, not calling */
    hf_client *client;
    hf_watch_fn fn;
    void *arg;
    pthread_t caller; /* while it is calling */
    bool changed, calling;
    bool freed;       /* by its own callback: its caller does it */
    size_t heard_len; /* of the name that has changed; HF_CSTRING: any */
    char heard[HF_NAME_MAX + 1];
    char name[]; /* with the client's prefix */
};

static void ring(hf_client *c, hf_watch *w)
{
    hf__queue_add(c->changed, c->changed_tail, w);
    c->changed_len++;
    hf__fd_post(c->ready_fd);
}

static void unring(hf_client *c, hf_watch *w)
{
    hf__queue_remove(c->changed, c->changed_tail, w);
    c->changed_len--;
}

void hf__watch_changed(hf_client *c, struct hf__listener *on, const char *name,
                       size_t len)
{
    hf_watch *w = hf__container(on, hf_watch, on);
    size_t skip = strlen(c->prefix);

    if (!name || len < skip || len - skip > HF_NAME_MAX)
        len = HF_CSTRING;
    else
        len -= skip;
    if (w->changed && (w->heard_len != len || len == HF_CSTRING ||
                       memcmp(w->heard, name + skip, len) != 0))
        len = HF_CSTRING;
    if (len != HF_CSTRING) {
        memcpy(w->heard, name + skip, len);
        w->heard[len] = '\0';
    }
    w->heard_len = len;
    if (!w->changed && !w->calling)
        ring(c, w);
    w->changed = true;
}

static void leave_locked(hf_watch *w)
{
    hf_client *c = w->client;

    if (c->self)
        c->be->unlisten(c->self, &w->on);
    if (w->changed && !w->calling)
        unring(c, w);
}

void hf__watch_drop_locked(struct hf__listener *on)
{
    hf_watch *w = on ? hf__container(on, hf_watch, on) : NULL;

    if (w) {
        leave_locked(w);
        hf__free(w->client, w);
    }
}

/* ---- calling ------------------------------------------------------------ */

static void call(hf_watch *w)
{
    hf_client *c = w->client;
    char heard[HF_NAME_MAX + 1];
    const char *name = heard;
    size_t len = w->heard_len;

    memcpy(heard, w->heard, sizeof(heard));
    hf__mutex_unlock(&c->mu);
    if (!w->on.is_prefix) {
        name = w->name + strlen(c->prefix);
        len = strlen(name);
    } else if (len == HF_CSTRING) {
        name = NULL;
        len = 0;
    }
    w->fn(w->arg, w, name, len);
}

/* False: there is none. What it marks or frees meanwhile is seen to here. */
static bool call_next(hf_client *c)
{
    hf_watch *w;
    bool freed;

    hf__mutex_lock(&c->mu);
    w = c->changed;
    if (!w) {
        hf__mutex_unlock(&c->mu);
        return false;
    }
    unring(c, w);
    w->changed = false;
    w->calling = true;
    w->caller = pthread_self();
    call(w);
    if (hf__client_check(c) == HF_EFORK)
        return true;
    hf__mutex_lock(&c->mu);
    w->calling = false;
    freed = w->freed;
    if (w->changed && !freed)
        ring(c, w);
    hf__mutex_unlock(&c->mu);
    if (freed) {
        hf__free(c, w);
        hf__client_put(c);
    }
    return true;
}

int hf__watch_call_all(hf_client *c)
{
    size_t left;
    int called = 0;

    hf__mutex_lock(&c->mu);
    left = c->changed_len;
    hf__mutex_unlock(&c->mu);
    for (; left && call_next(c); left--, called++)
        if (hf__client_check(c) == HF_EFORK)
            return HF_EFORK;
    return called;
}

/* ---- new, free ---------------------------------------------------------- */

static int check(const void **name, size_t *len, unsigned flags, hf_watch_fn fn,
                 hf_error *err)
{
    if (!fn)
        return hf__fail(err, HF_EINVAL, "fn is NULL");
    if (flags & ~(unsigned)HF_WATCH_PREFIX)
        return hf__fail(err, HF_EINVAL,
                        "flags is 0x%x; it must be 0 or HF_WATCH_PREFIX",
                        flags);
    if (flags && (!*name || (*len == HF_CSTRING && !*(const char *)*name)))
        *len = 0;
    if (!*name)
        *name = flags ? "" : NULL;
    return flags && !*len ? 0 : hf__name_valid(*name, len, err);
}

int hf_watch_new(hf_client *c, const void *name, size_t name_len,
                 unsigned flags, hf_watch_fn fn, void *arg, hf_watch **out,
                 hf_error *err)
{
    struct hf__flight *f;
    hf_watch *w;
    int rc;

    if (!out)
        return hf__fail(err, HF_EINVAL, "out is NULL");
    *out = NULL;
    rc = check(&name, &name_len, flags, fn, err);
    if (rc)
        return rc;
    f = hf__query_begin(c, HF__LISTEN, name, name_len, &rc, err);
    if (!f)
        return rc;
    w = hf__alloc(c, sizeof(*w) + f->query.name_len + 1);
    if (w) {
        memcpy(w->name, f->query.name, f->query.name_len);
        w->on.name = w->name;
        w->on.name_len = f->query.name_len;
        w->on.is_prefix = flags & HF_WATCH_PREFIX;
        w->client = c;
        w->fn = fn;
        w->arg = arg;
        f->query.listener = &w->on;
    }
    rc = hf__query_ask(c, f, w, err);
    if (rc)
        return rc;
    f->query.listener = NULL;
    hf__mutex_lock(&c->mu);
    c->handles++;
    hf__mutex_unlock(&c->mu);
    hf__query_end(c, f);
    *out = w;
    return 0;
}

int hf_watch_free(hf_watch *w)
{
    hf_client *c = w ? w->client : NULL;
    bool in_callback;

    if (!w)
        return 0;
    if (hf__client_check(c) == HF_EFORK)
        return HF_EFORK;
    hf__mutex_lock(&c->mu);
    in_callback = w->calling && pthread_equal(w->caller, pthread_self());
    if (w->calling && !in_callback) {
        hf__mutex_unlock(&c->mu);
        return HF_EBUSY;
    }
    leave_locked(w);
    w->freed = true;
    hf__mutex_unlock(&c->mu);
    if (!in_callback) {
        hf__free(c, w);
        hf__client_put(c);
    }
    return 0;
}
