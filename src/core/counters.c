#include "core/counters.h"

#include "base/futex.h"
#include "base/time.h"
#include "core/client.h"
#include "core/line.h"
#include "core/lock.h"

static const uint32_t bounds_us[HF_WAIT_BUCKETS] = {
    10,      25,      50,       100,      250,      500,      1000,   2500,
    5000,    10000,   25000,    50000,    100000,   250000,   500000, 1000000,
    2500000, 5000000, 10000000, 25000000, 50000000, 100000000};

static uint64_t *counter_of(hf_metrics *counts, int result)
{
    switch (result) {
    case HF_EBUSY:
        return &counts->busy;
    case HF_ETIMEDOUT:
        return &counts->timed_out;
    case HF_ECANCELED:
        return &counts->cancelled;
    default:
        return &counts->failed;
    }
}

void hf__count_failed(const hf_lock *lock)
{
    if (lock->line->remote.kind != HF_LATCH)
        hf__count(&lock->line->client->counts.failed, 1);
}

void hf__count_at_once(struct hf__line *n, int result)
{
    if (result == HF__GRANTED) {
        hf__tally_add(n, HF__TALLY_GRANT);
        hf__tally_hold(n);
    } else if (n->remote.kind != HF_LATCH) {
        hf__count(counter_of(&n->client->counts, result), 1);
    }
}

void hf__count_wait(hf_client *c, enum hf_kind kind)
{
    if (kind != HF_LATCH)
        hf__count(&c->counts.waiting, 1);
}

static uint64_t *counters_bucket_of(hf_client *c, uint64_t ns)
{
    for (size_t i = 0; i < HF_WAIT_BUCKETS; i++)
        if (ns <= bounds_us[i] * UINT64_C(1000))
            return &c->counts.wait[i].count;
    return &c->longest_waits;
}

void hf__count_waited(hf_client *c, enum hf_kind kind, int result,
                      hf__time waited)
{
    uint64_t ns = waited > 0 ? (uint64_t)waited : 0;

    if (kind == HF_LATCH)
        return;
    hf__count(&c->counts.waiting, (uint64_t)-1);
    if (result != HF__GRANTED) {
        hf__count(counter_of(&c->counts, result), 1);
        return;
    }
    hf__count(counters_bucket_of(c, ns), 1);
    hf__count(&c->counts.wait_sum_ns, ns);
}

/* After ELOST, does not update the number of holds, because the hold had ended
 * before the release: hf__tally_lost() has already updated the number or, if
 * this release has found the loss, is called next. */
void hf__tally_release(struct hf__line *n, int result)
{
    if (result == HF_ENOTOWNER)
        return;
    hf__tally_add(n, HF__TALLY_RELEASE);
    if (result == HF_ELOST)
        hf__tally_limit(n);
    else
        hf__tally_hold(n);
}

void hf__tally_lost(struct hf__line *n)
{
    hf__count(&n->client->counts.lost, hf__tally_held(n->tally));
    hf__tally_hold(n);
}

void hf__tally_carry_locked(struct hf__line *n)
{
    hf_metrics *counts = &n->client->counts;
    uint64_t tally = n->tally;

    if (n->remote.kind != HF_LATCH) {
        hf__count(&counts->granted, hf__tally_granted(tally));
        hf__count(&counts->released, hf__tally_released(tally));
    }
    hf__tally_add(n, -(tally % HF__TALLY_HOLD));
}

void hf__tally_carry(struct hf__line *n)
{
    HF__HOLDING(&n->client->mu);

    hf__tally_carry_locked(n);
}

/* ---- reading ----------------------------------------------------------- */

static uint64_t counters_read64(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void counters_add_line(hf_metrics *m, const struct hf__line *n)
{
    uint64_t tally = counters_read64(&n->tally);

    if (n->remote.kind == HF_LATCH)
        return;
    m->granted += hf__tally_granted(tally);
    m->released += hf__tally_released(tally);
    m->held += hf__tally_held(tally);
}

/* The buckets are cumulative. m->granted starts with the grants without a wait,
 * which belong to the first bucket. Each hold is granted before it is released.
 * Therefore the grants after a wait are read after all releases, so that
 * m->released is never more than m->granted. */
void hf__counters_read_locked(hf_client *c, hf_metrics *m)
{
    /* All fields after `size` are 64-bit integers. */
    const size_t first = offsetof(hf_metrics, granted);

    m->size = sizeof(*m);
    for (size_t at = first; at < sizeof(*m); at += sizeof(uint64_t))
        *(uint64_t *)((char *)m + at) =
            counters_read64((const uint64_t *)((const char *)&c->counts + at));
    for (size_t i = 0; i < c->buckets_len; i++)
        for (struct hf__line *n = c->buckets[i]; n; n = n->next_in_bucket)
            counters_add_line(m, n);
    for (size_t i = 0; i < HF_WAIT_BUCKETS; i++) {
        m->granted += counters_read64(&c->counts.wait[i].count);
        m->wait[i] = (hf_bucket){bounds_us[i], m->granted};
    }
    m->granted += counters_read64(&c->longest_waits);
}
