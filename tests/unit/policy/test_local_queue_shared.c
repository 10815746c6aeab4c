/* The queue of readers: they share a hold while it is young. */
#include "reader_fixture.h"

SHARED_CASE(test_shared_grant_is_for_all_who_wait)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3);

    ask(g, &a, 0);
    assert_true(hf__queue_joinable(g, &b, at(1)));
    line_up(g, &b, 1);
    line_up(g, &c, 1);
    assert_entries(g, 0, 3);
    answer(g, HF__GRANTED, 2);
    assert_int_equal(woken_len, 3);
    for (uint64_t owner = 1; owner <= 3; owner++)
        assert_reads(g, owner, 3);
    assert_int_equal(hf__queue_check(g, 4, at(3)), HF_ENOTOWNER);
    assert_string_equal(run(g, 3), "");
    assert_entries(g, 3, 0);
}

SHARED_CASE(test_shared_hold_goes_with_its_last_reader)
{
    struct hf__waiter a = reads(1), b = reads(2);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__GRANTED);
    assert_int_equal(release(g, 1, 2), HF__PENDING);
    assert_int_equal(hf__queue_check(g, 1, at(2)), HF_ENOTOWNER);
    assert_reads(g, 2, 2);
    assert_string_equal(run(g, 2), "");
    assert_entries(g, 1, 0);
    give_up(g, 2, 3);
    assert_int_equal(g->lease.let_go_id, 101);
    assert_false(hf__queue_unused(g)); /* its release is pending */
    assert_true(let_go(g, HF__DONE, 4));
    assert_true(hf__queue_unused(g));
    assert_int_equal(release(g, 2, 5), HF_ENOTOWNER);
    assert_entries(g, 0, 0);
}

/* Joining does not extend the time in which a hold can be joined, so that a
 * writer elsewhere gets its turn. */
SHARED_CASE(test_shared_hold_may_be_joined_while_it_is_young)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3);

    grant(g, &a, 0);
    assert_true(hf__queue_joinable(g, &b, at(JOIN_MS) - 1));
    assert_int_equal(hf__queue_enter(g, &b, at(JOIN_MS) - 1), HF__GRANTED);
    assert_false(hf__queue_joinable(g, &c, at(JOIN_MS)));
    assert_int_equal(hf__queue_enter(g, &c, at(JOIN_MS)), HF__PENDING);
    assert_int_equal(hf__queue_leave(g, &c, HF_ECANCELED, wake), HF_ECANCELED);
    assert_entries(g, 2, 0);
}

/* The short way (hf__queue_quiet) reads no clock: the time to join starts with
 * the first reader that joins. */
SHARED_CASE(test_shared_quick_way_is_the_same_hold)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3), d = reads(4);

    hf__queue_init(g, true, true, 100);
    g->shared = true;
    assert_true(hf__queue_quiet(g, &a));
    hf__queue_quick_share(g, &a, 101, 7);
    assert_false(hf__queue_quiet(g, &b));
    assert_reads(g, 1, 0);
    assert_int_equal(g->lease.token, 7);
    assert_int_equal(hf__queue_enter(g, &b, at(1000)), HF__GRANTED);
    assert_true(hf__queue_joinable(g, &c, at(1000 + JOIN_MS - 1)));
    assert_false(hf__queue_joinable(g, &c, at(1000 + JOIN_MS)));
    assert_false(hf__queue_quick_release(g, 1)); /* there are two readers */
    assert_int_equal(release(g, 1, 1001), HF__PENDING);
    assert_false(hf__queue_quick_release(g, 1));
    assert_true(hf__queue_quick_release(g, 2));
    assert_true(hf__queue_unused(g));
    assert_entries(g, 0, 2);
    hf__queue_quick_share(g, &c, 102, 8);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    assert_false(hf__queue_quiet(g, &d)); /* the lost hold is not released
                                             yet */
    assert_false(hf__queue_quick_release(g, 3));
    assert_int_equal(release(g, 3, 1002), HF_ELOST);
    assert_entries(g, 0, 1);
}

SHARED_CASE(test_shared_joining_does_not_extend_the_time_to_join)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &b, at(JOIN_MS - 1)), HF__GRANTED);
    assert_int_equal(release(g, 1, JOIN_MS - 1), HF__PENDING);
    assert_false(hf__queue_joinable(g, &c, at(JOIN_MS)));
}

SHARED_CASE(test_shared_hold_that_is_let_go_is_not_joined)
{
    struct hf__waiter a = reads(1), b = reads(2);

    grant(g, &a, 0);
    assert_int_equal(release(g, 1, 1), HF__DONE);
    assert_false(hf__queue_joinable(g, &b, at(1))); /* before it is sent */
    assert_string_equal(run(g, 1), "R");
    assert_false(hf__queue_joinable(g, &b, at(1)));
}

