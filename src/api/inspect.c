/* Who holds, who waits, which names there are; asking for a lock, and taking it
 * away. */
#include "core/client.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name is put behind the client's prefix. */
static struct hf__request *query_new(hf_client *c, enum hf__op op,
                                     const void *name, size_t len,
                                     hf_error *err)
{
    size_t prefix = strlen(c->prefix);
    struct hf__request *f = hf__request_new(c, op, prefix + len + 1, err);
    char *text;

    if (!f)
        return NULL;
    text = (char *)(f + 1);
    memcpy(text, c->prefix, prefix);
    memcpy(text + prefix, name, len);
    f->query.name = text;
    f->query.name_len = prefix + len;
    return f;
}

struct hf__request *hf__query_new_of(const hf_lock *lock, enum hf__op op,
                                     hf_error *err)
{
    const struct hf__line *n = lock->name;
    size_t prefix = strlen(n->client->prefix);

    return query_new(n->client, op, n->text + prefix,
                     n->remote.name_len - prefix, err);
}

static int check_caps(const hf_client *c, enum hf__op op, hf_error *err)
{
    int caps = op == HF__ASK ? HF_CAP_WANTED : HF_CAP_INSPECT;

    if (op == HF__LISTEN && !c->be->unlisten)
        return hf__fail(err, HF_ENOTSUP,
                        "the %s backend does not tell of changes", c->be->name);
    for (int kind = HF_MUTEX; kind <= HF_SEMAPHORE; kind++)
        if (op >= HF__DIAGNOSE || c->caps[kind] & caps)
            return 0;
    return hf__fail(err, HF_ENOTSUP, "the %s backend cannot %s", c->be->name,
                    op == HF__ASK ? "ask a holder to let go"
                                  : "inspect, list or break");
}

static int check(hf_client *c, enum hf__op op, const void *name, size_t *len,
                 hf_error *err)
{
    int rc = hf__client_usable(c, err);

    if (!rc)
        rc = check_caps(c, op, err);
    if (!rc && op != HF__LIST && op < HF__DIAGNOSE)
        rc = hf__name_valid(name, len, err);
    if (!rc && !hf__client_enter(c))
        rc = hf__fail(err, HF_ECLOSED, "the client was closed");
    return rc;
}

struct hf__request *hf__query_begin(hf_client *c, enum hf__op op,
                                    const void *name, size_t len, int *rc,
                                    hf_error *err)
{
    struct hf__request *f;

    *rc = check(c, op, name, &len, err);
    if (*rc)
        return NULL;
    f = query_new(c, op, name, len, err);
    if (!f) {
        *rc = HF_ENOMEM;
        hf__client_leave(c);
    }
    return f;
}

void hf__query_end(hf_client *c, struct hf__request *f)
{
    hf__request_free(c, f);
    hf__client_leave(c);
}

struct given {
    hf_hooks hooks;
    max_align_t it[];
};

void *hf__result_alloc(hf_client *c, size_t size)
{
    struct given *g = hf__alloc(c, sizeof(*g) + size);

    if (!g)
        return NULL;
    g->hooks = c->hooks;
    return g->it;
}

void hf__result_free(void *given, void *part)
{
    struct given *g = hf__container(given, struct given, it);
    hf_hooks hooks = g->hooks;

    hf__free_by(&hooks, part == given ? g : part);
}

void hf_info_free(hf_info *info)
{
    if (!info)
        return;
    hf__result_free(info, info->holders);
    hf__result_free(info, info->waiters);
    hf__result_free(info, info);
}

void hf_names_free(hf_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < names->len; i++)
        hf__result_free(names, names->names[i].bytes);
    hf__result_free(names, names->names);
    hf__result_free(names, names);
}

void hf__query_destroy(struct hf__query *q)
{
    hf_info_free(q->info);
    hf_names_free(q->names);
    hf_diagnosis_free(q->diagnosis);
    hf__watch_remove_locked(q->listener);
}

/* Why nothing was done to a hold, or the backend's word. */
static int refused(hf_client *c, const struct hf__request *f, hf_error *err)
{
    const struct hf__query *q = &f->query;
    struct hf__shown name = hf__show(q->name + strlen(c->prefix));
    char token[48] = "", now[64] = "without a known token";
    int rc = f->req.result;

    if (rc == HF_ENOTOWNER)
        return hf__fail(err, rc, "\"%s\" is not held", name.text);
    if (rc != HF_EBUSY)
        return hf__fail_word(c, &f->why, err, rc);
    if (q->token)
        snprintf(token, sizeof(token), " the token %" PRIu64 "%s", q->token,
                 q->owner[0] ? " and" : "");
    if (q->count)
        snprintf(now, sizeof(now), "with the token %" PRIu64, q->count);
    return hf__fail(
        err, HF_ENOTOWNER, "no hold of \"%s\" has%s%s%s; it is held %s now%s",
        name.text, token, q->owner[0] ? " the owner " : "", q->owner, now,
        q->owner[0] && q->token == q->count ? ", by another owner" : "");
}

