/*
 * A mutex, off the fast path: entering and leaving its queue, attempts, and the
 * slow release. mutex_word.c reads the queue and passes the lock on.
 *
 * The core repeats an attempt with the same hold id. Each attempt checks
 * whether the word is in our name, or free, or in the name of a client that is
 * dead or whose lease has ended. Otherwise we wait, and the attempt ends by
 * choosing what to sleep on. The attempt reads our bell before everything else,
 * so that any later event prevents the sleep.
 */
#include "mutex.h"

#include "cell_free.h"
#include "cell_take.h"
#include "lock_state.h"
#include "mutex_word.h"
#include "queue.h"
#include "retry.h"
#include "wait.h"
#include "wakeup.h"
#include "watch.h"

static int mutex_enqueue(struct shm *s, struct shm_lock *l, struct hf__req *req)
{
    int n = hf__shm_wait_make(s, l, req->remote);
    struct shm_cell *c;

    if (!n)
        n = hf__shm_cell_take(s);
    if (n < 0)
        return n;
    SHM_POINT();
    c = &s->file->cell[n];
    shm_label_put(c->label, req->remote->label);
    hf__shm_wait_begin(s, l, (unsigned)n, req);
    atomic_store(&c->ticket, atomic_fetch_add(&l->entry->next_ticket, 1) + 1);
    SHM_POINT();
    /* `name` is set last. A client may have found this cell in the entry's map
     * while the cell had another owner; once that client reads our entry's
     * index in `name`, it trusts the other fields. */
    atomic_store(&c->name, l->index);
    SHM_POINT();
    atomic_fetch_or(&l->entry->cells[n / 64], 1ULL << n % 64);
    SHM_POINT();
    return 0;
}

/* Leaves the queue as the holder. Because the word is in our name, no client
 * bases a decision on our cell any longer. The word therefore need not be
 * stirred. */
static void mutex_dequeue(struct shm *s, struct shm_lock *l)
{
    unsigned n = hf__shm_wait_end(s, l);

    SHM_POINT();
    atomic_fetch_and(&l->entry->cells[n / 64], ~(1ULL << n % 64));
    SHM_POINT();
    hf__shm_unwatch(s, &s->file->cell[n], 0);
    hf__shm_cell_free(&s->file->cell[n]);
    SHM_POINT();
}

static int mutex_leave_word(struct shm *s, struct shm_lock *l)
{
    struct shm_entry *e = l->entry;
    struct shm_retry retry = {.of = e};

    l->state = SHM_IDLE;
    do {
        uint64_t w = atomic_load(&e->word);

        SHM_POINT();
        /* If the lock was passed to us in the meantime, or is free (we may be
         * the waiter that was rung to take it), it is passed on. */
        if (shm_owner(w) == s->me || (!shm_owner(w) && (w & SHM_WAITERS))) {
            if (hf__shm_mutex_pass(s, l->index, w))
                return HF__DONE;
        } else if (atomic_compare_exchange_strong(
                       &e->word, &w, shm_stirred(w) & ~SHM_WAKING)) {
            return HF__DONE;
        }
    } while (hf__shm_retry(s, &retry));
    l->state = SHM_LEAVING;
    return hf__shm_retry_refuse(s);
}

/* Leaves the queue without the lock. */
static int mutex_leave(struct shm *s, struct shm_lock *l)
{
    struct shm_cell *c;
    struct shm_queue_scan r;
    unsigned n;
    int rc;

    hf__shm_pass_on_death(s, atomic_load(&l->wait));
    n = hf__shm_wait_end(s, l);
    c = &s->file->cell[n];
    SHM_POINT();
    atomic_fetch_and(&l->entry->cells[n / 64], ~(1ULL << n % 64));
    rc = mutex_leave_word(s, l);
    SHM_POINT();
    hf__shm_queue_scan(s, l->index, 0, atomic_load(&c->ticket), &r);
    if (r.behind != SHM_NO_CELL)
        hf__shm_ring_cell(s, r.behind);
    hf__shm_unwatch(s, c, 0);
    hf__shm_wake_cell(s, n);
    hf__shm_cell_free(c);
    return rc;
}

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

/* Completes the grant; the word is in our name. Returns false if the grant was
 * broken in the meantime, or if its lease could not be written. */
static bool mutex_granted(struct shm *s, struct shm_lock *l,
                          struct hf__req *req, uint64_t word)
{
    if (l->state == SHM_QUEUED)
        mutex_dequeue(s, l);
    l->state = SHM_IDLE;
    if (req->fixed)
        req->sent_at = s->core->now();
    if ((!req->fixed ||
         hf__shm_mutex_lease_write(
             s, l->index, word, req->sent_at + req->lease_ms * HF__MS, true)) &&
        shm_mutex_grant(s, l, req, word))
        return true;
    /* A client that read the queue while our cell was in it may be about to
     * grant us the lock. Its swap now fails. */
    hf__shm_queue_stir(s, l->entry, 0);
    return false;
}

int hf__shm_mutex_let_go(struct shm *s, struct shm_lock *l)
{
    switch (l->state) {
    case SHM_HELD:
        return hf__shm_mutex_release(s, l);
    case SHM_QUEUED:
        return mutex_leave(s, l);
    case SHM_LEAVING:
        return mutex_leave_word(s, l);
    default:
        return HF__DONE;
    }
}

