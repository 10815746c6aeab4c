#include "answer.h"

#include "batch.h"
#include "entry.h"
#include "entry_request.h"
#include "etcd.h"
#include "exchange.h"
#include "lease.h"
#include "lock.h"
#include "lock_state.h"
#include "txn.h"

#include <string.h>

static bool answer_is_below(const struct et_lock *l,
                            const ProtobufCBinaryData *key)
{
    return key->len > l->dir_len && key->len <= ET_KEY_MAX &&
           memcmp(key->data, l->key, l->dir_len) == 0;
}

static void answer_keep(struct et_ahead *s, const Etcd__KeyValue *kv)
{
    if (s->len)
        return;
    memcpy(s->before, kv->key.data, kv->key.len);
    s->len = kv->key.len;
}

/* Notes an entry that is older than ours. Must be called for the youngest entry
 * first. Returns true if entries that are even older do not matter. */
static bool answer_consider(struct et_request *a, const Etcd__KeyValue *kv)
{
    const struct et_lock *l = a->lock;
    const ProtobufCBinaryData *key = &kv->key;
    struct et_ahead *s = &a->ahead;
    uint32_t permits = 0, size = 0;
    enum et_form form =
        answer_is_below(l, key)
            ? hf__et_form((char *)key->data + l->dir_len, key->len - l->dir_len,
                          &permits, &size)
            : ET_FORM_NONE;

    if (form == ET_FORM_NONE || form == ET_FORM_MARK)
        return false;
    if (hf__et_kind(form) != l->remote->kind) {
        s->other = form;
        return true;
    }
    if (form == ET_FORM_PERMIT && size != l->remote->permits) {
        s->other = form;
        s->size = size;
        return true;
    }
    s->permits += permits;
    if (l->form != ET_FORM_READ || form == ET_FORM_WRITE)
        answer_keep(s, kv);
    return !hf__et_needs_all(l);
}

/* Returns the create revision that ends this page, whose entries go from the
 * youngest to the oldest: only entries newer than that revision count, and the
 * next page begins at it. Returns 0 if this is the last page. A transaction may
 * have created several keys, which share a revision and may not all be on this
 * page. Therefore the page's last revision is left to the next page, unless it
 * fills a page of the largest size. */
static int64_t answer_page_end(const struct et_request *a,
                               const Etcd__RangeAnswer *r)
{
    int64_t last = r->more ? r->kvs[r->n_kvs - 1]->create_revision : 0;
    bool is_all = r->kvs[0]->create_revision == last;

    return is_all && a->limit == ET_VIEW_MAX && last > 0 ? last - 1 : last;
}

/* Notes those entries in part i of the answer that are older than the lock's
 * own. Then reads the next page, or lets the lock take its next step. */
static int answer_decide(struct et_request *a, const Etcd__TxnAnswer *t,
                         size_t i)
{
    struct et_lock *l = a->lock;
    const Etcd__RangeAnswer *r = hf__et_ranged(t, i);
    int64_t from = a->below ? a->below : l->rev, end;
    bool is_over = false;
    int rc;

    if (!r)
        return HF_EPROTO;
    end = r->n_kvs ? answer_page_end(a, r) : 0;
    for (size_t k = 0; k < r->n_kvs && !is_over; k++) {
        int64_t rev = r->kvs[k]->create_revision;

        if (rev < from && rev > end)
            is_over = answer_consider(a, r->kvs[k]);
    }
    l->is_fresh = a->op == ET_ENTER;
    if (!a->view)
        a->view = t->header->revision;
    if (is_over || !r->more || !r->n_kvs) {
        hf__et_queue_read(l, &a->ahead, a->view);
        return 0;
    }
    a->below = end < from ? end + 1 : from;
    rc = hf__et_read_queue(l, a);
    if (rc)
        hf__et_stepped(l, rc == HF__LATER ? HF_EUNKNOWN : rc);
    return 0;
}

static bool answer_is_ours(const struct et_lock *l, const Etcd__KeyValue *kv)
{
    return l->form != ET_FORM_UNFAIR || kv->lease == l->e->lease;
}

/* Handles an ENTER that created nothing: the entry exists already, or the guard
 * was deleted, or the guard was written after the revision that the ENTER
 * required. */
