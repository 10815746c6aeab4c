/*
 * Writes of a holder: a value, if the hold still exists, and the mark (entry.h)
 * of a writer that is downgraded.
 *
 * If the answer to a write of a value is lost, the write may be carried out
 * later, and would then overwrite a newer value of the same holder. Therefore
 * each write requires that the guard is unchanged. The next write after a lost
 * answer also writes the guard, which makes the lost write fail.
 */
#include "put.h"

#include "entry.h"
#include "entry_request.h"
#include "etcd.h"
#include "lock.h"
#include "lock_state.h"
#include "query.h"
#include "txn.h"
#include "watch.h"

#include <string.h>

struct put {
    struct et_query base;
    int64_t rev;
    bool bumps;       /* the transaction also writes the guard */
    bool is_answered; /* false if the write may be carried out late */
    size_t entry_len;
    char entry[ET_KEY_MAX];
};

/* If a release waits for the end of this write, lets the release proceed. (The
 * server carries out requests in any order, so the two must not be under way
 * together.) */
static void put_over(struct et_query *x)
{
    struct et_lock *l = hf__et_lock_of(x->e, x->q->req.hold_id);

    if (l && !x->e->is_closing)
        hf__et_has_written(l);
}

static void put_fini(struct et_query *x)
{
    struct put *p = (struct put *)x;

    if (!p->is_answered)
        x->e->put_doubt = true;
    put_over(x);
}

static void send_put(struct et_query *x, struct et_txn *t)
{
    struct put *p = (struct put *)x;
    struct etcd *e = x->e;

    if (!p->is_answered)
        e->put_doubt = true; /* the previous request may still be carried out */
    p->bumps = e->put_doubt;
    p->is_answered = false;
    hf__et_if_created(t, p->entry, p->entry_len, p->rev);
    hf__et_if_changed(t, e->guard_key, e->guard_len, e->guard);
    hf__et_put(t, ET_THEN, x->key, x->len, x->q->value, x->q->value_len, 0);
    if (p->bumps)
        hf__et_put(t, ET_THEN, e->guard_key, e->guard_len, e->about,
                   strlen(e->about), e->lease);
    hf__et_range(t, ET_ELSE, p->entry, p->entry_len);
    hf__et_range(t, ET_ELSE, e->guard_key, e->guard_len);
}

static int put_written(struct et_query *x, const Etcd__TxnAnswer *t)
{
    struct put *p = (struct put *)x;
    struct etcd *e = x->e;
    const Etcd__RangeAnswer *mine = hf__et_ranged(t, 0),
                            *guard = hf__et_ranged(t, 1);

    p->is_answered = true;
    if (t->succeeded) {
        if (p->bumps) {
            if (t->header->revision > e->guard)
                e->guard = t->header->revision;
            e->put_doubt = false;
        }
        return HF__DONE;
    }
    if (!mine || !guard)
        return HF_EPROTO;
    if (!mine->n_kvs || mine->kvs[0]->create_revision != p->rev)
        return HF_ENOTOWNER;
    if (!guard->n_kvs)
        return e->core->why(e->client, HF_EBACKEND,
                            "the client's key has been deleted; nothing was "
                            "written");
    if (guard->kvs[0]->mod_revision > e->guard)
        e->guard = guard->kvs[0]->mod_revision;
    return HF__PENDING;
}

static bool put_has_hold(const struct et_lock *l, const struct hf__query *q)
{
    return l->rev && l->state == ET_HELD && l->hold_id == q->req.hold_id;
}

int hf__et_put_value(struct etcd *e, struct hf__query *q)
{
    static const struct et_play play = {.size = sizeof(struct put),
                                        .send = send_put,
                                        .answered = put_written,
                                        .fini = put_fini};
    struct et_lock *l = q->line->impl;
    struct put *p;
    int rc;

    if (!put_has_hold(l, q))
        return HF_ENOTOWNER;
    if (hf__et_is_reserved(q->name, q->name_len))
        return e->core->why(e->client, HF_EINVAL,
                            "a part of the key begins with \"" ET_OURS
                            "\", which is reserved for holdfast's keys");
    if (hf__et_name_len(q->name, q->name_len))
        return e->core->why(e->client, HF_EINVAL,
                            "the key has the form of an entry of a lock");
    if (e->g.link.state != NET_UP)
        return e->core->why(e->client, HF_EBACKEND,
                            "not connected; nothing was written");
    p = hf__et_query_new(e, q, &play, "", &rc);
    if (!p)
        return rc;
    p->rev = l->rev;
    p->entry_len = l->key_len;
    memcpy(p->entry, l->key, l->key_len);
    p->is_answered = true; /* nothing was sent yet */
    hf__et_writes(l);
    rc = hf__et_query_begin(&p->base);
    return rc == HF__LATER ? HF_EBACKEND : rc;
}

/* ---- downgrade ----------------------------------------------------------- */

static void put_send_mark(struct et_query *x, struct et_txn *t)
{
    const struct put *p = (struct put *)x;

    hf__et_if_created(t, p->entry, p->entry_len, p->rev);
    hf__et_put(t, ET_THEN, x->key, x->len, "", 0, x->e->lease);
}

static int put_marked(struct et_query *x, const Etcd__TxnAnswer *t)
{
    const struct put *p = (struct put *)x;
    struct et_lock *l = hf__et_lock_of(x->e, x->q->req.hold_id);

    if (l && l->rev == p->rev)
        l->mark = ET_MARKED;
    /* A hold that was released in the meantime needs no mark. */
    return t->succeeded || !l || l->let_go || l->rev != p->rev ? HF__DONE
                                                               : HF_ENOTOWNER;
}

/* Moves the entry and the hold from one lock to the other. */
static void put_move(struct et_lock *from, struct et_lock *into)
{
    hf__et_leave(into);
    into->hold_id = from->hold_id;
    into->rev = from->rev;
    into->form = ET_FORM_WRITE;
    into->key_len = from->key_len;
    memcpy(into->key, from->key, from->key_len);
    into->state = ET_HELD;
    into->mark = ET_MARK_OWED;
    into->doubt = from->doubt;
    into->writes = from->writes;
    from->rev = 0;
    from->hold_id = 0;
    from->writes = 0;
    from->doubt = from->maybe = false;
    hf__et_unhold(from);
    hf__et_watch_own(into);
}

int hf__et_downgrade(struct etcd *e, struct hf__query *q)
{
    static const struct et_play play = {.size = sizeof(struct put),
                                        .send = put_send_mark,
                                        .answered = put_marked,
                                        .fini = put_over};
    struct et_lock *from = q->line->impl, *into = q->into->impl;
    struct put *p;
    int rc;

    if (!put_has_hold(from, q))
        return HF_ENOTOWNER;
    put_move(from, into);
    if (e->g.link.state != NET_UP)
        return HF_EUNKNOWN; /* the next renewal writes the mark */
    p = hf__et_query_new(e, q, &play, "", &rc);
    if (!p)
        return HF_EUNKNOWN;
    p->rev = into->rev;
    p->entry_len = into->key_len;
    memcpy(p->entry, into->key, into->key_len);
    memcpy(p->base.key, into->key, into->key_len);
    p->base.key[into->key_len] = ET_MARK;
    p->base.len = into->key_len + 1;
    hf__et_writes(into);
    rc = hf__et_query_begin(&p->base);
    return rc == HF__PENDING ? rc : HF_EUNKNOWN;
}