static struct shm_cell *mutex_cell_of(struct shm *s, struct shm_wait *wait)
{
    return &s->file->cell[atomic_load(&wait->cell)];
}

/* Tries once to take the lock, which is free according to *word. Sets *word to
 * the word with which the lock is taken. */
static bool mutex_take(struct shm *s, struct shm_lock *l, uint64_t *word)
{
    uint64_t old = *word, new = (old + SHM_COUNT_ONE) | s->me;
    struct shm_queue_scan r;

    /* A queued waiter also clears WAKING: it is the waiter that was woken, or
     * it overtakes that waiter. */
    if (l->state == SHM_QUEUED) {
        hf__shm_queue_scan(s, l->index, s->me, 0, &r);
        new &= ~(SHM_FLAGS);
        if (r.len)
            new |= SHM_WAITERS;
    }
    SHM_POINT();
    *word = new;
    return atomic_compare_exchange_strong(&l->entry->word, &old, new);
}

/* Sets the flag in the word that says that we wait. Returns false if the word
 * has changed. */
static bool mutex_announce(struct shm_lock *l, const struct shm_wait *wait,
                           uint64_t word)
{
    uint64_t new = (shm_stirred(word) | SHM_WAITERS) & ~SHM_WAKING;

    if (wait->announced && (word & SHM_WAITERS) && !(word & SHM_WAKING))
        return true;
    SHM_POINT();
    return atomic_compare_exchange_strong(&l->entry->word, &word, new);
}

/* Chooses whose death to watch for, and when to check again. Returns false if
 * the lock was passed on in the meantime, in which case we may watch the wrong
 * client. */
static bool mutex_wait_behind(struct shm *s, struct shm_lock *l, uint64_t word)
{
    struct shm_wait *wait = atomic_load(&l->wait);
    struct shm_cell *c = mutex_cell_of(s, wait);
    uint32_t owner = shm_owner(word);
    struct shm_queue_scan r;

    SHM_POINT();
    hf__shm_queue_scan(s, l->index, s->me, atomic_load(&c->ticket), &r);
    hf__shm_wait_announce(s, wait, r.behind);
    if (r.before != SHM_NO_CELL && r.before_owner != owner) {
        hf__shm_watch(s, wait, &r.before_owner, 1, HF__NEVER);
        return true; /* our turn comes after that waiter, even if the holder
                        changes */
    }
    hf__shm_watch(s, wait, &owner, 1, hf__shm_mutex_lease_end(l->entry, word));
    return shm_is_grant(atomic_load(&l->entry->word), word);
}

/* Passes the lock on if its holder is dead or its lease has ended. */
static bool mutex_help(struct shm *s, struct shm_lock *l, uint64_t word,
                       uint32_t *dead)
{
    if (!hf__shm_is_over(s, shm_owner(word),
                         hf__shm_mutex_lease_end(l->entry, word), dead))
        return false;
    hf__shm_mutex_pass(s, l->index, word);
    return true;
}

int hf__shm_mutex_attempt(struct shm *s, struct shm_lock *l,
                          struct hf__req *req, uint32_t *dead)
{
    bool again = false, passed = false;
    struct shm_retry retry = {.of = l->entry};

    do {
        struct shm_wait *wait = atomic_load(&l->wait);
        uint64_t w;
        int rc;

        if (l->state == SHM_QUEUED)
            atomic_store(&wait->watch.bell,
                         atomic_load(&mutex_cell_of(s, wait)->bell));
        w = atomic_load(&l->entry->word);
        if (!shm_owner(w)) {
            /* A fair lock that is free but has a flag set should have been
             * passed to a waiter. It is passed now; if it is still free after
             * that, the entry is damaged, and we take the lock. */
            if (l->state != SHM_QUEUED && (w & l->take_mask) && !passed)
                passed = hf__shm_mutex_pass(s, l->index, w);
            else if (mutex_take(s, l, &w) && mutex_granted(s, l, req, w))
                return HF__GRANTED;
            continue;
        }
        if (shm_owner(w) == s->me) {
            if (mutex_granted(s, l, req, w))
                return HF__GRANTED;
            continue;
        }
        if (mutex_help(s, l, w, dead))
            continue;
        if (l->state != SHM_QUEUED) {
            if (!req->may_queue)
                return HF__BUSY;
            if ((rc = mutex_enqueue(s, l, req)))
                return rc;
            continue;
        }
        if (!mutex_announce(l, wait, w))
            continue;
        /* Other clients may take an unfair lock at any time, so
         * mutex_wait_behind might return false repeatedly. After its second
         * call we sleep even if we watch an earlier holder, because a release
         * rings the first waiter. */
        if (mutex_wait_behind(s, l, w) || (again && !shm_is_fair(l)))
            return hf__shm_wait_sleep(s, wait, req);
        again = true;
    } while (hf__shm_retry(s, &retry));
    if (l->state == SHM_IDLE)
        l->state = SHM_LEAVING; /* the loop that writes the lease may have given
                                   up while the word is in our name */
    hf__shm_mutex_let_go(s, l);
    return hf__shm_retry_refuse(s);
}
