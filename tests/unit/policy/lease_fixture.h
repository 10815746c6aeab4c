/* Leases in the states from which tests begin. Times are milliseconds after T0;
 * the first hold id is 41. */
#ifndef LEASE_FIXTURE_H
#define LEASE_FIXTURE_H

#include "../cases.h"
#include "policy/lease.h"

#define TTL 10000u /* ms */
#define LENGTH ((hf__time)TTL * HF__MS)
#define OP_TIMEOUT (500 * HF__MS)
#define T0 (1000 * HF__MS)

static uint64_t ids; /* the last hold id given */

static inline hf__time at(int64_t ms)
{
    return T0 + ms * HF__MS;
}

static inline struct hf__lease fresh(bool endless)
{
    struct hf__lease l;

    ids = 40;
    hf__lease_init(&l, endless);
    return l;
}

static inline enum hf__todo next(struct hf__lease *l, int64_t ms)
{
    return hf__lease_next(l, at(ms), &ids);
}

/* Returns a lease that is wanted, with its attempt sent at 0. */
static inline struct hf__lease asking(bool endless, bool fixed)
{
    struct hf__lease l = fresh(endless);

    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 0), HF__TODO_ATTEMPT);
    l.lease_ms = TTL;
    l.fixed = fixed;
    hf__lease_attempted(&l, at(0), OP_TIMEOUT / HF__MS);
    return l;
}

static inline int answer_full(struct hf__lease *l, uint64_t hold_id, int result,
                              int64_t ms, int64_t max_hold_ms)
{
    struct hf__req req = {
        .hold_id = hold_id, .sent_at = at(0), .result = (int16_t)result};

    if (result == HF__GRANTED)
        req.token = 7;
    else
        req.poll_at = at(ms + 2000);
    return hf__lease_answered(l, &req, at(ms), max_hold_ms);
}

static inline int answer(struct hf__lease *l, int result, int64_t ms)
{
    return answer_full(l, l->hold_id, result, ms, 0);
}

/* Returns a lease that was granted at 100; its attempt was sent at 0. */
static inline struct hf__lease held(bool endless, bool fixed)
{
    struct hf__lease l = asking(endless, fixed);

    assert_int_equal(answer(&l, HF__GRANTED, 100), HF__GRANTED);
    hf__lease_want(&l, false);
    return l;
}

static inline struct hf__lease queued(void)
{
    struct hf__lease l = asking(false, false);

    assert_int_equal(answer(&l, HF__QUEUED, 100), HF__PENDING);
    return l;
}

/* Delivers the answer to a renewal of hold_id. */
static inline int renewed(struct hf__lease *l, uint64_t hold_id, int result,
                          int64_t sent_ms, uint32_t lease_ms, int64_t ms)
{
    return hf__lease_renewed(l, hold_id, result, at(sent_ms), lease_ms, at(ms));
}

/* Returns a lease that was released at 1000; the answer to the release was
 * lost. */
static inline struct hf__lease unsure(void)
{
    struct hf__lease l = held(false, false);

    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_false(hf__lease_let_go_answered(&l, HF_EUNKNOWN, at(1100)));
    return l;
}

#endif
