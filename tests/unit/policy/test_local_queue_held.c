/* The queue while the process has the hold: local turns, loss, renewal. */
#include "local_queue_fixture.h"

QUEUE_CASE(test_queue_fair_hands_over_in_order)
{
    struct hf__waiter a = want_turns(1, 2), b = want(2), c = want(3),
                      d = want(4);

    grant(g, &a, 0);
    line_up(g, &b, 1);
    line_up(g, &c, 1);
    line_up(g, &d, 1);
    assert_int_equal(release(g, 1, 2), HF__PENDING);
    assert_int_equal(b.result, HF__GRANTED);
    assert_int_equal(hf__queue_check(g, 2, at(2)), HF__DONE);
    assert_string_equal(run(g, 2), "");
    assert_int_equal(release(g, 2, 3), HF__PENDING);
    assert_int_equal(c.result, HF__GRANTED);
    /* After two turns the hold is released, and the next waiter attempts. */
    assert_int_equal(release(g, 3, 4), HF__DONE);
    assert_int_equal(d.state, HF__W_WAITING);
    assert_string_equal(run(g, 4), "RA");
    assert_int_equal(g->lease.token, 1);
}

CASE(test_queue_no_hand_over_unless_allowed)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want(1), b = want_turns(2, 9);

    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    assert_int_equal(release(&g, 1, 2), HF__DONE);
    assert_string_equal(run(&g, 2), "RA");
}

CASE(test_queue_fixed_leases_are_not_handed_over)
{
    struct hf__queue g = queue(true);
    struct hf__waiter a = want_turns(1, 5), b = want(2), f = want_turns(3, 5);

    b.fixed = true;
    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    assert_int_equal(release(&g, 1, 2), HF__DONE); /* b wants a fixed lease */
    g = queue(true);
    f.fixed = true;
    b.fixed = false;
    grant(&g, &f, 0);
    line_up(&g, &b, 1);
    assert_int_equal(release(&g, 3, 2), HF__DONE); /* f has a fixed lease */
}

CASE(test_queue_unfair_rouses_and_the_first_to_come_takes)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want_turns(1, 5), b = want(2), c = want(3);

    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    assert_int_equal(release(&g, 1, 2), HF__PENDING);
    assert_ptr_equal(woken[0], &b);
    assert_true(b.roused);
    /* Another thread takes the turn first. */
    assert_int_equal(hf__queue_enter(&g, &c, at(3)), HF__GRANTED);
    assert_false(hf__queue_claim(&g, &b, at(3)));
    assert_int_equal(b.state, HF__W_WAITING);
    assert_int_equal(release(&g, 3, 4), HF__PENDING);
    assert_int_equal(woken_len, 2);
    assert_true(hf__queue_claim(&g, &b, at(5)));
    assert_int_equal(b.result, HF__GRANTED);
    assert_int_equal(g.turns, 3);
    assert_int_equal(hf__queue_check(&g, 2, at(5)), HF__DONE);
    assert_int_equal(release(&g, 2, 6), HF__DONE);
}

CASE(test_queue_claim_is_for_the_roused)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want_turns(1, 5), b = want(2), c = want(3);

    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    line_up(&g, &c, 1);
    assert_int_equal(release(&g, 1, 2), HF__PENDING);
    assert_int_equal(woken_len, 1); /* exactly one waiter */
    assert_false(hf__queue_claim(&g, &c, at(2)));
    assert_true(hf__queue_claim(&g, &b, at(2)));
}

CASE(test_queue_asynchronous_ones_get_their_turn)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want_turns(1, 5), b = want(2);

    b.is_async = true;
    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    assert_int_equal(release(&g, 1, 2), HF__PENDING);
    assert_int_equal(b.state, HF__W_FINISHED);
    assert_int_equal(hf__queue_check(&g, 2, at(2)), HF__DONE);
}

CASE(test_queue_turn_that_is_given_up_goes_on)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want_turns(1, 5), b = want(2), c = want(3);

    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    line_up(&g, &c, 1);
    assert_int_equal(release(&g, 1, 2), HF__PENDING);
    hf__queue_leave(&g, &b, HF_ECANCELED, wake);
    assert_ptr_equal(woken[woken_len - 1], &c);
    assert_true(hf__queue_claim(&g, &c, at(3)));
}

