/* The lease while it is held: its deadline, its renewal, its loss. */
#include "lease_fixture.h"

CASE(test_lease_counts_from_sending_less_a_margin)
{
    struct hf__lease l = held(false, false);

    assert_int_equal(l.state, HF__HELD);
    assert_int_equal(l.token, 7);
    assert_int_equal(l.deadline, T0 + LENGTH - hf__lease_margin(TTL));
    assert_int_equal(hf__lease_margin(TTL), LENGTH / 100 + 2 * HF__MS);
    assert_false(hf__lease_expired(&l, l.deadline - 1));
    assert_true(hf__lease_expired(&l, l.deadline));
}

CASE(test_lease_renews_at_a_third)
{
    struct hf__lease l = held(false, false);

    assert_int_equal(l.renew_at, T0 + LENGTH / 3);
    assert_int_equal(hf__lease_timer(&l), l.renew_at);
}

CASE(test_lease_fixed_is_not_renewed)
{
    struct hf__lease l = held(false, true);

    assert_int_equal(l.renew_at, HF__NEVER);
    assert_int_equal(hf__lease_timer(&l), l.deadline);
}

CASE(test_lease_endless_has_no_deadline)
{
    struct hf__lease l = held(true, false);

    assert_int_equal(l.deadline, HF__NEVER);
    assert_int_equal(l.renew_at, HF__NEVER);
    assert_int_equal(hf__lease_timer(&l), HF__NEVER);
    l = held(true, true);
    assert_int_equal(l.deadline, T0 + LENGTH - hf__lease_margin(TTL));
}

CASE(test_lease_max_hold_caps_deadline_and_renewals)
{
    struct hf__lease l = asking(false, false);

    assert_int_equal(answer_full(&l, l.hold_id, HF__GRANTED, 100, 2000),
                     HF__GRANTED);
    assert_int_equal(l.deadline, at(2100));
    hf__lease_renewing(&l, TTL, at(1000));
    assert_int_equal(renewed(&l, 41, HF__DONE, 1000, TTL, 1010), HF__DONE);
    assert_int_equal(l.deadline, at(2100));
}

CASE(test_lease_cap_is_the_new_owners)
{
    struct hf__lease l = asking(false, false);
    hf__time end = T0 + LENGTH - hf__lease_margin(TTL);

    answer_full(&l, l.hold_id, HF__GRANTED, 100, 2000);
    hf__lease_cap(&l, at(500), 0);
    assert_int_equal(l.deadline, end);
    hf__lease_cap(&l, at(500), 100);
    assert_int_equal(l.deadline, at(600));
    hf__lease_cap(&l, at(500), 1000000);
    assert_int_equal(l.deadline, end);
}

CASE(test_lease_release_remembers_a_longer_renewal)
{
    struct hf__lease l = held(false, true);

    hf__lease_renewing(&l, 3 * TTL, at(500));
    renewed(&l, 41, HF_EUNKNOWN, 500, 3 * TTL, 600);
    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_false(
        hf__lease_let_go_answered(&l, HF_EUNKNOWN, at(1000 + 2 * TTL)));
    assert_true(hf__lease_let_go_answered(&l, HF_EUNKNOWN, at(1000 + 3 * TTL)));
}

/* A lease that is being released is over when the server's lease ends. max_hold
 * is a limit of the client only, and does not count. */
CASE(test_lease_is_over_with_what_was_promised)
{
    hf__time end = T0 + LENGTH - hf__lease_margin(TTL);
    struct hf__lease l = asking(false, false);

    answer_full(&l, l.hold_id, HF__GRANTED, 100, 300);
    hf__lease_want(&l, false);
    hf__lease_drop(&l);
    assert_false(hf__lease_over(&l, end)); /* the release is not sent yet */
    assert_int_equal(next(&l, 500), HF__TODO_LET_GO);
    assert_false(hf__lease_over(&l, end - 1));
    assert_true(hf__lease_over(&l, end));
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 500), HF__TODO_ATTEMPT);
    assert_false(hf__lease_over(&l, end));
    /* A place in the queue does not end with a lease. */
    l = queued();
    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 500), HF__TODO_LET_GO);
    assert_false(hf__lease_over(&l, at(10 * TTL)));
}