int hf__query_run(hf_client *c, struct hf__request *f, const void *given,
                  hf_error *err)
{
    int rc;

    if (given && !hf__request_run(c, f)) {
        rc = hf__fail(err, HF_EUNKNOWN, "%s: no answer within %u ms%s",
                      c->be->name, c->op_timeout_ms, hf__trouble(c).text);
        hf__client_leave(c);
        return rc;
    }
    rc = given ? f->req.result : hf__fail(err, HF_ENOMEM, "out of memory");
    if (given && rc)
        rc = refused(c, f, err);
    if (rc)
        hf__query_end(c, f);
    return rc;
}

static void make_printable(hf_party *parties, size_t len)
{
    for (hf_party *p = parties; p < parties + len; p++) {
        hf__printable(p->owner, sizeof(p->owner));
        hf__printable(p->host, sizeof(p->host));
        hf__printable(p->label, sizeof(p->label));
    }
}

int hf_inspect(hf_client *c, const void *name, size_t name_len, hf_info **out,
               hf_error *err)
{
    HF__UNCANCELLED;
    struct hf__request *f;
    int rc;

    if (!out)
        return hf__fail(err, HF_EINVAL, "out is NULL");
    *out = NULL;
    f = hf__query_begin(c, HF__INSPECT, name, name_len, &rc, err);
    if (!f)
        return rc;
    f->query.info = hf__result_alloc(c, sizeof(hf_info));
    rc = hf__query_run(c, f, f->query.info, err);
    if (rc)
        return rc;
    *out = f->query.info;
    f->query.info = NULL;
    make_printable((*out)->holders, (*out)->holders_len);
    make_printable((*out)->waiters, (*out)->waiters_len);
    hf__query_end(c, f);
    return 0;
}

static int by_bytes(const void *a, const void *b)
{
    const struct hf_name *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* A backend may find a name twice. */
static void sort_names(hf_client *c, hf_names *names)
{
    size_t len = 0;

    if (!names->len)
        return;
    qsort(names->names, names->len, sizeof(*names->names), by_bytes);
    for (size_t i = 1; i < names->len; i++) {
        if (by_bytes(&names->names[len], &names->names[i]) != 0)
            names->names[++len] = names->names[i];
        else
            hf__free(c, names->names[i].bytes);
    }
    names->len = len + 1;
}

int hf_list(hf_client *c, const char *prefix, hf_names **out, hf_error *err)
{
    HF__UNCANCELLED;
    struct hf__request *f;
    int rc;

    if (!out)
        return hf__fail(err, HF_EINVAL, "out is NULL");
    *out = NULL;
    prefix = prefix ? prefix : "";
    f = hf__query_begin(c, HF__LIST, prefix, strlen(prefix), &rc, err);
    if (!f)
        return rc;
    f->query.names = hf__result_alloc(c, sizeof(hf_names));
    rc = hf__query_run(c, f, f->query.names, err);
    if (rc)
        return rc;
    sort_names(c, f->query.names);
    *out = f->query.names;
    f->query.names = NULL;
    hf__query_end(c, f);
    return 0;
}

/* BREAK or ASK: something is done to whoever holds it. */
static int to_holder(hf_client *c, enum hf__op op, const void *name,
                     size_t name_len, uint64_t token, const char *owner,
                     hf_error *err)
{
    HF__UNCANCELLED;
    int rc;
    struct hf__request *f = hf__query_begin(c, op, name, name_len, &rc, err);

    if (!f)
        return rc;
    f->query.token = token;
    memcpy(f->query.owner, owner, strlen(owner) + 1);
    rc = hf__query_run(c, f, f, err);
    if (!rc)
        hf__query_end(c, f);
    return rc;
}

int hf_break_hold(hf_client *c, const void *name, size_t name_len,
                  uint64_t token, const char *owner, hf_error *err)
{
    if (!token && !owner)
        return hf__fail(err, HF_EINVAL,
                        "neither token nor owner is given; hf_break() breaks "
                        "all holds");
    if (owner && !*owner)
        return hf__fail(err, HF_EINVAL, "the owner is not known");
    owner = owner ? owner : "";
    if (strlen(owner) >= sizeof(((hf_party *)NULL)->owner))
        return hf__fail(err, HF_EINVAL,
                        "the owner has %zu bytes; it must be a text of "
                        "hf_party.owner",
                        strlen(owner));
    return to_holder(c, HF__BREAK, name, name_len, token, owner, err);
}

int hf_break(hf_client *c, const void *name, size_t name_len, hf_error *err)
{
    return to_holder(c, HF__BREAK, name, name_len, 0, "", err);
}

int hf_ask(hf_client *c, const void *name, size_t name_len, hf_error *err)
{
    return to_holder(c, HF__ASK, name, name_len, 0, "", err);
}