static int answer_not_entered(struct et_lock *l, const Etcd__TxnAnswer *t)
{
    struct etcd *e = l->e;
    const Etcd__RangeAnswer *mine = hf__et_ranged(t, 0),
                            *guard = hf__et_ranged(t, 1);
    struct et_ahead s = {0};

    if (!mine || !guard)
        return HF_EPROTO;
    if (!guard->n_kvs) /* the next connection shows whether the lease is gone */
        return hf__grpc_leave(&e->g, "the client's key has been deleted");
    if (guard->kvs[0]->mod_revision > e->guard) /* otherwise the answer is
                                                   old */
        e->guard = guard->kvs[0]->mod_revision;
    if (mine->n_kvs && !answer_is_ours(l, mine->kvs[0])) {
        l->maybe = false;
        memcpy(s.before, l->key, l->key_len);
        s.len = l->key_len;
        hf__et_queue_read(l, &s, t->header->revision);
        return 0;
    }
    if (mine->n_kvs) {
        l->rev = mine->kvs[0]->create_revision;
        l->maybe = false;
    }
    hf__et_stepped(l, 0);
    return 0;
}

static int answer_entered(struct et_request *a, const Etcd__TxnAnswer *t)
{
    if (!t->succeeded)
        return answer_not_entered(a->lock, t);
    a->lock->rev = t->header->revision;
    a->lock->maybe = false;
    return answer_decide(a, t, 1);
}

/* Handles the answer to a READ_MARK, which contains the writer and its mark,
 * one of them, or neither. */
static int answer_mark_read(struct et_request *a, const Etcd__TxnAnswer *t)
{
    const Etcd__RangeAnswer *r = hf__et_ranged(t, 0);
    bool is_there = false, is_marked = false;

    if (!r)
        return HF_EPROTO;
    for (size_t i = 0; i < r->n_kvs; i++) {
        is_there = is_there || r->kvs[i]->key.len == a->ahead.len;
        is_marked = is_marked || r->kvs[i]->key.len > a->ahead.len;
    }
    if (!is_there) /* the writer is gone, but an older one may block us */
        hf__et_stepped(a->lock, 0);
    else
        hf__et_mark_read(a->lock, &a->ahead, !is_marked, t->header->revision);
    return 0;
}

static int answer_counted(struct et_request *a, const Etcd__TxnAnswer *t)
{
    const Etcd__RangeAnswer *r = hf__et_ranged(t, 0);

    if (!r)
        return HF_EPROTO;
    hf__et_counted(a->lock, r->n_kvs ? r->kvs[0]->create_revision : 0,
                   t->header->revision);
    return 0;
}

/* Handles the answer to a CONFIRM. If the CONFIRM has found an entry of this
 * client, a DROP deletes that entry next, by its create revision. */
static int answer_confirmed(struct et_request *a, const Etcd__TxnAnswer *t)
{
    struct et_lock *l = a->lock;
    const Etcd__RangeAnswer *r = hf__et_ranged(t, 1);
    const Etcd__KeyValue *kv;

    if (!r)
        return HF_EPROTO;
    if (t->header->revision > l->e->guard)
        l->e->guard = t->header->revision;
    kv = r->n_kvs ? r->kvs[0] : NULL;
    if (kv && kv->create_revision != l->rev && kv->lease != l->e->lease)
        kv = NULL; /* this is another client's entry */
    l->is_late = kv && l->rev && kv->create_revision != l->rev;
    l->rev = kv ? kv->create_revision : 0;
    l->maybe = l->doubt = false;
    if (!kv) {
        hf__et_lock_taken(l);
        hf__et_dropped(l, 0, false);
    } else if (hf__et_drop(l)) {
        hf__et_dropped(l, HF_EUNKNOWN, false);
    }
    return 0;
}

static int answer_dropped(struct et_request *a, const Etcd__TxnAnswer *t)
{
    struct et_lock *l = a->lock;
    const Etcd__DeleteAnswer *d = hf__et_deleted(t, 0);
    bool was_there = !l->is_late && t->succeeded && d && d->deleted > 0;

    if (t->succeeded && !d)
        return HF_EPROTO;
    hf__et_lock_taken(l);
    hf__et_dropped(l, 0, was_there);
    return 0;
}

