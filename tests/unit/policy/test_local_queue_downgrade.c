/* A write hold that becomes a read hold. */
#include "reader_fixture.h"

static struct hf__reader *an_entry(void)
{
    entry[entries] = (struct hf__reader){0};
    return &entry[entries++];
}

CASE(test_downgrade_moves_the_hold)
{
    struct hf__queue to = shared_queue(), from = queue(true);
    struct hf__waiter a = want(1), again = want(1), b = want(2), c = reads(3);
    hf__time deadline;

    grant(&from, &a, 0);
    assert_int_equal(hf__queue_enter(&from, &again, at(1)), HF__GRANTED);
    line_up(&from, &b, 1);
    deadline = from.lease.deadline;
    hf__queue_downgrade(&from, &to, an_entry(), at(10));
    assert_int_equal(hf__queue_check(&from, 1, at(10)), HF_ENOTOWNER);
    assert_int_equal(hf__queue_check(&to, 1, at(10)), HF__DONE);
    assert_int_equal(hf__queue_count(&to, 1), 2);
    assert_int_equal(to.lease.hold_id, 101);
    assert_int_equal(to.lease.token, 1);
    assert_int_equal(to.lease.deadline, deadline);
    /* The next writer's attempt has a new hold id, and nothing is released. */
    assert_string_equal(run(&from, 10), "A");
    assert_int_equal(from.lease.hold_id, 102);
    assert_string_equal(run(&to, 10), "");
    /* Readers can join the downgraded hold for the same time as any other read
     * hold. */
    assert_true(hf__queue_joinable(&to, &c, at(9 + JOIN_MS)));
    assert_false(hf__queue_joinable(&to, &c, at(10 + JOIN_MS)));
    assert_int_equal(release(&to, 1, 40), HF__PENDING);
    give_up(&to, 1, 41);
    assert_int_equal(to.lease.let_go_id, 101);
    assert_entries(&to, 0, 1);
}

CASE(test_downgrade_is_told_by_the_next_renewal)
{
    struct hf__queue to = shared_queue(), from = queue(true);
    struct hf__waiter a = want(1);

    grant(&from, &a, 0);
    hf__lease_renewing(&from.lease, TTL, at(5));
    assert_false(hf__queue_renewable(&to, at(10)));
    hf__queue_downgrade(&from, &to, an_entry(), at(10));
    assert_int_equal(hf__lease_timer(&to.lease), at(10));
    assert_true(hf__queue_renewable(&to, at(10)));
    assert_false(hf__queue_renewable(&from, at(5000)));
    /* A renewal of the write hold was pending. Its answer changes neither
     * queue. */
    hf__queue_renewed(&from, 101, HF_ENOTOWNER, at(5), TTL, at(11));
    assert_false(from.was_lost);
    hf__lease_renewing(&to.lease, TTL, at(11));
    hf__queue_renewed(&to, 101, HF__DONE, at(11), TTL, at(12));
    assert_int_equal(to.lease.deadline, at(11 + TTL) - hf__lease_margin(TTL));
    assert_int_equal(hf__lease_timer(&from.lease), HF__NEVER);
}

CASE(test_downgrade_keeps_a_fixed_end)
{
    for (int fixed = 0; fixed < 2; fixed++) {
        struct hf__queue to = shared_queue(), from = queue(true);
        struct hf__waiter a = want(1), b = reads(2);
        hf__time deadline;

        a.fixed = fixed;
        a.max_hold_ms = fixed ? 0 : 500;
        grant(&from, &a, 0);
        deadline = from.lease.deadline;
        hf__queue_downgrade(&from, &to, an_entry(), at(1));
        assert_int_equal(to.lease.deadline, deadline);
        assert_int_equal(hf__queue_renewable(&to, at(1)), !fixed);
        assert_false(hf__queue_joinable(&to, &b, at(1)));
        assert_int_equal(hf__queue_check(&to, 1, deadline), HF_ELOST);
        assert_int_equal(hf__queue_release(&to, 1, deadline, wake), HF_ELOST);
    }
}

CASE(test_downgrade_of_what_is_gone_is_a_loss)
{
    struct hf__queue to = shared_queue(), from = queue(true);
    struct hf__waiter a = want(1), b = reads(2);

    grant(&from, &a, 0);
    hf__queue_downgrade(&from, &to, an_entry(), at(1));
    assert_int_equal(hf__queue_enter(&to, &b, at(2)), HF__GRANTED);
    hf__queue_lose(&to, true, HF__LOSS_TAKEN, at(0));
    assert_int_equal(hf__queue_check(&to, 1, at(3)), HF_ELOST);
    assert_int_equal(hf__queue_check(&to, 2, at(3)), HF_ELOST);
    assert_int_equal(release(&to, 1, 4), HF_ELOST);
    assert_int_equal(release(&to, 2, 4), HF_ELOST);
    assert_true(hf__queue_unused(&to));
    assert_true(hf__queue_unused(&from));
    assert_entries(&to, 0, 0);
}

/* An earlier write hold is still being released when the current hold is
 * downgraded. The line of the earlier hold stays in use and repeats the release
 * until it is confirmed; the line of the downgraded hold releases only that
 * hold. */
CASE(test_downgrade_leaves_a_let_go_where_it_was)
{
    struct hf__queue to = shared_queue(), from = queue(true);
    struct hf__waiter a = want(1), b = want(2);

    grant(&from, &a, 0);
    assert_int_equal(release(&from, 1, 1), HF__DONE);
    assert_int_equal(hf__queue_enter(&from, &b, at(1)), HF__PENDING);
    assert_string_equal(run(&from, 1), "RA");
    answer(&from, HF__GRANTED, 2);
    hf__queue_downgrade(&from, &to, an_entry(), at(3));
    assert_false(hf__queue_idle(&from));
    give_up(&to, 2, 4);
    assert_int_equal(to.lease.let_go_id, 102);
    assert_false(let_go(&from, HF_EUNKNOWN, 5));
    assert_string_equal(run(&from, 5), "R");
    assert_int_equal(from.lease.let_go_id, 101);
}

/* A waiter that was woken, but did not take its turn in time, sends its own
 * attempt. */
CASE(test_downgrade_leaves_no_turn_behind)
{
    struct hf__queue to = shared_queue(), from = queue(false);
    struct hf__waiter a = want_turns(1, 5), b = want(2), c = want(3);

    grant(&from, &a, 0);
    line_up(&from, &b, 1);
    assert_int_equal(release(&from, 1, 2), HF__PENDING);
    assert_true(b.roused);
    assert_int_equal(hf__queue_enter(&from, &c, at(3)), HF__GRANTED);
    hf__queue_downgrade(&from, &to, an_entry(), at(4));
    assert_false(hf__queue_claim(&from, &b, at(5)));
    assert_string_equal(run(&from, 5), "A");
    answer(&from, HF__GRANTED, 6);
    assert_int_equal(b.result, HF__GRANTED);
    assert_reads(&to, 3, 6);
}

CASES_MAIN(NULL, NULL);
