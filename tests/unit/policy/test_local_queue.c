/* The queue: entering, waiting, leaving; one attempt on behalf of all
 * waiters. */
#include "local_queue_fixture.h"

QUEUE_CASE(test_queue_asks_once_for_many)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    assert_true(hf__queue_idle(g));
    ask(g, &a, 0);
    line_up(g, &b, 1);
    line_up(g, &c, 2);
    assert_false(hf__queue_idle(g));
    answer(g, HF__GRANTED, 3);
    assert_int_equal(woken_len, 1);
    assert_ptr_equal(woken[0], &a);
    assert_int_equal(a.result, HF__GRANTED);
    assert_int_equal(b.state, HF__W_WAITING);
    assert_int_equal(hf__queue_check(g, 1, at(4)), HF__DONE);
    assert_int_equal(hf__queue_check(g, 2, at(4)), HF_ENOTOWNER);
}

QUEUE_CASE(test_queue_release_goes_out_and_the_next_asks)
{
    struct hf__waiter a = want(1), b = want(2);

    grant(g, &a, 0);
    line_up(g, &b, 1);
    assert_int_equal(release(g, 1, 5), HF__DONE);
    assert_string_equal(run(g, 5), "RA");
    assert_int_equal(g->lease.let_go_id, 101);
    assert_int_equal(g->lease.hold_id, 102);
    assert_true(let_go(g, HF__DONE, 6));
    answer(g, HF__GRANTED, 6);
    assert_int_equal(b.result, HF__GRANTED);
    give_up(g, 2, 7);
    assert_true(let_go(g, HF__DONE, 8));
    assert_true(hf__queue_idle(g));
}

QUEUE_CASE(test_queue_counts_reentry)
{
    struct hf__waiter a = want(1), again = want(1);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &again, at(1)), HF__GRANTED);
    assert_int_equal(g->count, 2);
    assert_int_equal(release(g, 1, 2), HF__PENDING);
    assert_int_equal(hf__queue_check(g, 1, at(2)), HF__DONE);
    assert_string_equal(run(g, 2), "");
    assert_int_equal(release(g, 1, 3), HF__DONE);
    assert_int_equal(release(g, 1, 3), HF_ENOTOWNER);
}

QUEUE_CASE(test_queue_not_reentrant_is_a_deadlock)
{
    struct hf__waiter a = want(1), again = want(1);

    again.reentrant = false;
    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &again, at(1)), HF_EDEADLK);
    assert_int_equal(g->count, 1);
}

/* If the owner's count of acquires overflowed, the hold would be released too
 * early. */
QUEUE_CASE(test_queue_reentry_has_an_end)
{
    struct hf__waiter a = want(1), again = want(1);

    grant(g, &a, 0);
    g->count = UINT32_MAX - 1;
    assert_int_equal(hf__queue_enter(g, &again, at(1)), HF__GRANTED);
    assert_int_equal(hf__queue_enter(g, &again, at(1)), HF_EDEADLK);
    assert_true(g->count == UINT32_MAX);
    assert_int_equal(release(g, 1, 2), HF__PENDING);
    assert_int_equal(hf__queue_check(g, 1, at(2)), HF__DONE);
}

QUEUE_CASE(test_queue_release_by_a_stranger_touches_nothing)
{
    struct hf__waiter a = want(1);

    grant(g, &a, 0);
    assert_int_equal(release(g, 2, 1), HF_ENOTOWNER);
    assert_int_equal(hf__queue_check(g, 1, at(1)), HF__DONE);
    assert_string_equal(run(g, 1), "");
}

QUEUE_CASE(test_queue_try_asks_without_queueing)
{
    struct hf__waiter a = want(1);

    a.is_try = true;
    ask(g, &a, 0);
    assert_false(may_queue);
    answer(g, HF__BUSY, 1);
    assert_int_equal(a.result, HF_EBUSY);
    assert_string_equal(run(g, 1), "");
    assert_true(hf__queue_idle(g));
}

/* A try shares the attempt of other waiters. When one of them is granted the
 * lock, the try is busy. */
