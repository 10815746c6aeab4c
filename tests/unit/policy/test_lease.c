/* The lease while it is requested, waited for and released: the rules at the
 * head of lease.h. */
#include "lease_fixture.h"

CASE(test_lease_asks_only_when_wanted)
{
    struct hf__lease l = fresh(false);

    assert_int_equal(next(&l, 0), HF__TODO_NOTHING);
    assert_int_equal(hf__lease_timer(&l), HF__NEVER);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 0), HF__TODO_ATTEMPT);
    assert_int_equal(l.hold_id, 41);
    assert_int_equal(next(&l, 0), HF__TODO_NOTHING);
}

CASE(test_lease_answer_after_its_own_lease_is_no_grant)
{
    struct hf__lease l = asking(false, false);

    assert_int_equal(answer(&l, HF__GRANTED, TTL), HF__PENDING);
    assert_int_equal(next(&l, TTL), HF__TODO_LET_GO);
    assert_int_equal(l.let_go_op, HF__RELEASE);
    assert_int_equal(l.let_go_id, 41);
    assert_int_equal(next(&l, TTL), HF__TODO_ATTEMPT);
    assert_int_equal(l.hold_id, 42);
}

CASE(test_lease_queued_looks_again_in_time)
{
    struct hf__lease l = queued();

    assert_int_equal(l.state, HF__WAITING);
    assert_int_equal(l.known, HF__KNOWN_CURRENT);
    assert_int_equal(hf__lease_timer(&l), at(2100));
    assert_int_equal(next(&l, 2099), HF__TODO_NOTHING);
    assert_int_equal(next(&l, 2100), HF__TODO_ATTEMPT);
    assert_int_equal(l.hold_id, 41);
}

CASE(test_lease_bell_asks_at_once_under_the_same_id)
{
    struct hf__lease l = queued();

    hf__lease_bell(&l, at(200));
    assert_int_equal(next(&l, 200), HF__TODO_ATTEMPT);
    assert_int_equal(l.hold_id, 41);
}

CASE(test_lease_bell_before_the_answer_is_kept)
{
    struct hf__lease l = asking(false, false);

    hf__lease_bell(&l, at(50));
    assert_int_equal(answer(&l, HF__QUEUED, 100), HF__PENDING);
    assert_int_equal(next(&l, 100), HF__TODO_ATTEMPT);
    /* The bell makes the lease send the attempt only once more: after the
     * answer to that attempt, nothing is sent. */
    assert_int_equal(answer(&l, HF__QUEUED, 200), HF__PENDING);
    assert_int_equal(next(&l, 200), HF__TODO_NOTHING);
}

CASE(test_lease_bell_without_a_wait_is_nothing)
{
    struct hf__lease l = held(false, false);

    hf__lease_bell(&l, at(200));
    assert_int_equal(l.state, HF__HELD);
    assert_int_equal(next(&l, 200), HF__TODO_NOTHING);
}

CASE(test_lease_lost_answer_asks_the_same_again)
{
    struct hf__lease l = asking(false, false);

    assert_int_equal(answer(&l, HF_EUNKNOWN, 100), HF__PENDING);
    assert_int_equal(l.known, HF__KNOWN_PERHAPS);
    assert_int_equal(next(&l, 100), HF__TODO_ATTEMPT);
    assert_int_equal(l.hold_id, 41);
    assert_int_equal(answer(&l, HF__GRANTED, 200), HF__GRANTED);
}

/* Loses the answers to several attempts, each of which is sent again. The
 * server then counts as silent since the first attempt. */
static void lose_answers(struct hf__lease *l, int64_t from_ms)
{
    for (int64_t ms = from_ms; ms < from_ms + 400; ms += 50) {
        assert_int_equal(answer(l, HF_EUNKNOWN, ms), HF__PENDING);
        assert_int_equal(next(l, ms), HF__TODO_ATTEMPT);
        hf__lease_attempted(l, at(ms), OP_TIMEOUT / HF__MS);
    }
}

