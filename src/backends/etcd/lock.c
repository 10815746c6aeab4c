#include "lock.h"

#include "backends/common/about.h"
#include "base/list.h"

#include "entry.h"
#include "entry_request.h"
#include "etcd.h"
#include "lease.h"
#include "lock_state.h"
#include "slot.h"
#include "watch.h"

#include <stdio.h>
#include <string.h>

/* ---- attach, detach ------------------------------------------------------ */

static enum et_form lock_form_of(const struct hf__remote *r)
{
    switch (r->kind) {
    case HF_RWLOCK:
        return r->mode == HF_READ ? ET_FORM_READ : ET_FORM_WRITE;
    case HF_SEMAPHORE:
        return ET_FORM_PERMIT;
    case HF_LATCH:
        return ET_FORM_LATCH;
    default:
        return r->fair ? ET_FORM_MUTEX : ET_FORM_UNFAIR;
    }
}

/* Sets the key of the entry that will be created next. */
static void lock_set_key(struct et_lock *l)
{
    const struct hf__req *req = l->attempt;

    l->key_len =
        l->dir_len + hf__et_rest(l->key + l->dir_len, l->form, l->e->lease,
                                 l->hold_id, req->permits ? req->permits : 1,
                                 l->remote->permits);
}

int hf__et_attach(void *self, struct hf__remote *remote)
{
    struct etcd *e = self;
    size_t root = strlen(e->root), len = root + remote->name_len + 1;
    struct et_lock *l;

    if (hf__et_is_reserved(remote->name, remote->name_len))
        return e->core->why(e->client, HF_EINVAL,
                            "a part of the name begins with \"" ET_OURS
                            "\", which is reserved for holdfast's keys");
    l = e->core->alloc(e->client, sizeof(*l) + len + ET_REST_MAX);
    if (!l)
        return HF_ENOMEM;
    l->e = e;
    l->remote = remote;
    memcpy(l->key, e->root, root);
    memcpy(l->key + root, remote->name, remote->name_len);
    l->key[len - 1] = '/';
    l->dir_len = len;
    hf__list_add(e->locks, l);
    remote->impl = l;
    return 0;
}

void hf__et_detach(void *self, struct hf__remote *remote)
{
    struct etcd *e = self;
    struct et_lock *l = remote->impl;

    hf__et_unwatch(l);
    hf__et_request_forget(l);
    hf__et_lock_taken(l);
    hf__list_remove(e->locks, l);
    e->core->free(e->client, l);
    remote->impl = NULL;
}

/* ---- answers to the core ------------------------------------------------- */

/* Returns true if at least half of the TTL of the client's lease is left. A
 * fixed lease of a hold begins when the last confirmed keep-alive (the proof)
 * was sent. So for a hold with a fixed lease, less than 1 % of that lease must
 * also have passed since then. */
static bool lock_is_proved(const struct etcd *e, const struct hf__req *req)
{
    hf__time age = e->core->now() - e->proved;

    if (!e->term_ms || age > (hf__time)e->term_ms * HF__MS / 2)
        return false;
    return !req->fixed || age < (hf__time)req->lease_ms * HF__MS / 100;
}

/* Ends the attempt as QUEUED. etcd 3.4 delivers the events of a new watch up to
 * 100 ms late if something was written while the watch was created. Therefore
 * the core repeats the attempt after 5 ms, another 20 ms and another 80 ms.
 * After that it repeats the attempt every 1.8 s, because the watch may have
 * failed silently. */
static void lock_queue(struct et_lock *l)
{
    static const uint32_t pause_ms[ET_LOOKS] = {5, 20, 80, 1800};
    struct etcd *e = l->e;

    if (l->looks < ET_LOOKS)
        l->looks++;
    l->attempt->poll_at = e->core->now() + pause_ms[l->looks - 1] * HF__MS;
    hf__et_finish(e, l->attempt, HF__QUEUED);
}

/* Ends the attempt, because its next request could not be sent. */
static void lock_not_sent(struct et_lock *l, int rc)
{
    l->verdict = 0;
    hf__et_finish(l->e, l->attempt, rc == HF__LATER ? HF_EUNKNOWN : rc);
}

