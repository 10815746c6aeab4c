/*
 * The word of a mutex: grants, leases, and passing the lock on. Any client may
 * call these for any mutex: each change is a swap that fails if the word has
 * changed since it was read.
 */
#ifndef HF_SHM_MUTEX_WORD_H
#define HF_SHM_MUTEX_WORD_H

#include "lock_state.h"
#include "shm.h"

/* Returns whether both words are of the same grant. */
static inline bool shm_is_grant(uint64_t a, uint64_t b)
{
    return !((a ^ b) & SHM_GRANT_MASK);
}

/* Raises the entry's epoch from `epoch` by 1. Called when the count of grants
 * has advanced by half its range, see layout.h. */
void hf__shm_mutex_raise_epoch(struct shm_entry *, uint64_t epoch);
/* Writes the label of the grant `word`. Needed only if that label is not the
 * label of the client. */
void hf__shm_mutex_label_grant(struct shm_entry *, const char *, uint64_t word);
/* Returns when the lease of the grant `word` ends, or HF__NEVER if it has
 * none. */
hf__time hf__shm_mutex_lease_end(struct shm_entry *, uint64_t word);
/* Sets the lease of the grant `word`; `mine` is true if we are its holder.
 * Returns false if the grant has ended or the loop gave up (retry.h). */
bool hf__shm_mutex_lease_write(struct shm *, unsigned index, uint64_t word,
                               hf__time until, bool mine);
/* Takes the lock from the word's owner, if there is one. A fair lock goes to
 * the first waiter. An unfair lock, or one for which no client waits, becomes
 * free. Rings the first waiter (wakeup.h), unless we release an unfair lock
 * while a waiter that was woken has not checked yet. Returns false if the word
 * has changed. */
bool hf__shm_mutex_pass(struct shm *, unsigned index, uint64_t word);

/*
 * Records the grant in the lock and in the entry; the word is in our name.
 * Returns false if the grant was broken, in which case the token may be wrong,
 * too.
 */
static inline bool shm_mutex_grant(const struct shm *s, struct shm_lock *l,
                                   struct hf__req *req, uint64_t word)
{
    struct shm_entry *e = l->entry;
    uint64_t epoch = atomic_load_explicit(&e->epoch, memory_order_acquire);

    if (__builtin_expect((epoch ^ word >> 63) & 1, 0))
        hf__shm_mutex_raise_epoch(e, epoch);
    if ((atomic_load_explicit(&e->word, memory_order_relaxed) ^ word) &
        SHM_GRANT_MASK)
        return false;
    /* Seconds are precise enough to show, and cost half as much as the finer
     * clock. */
    atomic_store_explicit(&e->since, (uint64_t)time(NULL) * 1000,
                          memory_order_relaxed);
    if (__builtin_expect(req->remote->label != s->label, 0))
        hf__shm_mutex_label_grant(e, req->remote->label, word);
    req->token = shm_token(epoch, word);
    l->state = SHM_HELD;
    /* The order matters, because renew reads these fields in the opposite
     * order. */
    atomic_store_explicit(&l->hold_id, req->hold_id, memory_order_relaxed);
    atomic_store_explicit(&l->mine, word, memory_order_release);
    return true;
}

#endif
