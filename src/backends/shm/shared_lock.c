/*
 * The operations that the core calls for a read-write lock or a semaphore:
 * attempt, release, downgrade, renew.
 *
 * An attempt checks, as for a mutex (mutex.c), whether our cell has been
 * granted its permits, whether enough permits are free and there is no queue,
 * and whether there is a holder whose permits can be taken back. Otherwise we
 * wait, and the attempt ends by choosing what to sleep on.
 */
#include "shared_lock.h"

#include "cell_lock.h"
#include "lock_state.h"
#include "queue.h"
#include "retry.h"
#include "shared_word.h"
#include "wait.h"
#include "wakeup.h"
#include "watch.h"

#include <time.h>

/* Completes the end of a wait. The cell may have been granted permits before
 * other clients noticed that we no longer wait; such permits are given back. */
static int lock_leave_word(struct shm *s, struct shm_cell_lock *l)
{
    struct shm_entry *e = l->lock.entry;
    unsigned cell = atomic_load(&l->cell);
    struct shm_retry retry = {.of = e};
    uint64_t w;

    l->lock.state = SHM_IDLE;
    hf__shm_queue_stir(s, e, 0);
    SHM_POINT();
    for (;;) {
        w = atomic_load(&e->word);
        if (!shm_has(s->file, w, cell) ||
            hf__shm_shared_change(s, e, &w, cell, 0))
            break;
        if (!hf__shm_retry(s, &retry)) {
            l->lock.state = SHM_LEAVING;
            return hf__shm_retry_refuse(s);
        }
    }
    hf__shm_shared_pass(s, l->lock.index, SHM_NO_CELL);
    return HF__DONE;
}

static int lock_leave(struct shm *s, struct shm_cell_lock *l)
{
    unsigned cell = atomic_load(&l->cell);
    uint64_t ticket = atomic_load(&s->file->cell[cell].ticket);
    struct shm_queue_scan r;
    int rc;

    hf__shm_pass_on_death(s, atomic_load(&l->lock.wait));
    hf__shm_cell_lock_dequeue(s, l);
    rc = lock_leave_word(s, l);
    SHM_POINT();
    hf__shm_queue_scan(s, l->lock.index, 0, ticket, &r);
    if (r.behind != SHM_NO_CELL)
        hf__shm_ring_cell(s, r.behind);
    hf__shm_wake_cell(s, cell);
    shm_cell_lock_rest(s, l);
    return rc;
}

static unsigned lock_add_owner(uint32_t *owners, unsigned len, uint32_t owner)
{
    for (unsigned i = 0; i < len; i++)
        if (owners[i] == owner)
            return len;
    if (len < SHM_WATCHED)
        owners[len] = owner;
    return len + 1;
}

/* Watches the holders, at most SHM_WATCHED of them. Returns false if the word
 * has changed in the meantime, in which case there may be other holders. */
static bool lock_watch_holders(struct shm *s, struct shm_cell_lock *l,
                               uint64_t word)
{
    struct shm_file *f = s->file;
    uint32_t owners[SHM_WATCHED];
    unsigned len = 0, n = 0;
    hf__time until = HF__NEVER, end;

    for (; (n = hf__shm_queue_next(s, l->lock.index, n)) != SHM_NO_CELL; n++) {
        if (!shm_has(f, word, n))
            continue;
        end = shm_cell_lease_end(&f->cell[n]);
        until = end < until ? end : until;
        if (len <= SHM_WATCHED && atomic_load(&f->cell[n].owner) != s->me)
            len = lock_add_owner(owners, len, atomic_load(&f->cell[n].owner));
    }
    if (len > SHM_WATCHED) { /* too many to watch: check again soon */
        len = SHM_WATCHED;
        end = s->core->now() + SHM_POLL_NS;
        until = end < until ? end : until;
    }
    hf__shm_watch(s, atomic_load(&l->lock.wait), owners, len, until);
    return atomic_load(&l->lock.entry->word) == word;
}

/* Chooses whose death to watch for, and when to check again. Returns false if
 * the caller must check again at once. */
static bool lock_wait_behind(struct shm *s, struct shm_cell_lock *l,
                             uint64_t word, const struct shm_queue_scan *r)
{
    struct shm_wait *wait = atomic_load(&l->lock.wait);

    SHM_POINT();
    hf__shm_wait_announce(s, wait, r->behind);
    if (!r->before_owner)
        return lock_watch_holders(s, l, word);
    /* Our own death need not wake us, which is why our own slot is not
     * watched. */
    hf__shm_watch(s, wait, &r->before_owner, r->before_owner != s->me,
                  HF__NEVER);
    return true;
}

/* Prolongs the lease, which then ends at `until` or later: a lease never ends
 * earlier than its holder believes. Returns false if the cell has no permits,
 * if another client changed the lease, or if the loop gave up. */