CASE(test_queue_turn_that_nobody_can_use_goes_back)
{
    for (int kind = 0; kind < 3; kind++) {
        struct hf__queue g = queue(false);
        struct hf__waiter a = want_turns(1, 5), b = want(2), c = want(3);

        c.fixed = kind == 1;
        c.is_async = kind == 2;
        grant(&g, &a, 0);
        line_up(&g, &b, 1);
        if (kind)
            line_up(&g, &c, 1);
        assert_int_equal(release(&g, 1, 2), HF__PENDING);
        assert_string_equal(run(&g, 2), "");
        hf__queue_leave(&g, &b, HF_ECANCELED, wake);
        assert_string_equal(run(&g, 3), kind ? "RA" : "R");
    }
}

QUEUE_CASE(test_queue_turn_has_a_max_hold_of_its_own)
{
    struct hf__waiter a = want_turns(1, 5), b = want(2), c = want(3);
    hf__time end;

    a.max_hold_ms = 300;
    b.max_hold_ms = 50;
    grant(g, &a, 0);
    end = at(0) + TTL * HF__MS - hf__lease_margin(TTL);
    assert_int_equal(g->lease.deadline, at(300));
    line_up(g, &b, 1);
    line_up(g, &c, 1);
    assert_int_equal(release(g, 1, 100), HF__PENDING);
    assert_int_equal(g->lease.deadline, at(150));
    assert_int_equal(release(g, 2, 120), HF__PENDING);
    assert_int_equal(g->lease.deadline, end);
}

QUEUE_CASE(test_queue_after_the_deadline_everything_says_lost)
{
    struct hf__waiter a = want(1), again = want(1);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &again, at(1)), HF__GRANTED);
    assert_int_equal(hf__queue_check(g, 1, at(TTL)), HF_ELOST);
    assert_true(g->was_lost);
    assert_int_equal(hf__queue_enter(g, &again, at(TTL)), HF_ELOST);
    assert_int_equal(release(g, 1, TTL), HF_ELOST);
    assert_int_equal(release(g, 1, TTL), HF_ELOST);
    assert_int_equal(release(g, 1, TTL), HF_ENOTOWNER);
    assert_string_equal(run(g, TTL), "R"); /* in case the server has the hold */
}

QUEUE_CASE(test_queue_loss_is_noticed_by_the_clock_alone)
{
    struct hf__waiter a = want(1), b = want(2);

    grant(g, &a, 0);
    line_up(g, &b, 1);
    hf__queue_tick(g, g->lease.deadline - 1, wake);
    assert_false(g->was_lost);
    hf__queue_tick(g, g->lease.deadline, wake);
    assert_true(g->was_lost);
    assert_int_equal(g->owner, 0);
    assert_string_equal(run(g, TTL), "RA"); /* the attempt is for b */
}

QUEUE_CASE(test_queue_loss_without_waiters_asks_for_nobody)
{
    struct hf__waiter a = want(1);

    grant(g, &a, 0);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    assert_string_equal(run(g, 1), "");
    assert_int_equal(release(g, 1, 2), HF_ELOST);
    assert_true(hf__queue_idle(g));
}

QUEUE_CASE(test_queue_lost_owner_must_release_before_it_asks)
{
    struct hf__waiter a = want(1), anew = want(1), b = want(2);

    grant(g, &a, 0);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    grant(g, &b, 10);
    assert_int_equal(hf__queue_enter(g, &anew, at(11)), HF_ELOST);
    assert_int_equal(release(g, 1, 12), HF_ELOST);
    assert_int_equal(hf__queue_check(g, 2, at(12)), HF__DONE); /* untouched */
    assert_int_equal(hf__queue_enter(g, &anew, at(13)), HF__PENDING);
}

static void lose_for(struct hf__queue *g, uint64_t owner)
{
    struct hf__waiter w = want(owner);

    grant(g, &w, 0);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
}

