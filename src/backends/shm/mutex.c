/*
 * What the core calls for a mutex: attempt, abandon, release, renew, off the
 * fast path (which is in shm.c).
 *
 * An attempt checks, again and again with the same hold id: is the word in
 * our name, or free, or in the name of somebody who is dead or whose lease is
 * over? If it is none of these we wait, and the attempt ends with the choice of
 * what to sleep on. It begins with reading our bell, so that whatever happens
 * after that keeps us from sleeping.
 */
#include "shm.h"

int hf__shm_mutex_release(struct shm *s, struct shm_lock *l)
{
    struct shm_retry retry = {.of = l->entry};
    uint64_t w;

    do {
        w = atomic_load(&l->entry->word);
        if (!shm_is_grant(w, atomic_load(&l->mine))) {
            l->state = SHM_IDLE;
            return HF_ENOTOWNER;
        }
        if (hf__shm_mutex_pass(s, l->index, w)) {
            l->state = SHM_IDLE;
            return HF__DONE;
        }
    } while (hf__shm_retry(s, &retry));
    return hf__shm_retry_refuse(s);
}

int hf__shm_lock_let_go(struct shm *s, struct shm_lock *l)
{
    if (l->kind != HF_MUTEX)
        return hf__shm_shared_let_go(s, (struct shm_cell_lock *)l);
    switch (l->state) {
    case SHM_HELD:
        return hf__shm_mutex_release(s, l);
    case SHM_QUEUED:
        return hf__shm_leave(s, l);
    case SHM_LEAVING:
        return hf__shm_leave_word(s, l);
    default:
        return HF__DONE;
    }
}

int hf__shm_lock_abandon(void *self, struct hf__req *req)
{
    struct shm_lock *l = req->remote->impl;

    if (atomic_load(&l->hold_id) != req->hold_id)
        return HF__DONE;
    return hf__shm_lock_let_go(self, l) == HF_EBACKEND ? HF_EBACKEND : HF__DONE;
}

/* The word is in our name: the rest of the grant. False: it was broken in the
 * meantime. */
static bool granted(struct shm *s, struct shm_lock *l, struct hf__req *req,
                    uint64_t word)
{
    if (l->state == SHM_QUEUED)
        hf__shm_dequeue(s, l);
    l->state = SHM_IDLE;
    if (req->fixed)
        req->sent_at = s->core->now();
    if ((!req->fixed ||
         hf__shm_mutex_lease_write(
             s, l->index, word, req->sent_at + req->lease_ms * HF__MS, true)) &&
        shm_mutex_grant(s, l, req, word))
        return true;
    hf__shm_queue_stir(s, l->entry,
                       0); /* in case it is being given to our old cell */
    return false;
}

static struct shm_cell *cell_of(struct shm *s, struct shm_wait *wait)
{
    return &s->file->cell[atomic_load(&wait->cell)];
}

/* One try at a word that is free. */
static bool take(struct shm *s, struct shm_lock *l, uint64_t *word)
{
    uint64_t old = *word, new = (old + SHM_COUNT_ONE) | s->me;
    struct shm_queue_scan r;

    if (l->state == SHM_QUEUED) { /* whoever was rung, we are the one */
        hf__shm_queue_scan(s, l->index, s->me, 0, &r);
        new &= ~(SHM_FLAGS);
        if (r.len)
            new |= SHM_WAITERS;
    }
    SHM_POINT();
    *word = new;
    return atomic_compare_exchange_strong(&l->entry->word, &old, new);
}

/* Says in the word that we wait. False: the word has changed. */
static bool announce(struct shm_lock *l, const struct shm_wait *wait,
                     uint64_t word)
{
    uint64_t new = (shm_stirred(word) | SHM_WAITERS) & ~SHM_WAKING;

    if (wait->announced && (word & SHM_WAITERS) && !(word & SHM_WAKING))
        return true;
    SHM_POINT();
    return atomic_compare_exchange_strong(&l->entry->word, &word, new);
}

/* Chooses whose death would concern us, and when to look again. False: it has
 * been passed on meanwhile, and whom we watch is perhaps not the one. */
static bool wait_behind(struct shm *s, struct shm_lock *l, uint64_t word)
{
    struct shm_wait *wait = atomic_load(&l->wait);
    struct shm_cell *c = cell_of(s, wait);
    uint32_t owner = shm_owner(word);
    struct shm_queue_scan r;

    SHM_POINT();
    hf__shm_queue_scan(s, l->index, s->me, atomic_load(&c->ticket), &r);
    hf__shm_wait_announce(s, wait, r.behind);
    if (r.before != SHM_NO_CELL && r.before_owner != owner) {
        hf__shm_watch(s, wait, &r.before_owner, 1, HF__NEVER);
        return true; /* whoever holds it by now: we come after that waiter */
    }
    hf__shm_watch(s, wait, &owner, 1, hf__shm_mutex_lease_end(l->entry, word));
    return shm_is_grant(atomic_load(&l->entry->word), word);
}

/* Passes the lock on if its holder is dead or its lease is over. */
static bool help(struct shm *s, struct shm_lock *l, uint64_t word,
                 uint32_t *dead)
{
    if (!hf__shm_is_over(s, shm_owner(word),
                         hf__shm_mutex_lease_end(l->entry, word), dead))
        return false;
    hf__shm_mutex_pass(s, l->index, word);
    return true;
}

