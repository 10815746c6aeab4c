/* Why a hold was lost: the reasons that the queue remembers for each owner. */
#include "local_queue_fixture.h"

#define SLOW 1000 /* ms; a timer this late shows a stopped process */

static enum hf__loss_why why(const struct hf__queue *g, uint64_t owner)
{
    return (enum hf__loss_why)hf__queue_loss(g, owner).why;
}

static hf__time since(const struct hf__queue *g, uint64_t owner)
{
    return (hf__time)hf__queue_loss(g, owner).at;
}

/* Returns the deadline in ms after T0, rounded down. */
static int64_t deadline_ms(const struct hf__queue *g)
{
    return (g->lease.deadline - T0) / HF__MS;
}

static struct hf__queue held_by(uint64_t owner)
{
    struct hf__queue g = queue(true);
    struct hf__waiter w = want(owner);

    grant(&g, &w, 0);
    return g;
}

QUEUE_CASE(test_loss_fixed_lease_ended)
{
    struct hf__waiter a = want(1);

    a.fixed = true;
    a.lease_ms = 700;
    grant(g, &a, 0);
    hf__queue_tick(g, at(60000), wake); /* however late the queue notices */
    assert_int_equal(why(g, 1), HF__LOSS_LEASE);
    assert_int_equal(hf__queue_loss(g, 1).at, 700);
    assert_int_equal(hf__queue_last_loss(g).why, HF__LOSS_LEASE);
}

QUEUE_CASE(test_loss_max_hold_ended)
{
    struct hf__waiter a = want(1);

    a.max_hold_ms = 300;
    grant(g, &a, 0);
    assert_int_equal(hf__queue_check(g, 1, at(5000)), HF_ELOST);
    assert_int_equal(why(g, 1), HF__LOSS_MAX);
}

/* Of two limits, the earlier one is the reason of the loss. */
QUEUE_CASE(test_loss_max_hold_within_a_fixed_lease)
{
    struct hf__waiter a = want(1);

    a.fixed = true;
    a.lease_ms = 60000;
    a.max_hold_ms = 300;
    grant(g, &a, 0);
    assert_int_equal(hf__queue_check(g, 1, at(5000)), HF_ELOST);
    assert_int_equal(why(g, 1), HF__LOSS_MAX);
}

CASE(test_loss_orphan)
{
    struct hf__queue g = held_by(1);

    g.lease.renew_at = HF__NEVER; /* as for a thread that has exited */
    hf__queue_tick(&g, at(TTL), wake);
    assert_int_equal(why(&g, 1), HF__LOSS_ORPHAN);
}

/* The renewal was due after a third of the lease, and was not sent. */
CASE(test_loss_stopped_before_the_renewal)
{
    struct hf__queue g = held_by(1);
    hf__time due = g.lease.renew_at;

    assert_int_equal(hf__queue_check(&g, 1, at(TTL)), HF_ELOST);
    assert_int_equal(why(&g, 1), HF__LOSS_STOPPED);
    assert_int_equal(since(&g, 1), due);
}

/* When a stopped process continues, the loss of its hold is noticed by the
 * timer, by a thread that checks, acquires or releases, or by the answer that
 * the server has no such hold. */
CASE(test_loss_stopped_is_found_by_anyone)
{
    struct hf__waiter again = want(1);

    for (int who = 0; who < 6; who++) {
        struct hf__queue g = held_by(1);
        hf__time now = at(TTL + 1);

        if (who == 0)
            hf__queue_tick(&g, now, wake);
        else if (who == 1)
            assert_int_equal(hf__queue_check(&g, 1, now), HF_ELOST);
        else if (who == 2)
            assert_int_equal(hf__queue_enter(&g, &again, now), HF_ELOST);
        else if (who == 3)
            assert_int_equal(release(&g, 1, TTL + 1), HF_ELOST);
        else if (who == 4)
            hf__queue_renewed(&g, 101, HF_ENOTOWNER, at(1), TTL, now);
        else
            hf__queue_gone(&g, 101, HF__LOSS_SESSION, now);
        assert_int_equal(why(&g, 1), HF__LOSS_STOPPED);
    }
}