SHARED_CASE(test_shared_hold_that_is_over_is_not_joined)
{
    struct hf__waiter a = reads(1), b = reads(2);

    a.lease_ms = 15;
    grant(g, &a, 0);
    assert_true(hf__queue_joinable(g, &b, at(5)));
    assert_false(hf__queue_joinable(g, &b, g->lease.deadline));
}

CASE(test_shared_ends_of_its_own_are_not_shared)
{
    for (int i = 0; i < 4; i++) {
        struct hf__queue g = shared_queue();
        struct hf__waiter a = reads(1), b = reads(2);
        struct hf__waiter *special = i % 2 ? &a : &b;

        special->fixed = i < 2;
        special->max_hold_ms = i < 2 ? 0 : 1000;
        ask(&g, &a, 0);
        assert_false(hf__queue_joinable(&g, &b, at(0)));
        answer(&g, HF__QUEUED, 1);
        assert_false(hf__queue_joinable(&g, &b, at(1)));
        hf__lease_bell(&g.lease, at(2));
        assert_string_equal(run(&g, 2), "A");
        answer(&g, HF__GRANTED, 2);
        assert_reads(&g, 1, 3);
        assert_false(hf__queue_joinable(&g, &b, at(3)));
        assert_int_equal(hf__queue_enter(&g, &b, at(3)), HF__PENDING);
        assert_int_equal(release(&g, 1, 4), HF__DONE);
        assert_string_equal(run(&g, 4), "RA");
        answer(&g, HF__GRANTED, 5);
        assert_int_equal(b.result, HF__GRANTED);
        assert_int_equal(g.lease.fixed, b.fixed);
        assert_int_equal(g.lease.max_until,
                         b.max_hold_ms ? at(1005) : HF__NEVER);
    }
}

/* A reader whose hold has its own time limit does not share. It waits for its
 * own hold. */
SHARED_CASE(test_shared_grant_is_not_for_those_with_an_end)
{
    struct hf__waiter a = reads(1), capped = reads(2);

    capped.max_hold_ms = 1000;
    ask(g, &a, 0);
    line_up(g, &capped, 1);
    answer(g, HF__GRANTED, 2);
    assert_int_equal(capped.state, HF__W_WAITING);
    assert_entries(g, 1, 1);
    assert_int_equal(release(g, 1, 3), HF__DONE);
    assert_string_equal(run(g, 3), "RA");
    answer(g, HF__GRANTED, 4);
    assert_int_equal(capped.result, HF__GRANTED);
    assert_int_equal(g->lease.deadline, at(1004));
}

SHARED_CASE(test_shared_reentry_is_counted_by_reader)
{
    struct hf__waiter a = reads(1), b = reads(2), again = reads(1);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__GRANTED);
    assert_int_equal(hf__queue_enter(g, &again, at(JOIN_MS * 2)), HF__GRANTED);
    assert_entries(g, 2, 0);
    assert_int_equal(hf__queue_count(g, 1), 2);
    assert_int_equal(hf__queue_count(g, 2), 1);
    assert_int_equal(hf__queue_count(g, 3), 0);
    assert_int_equal(release(g, 2, 50), HF__PENDING);
    assert_int_equal(release(g, 1, 51), HF__PENDING);
    assert_reads(g, 1, 51);
    assert_int_equal(release(g, 1, 52), HF__DONE);
    assert_entries(g, 0, 0);
}

SHARED_CASE(test_shared_reentry_has_an_end)
{
    struct hf__waiter a = reads(1), again = reads(1), more = reads(1);

    grant(g, &a, 0);
    g->readers->count = UINT32_MAX - 1;
    assert_int_equal(hf__queue_enter(g, &again, at(1)), HF__GRANTED);
    assert_int_equal(hf__queue_enter(g, &more, at(1)), HF_EDEADLK);
    assert_true(g->readers->count == UINT32_MAX);
    assert_entries(g, 1, 0);
}

SHARED_CASE(test_shared_reentry_may_be_refused)
{
    struct hf__waiter a = reads(1), again = reads(1);

    again.reentrant = false;
    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &again, at(1)), HF_EDEADLK);
    assert_null(again.reader);
    assert_entries(g, 1, 0);
    assert_int_equal(release(g, 1, 2), HF__DONE);
}

static void lose_by(struct hf__queue *g, int how, int64_t ms)
{
    if (how == 0)
        hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    else if (how == 1)
        hf__queue_renewed(g, g->lease.hold_id, HF_ENOTOWNER, at(ms), TTL,
                          at(ms));
    else if (how == 2)
        hf__queue_tick(g, g->lease.deadline, wake);
    else
        hf__queue_lose(g, false, HF__LOSS_TAKEN, at(0));
}

