/*
 * The word and the queue of a mutex. They follow the two rules of layout.h: a
 * grant changes the count, and a client that changes data on which other
 * clients base decisions stirs the word afterwards.
 *
 * In the queue each waiter watches one liveness word: that of the waiter before
 * it, or the holder's if it is the first.
 *
 * event                    | who is woken              | who notices if that
 *                          |                           | one dies
 * -------------------------+---------------------------+-----------------------
 * a fair lock is passed on | the first waiter, which   | the second: it watches
 *                          | now holds the lock; the   | the first
 *                          | second too, unless it     |
 *                          | watches the first already |
 *                          | and no lease begins       |
 * an unfair lock becomes   | the first waiter          | the second
 * free                     |                           |
 * the holder sets a lease  | the first waiter          | the second
 * the lease ends           | the first waiter, by its  | the second; if the
 *                          | own clock                 | first is stopped, any
 *                          |                           | waiter at its next
 *                          |                           | check
 * a waiter leaves          | the one after it          | the one after that
 * a waiter enters with a   | the one after it          | the one after that
 * ticket below another's   |                           |
 * a client dies            | a waiter that watches it, | the others, at their
 *                          | by the kernel; that       | next check
 *                          | waiter wakes the others   |
 *
 * The last row also covers a client that dies before it has rung a waiter: that
 * client was the holder or a waiter, and the waiter that it has not rung
 * watches it. Any client that sees that the holder is dead passes the lock on;
 * the swap of the word lets only one client succeed. Each waiter also checks
 * every 2 s (watch.c), because a client that breaks a hold may die before it
 * has rung a waiter, and no client watches it.
 *
 * A fair lock is never free while a client waits. While an unfair one is free,
 * any client may take it, and no other waiter is rung until the first has
 * checked (WAKING). The first then watches the new holder.
 */
#include "mutex_word.h"

#include "queue.h"
#include "retry.h"
#include "wakeup.h"

/* This happens only once in 2^23 grants, see layout.h. */
void hf__shm_mutex_raise_epoch(struct shm_entry *e, uint64_t epoch)
{
    SHM_POINT();
    atomic_compare_exchange_strong(&e->epoch, &epoch, epoch + 1);
}

void hf__shm_mutex_label_grant(struct shm_entry *e, const char *label,
                               uint64_t word)
{
    shm_label_put(e->label, label);
    atomic_store_explicit(&e->label_count, (uint32_t)(word >> 40),
                          memory_order_relaxed);
}

hf__time hf__shm_mutex_lease_end(struct shm_entry *e, uint64_t word)
{
    uint64_t lease = atomic_load(&e->lease);

    if (!(word & SHM_LEASED) || (lease ^ word >> 40) & 0xffffff)
        return HF__NEVER;
    return (hf__time)(lease >> 24) * HF__MS;
}

/*
 * Writes the lease of a grant, then sets LEASED in the word. Returns false if
 * the grant has ended or the loop gave up. Only the holder itself (`mine`)
 * replaces a lease of this grant. The client that passed the lock on must not
 * replace it: that client might overwrite the holder's lease with one that ends
 * earlier.
 */
bool hf__shm_mutex_lease_write(struct shm *s, unsigned index, uint64_t word,
                               hf__time until, bool mine)
{
    struct shm_entry *e = &s->file->entry[index];
    uint64_t new = shm_lease(shm_to_ms(until), word);
    uint64_t old = atomic_load(&e->lease), w;
    struct shm_retry retry = {.of = e};
    struct shm_queue_scan r;

    do {
        w = atomic_load(&e->word);
        if (!shm_is_grant(w, word) || !hf__shm_retry(s, &retry))
            return false;
        /* The entry already has a lease of this grant, or one of a grant so
         * long ago that its count looks the same. */
        if (!((old ^ new) & 0xffffff)) {
            if (!mine)
                return true;
            if ((w & SHM_LEASED) && old > new)
                new = old; /* a lease never ends earlier than its holder
                              believes */
        }
        SHM_POINT();
    } while (!atomic_compare_exchange_strong(&e->lease, &old, new));
    SHM_POINT();
    w = atomic_load(&e->word);
    do {
        if (!shm_is_grant(w, word) || !hf__shm_retry(s, &retry))
            return false;
        SHM_POINT();
    } while (!atomic_compare_exchange_strong(&e->word, &w,
                                             shm_stirred(w) | SHM_LEASED));
    SHM_POINT();
    /* Ring the first waiter, which does not know yet when the lease ends. */
    if (mine && (w & SHM_WAITERS)) {
        hf__shm_queue_scan(s, index, s->me, 0, &r);
        if (r.first != SHM_NO_CELL)
            hf__shm_ring_cell(s, r.first);
    }
    return true;
}

/* Rings the first waiter and, unless `is_known`, the second one. The second
 * might not watch the first yet, or might not know of the lease that the first
 * gets now. If the second were not rung then, no client would notice the death
 * of the first, or the end of its lease. */
static void word_ring_first(struct shm *s, unsigned index,
                            const struct shm_queue_scan *r, bool is_known)
{
    struct shm_queue_scan rest;

    hf__shm_ring_cell(s, r->first);
    if (r->len < 2 || is_known)
        return;
    SHM_POINT();
    hf__shm_queue_scan(s, index, r->first_owner, r->first_ticket, &rest);
    if (rest.behind != SHM_NO_CELL)
        hf__shm_ring_cell(s, rest.behind);
}

bool hf__shm_mutex_pass(struct shm *s, unsigned index, uint64_t word)
{
    struct shm_entry *e = &s->file->entry[index];
    bool fair = atomic_load(&e->kind) & 256;
    uint32_t owner = shm_owner(word);
    uint64_t new;
    uint32_t lease_ms;
    struct shm_cell *c;
    struct shm_queue_scan r;
    bool announced;

    hf__shm_queue_scan(s, index, owner, 0, &r);
    /* Reads what the first waiter wants before the swap that grants, because
     * the cell may belong to another client afterwards. If the cell was given
     * away before the swap, the client that left the queue has stirred the
     * word, and the swap fails. */
    c = &s->file->cell[r.first % SHM_CELLS];
    /* an unfair lock is not granted here, and no lease begins */
    lease_ms = fair ? atomic_load(&c->lease_ms) : 0;
    announced = atomic_load(&c->announced);
    if (r.first == SHM_NO_CELL)
        new = word & ~(SHM_OWNER_MASK | SHM_FLAGS);
    else if (fair)
        new = ((word & ~(SHM_OWNER_MASK | SHM_FLAGS)) + SHM_COUNT_ONE) |
              r.first_owner | (r.len > 1 ? SHM_WAITERS : 0);
    else
        new =
            (word & ~(SHM_OWNER_MASK | SHM_LEASED)) | SHM_WAITERS | SHM_WAKING;
    SHM_POINT();
    if (!atomic_compare_exchange_strong(&e->word, &word, new))
        return false;
    SHM_POINT();
    if (r.first == SHM_NO_CELL)
        return true;
    if (lease_ms)
        hf__shm_mutex_lease_write(s, index, new,
                                  s->core->now() + lease_ms * HF__MS, false);
    /* WAKING means that a waiter was woken already and has not checked, in
     * which case a holder that releases need not ring again. Other clients that
     * pass the lock on always ring. */
    if (fair || owner != s->me || !(word & SHM_WAKING))
        word_ring_first(s, index, &r, announced && !lease_ms);
    return true;
}
