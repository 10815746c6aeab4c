/* hf_lock_put(): makes the server of a lock write a value, if the caller still
 * holds the lock. */
#include "api/request_verb.h"
#include "base/error.h"
#include "core/async.h"
#include "core/client.h"
#include "core/last_error.h"
#include "core/line_pick.h"
#include "core/lock.h"
#include "core/name_text.h"
#include "core/requests.h"

#include <string.h>

/* What hf_lock_put() writes. */
struct hf__put {
    const void *key;
    size_t key_len;
    const void *value;
    size_t value_len;
};

/* Creates the request, followed in memory by copies of the key and the
 * value. */
static struct hf__request *put_make(hf_client *c, const struct hf__put *p,
                                    hf_error *err)
{
    struct hf__request *f =
        hf__request_new(c, HF__PUT, p->key_len + 1 + p->value_len, err);
    char *text;

    if (!f)
        return NULL;
    text = (char *)(f + 1);
    memcpy(text, p->key, p->key_len);
    if (p->value_len)
        memcpy(text + p->key_len + 1, p->value, p->value_len);
    f->query.name = text;
    f->query.name_len = p->key_len;
    f->query.value = text + p->key_len + 1;
    f->query.value_len = p->value_len;
    return f;
}

static int put_check_key(struct hf__put *p, hf_error *err)
{
    int rc = hf__name_valid(p->key, &p->key_len, NULL);

    if (!p->key)
        return hf__fail(err, rc, "key is NULL");
    if (rc && (!p->key_len || p->key_len > HF_NAME_MAX))
        return hf__fail(err, rc, "key has %zu bytes; it must have 1 to %d",
                        p->key_len, HF_NAME_MAX);
    return rc ? hf__fail(err, rc, "key has a NUL in it") : 0;
}

static int put_check(const hf_lock *lock, struct hf__put *p, hf_error *err)
{
    const hf_client *c = lock->line->client;
    int rc = put_check_key(p, err);

    if (rc)
        return rc;
    if (p->value_len && !p->value)
        return hf__fail(err, HF_EINVAL,
                        "value is NULL, and value_len is %zu; it must be 0",
                        p->value_len);
    if (p->value_len > HF_PUT_MAX)
        return hf__fail(err, HF_EINVAL,
                        "value has %zu bytes; it must have at most %d",
                        p->value_len, HF_PUT_MAX);
    if (!(c->caps[lock->line->remote.kind] & HF_CAP_PUT))
        return hf__fail(err, HF_ENOTSUP,
                        "the %s backend has no guarded writes (HF_CAP_PUT)",
                        c->be->name);
    return 0;
}

static int put_begin(hf_lock *lock, struct hf__verb_call *t, hf_error *err)
{
    struct hf__put p = *t->put;
    struct hf__request *f;
    int rc = put_check(lock, &p, err);

    /* t->put is not used after this call, because put_make() copies the key and
     * the value. */
    t->put = NULL;
    if (!rc)
        rc = hf__pick_check(lock, &t->line, err);
    if (rc)
        return rc;
    f = put_make(lock->line->client, &p, err);
    if (!f)
        return HF_ENOMEM;
    t->hold_id = t->line->queue.lease.hold_id;
    f->req.hold_id = t->hold_id;
    f->query.line = &t->line->remote;
    hf__verb_send(lock->line->client, t, f);
    return 0;
}

static int put_answered(hf_lock *lock, struct hf__verb_call *t,
                        const struct hf__request *f, hf_error *err)
{
    int rc = f->req.result;

    if (rc == HF_ENOTOWNER)
        return hf__verb_lost(lock, t, err);
    return rc ? hf__fail_word(lock->line->client, &f->why, err, rc) : 0;
}

static const struct hf__verb put = {"the write", put_begin, put_answered};

int hf_lock_put(hf_lock *lock, const void *key, size_t key_len,
                const void *value, size_t value_len, hf_error *err)
{
    struct hf__put p = {key, key_len, value, value_len};
    struct hf__verb_call what = {.verb = &put, .put = &p};

    return hf__verb_run(lock, &what, err);
}

int hf_lock_put_async(hf_lock *lock, const void *key, size_t key_len,
                      const void *value, size_t value_len, hf_done_fn done,
                      void *arg, hf_error *err)
{
    struct hf__put p = {key, key_len, value, value_len};
    struct hf__verb_call what = {.verb = &put, .put = &p};

    return hf__verb_run_async(lock, &what, (union hf__done){done}, arg, err);
}
