/*
 * Counters of what a client has done, and of how long its acquires took.
 *
 * The shortest acquire, in shared memory, takes less than 100 ns, so counting
 * must not read a clock there, nor write a cache line that other threads write.
 * Therefore releases, and grants without a wait, are counted in their line
 * (hf__tally_add), whose mutex is held anyway. Everything else is counted in
 * the client.
 */
#ifndef HF_COUNTERS_H
#define HF_COUNTERS_H

#include "core/line.h"

static inline void hf__count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* Counts an acquire that failed before it used a line. */
void hf__count_failed(const hf_lock *);
/* Counts an acquire that ended without a wait. line->mu is held. */
void hf__count_at_once(struct hf__line *, int result);
/* Counts a wait that has begun. */
void hf__count_wait(hf_client *, enum hf_kind);
/* Counts a wait that has ended with that result after the time `waited`. */
void hf__count_waited(hf_client *, enum hf_kind, int result, hf__time waited);
/* Sums up the counters of the client and its lines. client->mu is held. */
void hf__counters_read_locked(hf_client *, hf_metrics *);

/*
 * The counts of a line, in one number. From the lowest bit on: 20 bits for the
 * acquires granted without a wait, 20 bits for the releases, 24 bits for the
 * current holds.
 *
 * The number is written with line->mu held and read with client->mu held, so
 * every access is atomic except the writer's own read. Threads that use
 * different names do not write the same number. An acquire or a release that
 * takes the short way in shared memory (base/uncancelled.h) writes the number
 * only once, because every store delays the next atomic instruction.
 */
#define HF__TALLY_BITS 20
#define HF__TALLY_GRANT UINT64_C(1)
#define HF__TALLY_RELEASE (HF__TALLY_GRANT << HF__TALLY_BITS)
#define HF__TALLY_HOLD (HF__TALLY_RELEASE << HF__TALLY_BITS)
/* Moves the line's counts of grants and releases to the client's counters. */
void hf__tally_carry(struct hf__line *);
/* Does what hf__tally_carry() does, but client->mu is held. line->mu need not
 * be held if the line is about to be freed. */
void hf__tally_carry_locked(struct hf__line *);

static inline uint32_t hf__tally_granted(uint64_t tally)
{
    return (uint32_t)(tally % HF__TALLY_RELEASE);
}

static inline uint32_t hf__tally_released(uint64_t tally)
{
    return (uint32_t)(tally % HF__TALLY_HOLD / HF__TALLY_RELEASE);
}

static inline uint32_t hf__tally_held(uint64_t tally)
{
    return (uint32_t)(tally / HF__TALLY_HOLD);
}

/* Adds `what` to the line's counts. The caller of this function, and of all
 * functions below, holds line->mu. */
static inline void hf__tally_add(struct hf__line *n, uint64_t what)
{
    __atomic_store_n(&n->tally, n->tally + what, __ATOMIC_RELAXED);
}

/* Keeps the counts of grants and releases from overflowing. Must be called
 * between any two releases. */
static inline void hf__tally_limit(struct hf__line *n)
{
    const uint64_t half = (HF__TALLY_RELEASE | HF__TALLY_HOLD) / 2;

    if (__builtin_expect((n->tally & half) != 0, 0))
        hf__tally_carry(n);
}

/* Updates the number of holds after an acquire or a release (not a loss). */
static inline void hf__tally_hold(struct hf__line *n)
{
    uint64_t held = n->queue.shared ? n->queue.count : n->queue.owner != 0;

    hf__tally_add(n, (held - n->tally / HF__TALLY_HOLD) * HF__TALLY_HOLD);
    hf__tally_limit(n);
}

/* Counts a release for which the queue has returned that result. */
void hf__tally_release(struct hf__line *, int result);
/* Counts the holds of this line as lost. */
void hf__tally_lost(struct hf__line *);

#endif
