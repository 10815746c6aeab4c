/*
 * What a client has done: counters, and how long acquires took.
 *
 * The shortest acquire, in shared memory, takes less than 100 ns, so it may
 * neither read a clock for this nor write what other threads write. A grant
 * without a wait is counted in its line (hf__tally_add), under the mutex that
 * is held there anyway, and so is a release; all else is counted in the client.
 */
#ifndef HF_COUNTERS_H
#define HF_COUNTERS_H

#include "core/line.h"

static inline void hf__count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* An acquire has failed before it came to a line. */
void hf__count_failed(const hf_lock *);
/* An acquire through that line is over without a wait; line->mu is held. */
void hf__count_at_once(struct hf__line *, int result);
/* One waits; and its wait is over, after that time. */
void hf__count_wait(hf_client *, enum hf_kind);
void hf__count_waited(hf_client *, enum hf_kind, int result, hf__time waited);
/* All counters of the client and its lines; client->mu is held. */
void hf__counters_read_locked(hf_client *, hf_metrics *);

/*
 * What a line counts, in one number: from the lowest bit on, 20 bits for the
 * acquires that were granted without a wait, 20 bits for the releases, and 24
 * bits for the holds that it has now.
 *
 * It is written with line->mu held and read with client->mu held, so every
 * access but the writer's own read is atomic, and threads that use different
 * names do not write the same counters. An acquire or a release that goes the
 * short way in shared memory writes it once, because every store delays the
 * next locked instruction.
 */
#define HF__TALLY_BITS 20
#define HF__TALLY_GRANT UINT64_C(1)
#define HF__TALLY_RELEASE (HF__TALLY_GRANT << HF__TALLY_BITS)
#define HF__TALLY_HOLD (HF__TALLY_RELEASE << HF__TALLY_BITS)
/* Adds what the line has granted and released to the client's counters; the
 * second is for a line that is about to be freed. */
void hf__tally_carry(struct hf__line *);
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

/* From here on: line->mu is held. */
static inline void hf__tally_add(struct hf__line *n, uint64_t what)
{
    __atomic_store_n(&n->tally, n->tally + what, __ATOMIC_RELAXED);
}

/* Keeps both counters from overflowing; called between any two releases. */
static inline void hf__tally_limit(struct hf__line *n)
{
    const uint64_t half = (HF__TALLY_RELEASE | HF__TALLY_HOLD) / 2;

    if (__builtin_expect((n->tally & half) != 0, 0))
        hf__tally_carry(n);
}

/* The queue has a holder more or less; not by a loss. */
static inline void hf__tally_hold(struct hf__line *n)
{
    uint64_t held = n->queue.shared ? n->queue.count : n->queue.owner != 0;

    hf__tally_add(n, (held - n->tally / HF__TALLY_HOLD) * HF__TALLY_HOLD);
    hf__tally_limit(n);
}

/* A release has ended with that result of the queue. */
void hf__tally_release(struct hf__line *, int result);
/* The holds of this line were lost. */
void hf__tally_lost(struct hf__line *);

#endif