CASE(test_lease_drop_stops_renewal)
{
    struct hf__lease l = held(false, false);

    hf__lease_drop(&l);
    assert_int_equal(l.renew_at, HF__NEVER);
    assert_int_equal(hf__lease_timer(&l), HF__NEVER);
}

CASE(test_lease_renewal_extends_from_sending)
{
    struct hf__lease l = held(false, false);

    hf__lease_renewing(&l, TTL, at(3000));
    assert_int_equal(hf__lease_timer(&l), l.deadline); /* not renewed again */
    assert_int_equal(renewed(&l, 41, HF__DONE, 3000, TTL, 3500), HF__DONE);
    assert_int_equal(l.deadline, at(3000) + LENGTH - hf__lease_margin(TTL));
    assert_int_equal(l.renew_at, at(3000) + LENGTH / 3);
}

CASE(test_lease_expires_before_renewal_reply)
{
    struct hf__lease l = held(false, false);

    hf__lease_renewing(&l, TTL, at(9000));
    assert_true(hf__lease_expired(&l, at(9950)));
    assert_int_equal(hf__lease_timer(&l), l.deadline);
}

CASE(test_lease_shorter_renewal_counts_when_sent)
{
    struct hf__lease l = held(false, true);
    hf__time less = at(1000) + 500 * HF__MS - hf__lease_margin(500);

    hf__lease_renewing(&l, 500, at(1000));
    assert_int_equal(l.deadline, less);
    renewed(&l, 41, HF_EUNKNOWN, 1000, 500, 1100);
    assert_int_equal(l.deadline, less);
}

CASE(test_lease_later_renewal_decides)
{
    struct hf__lease l = held(false, true);
    hf__time less = at(1001) + 500 * HF__MS - hf__lease_margin(500);

    hf__lease_renewing(&l, TTL, at(1000));
    hf__lease_renewing(&l, 500, at(1001));
    renewed(&l, 41, HF__DONE, 1000, TTL, 1100);
    assert_int_equal(l.deadline, less);
    renewed(&l, 41, HF_EUNKNOWN, 1001, 500, 1200);
    assert_int_equal(l.deadline, less);
}

/* Threads may deliver the answers to renewals in any order. Here the answer to
 * the first renewal comes last. */
CASE(test_lease_renewals_answered_in_any_order)
{
    struct hf__lease l = held(false, true);
    hf__time less = at(1001) + LENGTH - hf__lease_margin(TTL);

    hf__lease_renewing(&l, 6 * TTL, at(1000));
    hf__lease_renewing(&l, TTL, at(1001));
    renewed(&l, 41, HF__DONE, 1001, TTL, 1100);
    renewed(&l, 41, HF__DONE, 1000, 6 * TTL, 1100);
    assert_int_equal(l.deadline, less); /* later than before the renewals */
    /* If the renewals have equal lengths, it does not matter which one the
     * server executed last. */
    hf__lease_renewing(&l, 6 * TTL, at(2000));
    hf__lease_renewing(&l, 6 * TTL, at(2001));
    renewed(&l, 41, HF__DONE, 2001, 6 * TTL, 2100);
    renewed(&l, 41, HF__DONE, 2000, 6 * TTL, 2100);
    assert_int_equal(l.deadline,
                     at(2000) + 6 * LENGTH - hf__lease_margin(6 * TTL));
    /* The renewal whose answer was lost may have been executed last. */
    hf__lease_renewing(&l, 6 * TTL, at(3000));
    hf__lease_renewing(&l, 500, at(3000));
    renewed(&l, 41, HF_EUNKNOWN, 3000, 500, 3100);
    renewed(&l, 41, HF__DONE, 3000, 6 * TTL, 3100);
    less = at(3000) + 500 * HF__MS - hf__lease_margin(500);
    assert_int_equal(l.deadline, less);
    /* When no renewal is pending, the next one decides. */
    hf__lease_renewing(&l, TTL, at(3200));
    renewed(&l, 41, HF__DONE, 3200, TTL, 3300);
    assert_int_equal(l.deadline, at(3200) + LENGTH - hf__lease_margin(TTL));
}

/* If more renewals are pending than can be counted, no answer may count as the
 * last one. */
CASE(test_lease_later_renewal_decides_among_very_many)
{
    enum { MANY = 1 << 14 };
    struct hf__lease l = held(false, true);
    hf__time less = at(1000) + 500 * HF__MS - hf__lease_margin(500);

    for (int i = 1; i < MANY; i++)
        hf__lease_renewing(&l, TTL, at(1000));
    hf__lease_renewing(&l, 500, at(1000));
    for (int i = 1; i < MANY; i++) {
        renewed(&l, 41, HF__DONE, 1000, TTL, 1100);
        assert_int_equal(l.deadline, less);
    }
}