static void lock_grant(struct et_lock *l)
{
    struct etcd *e = l->e;
    struct hf__req *req = l->attempt;

    if (l->awaits != ET_AWAITS_PROOF && !lock_is_proved(e, req)) {
        l->awaits = ET_AWAITS_PROOF;
        hf__et_keep(e, e->core->now());
        return;
    }
    req->sent_at = e->proved;
    req->session_ms = e->term_ms;
    l->awaits = ET_AWAITS_ANSWER;
    l->state = ET_HELD;
    l->is_fixed = req->fixed;
    /* The next waiter for permits watches this entry; the write notifies that
     * waiter that the entry belongs to a holder now. For a fixed lease, the
     * write records when the lease began. */
    if (!l->is_fresh && (l->form == ET_FORM_PERMIT || req->fixed)) {
        l->since_ms = hf__wall_ms();
        hf__et_touch(l, req->fixed ? req->lease_ms : 0);
    }
    hf__et_watch_own(l);
    req->token = (uint64_t)l->rev;
    hf__et_finish(e, req, HF__GRANTED);
    if (l->wanted == l->rev)
        e->core->wanted(e->client, l->remote, (uint64_t)l->rev);
}

bool hf__et_locks_proved(struct etcd *e)
{
    bool is_all = true;

    for (struct et_lock *l = e->locks; l; l = l->next) {
        if (l->awaits != ET_AWAITS_PROOF || !l->attempt)
            continue;
        if (l->attempt->sent_at <= e->proved)
            lock_grant(l);
        else
            is_all = false;
    }
    return is_all;
}

void hf__et_locks_down(struct etcd *e)
{
    for (struct et_lock *l = e->locks; l; l = l->next) {
        hf__et_unproved(l);
        l->verdict = 0;
        if (l->let_go && !l->under_way)
            hf__et_finish(e, l->let_go, HF_EUNKNOWN);
        if (l->attempt && !l->under_way)
            hf__et_finish(e, l->attempt, HF_EUNKNOWN);
        if (hf__et_is_queued(l))
            hf__et_ring(l);
    }
}

/* ---- steps --------------------------------------------------------------- */

static bool lock_is_beside(const struct et_lock *a, const struct et_lock *b)
{
    return a != b && a->dir_len == b->dir_len &&
           memcmp(a->key, b->key, a->dir_len) == 0;
}

/* Returns true if the entry of another lock of this name is being dropped. The
 * server carries out requests in any order, so an attempt with may_queue ==
 * false must wait for that DROP: it could otherwise find the entry that this
 * client has just released, and end as BUSY. */
static bool lock_is_dropped_beside(const struct et_lock *l)
{
    const struct et_lock *o = l->e->drops ? l->e->locks : NULL;

    while (o && !(hf__et_is_dropped(o) && lock_is_beside(o, l)))
        o = o->next;
    return o;
}

/* Returns true for a repeated attempt that must only read whether an unfair
 * mutex is taken. An ENTER would be stored by all members even if it creates
 * nothing, and a full server would refuse the ENTER. */
static bool lock_only_looks(const struct et_lock *l)
{
    return l->form == ET_FORM_UNFAIR && hf__et_is_safety_look(l) &&
           !hf__et_may_be_there(l);
}

/* Takes the attempt's next step. The entry of an earlier hold must be known to
 * be gone before a new attempt is sent. Otherwise an ENTER could find that old
 * entry, and the client could take it for its new entry. If a DROP of the old
 * entry were then carried out late, it would delete the entry of the new
 * hold. */
static int lock_step(struct et_lock *l)
{
    if (l->hold_id != l->attempt->hold_id) {
        if (hf__et_may_be_there(l))
            return hf__et_drop(l);
        l->hold_id = l->attempt->hold_id;
        l->form = lock_form_of(l->remote);
        l->state = ET_RESTING;
        l->mark = ET_UNMARKED;
        l->round = 0;
        l->writes = 0;
    }
    if (l->rev)
        return hf__et_read_queue(l, NULL);
    /* An earlier step may have waited for a proof; this step does not. */
    l->awaits = !l->attempt->may_queue && lock_is_dropped_beside(l)
                    ? ET_AWAITS_DROP
                    : ET_AWAITS_ANSWER;
    if (l->awaits == ET_AWAITS_DROP)
        return 0;
    lock_set_key(l);
    return l->form == ET_FORM_LATCH || lock_only_looks(l) ? hf__et_count(l)
                                                          : hf__et_enter(l);
}

/* Takes the next step unless a request is under way. Called by callbacks. */
static void lock_next_step(struct et_lock *l)
{
    int rc = l->attempt && !l->under_way && !l->let_go ? lock_step(l) : 0;

    if (rc)
        lock_not_sent(l, rc);
}

static void lock_wake_beside(const struct et_lock *l)
{
    for (struct et_lock *o = l->e->locks; o; o = o->next)
        if (o->awaits == ET_AWAITS_DROP && lock_is_beside(o, l))
            lock_next_step(o);
}