CASE(test_shared_loss_is_every_readers)
{
    for (int how = 0; how < 4; how++) {
        struct hf__queue g = shared_queue();
        struct hf__waiter a = reads(1), b = reads(2), again = reads(2),
                          late = reads(2), other = reads(3);

        grant(&g, &a, 0);
        assert_int_equal(hf__queue_enter(&g, &b, at(1)), HF__GRANTED);
        assert_int_equal(hf__queue_enter(&g, &again, at(1)), HF__GRANTED);
        lose_by(&g, how, 2);
        assert_true(g.was_lost);
        assert_string_equal(run(&g, 2), how < 2 ? "" : "R");
        assert_int_equal(hf__queue_check(&g, 1, at(3)), HF_ELOST);
        assert_int_equal(hf__queue_check(&g, 2, at(3)), HF_ELOST);
        assert_int_equal(hf__queue_check(&g, 3, at(3)), HF_ENOTOWNER);
        assert_false(hf__queue_joinable(&g, &other, at(3)));
        assert_int_equal(hf__queue_enter(&g, &late, at(3)), HF_ELOST);
        assert_false(hf__queue_unused(&g));
        assert_true(hf__queue_knows(&g, 1));
        assert_int_equal(release(&g, 1, 4), HF_ELOST);
        assert_int_equal(release(&g, 1, 4), HF_ENOTOWNER);
        assert_false(hf__queue_knows(&g, 1));
        assert_int_equal(release(&g, 2, 5), HF_ELOST);
        assert_int_equal(hf__queue_check(&g, 2, at(5)), HF_ELOST);
        assert_int_equal(release(&g, 2, 5), HF_ELOST);
        assert_int_equal(hf__queue_check(&g, 2, at(5)), HF_ENOTOWNER);
        if (how >= 2)
            assert_true(let_go(&g, HF__DONE, 6));
        assert_true(hf__queue_unused(&g));
        assert_entries(&g, 0, 1);
    }
}

/* The clock is enough to notice the loss, whichever reader checks first. */
SHARED_CASE(test_shared_deadline_needs_no_network)
{
    struct hf__waiter a = reads(1), b = reads(2);
    int64_t over;

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__GRANTED);
    over = (g->lease.deadline - at(0)) / HF__MS;
    assert_int_equal(release(g, 1, over), HF_ELOST);
    assert_int_equal(release(g, 2, over), HF_ELOST);
    assert_string_equal(run(g, over), "R");
    assert_entries(g, 0, 0);
}

SHARED_CASE(test_shared_hold_after_a_loss_is_apart_from_it)
{
    struct hf__waiter a = reads(1), b = reads(2);

    grant(g, &a, 0);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    grant(g, &b, 1);
    assert_int_equal(hf__queue_check(g, 1, at(2)), HF_ELOST);
    assert_reads(g, 2, 2);
    assert_int_equal(release(g, 1, 3), HF_ELOST);
    assert_reads(g, 2, 3);
    assert_int_equal(release(g, 2, 4), HF__DONE);
    assert_entries(g, 0, 0);
}

SHARED_CASE(test_shared_losses_are_forgotten_and_not_who_reads)
{
    struct hf__waiter a = reads(1), b = reads(2), d = reads(3);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__GRANTED);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(1));
    grant(g, &d, 2);
    hf__queue_forget_all(g);
    assert_int_equal(hf__queue_check(g, 1, at(3)), HF_ENOTOWNER);
    assert_int_equal(hf__queue_check(g, 2, at(3)), HF_ENOTOWNER);
    assert_reads(g, 3, 3);
    assert_entries(g, 1, 0);
    assert_int_equal(release(g, 3, 4), HF__DONE);
    assert_entries(g, 0, 0);
}

SHARED_CASE(test_shared_try_does_not_wait)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3);

    a.is_try = b.is_try = c.is_try = true;
    ask(g, &a, 0);
    assert_false(may_queue);
    assert_false(hf__queue_joinable(g, &b, at(0)));
    answer(g, HF__BUSY, 1);
    assert_int_equal(a.result, HF_EBUSY);
    assert_entries(g, 0, 2);
    assert_string_equal(run(g, 1), "");
    assert_true(hf__queue_unused(g));
    ask(g, &c, 2);
    answer(g, HF__GRANTED, 2);
    assert_reads(g, 3, 3);
    assert_entries(g, 1, 1);
}

SHARED_CASE(test_shared_try_joins_what_is_held)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3);

    b.is_try = c.is_try = true;
    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__GRANTED);
    assert_int_equal(hf__queue_enter(g, &c, at(JOIN_MS)), HF_EBUSY);
    assert_entries(g, 2, 0);
}

/* The attempt belonged to a try; a waiter that has joined it needs a new
 * attempt. */