QUEUE_CASE(test_queue_try_beside_others_is_busy_when_they_have_it)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    b.is_try = true;
    assert_int_equal(hf__queue_enter(g, &a, at(0)), HF__PENDING);
    assert_int_equal(hf__queue_enter(g, &b, at(0)), HF__PENDING);
    ask(g, &c, 0);
    answer(g, HF__GRANTED, 1);
    assert_int_equal(a.result, HF__GRANTED);
    assert_int_equal(b.result, HF_EBUSY);
    assert_int_equal(c.state, HF__W_WAITING);
    assert_int_equal(hf__queue_enter(g, &b, at(2)), HF_EBUSY);
}

QUEUE_CASE(test_queue_try_beside_others_is_busy_when_they_queue)
{
    struct hf__waiter a = want(1), b = want(2);

    b.is_try = true;
    ask(g, &a, 0);
    line_up(g, &b, 0);
    answer(g, HF__QUEUED, 1);
    assert_int_equal(a.state, HF__W_WAITING);
    assert_int_equal(b.result, HF_EBUSY);
    assert_int_equal(hf__queue_enter(g, &b, at(2)), HF_EBUSY);
}

QUEUE_CASE(test_queue_busy_ends_the_try_and_asks_for_the_others)
{
    struct hf__waiter a = want(1), b = want(2);

    a.is_try = true;
    ask(g, &a, 0);
    line_up(g, &b, 1);
    answer(g, HF__BUSY, 2);
    assert_int_equal(a.result, HF_EBUSY);
    assert_int_equal(b.state, HF__W_WAITING);
    assert_string_equal(run(g, 2), "A");
    assert_true(may_queue);
    assert_int_equal(g->lease.hold_id, 102);
}

/* Returns a queue with a try and a waiter that came while a release was unsure.
 * Their attempt has been sent. */
static struct hf__queue try_and_other(struct hf__waiter *t,
                                      struct hf__waiter *o)
{
    struct hf__queue g = queue(true);
    struct hf__waiter before = want(9);

    grant(&g, &before, 0);
    give_up(&g, 9, 1);
    assert_false(let_go(&g, HF_EUNKNOWN, 2));
    t->is_try = true;
    assert_int_equal(hf__queue_enter(&g, t, at(3)), HF__PENDING);
    assert_int_equal(hf__queue_enter(&g, o, at(3)), HF__PENDING);
    assert_string_equal(run(&g, 3), "R"); /* no attempt while unsure */
    assert_true(let_go(&g, HF__DONE, 4));
    assert_string_equal(run(&g, 4), "A");
    assert_true(may_queue);
    return g;
}

CASE(test_queue_try_does_not_wait_in_the_queue)
{
    struct hf__waiter t = want(1), o = want(2);
    struct hf__queue g = try_and_other(&t, &o);

    answer(&g, HF__QUEUED, 5);
    assert_int_equal(t.result, HF_EBUSY);
    assert_int_equal(o.state, HF__W_WAITING);
    assert_string_equal(run(&g, 5), "");
    assert_int_equal(g.lease.state, HF__WAITING);
}

CASE(test_queue_question_keeps_its_leave_to_queue)
{
    struct hf__waiter t = want(1), o = want(2);
    struct hf__queue g = try_and_other(&t, &o);

    hf__queue_leave(&g, &o, HF_ETIMEDOUT, wake);
    answer(&g, HF_EUNKNOWN, 5);
    assert_string_equal(run(&g, 5), "A");
    assert_true(may_queue); /* the lost attempt may have queued */
    answer(&g, HF__QUEUED, 6);
    assert_int_equal(t.result, HF_EBUSY);
    assert_string_equal(run(&g, 6), "B");
}

QUEUE_CASE(test_queue_leaving_abandons_the_question)
{
    struct hf__waiter a = want(1);

    ask(g, &a, 0);
    assert_int_equal(hf__queue_leave(g, &a, HF_ECANCELED, wake), HF_ECANCELED);
    assert_int_equal(a.state, HF__W_FINISHED);
    assert_string_equal(run(g, 1), "B");
    assert_true(let_go(g, HF__DONE, 2));
    assert_true(hf__queue_idle(g));
}

QUEUE_CASE(test_queue_leaving_keeps_the_question_of_others)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    ask(g, &a, 0);
    line_up(g, &b, 0);
    line_up(g, &c, 0);
    hf__queue_leave(g, &a, HF_ETIMEDOUT, wake);
    hf__queue_leave(g, &c, HF_ETIMEDOUT, wake); /* the last waiter leaves too */
    assert_string_equal(run(g, 1), "");
    answer(g, HF__GRANTED, 2);
    assert_int_equal(b.result, HF__GRANTED);
}