static int lock_mismatch(const struct et_lock *l)
{
    struct etcd *e = l->e;
    static const char *const kinds[] = {[HF_MUTEX] = "a mutex",
                                        [HF_RWLOCK] = "a read-write lock",
                                        [HF_SEMAPHORE] = "a semaphore",
                                        [HF_LATCH] = "a latch"};

    if (l->size)
        return e->core->why(e->client, HF_EMISMATCH,
                            "the semaphore has %u permits, not %u", l->size,
                            l->remote->permits);
    return e->core->why(e->client, HF_EMISMATCH, "the name is in use as %s",
                        kinds[hf__et_kind(l->other)]);
}

/* Reports the verdict to the core. */
static void lock_end_attempt(struct et_lock *l)
{
    int verdict = l->verdict;

    l->verdict = 0;
    hf__et_unqueue(l);
    hf__et_finish(l->e, l->attempt,
                  verdict == HF_EMISMATCH ? lock_mismatch(l) : verdict);
}

void hf__et_stepped(struct et_lock *l, int code)
{
    if (!l->attempt)
        return;
    if (code)
        hf__et_finish(l->e, l->attempt, code);
    else
        lock_next_step(l);
}

/* Ends the attempt with this verdict. If the entry exists, or a late ENTER may
 * still create it, a DROP comes first and the verdict is reported after the
 * DROP. */
static void lock_give_up(struct et_lock *l, int verdict)
{
    int rc;

    l->verdict = (int16_t)verdict;
    if (!l->rev && !l->doubt) {
        lock_end_attempt(l);
        return;
    }
    rc = hf__et_drop(l);
    if (rc)
        lock_not_sent(l, rc);
}

static void lock_wait_for(struct et_lock *l, enum et_wait how, const char *key,
                          size_t len, int64_t view)
{
    if (!l->attempt->may_queue) {
        lock_give_up(l, HF__BUSY);
        return;
    }
    hf__et_wait(l, how, key, len, view);
    lock_queue(l);
}

/* Lets a waiter for permits wait. The first waiter watches the release of any
 * permits. Every other waiter watches the entry of the waiter before it, which
 * is written when that waiter becomes a holder and deleted when it leaves. */
static void lock_wait_for_permits(struct et_lock *l, const struct et_ahead *s,
                                  int64_t view)
{
    static const char below[] = "permit/";
    char dir[ET_KEY_MAX];

    if (s->permits > l->remote->permits) {
        lock_wait_for(l, ET_WRITTEN, s->before, s->len, view);
        return;
    }
    memcpy(dir, l->key, l->dir_len);
    memcpy(dir + l->dir_len, below, sizeof(below) - 1);
    lock_wait_for(l, ET_BELOW, dir, l->dir_len + sizeof(below) - 1, view);
}

static bool lock_is_free(const struct et_lock *l, const struct et_ahead *s)
{
    uint32_t wanted = l->attempt->permits ? l->attempt->permits : 1;

    return l->form == ET_FORM_PERMIT ? s->permits + wanted <= l->remote->permits
                                     : !s->len;
}

void hf__et_queue_read(struct et_lock *l, const struct et_ahead *s,
                       int64_t view)
{
    int rc;

    if (!l->attempt)
        return;
    if (s->other) {
        l->other = s->other;
        l->size = s->size;
        lock_give_up(l, HF_EMISMATCH);
    } else if (lock_is_free(l, s)) {
        lock_grant(l);
    } else if (l->form == ET_FORM_PERMIT) {
        lock_wait_for_permits(l, s, view);
    } else if (l->form != ET_FORM_READ) {
        lock_wait_for(l, ET_GONE, s->before, s->len, view);
    } else {
        rc = hf__et_read_mark(l, s);
        if (rc)
            lock_not_sent(l, rc);
    }
}

void hf__et_mark_read(struct et_lock *l, const struct et_ahead *s,
                      bool is_blocked, int64_t view)
{
    if (!l->attempt)
        return;
    if (is_blocked)
        lock_wait_for(l, ET_PAIR, s->before, s->len, view);
    else
        lock_grant(l);
}

static void lock_looked(struct et_lock *l, bool is_taken, int64_t view)
{
    int rc = 0;

    if (is_taken)
        lock_wait_for(l, ET_GONE, l->key, l->key_len, view);
    else
        rc = hf__et_enter(l);
    if (rc)
        lock_not_sent(l, rc);
}

