/* Leases of a backend whose holds live as long as the client's session. */
#include "lease_fixture.h"

#define SESSION 4000u /* ms */

static hf__time promised(int64_t sent_ms)
{
    return at(sent_ms) + SESSION * HF__MS - hf__lease_margin(SESSION);
}

/* Returns a lease within a session, granted at 100; its attempt was sent at
 * 0. */
static struct hf__lease session_held(bool fixed, int64_t max_hold_ms)
{
    struct hf__lease l = asking(false, fixed);
    struct hf__req req = {.hold_id = l.hold_id,
                          .sent_at = at(0),
                          .token = 7,
                          .session_ms = SESSION,
                          .result = HF__GRANTED};

    l.session = true;
    assert_int_equal(hf__lease_answered(&l, &req, at(100), max_hold_ms),
                     HF__GRANTED);
    hf__lease_want(&l, false);
    return l;
}

CASE(test_session_is_what_counts_not_what_was_asked)
{
    struct hf__lease l = session_held(false, 0);

    assert_int_equal(l.deadline, promised(0));
    assert_int_equal(l.renew_at, T0 + SESSION * HF__MS / 3);
}

CASE(test_session_renewal_may_change_its_length)
{
    struct hf__lease l = session_held(false, 0);

    hf__lease_renewing(&l, TTL, at(1000));
    assert_int_equal(l.deadline, promised(0));
    l.session_ms = 2 * SESSION;
    renewed(&l, 41, HF__DONE, 1000, TTL, 1010);
    assert_int_equal(l.deadline, at(1000) + 2 * SESSION * HF__MS -
                                     hf__lease_margin(2 * SESSION));
    assert_int_equal(l.renew_at, at(1000) + 2 * SESSION * HF__MS / 3);
}

/* A renewal never shortens the hold, whichever answer comes first. */
CASE(test_session_deadline_never_goes_back)
{
    struct hf__lease l = session_held(false, 0);

    hf__lease_renewing(&l, TTL, at(1000));
    hf__lease_renewing(&l, TTL, at(1500));
    renewed(&l, 41, HF__DONE, 1500, TTL, 1510);
    assert_int_equal(l.deadline, promised(1500));
    renewed(&l, 41, HF__DONE, 1000, TTL, 1520);
    assert_int_equal(l.deadline, promised(1500));
}

CASE(test_session_keeps_a_fixed_lease_to_its_end)
{
    struct hf__lease l = session_held(true, 0);
    hf__time end = T0 + LENGTH - hf__lease_margin(TTL);

    assert_int_equal(l.deadline, promised(0));
    for (int64_t ms = 1000; ms < TTL; ms += 1000) {
        hf__lease_renewing(&l, 0, at(ms));
        renewed(&l, 41, HF__DONE, ms, 0, ms + 1);
        assert_true(l.deadline <= end);
    }
    assert_int_equal(l.deadline, end);
    assert_true(hf__lease_expired(&l, end));
}

CASE(test_session_fixed_lease_is_made_longer_by_the_program)
{
    struct hf__lease l = session_held(true, 0);

    hf__lease_renewing(&l, 0, at(900));
    hf__lease_renewing(&l, 2 * TTL, at(1000));
    assert_int_equal(l.deadline, promised(0));
    assert_int_equal(l.kept_until, at(0) + LENGTH - hf__lease_margin(TTL));
    renewed(&l, 41, HF__DONE, 1000, 2 * TTL, 1001);
    assert_int_equal(l.kept_until,
                     at(1000) + 2 * LENGTH - hf__lease_margin(2 * TTL));
    assert_int_equal(l.deadline, promised(1000));
}

/* The server may or may not have shortened the lease: the earlier end
 * counts. */
CASE(test_session_fixed_lease_that_may_be_shorter)
{
    struct hf__lease l = session_held(true, 0);
    hf__time end = at(1000) + LENGTH / 2 - hf__lease_margin(TTL / 2);

    hf__lease_renewing(&l, TTL / 2, at(1000));
    hf__lease_renewing(&l, 2 * TTL, at(1001));
    assert_int_equal(l.kept_until, end);
    renewed(&l, 41, HF__DONE, 1001, 2 * TTL, 1002); /* the order is unknown */
    assert_int_equal(l.kept_until, end);
    renewed(&l, 41, HF_EUNKNOWN, 1000, TTL / 2, 1003);
    assert_int_equal(l.kept_until, end);
}

CASE(test_session_renewals_answered_in_any_order)
{
    struct hf__lease l = session_held(true, 0);

    hf__lease_renewing(&l, 0, at(1000)); /* the session's own renewal */
    hf__lease_renewing(&l, 3 * TTL, at(1000));
    hf__lease_renewing(&l, 2 * TTL, at(1001));
    renewed(&l, 41, HF__DONE, 1001, 2 * TTL, 1002);
    renewed(&l, 41, HF__DONE, 1000, 3 * TTL, 1003);
    assert_int_equal(l.kept_until,
                     at(1001) + 2 * LENGTH - hf__lease_margin(2 * TTL));
    renewed(&l, 41, HF__DONE, 1000, 0, 1004);
    assert_int_equal(l.kept_until,
                     at(1001) + 2 * LENGTH - hf__lease_margin(2 * TTL));
    /* The order of renewals of equal length does not matter. */
    hf__lease_renewing(&l, 3 * TTL, at(2000));
    hf__lease_renewing(&l, 3 * TTL, at(2000));
    renewed(&l, 41, HF__DONE, 2000, 3 * TTL, 2001);
    renewed(&l, 41, HF__DONE, 2000, 3 * TTL, 2001);
    assert_int_equal(l.kept_until,
                     at(2000) + 3 * LENGTH - hf__lease_margin(3 * TTL));
}

CASE(test_session_max_hold_caps_it)
{
    struct hf__lease l = session_held(true, 2000);

    hf__lease_renewing(&l, 0, at(1000));
    renewed(&l, 41, HF__DONE, 1000, 0, 1010);
    assert_int_equal(l.deadline, at(2100));
}

CASE(test_session_renewal_unanswered_is_tried_again_soon)
{
    struct hf__lease l = session_held(true, 0);

    hf__lease_renewing(&l, 0, at(1400));
    renewed(&l, 41, HF_EUNKNOWN, 1400, 0, 1900);
    assert_int_equal(l.renew_at,
                     at(1900) + SESSION * HF__MS / 20 + 10 * HF__MS);
    assert_int_equal(l.deadline, promised(0));
}

/* The server keeps the hold as long as the session lives: the release is
 * repeated until it is confirmed. */
CASE(test_session_let_go_is_repeated_for_ever)
{
    struct hf__lease l = session_held(false, 0);

    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_false(hf__lease_let_go_answered(&l, HF_EBACKEND, at(1000000)));
    assert_int_equal(next(&l, 1000200), HF__TODO_LET_GO);
    assert_true(hf__lease_let_go_answered(&l, HF__DONE, at(1000300)));
}

CASE(test_session_over_is_a_loss)
{
    struct hf__lease l = session_held(true, 0);

    assert_int_equal(renewed(&l, 41, HF_ENOTOWNER, 100, 0, 200), HF_ELOST);
    assert_int_equal(l.state, HF__IDLE);
}

CASES_MAIN(NULL, NULL);