static bool lock_prolong(struct shm *s, struct shm_entry *e, unsigned cell,
                         uint64_t old, hf__time until)
{
    shm_u64 *lease = &s->file->cell[cell].lease;
    uint64_t new = shm_to_ms(until) << 24 | (old & 0xffffff), w;
    struct shm_retry retry = {.of = e};

    SHM_POINT();
    if (new > old && !atomic_compare_exchange_strong(lease, &old, new))
        return false;
    SHM_POINT();
    w = atomic_load(&e->word);
    do {
        if (!shm_has(s->file, w, cell) || !hf__shm_retry(s, &retry))
            return false;
        SHM_POINT();
    } while (!atomic_compare_exchange_weak(&e->word, &w, w + SHM_CHANGE_ONE));
    return true;
}

/* Completes the grant; the cell has its permits. Returns false if they were
 * taken away in the meantime, in which case the token may be wrong, too.
 *
 * If `is_known`, another client granted the permits, and marks in the cell
 * (notify.c) are for this hold. Otherwise we have just taken the permits. Marks
 * then count as marks for an earlier hold, and are cleared. */
static inline __attribute__((always_inline)) bool
lock_finish_grant(struct shm *s, struct shm_cell_lock *l, struct hf__req *req,
                  bool is_known)
{
    struct shm_entry *e = l->lock.entry;
    uint64_t token;

    /* a holder of all permits is the only holder, and raises the token */
    if (shm_cell_lock_wanted(l, req) == l->size)
        token = atomic_fetch_add(&e->epoch, 1) + 1;
    else
        token = atomic_load(&e->epoch);
    SHM_POINT();
    if (__builtin_expect(!shm_cell_lock_has(s, l), 0))
        return false;
    atomic_store_explicit(&shm_cell_lock_cell(s, l)->since,
                          (uint64_t)time(NULL) * 1000, memory_order_relaxed);
    req->token = token;
    l->lock.state = SHM_HELD;
    atomic_store_explicit(&l->lock.mine, token, memory_order_relaxed);
    if (is_known)
        atomic_fetch_or(&shm_cell_lock_cell(s, l)->minted, SHM_MINTED);
    else
        atomic_store_explicit(&shm_cell_lock_cell(s, l)->minted, SHM_MINTED,
                              memory_order_release);
    atomic_store_explicit(&l->lock.hold_id, req->hold_id, memory_order_relaxed);
    return true;
}

/* Tries once to take the free permits that the request wants. */
static bool lock_take(struct shm *s, struct shm_cell_lock *l,
                      struct hf__req *req, uint64_t word)
{
    struct shm_cell *c = shm_cell_lock_cell(s, l);

    if (req->fixed) {
        req->sent_at = s->core->now();
        atomic_store(&c->lease, shm_to_ms(req->sent_at + req->lease_ms * HF__MS)
                                    << 24);
    } else if (l->leased) {
        atomic_store(&c->lease, 0);
    }
    l->leased = req->fixed;
    SHM_POINT();
    return hf__shm_shared_change(s, l->lock.entry, &word, atomic_load(&l->cell),
                                 shm_cell_lock_wanted(l, req)) &&
           lock_finish_grant(s, l, req, false);
}

/* Completes a grant that another client made to our cell. */
static bool lock_granted(struct shm *s, struct shm_cell_lock *l,
                         struct hf__req *req)
{
    struct shm_cell *c = shm_cell_lock_cell(s, l);
    uint64_t ticket = atomic_load(&c->ticket);
    bool ok = true;

    if (l->lock.state == SHM_QUEUED)
        hf__shm_cell_lock_dequeue(s, l);
    if (req->fixed) {
        req->sent_at = s->core->now();
        ok = lock_prolong(s, l->lock.entry, atomic_load(&l->cell),
                          atomic_load(&c->lease),
                          req->sent_at + req->lease_ms * HF__MS);
    }
    ok = ok && lock_finish_grant(s, l, req, true);
    if (ticket)
        hf__shm_shared_pass_on(s, l->lock.index, atomic_load(&l->cell), ticket);
    return ok;
}

/* Takes back the permits of holders that are gone or whose lease has ended.
 * Returns false if there were none. */
static bool lock_help(struct shm *s, const struct shm_cell_lock *l,
                      uint64_t word, uint32_t *dead)
{
    struct shm_file *f = s->file;
    unsigned n = 0;
    bool helped = false;

    for (; (n = hf__shm_queue_next(s, l->lock.index, n)) != SHM_NO_CELL; n++) {
        struct shm_cell *c = &f->cell[n];

        if (!shm_has(f, word, n) ||
            !hf__shm_is_over(s, atomic_load(&c->owner), shm_cell_lease_end(c),
                             dead))
            continue;
        helped = true;
        if (!hf__shm_shared_take_back(s, l->lock.entry, &word, n))
            break;
    }
    return helped;
}