static int answer_mark_written(struct et_request *a, const Etcd__TxnAnswer *t)
{
    struct et_lock *l = a->batch->item[a->from].remote->impl;
    bool is_gone = !t->succeeded;

    if (t->succeeded && l->rev == a->rev)
        l->mark = ET_MARKED;
    hf__et_checked(a, 0, &is_gone);
    return 0;
}

static int answer_checked(struct et_request *a, const Etcd__TxnAnswer *t)
{
    bool gone[ET_CHECKS] = {false};

    for (size_t i = 0; !t->succeeded && i < a->len; i++) {
        const Etcd__RangeAnswer *r = hf__et_ranged(t, i);
        const struct et_lock *l = a->batch->item[a->from + i].remote->impl;

        if (!r)
            return HF_EPROTO;
        gone[i] = !r->n_kvs || r->kvs[0]->create_revision != l->rev;
    }
    hf__et_checked(a, 0, gone);
    return 0;
}

static int answer_queue_read(struct et_request *a, const Etcd__TxnAnswer *t)
{
    struct et_lock *l = a->lock;

    if (t->succeeded)
        return answer_decide(a, t, 0);
    /* Another client has deleted the entry, or this member does not have the
     * entry yet. So the entry may exist. */
    hf__et_lock_taken(l);
    l->maybe = true;
    hf__et_stepped(l, 0);
    return 0;
}

/* Reads an answer. Detaches the request from its lock first, so that the lock
 * can send another request. */
static int answer_read(struct et_request *a)
{
    static int (*const take[])(struct et_request *, const Etcd__TxnAnswer *) = {
        [ET_ENTER] = answer_entered,
        [ET_READ_QUEUE] = answer_queue_read,
        [ET_READ_MARK] = answer_mark_read,
        [ET_COUNT] = answer_counted,
        [ET_CONFIRM] = answer_confirmed,
        [ET_DROP] = answer_dropped,
        [ET_RENEW] = answer_checked,
        [ET_WRITE_MARK] = answer_mark_written,
    };
    Etcd__TxnAnswer *t = hf__et_txn_read(&a->call);
    int rc = t ? 0 : HF_EPROTO;

    hf__et_request_over(a);
    if (t && take[a->op])
        rc = take[a->op](a, t);
    hf__et_txn_free(&a->call, t);
    return rc;
}

static void answer_fail(const struct et_request *a, int code)
{
    if (a->batch)
        hf__et_checked(a, code, NULL);
    else if (a->op == ET_CONFIRM || a->op == ET_DROP)
        hf__et_dropped(a->lock, code, false);
    else if (a->lock)
        hf__et_stepped(a->lock, code);
}

static int answer_failed(struct grpc_call *c, int code, bool can_repeat)
{
    struct et_request *a = (struct et_request *)c;
    bool is_odd = hf__et_has_answer(c);
    int rc = is_odd ? code : 0;

    (void)can_repeat; /* the core repeats the request */
    hf__et_request_over(a);
    if (code == HF_ENOTOWNER) {
        rc = hf__et_lease_over(c->g->owner,
                               "the server ended the client's lease");
        /* A CONFIRM asks whether the entry is gone. The lease has ended, so the
         * entry is gone. */
        answer_fail(a, a->op == ET_CONFIRM ? 0 : HF_EUNKNOWN);
        return rc;
    }
    if (is_odd)
        code = HF_EUNKNOWN;
    if (code == HF_EUNKNOWN)
        hf__et_request_lost(a);
    answer_fail(a, code);
    return rc;
}

int hf__et_answered(struct grpc_call *c, hf__time now)
{
    struct et_request *a = (struct et_request *)c;
    int rc = 0;

    (void)now;
    if (c->end == GRPC_UNSENT && a->lock) {
        hf__et_request_over(a);
        hf__et_unsent(a->lock);
    } else {
        rc = hf__et_has_answer(c) ? answer_read(a) : HF_EPROTO;
        if (rc == HF_EPROTO)
            rc = hf__et_failed(c, answer_failed);
    }
    hf__et_request_free(c->g->owner, a);
    return rc;
}