/* A renewal is pending, and the deadline is noticed late. */
CASE(test_loss_stopped_while_renewing)
{
    struct hf__queue g = held_by(1);
    hf__time deadline;

    hf__lease_renewing(&g.lease, TTL, g.lease.renew_at);
    deadline = g.lease.deadline;
    hf__queue_renewed(&g, 101, HF_ENOTOWNER, at(1), TTL,
                      deadline + SLOW * HF__MS);
    assert_int_equal(why(&g, 1), HF__LOSS_STOPPED);
    assert_int_equal(since(&g, 1), deadline);
}

CASE(test_loss_not_stopped_if_it_ran)
{
    struct hf__queue g = held_by(1);

    hf__lease_renewing(&g.lease, TTL, g.lease.renew_at);
    hf__queue_tick(&g, g.lease.deadline + (SLOW - 1) * HF__MS, wake);
    assert_int_equal(why(&g, 1), HF__LOSS_SILENT);

    /* The last renewal failed shortly before the deadline. */
    g = held_by(1);
    hf__lease_renewing(&g.lease, TTL, at(8000));
    hf__queue_renewed(&g, 101, HF_EUNKNOWN, at(8000), TTL,
                      at(deadline_ms(&g) - SLOW));
    hf__queue_tick(&g, g.lease.deadline, wake);
    assert_int_equal(why(&g, 1), HF__LOSS_SILENT);
    assert_int_equal(since(&g, 1), g.lease.deadline);
}

/* The last renewal failed, and was not repeated. */
CASE(test_loss_stopped_after_a_failed_renewal)
{
    struct hf__queue g = held_by(1);

    hf__lease_renewing(&g.lease, TTL, at(4000));
    hf__queue_renewed(&g, 101, HF_EUNKNOWN, at(4000), TTL, at(4100));
    hf__queue_tick(&g, g.lease.deadline, wake);
    assert_int_equal(why(&g, 1), HF__LOSS_STOPPED);
}

/* The last answer to a renewal determines the reason. */
CASE(test_loss_refused)
{
    static const int16_t said[][2] = {{HF_EBACKEND, HF__LOSS_REFUSED},
                                      {HF_EAUTH, HF__LOSS_REFUSED},
                                      {HF_EUNKNOWN, HF__LOSS_SILENT}};

    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
        struct hf__queue g = held_by(1);
        int64_t end = deadline_ms(&g);

        hf__queue_renewed(&g, 101, said[(i + 1) % 3][0], at(4000), TTL,
                          at(4000));
        hf__queue_renewed(&g, 101, said[i][0], at(end - 1), TTL, at(end - 1));
        hf__queue_tick(&g, g.lease.deadline, wake);
        assert_int_equal(why(&g, 1), said[i][1]);
    }
}

CASE(test_loss_refused_is_over_with_the_next_hold)
{
    struct hf__queue g = held_by(1);
    struct hf__waiter b = want(2);

    hf__queue_renewed(&g, 101, HF_EBACKEND, at(10), TTL, at(10));
    give_up(&g, 1, 20);
    assert_true(let_go(&g, HF__DONE, 21));
    grant(&g, &b, 30);
    hf__lease_renewing(&g.lease, TTL, at(4000));
    hf__queue_tick(&g, g.lease.deadline, wake);
    assert_int_equal(why(&g, 2), HF__LOSS_SILENT);
}