CASE(test_lease_lost_answers_are_silence)
{
    struct hf__lease l = asking(false, false);

    lose_answers(&l, 50);
    assert_int_equal(hf__lease_timer(&l), at(0) + OP_TIMEOUT);
    /* After an answer, silence counts from the next poll. */
    assert_int_equal(answer(&l, HF__QUEUED, 480), HF__PENDING);
    assert_int_equal(next(&l, 2480), HF__TODO_ATTEMPT);
    hf__lease_attempted(&l, at(2480), OP_TIMEOUT / HF__MS);
    lose_answers(&l, 2500);
    assert_int_equal(hf__lease_timer(&l), at(2480) + OP_TIMEOUT);
    /* The lease is given up, and then wanted by another waiter, which has the
     * full time limit. */
    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 2950), HF__TODO_LET_GO);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 2950), HF__TODO_ATTEMPT);
    hf__lease_attempted(&l, at(2950), OP_TIMEOUT / HF__MS);
    assert_int_equal(hf__lease_timer(&l), at(2950) + OP_TIMEOUT);
}

CASE(test_lease_busy_and_mismatch_leave_nothing)
{
    static const int certain[] = {HF__BUSY, HF_EMISMATCH, HF_EINVAL,
                                  HF_ENOTSUP};

    for (size_t i = 0; i < sizeof(certain) / sizeof(*certain); i++) {
        struct hf__lease l = asking(false, false);

        assert_int_equal(answer(&l, certain[i], 100), certain[i]);
        assert_int_equal(l.state, HF__IDLE);
        hf__lease_want(&l, false);
        assert_int_equal(next(&l, 100), HF__TODO_NOTHING);
    }
}

CASE(test_lease_failure_abandons_to_be_sure)
{
    static const int doubtful[] = {HF_EBACKEND, HF_EPROTO, HF_EAUTH, HF_ENOMEM};

    for (size_t i = 0; i < sizeof(doubtful) / sizeof(*doubtful); i++) {
        struct hf__lease l = asking(false, false);

        assert_int_equal(answer(&l, doubtful[i], 100), doubtful[i]);
        hf__lease_want(&l, false);
        assert_int_equal(next(&l, 100), HF__TODO_LET_GO);
        assert_int_equal(l.let_go_op, HF__ABANDON);
    }
}

CASE(test_lease_giving_up_abandons)
{
    struct hf__lease l = queued();

    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 200), HF__TODO_LET_GO);
    assert_int_equal(l.let_go_op, HF__ABANDON);
    assert_int_equal(l.let_go_id, 41);
    assert_int_equal(l.state, HF__IDLE);
}

CASE(test_lease_id_is_never_used_again)
{
    struct hf__lease l = queued();

    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 200), HF__TODO_LET_GO);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 200), HF__TODO_ATTEMPT);
    assert_int_equal(l.hold_id, 42);
    assert_int_equal(l.let_go_id, 41);
}

CASE(test_lease_answer_to_a_dropped_question_is_nothing)
{
    struct hf__lease l = asking(false, false);

    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 10), HF__TODO_LET_GO);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 10), HF__TODO_ATTEMPT);
    assert_int_equal(answer_full(&l, 41, HF__GRANTED, 20, 0), HF__PENDING);
    assert_int_equal(l.state, HF__ATTEMPTING);
}

CASE(test_lease_grant_nobody_wants_any_more_is_released)
{
    struct hf__lease l = held(false, false);

    /* A new attempt is given up, but cannot be abandoned while the release is
     * unsure. */
    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 1100), HF__TODO_ATTEMPT);
    hf__lease_attempted(&l, at(1100), OP_TIMEOUT / HF__MS);
    assert_false(hf__lease_let_go_answered(&l, HF_EBACKEND, at(1100)));
    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 1100), HF__TODO_NOTHING);
    assert_int_equal(answer(&l, HF__GRANTED, 1150), HF__PENDING);
    assert_int_equal(l.state, HF__HELD);
    assert_int_equal(next(&l, 1300), HF__TODO_LET_GO);
    assert_int_equal(l.let_go_id, 41);
    assert_true(hf__lease_let_go_answered(&l, HF__DONE, at(1310)));
    assert_int_equal(next(&l, 1310), HF__TODO_LET_GO);
    assert_int_equal(l.let_go_op, HF__RELEASE);
    assert_int_equal(l.let_go_id, 42);
    assert_false(hf__lease_over(&l, at(1310) + OP_TIMEOUT));
}