QUEUE_CASE(test_queue_remembers_the_last_who_lost)
{
    lose_for(g, 1);
    lose_for(g, 2);
    assert_int_equal(hf__queue_check(g, 1, at(1)), HF_ELOST);
    assert_int_equal(release(g, 2, 1), HF_ELOST);
    lose_for(g, 3); /* replaces 2, which has released */
    assert_int_equal(hf__queue_check(g, 1, at(1)), HF_ELOST);
    assert_int_equal(hf__queue_check(g, 3, at(1)), HF_ELOST);
    lose_for(g, 4); /* replaces the oldest */
    assert_int_equal(hf__queue_check(g, 1, at(1)), HF_ENOTOWNER);
    assert_int_equal(hf__queue_check(g, 3, at(1)), HF_ELOST);
}

QUEUE_CASE(test_queue_forgets_all_who_lost)
{
    struct hf__waiter anew = want(1);

    lose_for(g, 1);
    lose_for(g, 2);
    assert_false(hf__queue_unused(g));
    hf__queue_forget_all(g);
    assert_true(hf__queue_unused(g));
    assert_int_equal(hf__queue_check(g, 2, at(1)), HF_ENOTOWNER);
    assert_int_equal(hf__queue_enter(g, &anew, at(1)), HF__PENDING);
}

QUEUE_CASE(test_queue_renewable_a_little_before_its_time)
{
    struct hf__waiter a = want(1);
    int64_t third = TTL / 3, slack = TTL / 12;

    grant(g, &a, 0);
    assert_false(hf__queue_renewable(g, at(third - slack - 1)));
    assert_true(hf__queue_renewable(g, at(third - slack + 1)));
    hf__lease_renewing(&g->lease, TTL, at(third));
    assert_false(hf__queue_renewable(g, at(third))); /* already pending */
    hf__queue_renewed(g, 101, HF__DONE, at(third), TTL, at(third + 1));
    assert_false(hf__queue_renewable(g, at(third + 1)));
    assert_int_equal(release(g, 1, third + 2), HF__DONE);
    assert_false(hf__queue_renewable(g, at(TTL)));
}

QUEUE_CASE(test_queue_fixed_is_not_renewable)
{
    struct hf__waiter a = want(1);

    a.fixed = true;
    grant(g, &a, 0);
    assert_false(hf__queue_renewable(g, at(TTL - 1000)));
}

QUEUE_CASE(test_queue_renewal_refused_is_a_loss)
{
    struct hf__waiter a = want(1), b = want(2);

    grant(g, &a, 0);
    line_up(g, &b, 1);
    hf__queue_renewed(g, 101, HF_ENOTOWNER, at(10), TTL, at(11));
    assert_true(g->was_lost);
    assert_int_equal(hf__queue_check(g, 1, at(12)), HF_ELOST);
    assert_string_equal(run(g, 12), "A"); /* nothing to release */
}

QUEUE_CASE(test_queue_renewal_after_the_deadline_does_not_revive)
{
    struct hf__waiter a = want(1);

    grant(g, &a, 0);
    hf__lease_renewing(&g->lease, TTL, at(9000));
    hf__queue_renewed(g, 101, HF__DONE, at(9000), TTL, at(TTL));
    assert_true(g->was_lost);
    assert_int_equal(hf__queue_check(g, 1, at(TTL)), HF_ELOST);
}

QUEUE_CASE(test_queue_renewal_of_an_old_hold_is_nothing)
{
    struct hf__waiter a = want(1), b = want(2);

    grant(g, &a, 0);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    grant(g, &b, 10);
    hf__queue_renewed(g, 101, HF_ENOTOWNER, at(5), TTL, at(11));
    assert_int_equal(hf__queue_check(g, 2, at(12)), HF__DONE);
}

QUEUE_CASE(test_queue_failing_all_leaves_the_owner)
{
    struct hf__waiter a = want(1), b = want(2);

    grant(g, &a, 0);
    line_up(g, &b, 1);
    hf__queue_fail(g, HF_ECLOSED, wake);
    assert_int_equal(b.result, HF_ECLOSED);
    assert_int_equal(hf__queue_check(g, 1, at(2)), HF__DONE);
    assert_string_equal(run(g, 2), "");
}

