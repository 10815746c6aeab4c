/*
 * A fixed lease ends on the server by itself, whatever the client does. So it
 * is a lease of its own, under which the entry is written. While an entry waits
 * it is under the client's lease. When nobody is before it,
 *
 *   TERM   grants a lease of an id that was chosen at random
 *   MOVE   writes the entry under it, if the entry was not written since
 *
 * and then it is granted. A renewal does the same with another lease. Of two
 * MOVEs only one finds the entry as it was, so one that is done late does
 * nothing. A lease without an entry ends by itself.
 *
 * Entries of read-write locks stay under the client's lease, and the core lets
 * go of them in time: Go's RWMutex orders them by their last change, so they
 * must not be written again.
 */
#include "fixed_lease.h"

#include "backends/common/about.h"

#include "batch.h"
#include "entry.h"
#include "entry_request.h"
#include "etcd.h"
#include "lock.h"
#include "lock_state.h"
#include "txn.h"

#include <string.h>

/* NULL: it is about another entry now. */
static struct et_lock *lease_lock_of(const struct et_request *a)
{
    struct et_lock *l =
        a->batch ? a->batch->item[a->from].remote->impl : a->lock;

    return l->rev == a->rev ? l : NULL;
}

/* ---- requests ----------------------------------------------------------- */

static int lease_grant(struct et_request *a, const struct et_lock *l,
                       uint32_t lease_ms)
{
    struct etcd *e = l->e;
    Etcd__Grant m = ETCD__GRANT__INIT;

    a->rev = l->rev;
    a->lease_ms = lease_ms;
    if (e->core->random(&a->lease, sizeof(a->lease))) {
        hf__et_request_free(e, a);
        return e->core->why(e->client, HF_EBACKEND, "getrandom failed");
    }
    a->lease = (a->lease & INT64_MAX) | 1;
    m.id = a->lease;
    m.ttl = (lease_ms + 999) / 1000;
    return hf__et_request_send(a, &m);
}

int hf__et_term(struct et_lock *l)
{
    struct et_request *a = hf__et_request_new(l->e, ET_TERM, l);

    return a ? lease_grant(a, l, l->attempt->lease_ms) : HF_ENOMEM;
}

int hf__et_term_anew(struct etcd *e, struct hf__batch *b, size_t item)
{
    struct et_request *a = hf__et_request_new(e, ET_TERM, NULL);

    if (!a)
        return HF_ENOMEM;
    a->batch = b;
    a->from = item;
    a->len = 1;
    return lease_grant(a, b->item[item].remote->impl, b->item[item].lease_ms);
}

/* The one before it has ended. */
static void lease_move(const struct et_request *before, struct et_lock *l)
{
    struct etcd *e = l->e;
    struct et_request *a = hf__et_request_new(e, ET_MOVE, before->lock);
    char value[ET_VALUE_MAX];
    struct et_txn t;
    size_t len;
    int rc;

    if (!a) {
        hf__et_term_failed(before, HF_ENOMEM);
        return;
    }
    a->batch = before->batch;
    a->from = before->from;
    a->len = before->len;
    a->rev = before->rev;
    a->lease = before->lease;
    a->lease_ms = before->lease_ms;
    l->moving = a->lease;
    if (!a->batch)
        l->since_ms = hf__wall_ms();
    len = hf__et_value(value, e->about, l->remote->label, a->lease_ms,
                       l->since_ms, hf__wall_ms());
    hf__et_txn(&t);
    hf__et_if_created(&t, l->key, l->key_len, l->rev);
    hf__et_if_changed(&t, l->key, l->key_len, l->mod);
    hf__et_put(&t, ET_THEN, l->key, l->key_len, value, len, a->lease);
    hf__et_range(&t, ET_ELSE, l->key, l->key_len);
    rc = hf__et_request_send(a, &t.m);
    if (rc)
        hf__et_term_failed(before, rc == HF__LATER ? HF_EUNKNOWN : rc);
}

/* ---- answers ------------------------------------------------------------ */

void hf__et_term_failed(const struct et_request *a, int code)
{
    if (a->batch)
        hf__et_checked(a, code, NULL);
    else
        hf__et_entered(a->lock, code);
}

int hf__et_termed(const struct et_request *a, const uint8_t *p, size_t len)
{
    struct etcd *e = a->call.g->owner;
    struct et_lock *l = lease_lock_of(a);
    Etcd__GrantAnswer *m = etcd__grant_answer__unpack(&e->memory, len, p);
    bool is_long = m && m->ttl >= ((int64_t)a->lease_ms + 999) / 1000;

    if (m)
        etcd__grant_answer__free_unpacked(m, &e->memory);
    if (!is_long)
        return HF_EPROTO;
    if (l) {
        lease_move(a, l);
        return 0;
    }
    hf__et_revoke(e, a->lease);
    hf__et_term_failed(a, HF_ENOTOWNER);
    return 0;
}

static void lease_gone(const struct et_request *a)
{
    static const bool is_gone = true;
    struct et_lock *l = a->lock;

    if (a->batch) {
        hf__et_checked(a, 0, &is_gone);
        return;
    }
    hf__et_lock_taken(l);
    hf__et_entered(l, 0);
}

/* Of two that were done the answers may come in another order. */
static void lease_done(const struct et_request *a, struct et_lock *l,
                       int64_t revision)
{
    static const bool is_gone = false;
    int64_t old = l->lease;

    l->moving = 0;
    if (revision >= l->mod) {
        l->mod = revision;
        l->lease = a->lease;
    } else {
        old = a->lease;
    }
    if (old && old != l->lease)
        hf__et_revoke(l->e, old);
    if (a->batch)
        hf__et_checked(a, 0, &is_gone);
    else
        hf__et_granted(l);
}

int hf__et_moved(const struct et_request *a, const Etcd__TxnAnswer *t)
{
    struct et_lock *l = lease_lock_of(a);
    const Etcd__RangeAnswer *r = hf__et_ranged(t, 0);

    if (!l) {
        hf__et_revoke(a->call.g->owner, a->lease);
        hf__et_term_failed(a, HF_ENOTOWNER);
    } else if (t->succeeded) {
        lease_done(a, l, t->header->revision);
    } else if (!r) {
        return HF_EPROTO;
    } else if (!r->n_kvs || r->kvs[0]->create_revision != a->rev) {
        lease_gone(a);
    } else {
        l->mod = r->kvs[0]->mod_revision;
        lease_move(a, l);
    }
    return 0;
}