CASE(test_lease_endless_renewal_takes_nothing_away)
{
    struct hf__lease l = asking(true, false);

    answer_full(&l, l.hold_id, HF__GRANTED, 100, 3600000);
    hf__lease_renewing(&l, TTL, at(1000));
    renewed(&l, 41, HF__DONE, 1000, TTL, 1001);
    assert_int_equal(l.deadline, at(100 + 3600000));
}

CASE(test_lease_unanswered_renewal_is_tried_again)
{
    struct hf__lease l = held(false, false);
    hf__time deadline = l.deadline;

    hf__lease_renewing(&l, TTL, at(3500));
    assert_int_equal(renewed(&l, 41, HF_EUNKNOWN, 3500, TTL, 3600), HF__DONE);
    assert_int_equal(l.deadline, deadline);
    assert_int_equal(l.renew_at, at(3600) + LENGTH / 20 + 10 * HF__MS);
}

CASE(test_lease_renewal_that_is_refused_is_a_loss)
{
    struct hf__lease l = held(false, false);

    hf__lease_renewing(&l, TTL, at(3000));
    assert_int_equal(renewed(&l, 41, HF_ENOTOWNER, 3000, TTL, 3100), HF_ELOST);
    assert_int_equal(l.state, HF__IDLE);
    assert_int_equal(next(&l, 3100), HF__TODO_NOTHING); /* not to be released */
}

CASE(test_lease_renewal_of_another_hold_is_nothing)
{
    struct hf__lease l = held(false, false);
    hf__time deadline = l.deadline;

    assert_int_equal(renewed(&l, 40, HF_ENOTOWNER, 3000, TTL, 3100), HF__DONE);
    assert_int_equal(renewed(&l, 40, HF__DONE, 3000, TTL, 3100), HF__DONE);
    assert_int_equal(l.deadline, deadline);
    hf__lease_drop(&l); /* a dropped lease is not revived either */
    assert_int_equal(renewed(&l, 41, HF__DONE, 3000, TTL, 3100), HF__DONE);
    assert_int_equal(next(&l, 3100), HF__TODO_LET_GO);
}

/* A renewal that only repeats the length of a fixed lease to the server does
 * not extend the hold: the request may have been sent long after the call that
 * set the length. */
CASE(test_lease_renewal_that_changes_nothing)
{
    struct hf__lease l = held(false, true);
    hf__time before = l.deadline;

    hf__lease_renewing(&l, TTL / 2, at(TTL / 2 - 500));
    assert_true(l.deadline < before);
    assert_true(l.deadline > before - 1000 * HF__MS);
    before = l.deadline;
    assert_int_equal(renewed(&l, 41, HF__DONE, TTL / 2 + 400, 0, TTL / 2 + 500),
                     HF__DONE);
    assert_int_equal(l.deadline, before);
    assert_int_equal(l.lease_ms, TTL); /* the length before the renewal */
    assert_int_equal(l.renewing, 0);
}

/* A hold is released, and another hold is granted. When the second hold is
 * lost, the release of the first is still unsure. A waiter then has the full
 * time limit for an answer. */
CASE(test_lease_gone_while_another_is_let_go)
{
    struct hf__lease l = held(false, false);

    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 1000), HF__TODO_ATTEMPT);
    hf__lease_attempted(&l, at(1000), OP_TIMEOUT / HF__MS);
    assert_int_equal(answer(&l, HF__GRANTED, 1001), HF__GRANTED);
    assert_false(hf__lease_let_go_answered(&l, HF_EUNKNOWN, at(1100)));
    assert_int_equal(l.state, HF__HELD);
    hf__lease_gone(&l, at(2000));
    hf__lease_want(&l, true);
    assert_true(hf__lease_stuck(&l));
    assert_int_equal(next(&l, 2000), HF__TODO_LET_GO); /* but no attempt */
    assert_int_equal(next(&l, 2000), HF__TODO_NOTHING);
    assert_int_equal(hf__lease_timer(&l), at(2000) + OP_TIMEOUT);
}

CASES_MAIN(NULL, NULL);