/* Advances the queue: takes back the permits of holders that are gone or whose
 * lease has ended or, if there are none, grants to the first waiters. Returns
 * false if nothing could be done. */
static bool lock_bring_on(struct shm *s, struct shm_cell_lock *l, uint64_t word,
                          uint32_t *dead)
{
    if (lock_help(s, l, word, dead))
        return true;
    return (word & SHM_QUEUE) &&
           hf__shm_shared_pass(s, l->lock.index, atomic_load(&l->cell));
}

/* Makes one check of our wait. Returns true if the wait can sleep, false if the
 * caller must check again at once. */
static bool lock_check_queued(struct shm *s, struct shm_cell_lock *l,
                              uint64_t word, uint32_t *dead)
{
    uint64_t ticket = atomic_load(&shm_cell_lock_cell(s, l)->ticket);
    struct shm_queue_scan r;

    if (!ticket) { /* we were granted permits and lost them before we noticed */
        atomic_store(&shm_cell_lock_cell(s, l)->minted, 0);
        hf__shm_cell_lock_dequeue(s, l);
        return false;
    }
    /* We have set QUEUE. If it is missing, the word is damaged, and no client
     * would grant to us. */
    if (!(word & SHM_QUEUE)) {
        hf__shm_queue_stir(s, l->lock.entry, SHM_QUEUE);
        return false;
    }
    hf__shm_queue_scan(s, l->lock.index, 0, ticket, &r);
    /* The first waiter helps at its first check. The waiters after it help from
     * their second check on, in case the first is stopped. */
    if ((!r.before_owner || atomic_load(&l->lock.wait)->announced) &&
        lock_bring_on(s, l, word, dead))
        return false;
    return lock_wait_behind(s, l, word, &r);
}

static int lock_attempt(struct shm *s, struct shm_cell_lock *l,
                        struct hf__req *req, uint32_t *dead)
{
    struct shm_entry *e = l->lock.entry;
    unsigned want = shm_cell_lock_wanted(l, req);
    struct shm_retry retry = {.of = e};
    int rc;

    do {
        struct shm_wait *wait = atomic_load(&l->lock.wait);
        uint64_t w;

        if (l->lock.state == SHM_QUEUED)
            atomic_store(&wait->watch.bell,
                         atomic_load(&shm_cell_lock_cell(s, l)->bell));
        w = atomic_load(&e->word);
        if (shm_has(s->file, w, atomic_load(&l->cell))) {
            if (lock_granted(s, l, req))
                return HF__GRANTED;
        } else if (l->lock.state == SHM_QUEUED) {
            if (lock_check_queued(s, l, w, dead))
                return hf__shm_wait_sleep(s, wait, req);
        } else if (!(w & SHM_QUEUE) && shm_used(w) + want <= l->size) {
            if (lock_take(s, l, req, w))
                return HF__GRANTED;
        } else if (!lock_bring_on(s, l, w, dead)) {
            if (!req->may_queue)
                return HF__BUSY;
            if ((rc = hf__shm_cell_lock_enqueue(s, l, req)))
                return rc;
            hf__shm_queue_stir(s, e, SHM_QUEUE);
        }
    } while (hf__shm_retry(s, &retry));
    if (l->lock.state == SHM_IDLE)
        l->lock.state = SHM_LEAVING; /* the cell may have permits already */
    hf__shm_shared_let_go(s, l);
    return hf__shm_retry_refuse(s);
}

int hf__shm_shared_attempt(struct shm *s, struct hf__req *req, uint32_t *dead)
{
    struct shm_cell_lock *l = req->remote->impl;
    int rc = hf__shm_cell_lock_take_cell(s, l, req->remote);

    if (rc)
        return rc;
    if (l->lock.state != SHM_QUEUED)
        atomic_store(&shm_cell_lock_cell(s, l)->minted, 0);
    rc = lock_attempt(s, l, req, dead);
    if (rc != HF__GRANTED && rc != HF__QUEUED)
        shm_cell_lock_rest(s, l);
    return rc;
}

bool hf__shm_shared_take(struct shm *s, struct hf__req *req)
{
    struct shm_cell_lock *l = req->remote->impl;
    unsigned cell = atomic_load_explicit(&l->cell, memory_order_relaxed);
    unsigned want = shm_cell_lock_wanted(l, req);
    uint64_t w;

    if (__builtin_expect(l->lock.kind == HF_LATCH ||
                             l->lock.state != SHM_IDLE || cell == SHM_NO_CELL ||
                             req->fixed || l->leased,
                         0))
        return false;
    w = atomic_load_explicit(&l->lock.entry->word, memory_order_relaxed);
    return !(w & SHM_QUEUE) && shm_used(w) + want <= l->size &&
           hf__shm_shared_change(s, l->lock.entry, &w, cell, want) &&
           lock_finish_grant(s, l, req, false);
}

