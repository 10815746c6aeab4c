#include "txn.h"

void hf__et_txn(struct et_txn *t)
{
    etcd__txn__init(&t->m);
    t->m.compare = t->compares;
    t->m.success = t->branch[ET_THEN];
    t->m.failure = t->branch[ET_ELSE];
    t->len = 0;
}

static ProtobufCBinaryData txn_bytes(const char *p, size_t len)
{
    return (ProtobufCBinaryData){len, (uint8_t *)p};
}

static Etcd__Compare *txn_compare(struct et_txn *t,
                                  Etcd__Compare__Target target, const char *key,
                                  size_t len)
{
    Etcd__Compare *c = &t->compare[t->m.n_compare];

    t->compares[t->m.n_compare++] = c;
    etcd__compare__init(c);
    c->target = target;
    c->key = txn_bytes(key, len);
    return c;
}

void hf__et_if_created(struct et_txn *t, const char *key, size_t len,
                       int64_t revision)
{
    Etcd__Compare *c = txn_compare(t, ETCD__COMPARE__TARGET__CREATE, key, len);

    c->with_case = ETCD__COMPARE__WITH_CREATE_REVISION;
    c->create_revision = revision;
}

void hf__et_if_changed(struct et_txn *t, const char *key, size_t len,
                       int64_t revision)
{
    Etcd__Compare *c = txn_compare(t, ETCD__COMPARE__TARGET__MOD, key, len);

    c->with_case = ETCD__COMPARE__WITH_MOD_REVISION;
    c->mod_revision = revision;
}

static struct et_txn_op *txn_add(struct et_txn *t, enum et_branch branch)
{
    size_t *len = branch == ET_THEN ? &t->m.n_success : &t->m.n_failure;
    struct et_txn_op *o = &t->op[t->len++];

    etcd__op__init(&o->op);
    t->branch[branch][(*len)++] = &o->op;
    return o;
}

Etcd__Range *hf__et_range(struct et_txn *t, enum et_branch branch,
                          const char *key, size_t len)
{
    struct et_txn_op *o = txn_add(t, branch);

    etcd__range__init(&o->range);
    o->op.op_case = ETCD__OP__OP_RANGE;
    o->op.range = &o->range;
    o->range.key = txn_bytes(key, len);
    o->range.keys_only = true;
    return &o->range;
}

void hf__et_put(struct et_txn *t, enum et_branch branch, const char *key,
                size_t len, const char *value, size_t value_len, int64_t lease)
{
    struct et_txn_op *o = txn_add(t, branch);

    etcd__put__init(&o->put);
    o->op.op_case = ETCD__OP__OP_PUT;
    o->op.put = &o->put;
    o->put.key = txn_bytes(key, len);
    o->put.value = txn_bytes(value, value_len);
    o->put.lease = lease;
}

void hf__et_delete(struct et_txn *t, enum et_branch branch, const char *key,
                   size_t len)
{
    struct et_txn_op *o = txn_add(t, branch);

    etcd__delete__init(&o->delete);
    o->op.op_case = ETCD__OP__OP_DELETE;
    o->op.delete_ = &o->delete;
    o->delete.key = txn_bytes(key, len);
}

static const Etcd__OpAnswer *txn_part(const Etcd__TxnAnswer *t, size_t i,
                                      Etcd__OpAnswer__OpCase what)
{
    const Etcd__OpAnswer *op = i < t->n_responses ? t->responses[i] : NULL;

    return op && op->op_case == what ? op : NULL;
}

const Etcd__RangeAnswer *hf__et_ranged(const Etcd__TxnAnswer *t, size_t i)
{
    const Etcd__OpAnswer *op = txn_part(t, i, ETCD__OP_ANSWER__OP_RANGE);

    return op ? op->range : NULL;
}

const Etcd__DeleteAnswer *hf__et_deleted(const Etcd__TxnAnswer *t, size_t i)
{
    const Etcd__OpAnswer *op = txn_part(t, i, ETCD__OP_ANSWER__OP_DELETE);

    return op ? op->delete_ : NULL;
}