CASE(test_loss_taken_away)
{
    struct hf__queue g = held_by(1);

    hf__queue_renewed(&g, 101, HF_ENOTOWNER, at(10), TTL, at(11));
    assert_int_equal(why(&g, 1), HF__LOSS_TAKEN);
    assert_int_equal(since(&g, 1), at(11));

    g = held_by(1);
    hf__queue_gone(&g, 100, HF__LOSS_SESSION, at(5)); /* another hold */
    assert_int_equal(hf__queue_check(&g, 1, at(5)), HF__DONE);
    hf__queue_gone(&g, 101, HF__LOSS_SESSION, at(5));
    assert_int_equal(why(&g, 1), HF__LOSS_SESSION);
    assert_string_equal(run(&g, 6), ""); /* nothing to release */
}

CASE(test_loss_gone_after_release_is_none)
{
    struct hf__queue g = held_by(1);

    assert_int_equal(release(&g, 1, 4), HF__DONE);
    hf__queue_gone(&g, 101, HF__LOSS_TAKEN, at(5));
    assert_false(g.was_lost);
}

/* Each owner learns the reason of its own loss, even at its last release. */
QUEUE_CASE(test_loss_of_each_owner_is_its_own)
{
    struct hf__waiter a = want(1), b = want(2);

    a.fixed = true;
    grant(g, &a, 0);
    hf__queue_tick(g, g->lease.deadline, wake);
    assert_string_equal(run(g, TTL), "R");
    assert_true(let_go(g, HF__DONE, TTL));
    grant(g, &b, TTL);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(TTL + 1));
    assert_int_equal(why(g, 1), HF__LOSS_LEASE);
    assert_int_equal(why(g, 2), HF__LOSS_TAKEN);
    assert_int_equal(why(g, 3), HF__LOSS_NONE);
    assert_int_equal(release(g, 1, TTL + 2), HF_ELOST);
    assert_int_equal(why(g, 1), HF__LOSS_LEASE);
    assert_int_equal(release(g, 2, TTL + 2), HF_ELOST);
    assert_int_equal(why(g, 2), HF__LOSS_TAKEN);
}

static void give_entry(struct hf__waiter *w, struct hf__reader *r)
{
    *r = (struct hf__reader){0};
    w->reader = r;
}

/* A reader that lost an earlier hold of the line keeps the reason of that
 * loss. */
QUEUE_CASE(test_loss_of_each_reader_is_its_own)
{
    struct hf__waiter a = want(1), b = want(2);
    struct hf__reader ra, rb;

    g->shared = true;
    give_entry(&a, &ra);
    give_entry(&b, &rb);
    grant(g, &a, 0);
    hf__queue_lose(g, true, HF__LOSS_SESSION, at(1));
    grant(g, &b, 10);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(11));
    assert_int_equal(hf__queue_last_loss(g).why, HF__LOSS_TAKEN);
    assert_int_equal(why(g, 1), HF__LOSS_SESSION);
    assert_int_equal(why(g, 2), HF__LOSS_TAKEN);
    assert_int_equal(release(g, 2, 12), HF_ELOST);
    assert_int_equal(why(g, 2), HF__LOSS_TAKEN);
    assert_int_equal(release(g, 1, 12), HF_ELOST);
    assert_int_equal(why(g, 1), HF__LOSS_SESSION);
}

/* A fixed lease within a session: either the lease or the session ends
 * first. */
CASE(test_loss_fixed_in_a_session)
{
    for (int short_session = 0; short_session < 2; short_session++) {
        struct hf__queue g = queue(true);
        struct hf__waiter a = want(1);
        struct hf__req req = {.sent_at = at(0), .result = HF__GRANTED};

        g.lease.session = true;
        a.fixed = true;
        ask(&g, &a, 0);
        req.hold_id = g.lease.hold_id;
        req.session_ms = short_session ? TTL / 2 : 2 * TTL;
        hf__queue_answered(&g, &req, at(1), wake);
        hf__lease_renewing(&g.lease, 0, g.lease.renew_at);
        hf__queue_tick(&g, g.lease.deadline, wake);
        assert_int_equal(why(&g, 1),
                         short_session ? HF__LOSS_SILENT : HF__LOSS_LEASE);
    }
}

CASES_MAIN(NULL, NULL);
