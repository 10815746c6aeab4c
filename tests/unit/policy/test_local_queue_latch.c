/* The queue of waiters for a latch: they are let through together, and nothing
 * is held. */
#include "local_queue_fixture.h"

static struct hf__queue latch_queue(void)
{
    struct hf__queue g = queue(true);

    g.latch = true;
    return g;
}

#define LATCH_CASE(fn) CASE_OF(fn, latch_queue())

static void assert_nothing_is_held(struct hf__queue *g, int64_t ms)
{
    assert_int_equal(g->owner, 0);
    assert_string_equal(run(g, ms), "");
    assert_true(hf__queue_unused(g));
    assert_int_equal(hf__lease_timer(&g->lease), HF__NEVER);
}

LATCH_CASE(test_latch_lets_all_through_and_holds_nothing)
{
    struct hf__waiter a = want(1), b = want(2);

    ask(g, &a, 0);
    answer(g, HF__QUEUED, 1);
    assert_true(hf__queue_joinable(g, &b, at(2)));
    line_up(g, &b, 2);
    hf__lease_bell(&g->lease, at(2));
    assert_string_equal(run(g, 2), "A");
    answer(g, HF__QUEUED, 3);
    hf__lease_bell(&g->lease, at(3));
    assert_string_equal(run(g, 3), "A");
    answer(g, HF__GRANTED, 4);
    assert_int_equal(a.result, HF__GRANTED);
    assert_int_equal(b.result, HF__GRANTED);
    assert_nothing_is_held(g, 4);
    assert_int_equal(hf__queue_check(g, 1, at(4)), HF_ENOTOWNER);
    assert_int_equal(release(g, 1, 4), HF_ENOTOWNER);
    /* Waiting again sends a new attempt. */
    ask(g, &a, 5);
    assert_int_equal(g->lease.hold_id, 102);
}

/* A new waiter uses another line, because the pending answer may say that the
 * latch is 0, and the latch may have been set again before this waiter came. */
LATCH_CASE(test_latch_answer_is_for_those_who_were_there)
{
    struct hf__waiter a = want(1), b = want(2);

    ask(g, &a, 0);
    assert_false(hf__queue_joinable(g, &b, at(1)));
    answer(g, HF__QUEUED, 2);
    assert_true(hf__queue_joinable(g, &b, at(2)));
    hf__lease_bell(&g->lease, at(3));
    assert_string_equal(run(g, 3), "A");
    assert_false(hf__queue_joinable(g, &b, at(3)));
}

/* The latch may have been 0 before a waiter came, and set again since. A waiter
 * that came after the server last said "not yet" needs a new attempt. */
LATCH_CASE(test_latch_late_comer_asks_anew)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    ask(g, &a, 0);
    answer(g, HF__QUEUED, 1);
    line_up(g, &b, 2);
    line_up(g, &c, 2);
    hf__lease_bell(&g->lease, at(2));
    assert_string_equal(run(g, 2), "A");
    answer(g, HF__GRANTED, 3);
    assert_int_equal(a.result, HF__GRANTED);
    assert_int_equal(b.state, HF__W_WAITING);
    assert_int_equal(c.state, HF__W_WAITING);
    assert_string_equal(run(g, 3), "A");
    assert_int_equal(g->lease.hold_id, 102);
    answer(g, HF__GRANTED, 4);
    assert_int_equal(b.result, HF__GRANTED);
    assert_int_equal(c.result, HF__GRANTED);
    assert_nothing_is_held(g, 4);
}

/* The last attempt was sent after all waiters had come, and its answer says
 * that the latch is 0 now: all waiters are let through. */
LATCH_CASE(test_latch_at_zero_keeps_no_late_comer)
{
    struct hf__waiter a = want(1), b = want(2);
    struct hf__req req = {.result = HF__GRANTED, .is_zero = true};

    ask(g, &a, 0);
    answer(g, HF__QUEUED, 1);
    line_up(g, &b, 2);
    hf__lease_bell(&g->lease, at(2));
    assert_string_equal(run(g, 2), "A");
    req.hold_id = g->lease.hold_id;
    hf__queue_answered(g, &req, at(3), wake);
    assert_int_equal(a.result, HF__GRANTED);
    assert_int_equal(b.state, HF__W_FINISHED);
    assert_int_equal(b.result, HF__GRANTED);
    assert_nothing_is_held(g, 3);
}

/* A waiter that needs a new attempt must wait until the abandon of an earlier
 * attempt is confirmed. The time limit for that is the same as for any
 * answer. */
LATCH_CASE(test_latch_late_comer_that_is_stuck_hears_of_silence)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    ask(g, &a, 0);
    hf__queue_leave(g, &a, HF_ECANCELED, wake);
    assert_string_equal(run(g, 1), "B");
    ask(g, &b, 1);
    answer(g, HF__QUEUED, 2);
    line_up(g, &c, 3);
    hf__lease_bell(&g->lease, at(3));
    assert_string_equal(run(g, 3), "A");
    assert_false(hf__lease_let_go_answered(&g->lease, HF_EBACKEND, at(4)));
    answer(g, HF__GRANTED, 5);
    assert_int_equal(b.result, HF__GRANTED);
    assert_int_equal(c.state, HF__W_WAITING);
    hf__queue_tick(g, at(4 + OP_TIMEOUT), wake);
    assert_int_equal(c.state, HF__W_WAITING);
    hf__queue_tick(g, at(5 + OP_TIMEOUT), wake);
    assert_int_equal(c.result, HF_EBACKEND);
}

LATCH_CASE(test_latch_try_is_answered_at_once)
{
    struct hf__waiter a = want(1), b = want(2);

    a.is_try = b.is_try = true;
    ask(g, &a, 0);
    assert_false(may_queue);
    answer(g, HF__BUSY, 1);
    assert_int_equal(a.result, HF_EBUSY);
    assert_nothing_is_held(g, 1);
    ask(g, &b, 2);
    answer(g, HF__GRANTED, 3);
    assert_int_equal(b.result, HF__GRANTED);
    assert_nothing_is_held(g, 3);
}

/* A latch has no lease, so an answer does not expire: an answer that is read
 * only after two TTLs still lets the waiter through. */
LATCH_CASE(test_latch_answer_is_never_too_late)
{
    struct hf__waiter a = want(1);
    struct hf__req req = {.result = HF__GRANTED, .sent_at = at(0)};

    ask(g, &a, 0);
    req.hold_id = g->lease.hold_id;
    hf__queue_answered(g, &req, at(2 * TTL), wake);
    assert_int_equal(a.state, HF__W_FINISHED);
    assert_int_equal(a.result, HF__GRANTED);
    assert_nothing_is_held(g, 2 * TTL);
}

LATCH_CASE(test_latch_answer_that_nobody_wants_leaves_nothing)
{
    struct hf__waiter a = want(1), b = want(2);

    ask(g, &a, 0);
    hf__queue_leave(g, &a, HF_ECANCELED, wake);
    assert_string_equal(run(g, 1), "B");
    ask(g, &b, 1);
    hf__queue_leave(g, &b, HF_ECANCELED, wake);
    answer(g, HF__GRANTED, 2); /* the abandon is pending */
    assert_true(let_go(g, HF__DONE, 3));
    assert_nothing_is_held(g, 3);
}

CASES_MAIN(NULL, NULL);
