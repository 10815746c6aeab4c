#include "api/query.h"

#include "base/error.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/time.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/last_error.h"
#include "core/line.h"
#include "core/lock.h"
#include "core/name_text.h"
#include "core/requests.h"
#include "core/watches.h"
#include "loop/request_wait.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void hf_diagnosis_free(hf_diagnosis *d)
{
    if (!d)
        return;
    hf__result_free(d, d->findings);
    hf__result_free(d, d);
}

/* Frees the parts of the answer that the program did not take. client->mu is
 * held. */
static void query_destroy(struct hf__request *f)
{
    struct hf__query *q = &f->query;

    hf_info_free(q->info);
    hf_names_free(q->names);
    hf_diagnosis_free(q->diagnosis);
    hf__watch_remove_locked(q->listener);
}

/* Creates a request whose name is the client's prefix followed by `name`. */
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
    f->destroy = query_destroy;
    return f;
}

struct hf__request *hf__query_new_of(const hf_lock *lock, enum hf__op op,
                                     hf_error *err)
{
    const struct hf__line *n = lock->line;
    size_t prefix = strlen(n->client->prefix);

    return query_new(n->client, op, n->text + prefix,
                     n->remote.name_len - prefix, err);
}

static int query_check_caps(const hf_client *c, enum hf__op op, hf_error *err)
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

static int query_check(hf_client *c, enum hf__op op, const void *name,
                       size_t *len, hf_error *err)
{
    int rc = hf__client_usable(c, err);

    if (!rc)
        rc = query_check_caps(c, op, err);
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

    *rc = query_check(c, op, name, &len, err);
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

/* Fails because the query has failed. For ENOTOWNER (there is no hold) and
 * EBUSY (there is a hold other than the given one) the message names the hold;
 * otherwise it is the backend's message. */
static int query_refused(hf_client *c, const struct hf__request *f,
                         hf_error *err)
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
        rc =
            hf__fail(err, HF_EUNKNOWN, "%s: no answer within %s%s", c->be->name,
                     hf__span(c->op_timeout_ms).text, hf__trouble(c).text);
        hf__client_leave(c);
        return rc;
    }
    rc = given ? f->req.result : hf__fail(err, HF_ENOMEM, "out of memory");
    if (given && rc)
        rc = query_refused(c, f, err);
    if (rc)
        hf__query_end(c, f);
    return rc;
}