QUEUE_CASE(test_queue_leaving_after_the_grant_returns_the_grant)
{
    struct hf__waiter a = want(1);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_leave(g, &a, HF_ECANCELED, wake), HF__GRANTED);
    assert_int_equal(hf__queue_check(g, 1, at(1)), HF__DONE);
}

QUEUE_CASE(test_queue_failure_fails_everybody)
{
    struct hf__waiter a = want(1), b = want(2);

    assert_int_equal(hf__queue_enter(g, &a, at(0)), HF__PENDING);
    ask(g, &b, 0);
    answer(g, HF_EPROTO, 1);
    assert_int_equal(a.result, HF_EPROTO);
    assert_int_equal(b.result, HF_EPROTO);
    assert_int_equal(woken_len, 2);
    assert_string_equal(run(g, 1), "B"); /* the server may have done anything */
}

QUEUE_CASE(test_queue_silence_fails_everybody)
{
    struct hf__waiter a = want(1);

    ask(g, &a, 0);
    hf__queue_tick(g, at(OP_TIMEOUT - 1), wake);
    assert_int_equal(a.state, HF__W_WAITING);
    hf__queue_tick(g, at(OP_TIMEOUT), wake);
    assert_int_equal(a.result, HF_EBACKEND);
    assert_string_equal(run(g, OP_TIMEOUT), "B");
}

QUEUE_CASE(test_queue_new_waiter_is_not_failed_for_old_silence)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    ask(g, &a, 0);
    hf__queue_tick(g, at(500), wake);
    assert_string_equal(run(g, 500), "B"); /* never answered */
    assert_int_equal(hf__queue_enter(g, &b, at(600)), HF__PENDING);
    assert_string_equal(run(g, 600), "A"); /* never answered either */
    hf__queue_tick(g, at(1100), wake);
    assert_int_equal(b.result, HF_EBACKEND);
    assert_string_equal(run(g, 1100), "");
    assert_int_equal(hf__queue_enter(g, &c, at(1200)), HF__PENDING);
    hf__queue_tick(g, at(1200), wake);
    assert_int_equal(c.state, HF__W_WAITING);
    hf__queue_tick(g, at(1700), wake);
    assert_int_equal(c.result, HF_EBACKEND);
}

QUEUE_CASE(test_queue_waiting_in_the_queue_is_not_silence)
{
    struct hf__waiter a = want(1);

    ask(g, &a, 0);
    answer(g, HF__QUEUED, 1);
    hf__queue_tick(g, at(1900), wake);
    assert_int_equal(a.state, HF__W_WAITING);
    assert_string_equal(run(g, 1900), "");
    assert_string_equal(run(g, 2001), "A"); /* the poll */
}

QUEUE_CASE(test_queue_other_terms_are_another_question)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    b.fixed = true;
    c.fixed = true;
    c.lease_ms = TTL / 2;
    ask(g, &a, 0);
    line_up(g, &b, 1);
    line_up(g, &c, 1);
    hf__queue_leave(g, &a, HF_ETIMEDOUT, wake);
    assert_string_equal(run(g, 2), "BA");
    assert_true(g->lease.fixed);
    assert_true(let_go(g, HF__DONE, 3));
    hf__queue_leave(g, &b, HF_ETIMEDOUT, wake);
    assert_string_equal(run(g, 3), "BA");
    assert_int_equal(g->lease.lease_ms, TTL / 2);
}

QUEUE_CASE(test_queue_late_grant_is_given_back_and_asked_anew)
{
    struct hf__waiter a = want(1);
    struct hf__req req = {.result = HF__GRANTED, .token = 5};

    ask(g, &a, 0);
    req.hold_id = g->lease.hold_id;
    req.sent_at = at(0);
    hf__queue_answered(g, &req, at(TTL), wake);
    assert_int_equal(a.state, HF__W_WAITING);
    assert_int_equal(g->owner, 0);
    assert_string_equal(run(g, TTL), "RA");
}

CASES_MAIN(NULL, NULL);