CASE(test_queue_quick_way_is_the_same_hold)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want_turns(1, 3), b = want(2);

    assert_false(hf__queue_quiet(&g, &a)); /* its holds expire by themselves */
    hf__queue_init(&g, false, true, 100);
    assert_true(hf__queue_quiet(&g, &a));
    hf__queue_quick_grant(&g, &a, 101, 7);
    assert_int_equal(hf__queue_check(&g, 1, at(0)), HF__DONE);
    assert_int_equal(g.lease.token, 7);
    assert_int_equal(g.lease.deadline, HF__NEVER);
    assert_false(hf__queue_quiet(&g, &b));
    assert_false(hf__queue_quick_release(&g, 2));
    assert_true(hf__queue_quick_release(&g, 1));
    assert_true(hf__queue_idle(&g));
}

CASE(test_queue_quick_release_is_not_for_those_with_company)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want(1), b = want(2), again = want(1);

    hf__queue_init(&g, false, true, 100);
    hf__queue_quick_grant(&g, &a, 101, 7);
    assert_int_equal(hf__queue_enter(&g, &again, at(0)), HF__GRANTED);
    assert_false(hf__queue_quick_release(&g, 1)); /* it is held twice */
    assert_int_equal(release(&g, 1, 0), HF__PENDING);
    line_up(&g, &b, 0);
    assert_false(hf__queue_quick_release(&g, 1)); /* there is a waiter */
    assert_int_equal(release(&g, 1, 0), HF__DONE);
}

QUEUE_CASE(test_queue_reentry_after_the_deadline_is_lost)
{
    struct hf__waiter a = want(1), again = want(1);

    grant(g, &a, 0);
    assert_int_equal(hf__queue_enter(g, &again, at(TTL)), HF_ELOST);
    assert_true(g->was_lost);
}

CASE(test_queue_rouses_one_at_a_time)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want_turns(1, 5), b = want(2), c = want(3);

    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    assert_int_equal(release(&g, 1, 2), HF__PENDING);
    assert_int_equal(hf__queue_enter(&g, &c, at(3)), HF__GRANTED);
    assert_int_equal(release(&g, 3, 4), HF__PENDING);
    assert_int_equal(woken_len, 1); /* b has already been woken */
    assert_int_equal(hf__queue_enter(&g, &c, at(5)), HF__GRANTED);
    hf__queue_leave(&g, &b, HF_ETIMEDOUT, wake); /* it has no turn to pass on */
    assert_int_equal(hf__queue_check(&g, 3, at(5)), HF__DONE);
    assert_string_equal(run(&g, 5), "");
}

CASE(test_queue_free_turn_can_be_lost)
{
    struct hf__queue g = queue(false);
    struct hf__waiter a = want_turns(1, 5), b = want(2);

    grant(&g, &a, 0);
    line_up(&g, &b, 1);
    assert_int_equal(release(&g, 1, 2), HF__PENDING);
    hf__queue_lose(&g, true, HF__LOSS_TAKEN, at(0));
    assert_false(g.was_lost); /* it had no owner */
    assert_int_equal(release(&g, 1, 3), HF_ENOTOWNER);
    assert_string_equal(run(&g, 3), "A");
    answer(&g, HF__GRANTED, 4);
    assert_int_equal(b.result, HF__GRANTED);
    assert_false(hf__queue_claim(&g, &b, at(5))); /* it is already the owner */
    assert_int_equal(g.count, 1);
    assert_false(g.waking);
}

QUEUE_CASE(test_queue_endless_hold_is_looked_at)
{
    struct hf__waiter a = want(1);

    hf__queue_init(g, true, true, 100);
    assert_false(hf__queue_renewable(g, at(0)));
    grant(g, &a, 0);
    assert_true(hf__queue_renewable(g, at(1))); /* it may have been broken */
    hf__queue_renewed(g, 101, HF_ENOTOWNER, at(1), TTL, at(1));
    assert_int_equal(hf__queue_check(g, 1, at(2)), HF_ELOST);
}

CASES_MAIN(NULL, NULL);