SHARED_CASE(test_shared_waiter_outlasts_a_try)
{
    struct hf__waiter a = reads(1), b = reads(2);

    a.is_try = true;
    ask(g, &a, 0);
    assert_true(hf__queue_joinable(g, &b, at(0)));
    line_up(g, &b, 0);
    answer(g, HF__BUSY, 1);
    assert_int_equal(a.result, HF_EBUSY);
    assert_int_equal(b.state, HF__W_WAITING);
    assert_string_equal(run(g, 1), "A");
    assert_true(may_queue);
}

SHARED_CASE(test_shared_leaving_does_not_end_the_others_question)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3);

    ask(g, &a, 0);
    line_up(g, &b, 1);
    line_up(g, &c, 1);
    assert_int_equal(hf__queue_leave(g, &a, HF_ECANCELED, wake), HF_ECANCELED);
    assert_string_equal(run(g, 2), "");
    assert_int_equal(hf__queue_leave(g, &c, HF_ETIMEDOUT, wake), HF_ETIMEDOUT);
    assert_string_equal(run(g, 2), "");
    assert_entries(g, 0, 1);
    answer(g, HF__GRANTED, 3);
    assert_int_equal(b.result, HF__GRANTED);
    assert_int_equal(hf__queue_check(g, 1, at(3)), HF_ENOTOWNER);
    assert_entries(g, 1, 0);
    /* It is too late to leave: the reader already has the hold. */
    assert_int_equal(hf__queue_leave(g, &b, HF_ECANCELED, wake), HF__GRANTED);
    assert_reads(g, 2, 4);
}

SHARED_CASE(test_shared_question_ends_when_all_have_left)
{
    struct hf__waiter a = reads(1), b = reads(2), c = reads(3);

    ask(g, &a, 0);
    line_up(g, &b, 1);
    hf__queue_leave(g, &a, HF_ECANCELED, wake);
    hf__queue_leave(g, &b, HF_ECANCELED, wake);
    assert_false(hf__queue_joinable(g, &c, at(2)));
    assert_string_equal(run(g, 2), "B");
    answer(g, HF__GRANTED, 3); /* of the abandoned attempt */
    assert_int_equal(g->owner, 0);
    assert_string_equal(run(g, 3), "");
    assert_true(let_go(g, HF__DONE, 4));
    assert_true(hf__queue_unused(g));
    assert_entries(g, 0, 1);
}

/* Another release is pending, which is why the unwanted attempt cannot be
 * abandoned yet. It is granted, and its hold is released. */
SHARED_CASE(test_shared_grant_that_nobody_wants_goes_back)
{
    struct hf__waiter a = reads(1), b = reads(2);

    grant(g, &a, 0);
    assert_int_equal(release(g, 1, 1), HF__DONE);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__PENDING);
    assert_string_equal(run(g, 1), "RA");
    hf__queue_leave(g, &b, HF_ECANCELED, wake);
    assert_string_equal(run(g, 2), "");
    answer(g, HF__GRANTED, 3);
    assert_int_equal(g->owner, 0);
    assert_int_equal(hf__queue_check(g, 2, at(3)), HF_ENOTOWNER);
    assert_true(let_go(g, HF__DONE, 4));
    assert_string_equal(run(g, 4), "R");
    assert_int_equal(g->lease.let_go_id, 102);
    assert_entries(g, 0, 0);
}

SHARED_CASE(test_shared_failure_is_everybodys)
{
    struct hf__waiter a = reads(1), b = reads(2);

    assert_int_equal(hf__queue_enter(g, &a, at(0)), HF__PENDING);
    ask(g, &b, 0);
    answer(g, HF_EMISMATCH, 2);
    assert_int_equal(a.result, HF_EMISMATCH);
    assert_int_equal(b.result, HF_EMISMATCH);
    assert_entries(g, 0, 0);
    assert_true(hf__queue_unused(g));
}

SHARED_CASE(test_shared_hold_is_renewed)
{
    struct hf__waiter a = reads(1), b = reads(2);
    hf__time before;

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__GRANTED);
    before = g->lease.deadline;
    assert_false(hf__queue_renewable(g, at(1)));
    assert_true(hf__queue_renewable(g, g->lease.renew_at));
    assert_int_equal(release(g, 1, 2), HF__PENDING); /* owner 2 still reads */
    hf__lease_renewing(&g->lease, TTL, at(3333));
    hf__queue_renewed(g, 101, HF__DONE, at(3333), TTL, at(3340));
    assert_int_equal(g->lease.deadline, before + 3333 * HF__MS);
    assert_reads(g, 2, 9999);
    assert_int_equal(release(g, 2, 9999), HF__DONE);
}

CASES_MAIN(NULL, NULL);
