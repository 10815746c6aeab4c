/* Verbs that show who holds a lock, who waits for it, and which names exist;
 * that ask a holder for a lock; and that break a hold. */
#include "api/query.h"
#include "base/error.h"
#include "base/text.h"
#include "base/uncancelled.h"
#include "core/client.h"
#include "core/hooks.h"
#include "core/requests.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void inspect_make_printable(hf_party *parties, size_t len)
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
    inspect_make_printable((*out)->holders, (*out)->holders_len);
    inspect_make_printable((*out)->waiters, (*out)->waiters_len);
    hf__query_end(c, f);
    return 0;
}

static int inspect_by_bytes(const void *a, const void *b)
{
    const struct hf_name *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->len < y->len ? x->len : y->len);

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Sorts the names, and drops duplicates that the backend has found. */
static void inspect_sort_names(hf_client *c, hf_names *names)
{
    size_t len = 0;

    if (!names->len)
        return;
    qsort(names->names, names->len, sizeof(*names->names), inspect_by_bytes);
    for (size_t i = 1; i < names->len; i++) {
        if (inspect_by_bytes(&names->names[len], &names->names[i]) != 0)
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
    inspect_sort_names(c, f->query.names);
    *out = f->query.names;
    f->query.names = NULL;
    hf__query_end(c, f);
    return 0;
}

/* Sends a BREAK or an ASK, and waits for the answer. */
static int inspect_to_holder(hf_client *c, enum hf__op op, const void *name,
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
    return inspect_to_holder(c, HF__BREAK, name, name_len, token, owner, err);
}

int hf_break(hf_client *c, const void *name, size_t name_len, hf_error *err)
{
    return inspect_to_holder(c, HF__BREAK, name, name_len, 0, "", err);
}

int hf_ask(hf_client *c, const void *name, size_t name_len, hf_error *err)
{
    return inspect_to_holder(c, HF__ASK, name, name_len, 0, "", err);
}
