/* A value that is written by the server that keeps the lock, for its holder
 * alone. */
#include "core.h"

#include <string.h>

/* What is sent: the key stands behind the flight, the value behind the key. */
static struct hf__flight *make(hf_client *c, const void *key, size_t key_len,
                               const void *value, size_t value_len)
{
    struct hf__flight *f = hf__flight_new(c, key_len + 1 + value_len);
    char *text;

    if (!f)
        return NULL;
    text = (char *)(f + 1);
    memcpy(text, key, key_len);
    if (value_len)
        memcpy(text + key_len + 1, value, value_len);
    f->req.op = HF__PUT;
    f->query.name = text;
    f->query.name_len = key_len;
    f->query.value = text + key_len + 1;
    f->query.value_len = value_len;
    return f;
}

/* Whose hold it is; name->mu is held. */
static int find(hf_lock *lock, struct hf__name **line, hf_error *err)
{
    struct hf__thread *thread;
    uint64_t owner = hf__owner_of(lock, &thread);
    hf__time now = hf__now();
    int rc;

    *line = hf__line_held(lock->name, owner);
    rc = owner ? hf__gate_check(&(*line)->gate, owner, now) : HF_ENOTOWNER;
    if (rc)
        hf__name_run(*line, now);
    return rc ? hf__fail(err, rc, "%s", hf_error_text(rc)) : 0;
}

static void unref(struct hf__name *line)
{
    hf_client *c = line->client;

    hf__mutex_lock(&c->mu);
    hf__name_unref_locked(line);
    hf__mutex_unlock(&c->mu);
}

/* The server does not know the hold of that id any more. */
static int lost(struct hf__name *line, uint64_t hold_id, hf_error *err)
{
    hf__name_lock(line);
    if (line->gate.lease.hold_id == hold_id && line->gate.owner)
        hf__gate_lose(&line->gate, true);
    hf__name_run(line, hf__now());
    hf__name_unlock(line);
    return hf__fail(err, HF_ELOST, "the hold was lost, nothing was written");
}

/* Sends it; *line has a reference of ours then, and f is under way. */
static int begin(hf_lock *lock, struct hf__flight *f, struct hf__sleeper *s,
                 struct hf__name **line, hf_error *err)
{
    int rc = hf__lock_enter(lock, err);

    if (rc)
        return rc;
    rc = find(lock, line, err);
    if (!rc) {
        f->req.hold_id = (*line)->gate.lease.hold_id;
        f->query.line = &(*line)->remote;
        hf__mutex_lock(&(*line)->client->mu);
        (*line)->refs++;
        hf__mutex_unlock(&(*line)->client->mu);
        hf__flight_begin((*line)->client, f, s);
    }
    hf__name_unlock(lock->name);
    return rc;
}

static int put(hf_lock *lock, struct hf__flight *f, hf_error *err)
{
    hf_client *c = lock->name->client;
    struct hf__name *line;
    struct hf__sleeper s;
    uint64_t hold_id;
    int rc = begin(lock, f, &s, &line, err);

    if (rc) {
        hf__flight_free(c, f);
        return rc;
    }
    if (!hf__flight_end(c, f)) {
        unref(line);
        return hf__fail(err, HF_EUNKNOWN, "%s: no answer within %u ms",
                        c->be->name, c->op_timeout_ms);
    }
    rc = f->req.result;
    hold_id = f->req.hold_id;
    hf__flight_free(c, f);
    if (rc == HF_ENOTOWNER)
        rc = lost(line, hold_id, err);
    else if (rc)
        hf__fail_why(c, err, rc);
    unref(line);
    return rc;
}

static int check(hf_lock *lock, const void *key, size_t *key_len,
                 const void *value, size_t value_len, hf_error *err)
{
    int rc = hf__lock_check(lock, err);

    if (!rc)
        rc = hf__name_valid(key, key_len, err);
    if (rc)
        return rc;
    if (value_len > HF_PUT_MAX || (value_len && !value))
        return hf__fail(err, HF_EINVAL,
                        "value has %zu bytes; up to %d would be right",
                        value_len, HF_PUT_MAX);
    if (!(lock->name->client->caps[lock->name->remote.kind] & HF_CAP_PUT))
        return hf__fail(err, HF_ENOTSUP,
                        "the %s backend writes nothing for holders",
                        lock->name->client->be->name);
    return 0;
}

int hf_lock_put(hf_lock *lock, const void *key, size_t key_len,
                const void *value, size_t value_len, hf_error *err)
{
    struct hf__flight *f;
    hf_client *c;
    int rc = check(lock, key, &key_len, value, value_len, err);

    if (rc)
        return rc;
    c = lock->name->client;
    if (!hf__client_enter(c))
        return hf__fail(err, HF_ECLOSED, "the client of this lock was closed");
    f = make(c, key, key_len, value, value_len);
    rc = f ? put(lock, f, err) : hf__fail(err, HF_ENOMEM, "out of memory");
    hf__client_leave(c);
    return rc;
}
