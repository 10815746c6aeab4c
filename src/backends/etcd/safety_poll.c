/*
 * A poll is made of transactions, each with as much as fits into it: it
 * succeeds if all is as it was seen, and else its answer shows what is there.
 */
#include "safety_poll.h"

#include "etcd.h"
#include "lock_state.h"
#include "message.h"
#include "txn.h"
#include "watch.h"

#define PAUSE (1800 * HF__MS) /* then no event is missed for 2 s */

static int poll_over(struct grpc_call *, hf__time);

static const struct grpc_method txn = {
    .path = "/etcdserverpb.KV/Txn", .most = ET_ANSWER, .over = poll_over};

/* A lock waits for something that a transaction can check. */
static bool poll_add(struct et_poll *r, struct et_txn *t,
                     const struct et_lock *l)
{
    enum et_wait how = ET_BELOW;
    size_t len = 0;
    const char *key = hf__et_watched(l, &how, &len);
    struct et_polled *x = &r->lock[r->len];

    if (!key || how == ET_BELOW || how == ET_WRITTEN)
        return false;
    *x = (struct et_polled){.hold_id = l->hold_id,
                            .rev = l->rev,
                            .before = l->before,
                            .has_mark = how == ET_PAIR};
    r->len++;
    if (x->rev) {
        hf__et_if_created(t, l->key, l->key_len, l->rev);
        hf__et_range(t, ET_ELSE, l->key, l->key_len);
    }
    hf__et_if_changed(t, key, len, l->before);
    hf__et_range(t, ET_ELSE, key, len);
    if (x->has_mark) {
        hf__et_if_created(t, key, len + 1, 0);
        hf__et_range(t, ET_ELSE, key, len + 1);
    }
    return true;
}

/* Those that have not been checked in this poll. */
static void poll_fill(struct etcd *e, struct et_txn *t)
{
    struct et_poll *r = &e->poll;

    r->len = 0;
    hf__et_txn(t);
    for (struct et_lock *l = e->locks;
         l && r->len < ET_POLLED && t->len + 3 <= ET_OPS; l = l->next) {
        if (l->state != ET_QUEUED || l->poll_no == r->no)
            continue;
        l->poll_no = r->no;
        r->any = true;
        if (!poll_add(r, t, l))
            hf__et_ring(l);
    }
}

static void poll_locks(struct etcd *e, hf__time now)
{
    struct et_poll *r = &e->poll;
    struct et_txn t;

    poll_fill(e, &t);
    /* Does the member still have its leader? */
    if (!r->len && r->any && !r->has_checked)
        hf__et_range(&t, ET_THEN, e->guard_key, e->guard_len);
    if (!r->has_checked && r->any) /* is it there at all? */
        hf__grpc_ping(&e->g, now);
    r->has_checked = true;
    if (t.len && !hf__et_pack(&r->call, &t.m) &&
        !hf__grpc_start(&r->call, ET_CALL_MS))
        return;
    r->no++;
    r->at = r->any ? now + PAUSE : HF__NEVER;
    r->any = r->has_checked = false;
}

static const Etcd__KeyValue *poll_found(const Etcd__TxnAnswer *t, size_t i)
{
    const Etcd__RangeAnswer *r = hf__et_ranged(t, i);

    return r && r->n_kvs ? r->kvs[0] : NULL;
}

/* *i: the next part of the answer. */
static bool poll_is_same(const struct et_polled *x, const Etcd__TxnAnswer *t,
                         size_t *i)
{
    const Etcd__KeyValue *own = x->rev ? poll_found(t, (*i)++) : NULL,
                         *before = poll_found(t, (*i)++),
                         *mark = x->has_mark ? poll_found(t, (*i)++) : NULL;

    return (!x->rev || (own && own->create_revision == x->rev)) && before &&
           before->mod_revision == x->before && !mark;
}

static void poll_compare(struct etcd *e, const Etcd__TxnAnswer *t)
{
    const struct et_poll *r = &e->poll;
    size_t i = 0;

    for (size_t k = 0; k < r->len; k++) {
        struct et_lock *l = hf__et_lock_of(e, r->lock[k].hold_id);

        if (!poll_is_same(&r->lock[k], t, &i) && l && l->state == ET_QUEUED)
            hf__et_ring(l);
    }
}

static int poll_over(struct grpc_call *c, hf__time now)
{
    struct etcd *e = c->owner;
    Etcd__TxnAnswer *t = NULL;
    const uint8_t *p;
    size_t len;

    if (c->end == GRPC_ANSWERED && !c->status) {
        p = hf__grpc_answer(c, &len);
        t = etcd__txn_answer__unpack(&e->memory, len, p);
        e->is_short = false;
    }
    if (t && !t->succeeded)
        poll_compare(e, t);
    if (t)
        etcd__txn_answer__free_unpacked(t, &e->memory);
    poll_locks(e, now);
    return 0;
}

hf__time hf__et_poll_timeout(const struct etcd *e)
{
    return hf__grpc_is_idle(&e->poll.call) ? e->poll.at : HF__NEVER;
}

void hf__et_poll_wanted(struct etcd *e)
{
    if (e->poll.at == HF__NEVER)
        e->poll.at = e->core->now() + PAUSE;
}

void hf__et_poll(struct etcd *e, hf__time now)
{
    if (hf__grpc_is_idle(&e->poll.call) && now >= e->poll.at)
        poll_locks(e, now);
}

void hf__et_poll_init(struct etcd *e)
{
    e->poll.no = 1;
    e->poll.at = HF__NEVER;
    hf__grpc_call_init(&e->poll.call, &e->g, &txn, e);
}
