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

static uint64_t *counter_of(struct hf__counts *counts, int result)
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

static size_t counters_bucket_of(uint64_t ns)
{
    size_t i = 0;

    while (i < HF_WAIT_BUCKETS && ns > bounds_us[i] * UINT64_C(1000))
        i++;
    return i;
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
    hf__count(&c->counts.wait[counters_bucket_of(ns)], 1);
    hf__count(&c->counts.wait_sum_ns, ns);
}

/* ELOST: the hold has ended before, so that there are as many as there were; if
 * just now, hf__tally_lost() follows. One store, or a reader would see a hold
 * less than none. */
void hf__tally_release(struct hf__line *n, int result)
{
    if (result == HF_ENOTOWNER)
        return;
    if (result == HF_ELOST) {
        hf__tally_add(n, HF__TALLY_RELEASE + HF__TALLY_HOLD);
        hf__tally_limit(n);
    } else {
        hf__tally_add(n, HF__TALLY_RELEASE);
        hf__tally_hold(n);
    }
}

void hf__tally_lost(struct hf__line *n)
{
    hf__count(&n->client->counts.lost, hf__tally_held(n->tally));
    hf__tally_hold(n);
}

void hf__tally_carry_locked(struct hf__line *n)
{
    struct hf__counts *counts = &n->client->counts;
    uint64_t tally = n->tally;

    if (n->remote.kind != HF_LATCH) {
        hf__count(&counts->granted, hf__tally_granted(tally));
        hf__count(&counts->released, hf__tally_released(tally));
    }
    __atomic_store_n(&n->tally, hf__tally_held(tally) * HF__TALLY_HOLD,
                     __ATOMIC_RELAXED);
}

void hf__tally_carry(struct hf__line *n)
{
    hf_client *c = n->client;

    hf__mutex_lock(&c->mu);
    hf__tally_carry_locked(n);
    hf__mutex_unlock(&c->mu);
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

/* Grants without a wait are in the first bucket. */
static void counters_add_waits(hf_metrics *m, const struct hf__counts *counts)
{
    for (size_t i = 0; i < HF_WAIT_BUCKETS; i++) {
        m->granted += counters_read64(&counts->wait[i]);
        m->wait[i] = (hf_bucket){bounds_us[i], m->granted};
    }
    m->granted += counters_read64(&counts->wait[HF_WAIT_BUCKETS]);
    m->wait_sum_ns = counters_read64(&counts->wait_sum_ns);
}

void hf__counters_read_locked(hf_client *c, hf_metrics *m)
{
    const struct hf__counts *counts = &c->counts;

    *m = (hf_metrics){
        .size = sizeof(*m),
        .granted = counters_read64(&counts->granted),
        .busy = counters_read64(&counts->busy),
        .timed_out = counters_read64(&counts->timed_out),
        .cancelled = counters_read64(&counts->cancelled),
        .failed = counters_read64(&counts->failed),
        .released = counters_read64(&counts->released),
        .lost = counters_read64(&counts->lost),
        .renewed = counters_read64(&counts->renewed),
        .renewals_failed = counters_read64(&counts->renewals_failed),
        .disconnects = counters_read64(&counts->disconnects),
        .reconnects = counters_read64(&counts->reconnects),
        .waiting = counters_read64(&counts->waiting),
    };
    for (size_t i = 0; i < c->buckets_len; i++)
        for (struct hf__line *n = c->buckets[i]; n; n = n->next_in_bucket)
            counters_add_line(m, n);
    counters_add_waits(m, counts);
}