/* A waiter for a latch waits only until the latch that its first COUNT found
 * has reached 0 and was deleted (the end of that round, latch.c), even if the
 * latch is set again. A granted latch leaves nothing to release. */
void hf__et_counted(struct et_lock *l, int64_t round, int64_t view)
{
    struct etcd *e = l->e;
    struct hf__req *req = l->attempt;

    if (!req)
        return;
    if (l->form == ET_FORM_UNFAIR) {
        lock_looked(l, round, view);
        return;
    }
    if (!l->round)
        l->round = round;
    if (round && round == l->round) {
        lock_wait_for(l, ET_GONE, l->key, l->key_len, view);
        return;
    }
    hf__et_unqueue(l);
    l->round = 0;
    req->token = 0;
    req->is_zero = !round;
    req->sent_at = e->core->now();
    req->session_ms = e->term_ms;
    hf__et_finish(e, req, HF__GRANTED);
}

void hf__et_dropped(struct et_lock *l, int code, bool was_there)
{
    struct hf__req *req = l->let_go;

    if (req && code)
        hf__et_finish(l->e, req, code);
    else if (req)
        hf__et_finish(l->e, req,
                      was_there || req->op == HF__ABANDON ? HF__DONE
                                                          : HF_ENOTOWNER);
    if (l->attempt && code)
        hf__et_finish(l->e, l->attempt, code);
    else if (l->attempt && l->verdict)
        lock_end_attempt(l);
    else
        lock_next_step(l);
    l->verdict = 0;
    lock_wake_beside(l);
}

void hf__et_unsent(struct et_lock *l)
{
    struct etcd *e = l->e;
    struct hf__req *req = l->let_go ? l->let_go : l->attempt;

    l->verdict = 0;
    lock_wake_beside(l);
    if (!req)
        return;
    if (req == l->attempt)
        l->attempt = NULL;
    else
        l->let_go = NULL;
    e->put_off = true; /* the core keeps the request until go_on() */
    e->core->unsent(e->client, req);
}

/* ---- slots --------------------------------------------------------------- */

int hf__et_attempt(void *self, struct hf__req *req)
{
    struct etcd *e = self;
    struct et_lock *l = req->remote->impl;
    int rc = 0;

    if (hf__et_is_down(e))
        return HF__LATER;
    req->sent_at = e->core->now();
    l->attempt = req;
    if (hf__et_is_safety_look(l)) /* to find out whether the member answers */
        hf__grpc_ping(&e->g, req->sent_at);
    if (!l->under_way && !l->let_go)
        rc = lock_step(l);
    if (rc) {
        l->attempt = NULL;
        req->untouched = rc == HF_ENOMEM;
        e->put_off = e->put_off || rc == HF__LATER;
        return rc;
    }
    hf__et_sent(e, req);
    return HF__PENDING;
}

static int lock_let_go(struct etcd *e, struct et_lock *l, struct hf__req *req)
{
    int rc = 0;

    if (hf__et_is_down(e))
        return HF__LATER;
    if (l->hold_id != req->hold_id || !hf__et_may_be_there(l))
        return req->op == HF__ABANDON ? HF__DONE : HF_ENOTOWNER;
    req->sent_at = e->core->now();
    l->let_go = req;
    hf__et_unhold(l);
    /* If a request or writes of the lock are under way, a DROP follows when
     * they have ended. */
    if (!l->under_way && !l->writes)
        rc = hf__et_drop(l);
    if (rc) {
        l->let_go = NULL;
        e->put_off = e->put_off || rc == HF__LATER;
        return rc;
    }
    hf__et_sent(e, req);
    return HF__PENDING;
}

void hf__et_writes(struct et_lock *l)
{
    l->writes++;
}

void hf__et_has_written(struct et_lock *l)
{
    if (!l->writes || --l->writes || !l->let_go || l->under_way)
        return;
    if (hf__et_drop(l))
        hf__et_finish(l->e, l->let_go, HF_EUNKNOWN);
}

int hf__et_release(void *self, struct hf__req *req)
{
    return lock_let_go(self, req->remote->impl, req);
}

int hf__et_abandon(void *self, struct hf__req *req)
{
    struct et_lock *l = req->remote->impl;

    /* A repeated abandon may be about an earlier hold than the attempt. */
    if (l->attempt && l->attempt->hold_id == req->hold_id) {
        l->attempt = NULL;
        hf__et_unproved(l);
        l->verdict = 0;
        if (!hf__et_is_dropped(l))
            hf__et_request_forget(l);
    }
    if (l->hold_id == req->hold_id)
        hf__et_unqueue(l);
    return lock_let_go(self, l, req);
}
