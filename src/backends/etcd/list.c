#include "list.h"

#include "entry.h"
#include "etcd.h"
#include "query.h"
#include "txn.h"

#include <string.h>

#define PAGE 1000

struct walk {
    struct et_query base;
    size_t end_len;
    struct hf__table names; /* names that were reported already */
};

static void list_fini(struct et_query *x)
{
    hf__table_fini(&((struct walk *)x)->names);
}

static void send_list(struct et_query *x, struct et_txn *t)
{
    Etcd__Range *r = hf__et_range(t, ET_THEN, x->key, x->len);

    r->range_end.data = (uint8_t *)x->end;
    r->range_end.len = ((struct walk *)x)->end_len;
    r->limit = PAGE;
}

static int list_found(struct walk *w, const char *name, size_t len)
{
    const struct hf__query *q = w->base.q;
    struct etcd *e = w->base.e;

    if (len < q->name_len || len > HF_NAME_MAX ||
        memcmp(name, q->name, q->name_len) != 0 ||
        hf__et_is_reserved(name, len))
        return 0;
    if (hf__table_find(&w->names, 0, name, len))
        return 0;
    if (!hf__table_add(&w->names, sizeof(struct hf__keyed), 0, name, len))
        return HF_ENOMEM;
    return e->core->add_name(e->client, w->base.q, name, len);
}

static int listed(struct et_query *x, const Etcd__TxnAnswer *t)
{
    struct walk *w = (struct walk *)x;
    const Etcd__RangeAnswer *r = hf__et_ranged(t, 0);
    size_t root = strlen(x->e->root);
    int rc = 0;

    if (!r)
        return HF_EPROTO;
    for (size_t i = 0; i < r->n_kvs && !rc; i++) {
        const ProtobufCBinaryData *key = &r->kvs[i]->key;
        size_t len;

        if (key->len < root)
            return HF_EPROTO;
        len = hf__et_name_len((char *)key->data + root, key->len - root);
        if (len)
            rc = list_found(w, (char *)key->data + root, len);
    }
    if (rc || !r->more || !r->n_kvs)
        return rc;
    hf__et_behind(x->key, &x->len, &r->kvs[r->n_kvs - 1]->key);
    return HF__PENDING;
}

int hf__et_list(struct etcd *e, struct hf__query *q)
{
    static const struct et_play play = {.size = sizeof(struct walk),
                                        .send = send_list,
                                        .answered = listed,
                                        .fini = list_fini};
    int rc;
    struct walk *w = hf__et_query_new(e, q, &play, "", &rc);

    if (!w)
        return rc;
    w->names.core = e->core;
    w->names.client = e->client;
    w->end_len = hf__et_prefix(w->base.key, &w->base.len, w->base.end);
    return hf__et_query_begin(&w->base);
}