static int attempt(struct shm *s, struct shm_lock *l, struct hf__req *req,
                   uint32_t *dead)
{
    bool again = false, passed = false;
    struct shm_retry retry = {.of = l->entry};

    do {
        struct shm_wait *wait = atomic_load(&l->wait);
        uint64_t w;
        int rc;

        if (l->state == SHM_QUEUED)
            atomic_store(&wait->watch.bell,
                         atomic_load(&cell_of(s, wait)->bell));
        w = atomic_load(&l->entry->word);
        if (!shm_owner(w)) {
            /* Fair, and one waits: not possible, unless it has been overlooked.
             * If it is free again after that, the entry is damaged. */
            if (l->state != SHM_QUEUED && (w & l->take_mask) && !passed)
                passed = hf__shm_mutex_pass(s, l->index, w);
            else if (take(s, l, &w) && granted(s, l, req, w))
                return HF__GRANTED;
            continue;
        }
        if (shm_owner(w) == s->me) {
            if (granted(s, l, req, w))
                return HF__GRANTED;
            continue;
        }
        if (help(s, l, w, dead))
            continue;
        if (l->state != SHM_QUEUED) {
            if (!req->may_queue)
                return HF__BUSY;
            if ((rc = hf__shm_enqueue(s, l, req)))
                return rc;
            continue;
        }
        if (!announce(l, wait, w))
            continue;
        /* Unfair, others may take it all the time: one more check is enough,
         * for who is first is rung. */
        if (wait_behind(s, l, w) || (again && !shm_is_fair(l)))
            return hf__shm_wait_sleep(s, wait, req);
        again = true;
    } while (hf__shm_retry(s, &retry));
    if (l->state == SHM_IDLE)
        l->state =
            SHM_LEAVING; /* it may have been granted, but for its lease */
    hf__shm_lock_let_go(s, l);
    return hf__shm_retry_refuse(s);
}

/* What the lock has, wanted once more. */
static bool still_held(struct shm *s, struct shm_lock *l, struct hf__req *req)
{
    uint64_t mine = atomic_load(&l->mine);

    if (l->state != SHM_HELD)
        return false;
    req->token = mine;
    if (l->kind == HF_MUTEX)
        req->token = shm_token(atomic_load(&l->entry->epoch), mine);
    return l->kind == HF_MUTEX ||
           shm_cell_lock_has(s, (struct shm_cell_lock *)l);
}

int hf__shm_lock_attempt(struct shm *s, struct hf__req *req)
{
    struct shm_lock *l = req->remote->impl;
    struct shm_wait *wait;
    uint32_t dead = 0;
    int rc;

    if (shm_is_lost(s)) {
        hf__shm_lock_let_go(s, l);
        return hf__shm_file_lost(s);
    }
    /* What is left of an earlier hold must not be taken for this one. */
    if (atomic_load(&l->hold_id) != req->hold_id) {
        if (hf__shm_lock_let_go(s, l) == HF_EBACKEND)
            return HF_EBACKEND;
    } else if (still_held(s, l, req)) {
        return HF__GRANTED;
    }
    atomic_store(&l->hold_id, req->hold_id);
    if (l->state == SHM_QUEUED) {
        wait = atomic_load(&l->wait);
        hf__shm_pass_on_death(s, wait);
        hf__shm_set_async(s, atomic_load(&wait->cell), req->is_async);
    }
    if (l->kind == HF_MUTEX)
        rc = attempt(s, l, req, &dead);
    else if (l->kind == HF_LATCH)
        rc = hf__shm_latch_attempt(s, req);
    else
        rc = hf__shm_shared_attempt(s, req, &dead);
    if (dead)
        hf__shm_bury(s, dead);
    return rc;
}

static int renew_one(struct shm *s, const struct hf__renewal *item,
                     hf__time now)
{
    struct shm_lock *l = item->remote->impl;
    uint64_t mine = atomic_load(&l->mine), w;

    if (shm_is_lost(s))
        return HF_ENOTOWNER;
    if (l->kind != HF_MUTEX)
        return hf__shm_shared_renew(s, item, now);
    if (atomic_load(&l->hold_id) != item->hold_id)
        return HF_ENOTOWNER;
    w = atomic_load(&l->entry->word);
    if (!shm_is_grant(w, mine))
        return HF_ENOTOWNER;
    if ((w & SHM_LEASED) &&
        !hf__shm_mutex_lease_write(s, l->index, mine,
                                   now + item->lease_ms * HF__MS, true))
        return shm_is_grant(atomic_load(&l->entry->word), mine)
                   ? hf__shm_retry_refuse(s)
                   : HF_ENOTOWNER;
    return HF__DONE;
}

/* A hold without a lease has nothing to renew: it is only looked at. */
int hf__shm_lock_renew(void *self, struct hf__batch *batch)
{
    struct shm *s = self;

    batch->req.sent_at = s->core->now();
    for (size_t i = 0; i < batch->len; i++)
        batch->item[i].result =
            (int16_t)renew_one(s, &batch->item[i], batch->req.sent_at);
    return HF__DONE;
}