/* Lowers the permits of the cell to `keep`, and passes the rest on. */
static inline int lock_give_back(struct shm *s, struct shm_cell_lock *l,
                                 unsigned keep)
{
    struct shm_entry *e = l->lock.entry;
    unsigned cell = atomic_load_explicit(&l->cell, memory_order_relaxed);
    struct shm_retry retry = {.of = e};
    uint64_t w;

    do {
        w = atomic_load(&e->word);
        if (!shm_has(s->file, w, cell))
            return HF_ENOTOWNER;
        if (!hf__shm_retry(s, &retry))
            return hf__shm_retry_refuse(s);
    } while (!hf__shm_shared_change(s, e, &w, cell, keep));
    if (w & SHM_QUEUE)
        hf__shm_shared_pass(s, l->lock.index, SHM_NO_CELL);
    return HF__DONE;
}

static int lock_give(struct shm *s, struct shm_cell_lock *l)
{
    int rc;

    /* `minted` must be cleared before the cell can be granted permits again. */
    atomic_store_explicit(&shm_cell_lock_cell(s, l)->minted, 0,
                          memory_order_relaxed);
    rc = lock_give_back(s, l, 0);
    if (__builtin_expect(rc != HF_EBACKEND, 1))
        l->lock.state = SHM_IDLE;
    shm_cell_lock_rest(s, l);
    return rc;
}

int hf__shm_shared_let_go(struct shm *s, struct shm_cell_lock *l)
{
    int rc;

    switch (l->lock.state) {
    case SHM_HELD:
        return lock_give(s, l);
    case SHM_LEAVING:
        rc = lock_leave_word(s, l);
        shm_cell_lock_rest(s, l);
        return rc;
    case SHM_QUEUED:
        return lock_leave(s, l);
    default:
        return HF__DONE;
    }
}

int hf__shm_shared_release(struct shm *s, struct hf__req *req)
{
    struct shm_cell_lock *l = req->remote->impl;

    if (l->lock.kind == HF_LATCH)
        return HF__DONE;
    if (l->lock.state != SHM_HELD ||
        atomic_load_explicit(&l->lock.hold_id, memory_order_relaxed) !=
            req->hold_id)
        return HF_ENOTOWNER;
    return lock_give(s, l);
}

/* Moves the cell of `from`, with its permits and its lease, to `to`. In
 * exchange `from` gets the cell of `to`. */
static void lock_move(struct shm_cell_lock *from, struct shm_cell_lock *to,
                      uint64_t hold_id)
{
    unsigned cell = atomic_load(&from->cell);
    bool leased = from->leased;

    atomic_store(&from->cell, atomic_load(&to->cell));
    from->leased = to->leased;
    from->lock.state = SHM_IDLE;
    atomic_store(&to->cell, (uint16_t)cell);
    to->leased = leased;
    to->lock.state = SHM_HELD;
    atomic_store(&to->lock.mine, atomic_load(&from->lock.mine));
    atomic_store(&to->lock.hold_id, hold_id);
}

int hf__shm_shared_downgrade(struct shm *s, const struct hf__query *q)
{
    struct shm_cell_lock *from = q->line->impl, *to = q->into->impl;

    /* No thread uses `to`, but it may still have a hold that was lost. */
    if (hf__shm_shared_let_go(s, to) == HF_EBACKEND)
        return HF_EBACKEND;
    if (from->lock.state != SHM_HELD || to->lock.state != SHM_IDLE ||
        atomic_load(&from->lock.hold_id) != q->req.hold_id)
        return HF_ENOTOWNER;
    lock_move(from, to, q->req.hold_id);
    return lock_give_back(s, to, 1);
}

/* Other threads may use the lock during this call. `cell` and `lease` are valid
 * if the hold id, which is read after them, is still that of the item. */
int hf__shm_shared_renew(struct shm *s, const struct hf__renewal *item,
                         hf__time now)
{
    struct shm_cell_lock *l = item->remote->impl;
    struct shm_entry *e = l->lock.entry;
    struct shm_retry retry = {.of = e};
    unsigned cell;
    uint64_t lease;

    do {
        cell = atomic_load(&l->cell);
        if (cell == SHM_NO_CELL)
            return HF_ENOTOWNER;
        lease = atomic_load(&s->file->cell[cell].lease);
        if (atomic_load(&l->lock.hold_id) != item->hold_id ||
            !shm_has(s->file, atomic_load(&e->word), cell))
            return HF_ENOTOWNER;
        if (!hf__shm_retry(s, &retry))
            return hf__shm_retry_refuse(s);
    } while (lease >> 24 &&
             !lock_prolong(s, e, cell, lease, now + item->lease_ms * HF__MS));
    return HF__DONE;
}