CASE(test_lease_wanted_again_takes_the_question_up)
{
    struct hf__lease l = held(false, false);

    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 1100), HF__TODO_ATTEMPT);
    hf__lease_want(&l, false);
    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 1100), HF__TODO_NOTHING);
    assert_int_equal(answer(&l, HF__GRANTED, 1150), HF__GRANTED);
}

CASE(test_lease_release_then_question_without_waiting)
{
    struct hf__lease l = held(false, false);

    hf__lease_want(&l, true);
    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_int_equal(l.let_go_op, HF__RELEASE);
    assert_int_equal(next(&l, 1000), HF__TODO_ATTEMPT);
    assert_int_equal(l.hold_id, 42);
    assert_true(hf__lease_let_go_answered(&l, HF__DONE, at(1010)));
    assert_int_equal(l.state, HF__ATTEMPTING);
}

CASE(test_lease_nothing_is_asked_while_unsure)
{
    struct hf__lease l = unsure();

    hf__lease_want(&l, true);
    assert_int_equal(next(&l, 1100), HF__TODO_LET_GO);
    assert_int_equal(next(&l, 1100), HF__TODO_NOTHING);
    assert_true(hf__lease_let_go_answered(&l, HF_ENOTOWNER, at(1200)));
    assert_int_equal(next(&l, 1200), HF__TODO_ATTEMPT);
}

CASE(test_lease_refused_release_is_sent_again_a_little_later)
{
    struct hf__lease l = held(false, false);

    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_false(hf__lease_let_go_answered(&l, HF_EBACKEND, at(1000)));
    assert_int_equal(hf__lease_timer(&l), at(1200));
    assert_int_equal(next(&l, 1199), HF__TODO_NOTHING);
    assert_int_equal(next(&l, 1200), HF__TODO_LET_GO);
    assert_int_equal(l.let_go_id, 41);
}

CASE(test_lease_release_is_given_up_when_the_server_forgot)
{
    struct hf__lease l = unsure();

    assert_false(
        hf__lease_let_go_answered(&l, HF_EUNKNOWN, at(1000 + TTL - 1)));
    assert_true(hf__lease_let_go_answered(&l, HF_EUNKNOWN, at(1000 + TTL)));
}

CASE(test_lease_place_in_the_queue_outlives_the_lease)
{
    struct hf__lease l = queued();

    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_false(
        hf__lease_let_go_answered(&l, HF_EUNKNOWN, at(1000 + TTL + 3000)));
}

CASE(test_lease_endless_release_is_never_given_up)
{
    struct hf__lease l = held(true, false);

    hf__lease_drop(&l);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_false(hf__lease_let_go_answered(&l, HF_EUNKNOWN, HF__NEVER / 2));
    l = asking(true, true); /* a place in the queue is endless too */
    hf__lease_want(&l, false);
    assert_int_equal(next(&l, 1000), HF__TODO_LET_GO);
    assert_false(hf__lease_let_go_answered(&l, HF_EUNKNOWN, HF__NEVER / 2));
}

CASE(test_lease_drop_of_nothing_is_nothing)
{
    struct hf__lease l = fresh(false);

    hf__lease_drop(&l);
    assert_int_equal(next(&l, 0), HF__TODO_NOTHING);
}

CASE(test_lease_silence_counts_from_the_last_listener)
{
    struct hf__lease l = asking(false, false);

    assert_int_equal(hf__lease_timer(&l), T0 + OP_TIMEOUT);
    hf__lease_listen(&l, at(300));
    assert_int_equal(hf__lease_timer(&l), at(300) + OP_TIMEOUT);
    l = queued();
    hf__lease_listen(&l, at(300)); /* the next poll is due, and no answer */
    assert_int_equal(hf__lease_timer(&l), at(2100));
}

CASES_MAIN(NULL, NULL);
