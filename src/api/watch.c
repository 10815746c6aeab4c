#include "api/watch.h"

#include "api/query.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/name_text.h"
#include "core/requests.h"
#include "core/watches.h"

#include <string.h>

/* Calls the next callback. client->mu is held, but not during the callback.
 * Returns false if there is no callback to call. */
static bool watch_call_next(hf_client *c)
{
    hf_watch *w = c->changed;
    char heard[HF_NAME_MAX + 1];
    const char *name;

    if (!w)
        return false;
    hf__watch_unring_locked(c, w);
    w->changed = false;
    w->calling = true;
    w->caller = pthread_self();
    strcpy(heard, w->on.is_prefix ? w->heard : w->name + strlen(c->prefix));
    name = heard[0] || !w->on.is_prefix ? heard : NULL;
    hf__mutex_unlock(&c->mu);
    w->fn(w->arg, w, name, strlen(heard));
    if (hf__client_check(c) == HF_EFORK)
        return true; /* a callback forked; this is the child */
    hf__mutex_lock(&c->mu);
    w->calling = false;
    if (w->freed)
        hf__free(c, w);
    else if (w->changed)
        hf__watch_ring_locked(c, w);
    return true;
}

int hf__watch_call_all(hf_client *c)
{
    size_t left;
    int called = 0;

    hf__mutex_lock(&c->mu);
    for (left = c->changed_len; left && watch_call_next(c); left--, called++)
        if (hf__client_check(c) == HF_EFORK)
            return HF_EFORK;
    hf__mutex_unlock(&c->mu);
    return called;
}

static int watch_check(const void **name, size_t *len, unsigned flags,
                       hf_error *err)
{
    if (flags & ~(unsigned)HF_WATCH_PREFIX)
        return hf__fail(err, HF_EINVAL,
                        "flags is 0x%x; it must be 0 or HF_WATCH_PREFIX",
                        flags);
    if (flags &&
        (!*name || !*len || (*len == HF_CSTRING && !*(const char *)*name))) {
        *name = "";
        *len = 0;
        return 0;
    }
    return hf__name_valid(*name, len, err);
}

int hf_watch_new(hf_client *c, const void *name, size_t name_len,
                 unsigned flags, hf_watch_fn fn, void *arg, hf_watch **out,
                 hf_error *err)
{
    HF__UNCANCELLED;
    struct hf__request *f;
    hf_watch *w;
    int rc;

    if (out)
        *out = NULL;
    if (!out || !fn)
        return hf__fail(err, HF_EINVAL, "%s is NULL", out ? "fn" : "out");
    rc = watch_check(&name, &name_len, flags, err);
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
    rc = hf__query_run(c, f, w, err);
    if (rc || !w) /* w is NULL only if rc is ENOMEM */
        return rc;
    f->query.listener = NULL;
    *out = w;
    hf__mutex_lock(&c->mu);
    c->handles++;
    w->given = true;
    if (w->changed)
        hf__watch_ring_locked(c, w);
    hf__mutex_unlock(&c->mu);
    hf__query_end(c, f);
    return 0;
}

int hf_watch_free(hf_watch *w)
{
    HF__UNCANCELLED;
    hf_client *c = w ? w->client : NULL;
    bool busy;

    if (!w)
        return 0;
    if (hf__client_check(c) == HF_EFORK)
        return HF_EFORK;
    hf__mutex_lock(&c->mu);
    busy = w->calling && !pthread_equal(w->caller, pthread_self());
    if (!busy)
        hf__watch_remove_locked(&w->on);
    hf__mutex_unlock(&c->mu);
    if (busy)
        return HF_EBUSY;
    hf__client_put(c);
    return 0;
}
