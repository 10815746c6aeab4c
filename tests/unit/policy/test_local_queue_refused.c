/* Refusals of attempts and of releases, and which waiters are notified of
 * them. */
#include "local_queue_fixture.h"

/* Delivers a refusal of the last attempt. */
static void refused(struct hf__queue *g, int code, bool untouched, int64_t ms)
{
    struct hf__req req = {.hold_id = g->lease.hold_id,
                          .sent_at = at(ms),
                          .result = (int16_t)code,
                          .untouched = untouched};

    hf__queue_answered(g, &req, at(ms), wake);
}

/* Returns a queue whose release was refused at 2. */
static struct hf__queue refused_release(void)
{
    struct hf__queue g = queue(true);
    struct hf__waiter a = want(9);

    grant(&g, &a, 0);
    give_up(&g, 9, 1);
    assert_false(let_go(&g, HF_EAUTH, 2));
    assert_string_equal(run(&g, 2), "");
    return g;
}

QUEUE_CASE(test_refused_question_that_did_nothing_leaves_nothing)
{
    struct hf__waiter a = want(1);

    a.is_try = true;
    for (int i = 0; i < 5; i++) {
        ask(g, &a, i);
        refused(g, HF_EAUTH, true, i);
        assert_int_equal(a.result, HF_EAUTH);
        assert_string_equal(run(g, i), "");
        assert_true(hf__queue_unused(g));
    }
}

QUEUE_CASE(test_refused_question_that_was_queued_is_abandoned)
{
    struct hf__waiter a = want(1);

    ask(g, &a, 0);
    answer(g, HF__QUEUED, 1);
    hf__lease_bell(&g->lease, at(2));
    assert_string_equal(run(g, 2), "A");
    refused(g, HF_EAUTH, true, 3);
    assert_int_equal(a.result, HF_EAUTH);
    assert_string_equal(run(g, 3), "B");
}

QUEUE_CASE(test_refused_question_that_was_lost_before_is_abandoned)
{
    struct hf__waiter a = want(1);

    ask(g, &a, 0);
    answer(g, HF_EUNKNOWN, 1);
    assert_string_equal(run(g, 1), "A");
    refused(g, HF_EAUTH, true, 2);
    assert_string_equal(run(g, 2), "B");
}

/* A replica received the attempt and did nothing, which is why the attempt is
 * sent again. If the second attempt is refused too, nothing must be
 * abandoned. */
QUEUE_CASE(test_refused_question_that_did_nothing_twice)
{
    struct hf__waiter a = want(1);

    ask(g, &a, 0);
    refused(g, HF_EUNKNOWN, true, 1);
    assert_int_equal(a.state, HF__W_WAITING);
    assert_string_equal(run(g, 1), "A");
    refused(g, HF_EBACKEND, true, 2);
    assert_int_equal(a.result, HF_EBACKEND);
    assert_string_equal(run(g, 2), "");
    assert_true(hf__queue_unused(g));
}

CASE(test_refused_let_go_is_said_to_each_who_comes)
{
    struct hf__queue g = refused_release();
    struct hf__waiter t = want(1), w = want(2);

    for (int i = 0; i < 5; i++) {
        t.is_try = i % 2;
        assert_int_equal(hf__queue_enter(&g, &t, at(10 + i)), HF__PENDING);
        assert_string_equal(run(&g, 10 + i), "R");
        assert_false(let_go(&g, HF_EAUTH, 10 + i));
        assert_int_equal(t.result, HF_EAUTH);
        assert_string_equal(run(&g, 10 + i), "");
    }
    assert_int_equal(hf__queue_enter(&g, &w, at(20)), HF__PENDING);
    assert_string_equal(run(&g, 20), "R");
    assert_true(let_go(&g, HF__DONE, 21));
    assert_string_equal(run(&g, 21), "A");
    answer(&g, HF__GRANTED, 22);
    assert_int_equal(w.result, HF__GRANTED);
}

/* Each waiter comes before the previous waiter has left, so that the queue is
 * never empty. A refusal is an answer too: the time limit of silence starts
 * again. */
CASE(test_refused_let_go_is_no_silence)
{
    struct hf__queue g = refused_release();
    struct hf__waiter w[2] = {want(1), want(2)};

    assert_int_equal(hf__queue_enter(&g, &w[0], at(10)), HF__PENDING);
    assert_string_equal(run(&g, 10), "R");
    for (int i = 0; i < 5; i++) {
        struct hf__waiter *first = &w[i % 2], *next = &w[1 - i % 2];
        int64_t ms = 400 * (i + 1);

        *next = want((uint64_t)i + 2);
        assert_int_equal(hf__queue_enter(&g, next, at(ms)), HF__PENDING);
        assert_false(hf__queue_silent(&g, at(ms)));
        assert_false(let_go(&g, HF_EAUTH, ms));
        assert_int_equal(first->result, HF_EAUTH);
        assert_string_equal(run(&g, ms), "R");
    }
}

/* Without waiters the release is sent again after pauses, which grow up to a
 * limit. */
CASE(test_refused_let_go_is_sent_ever_less_often)
{
    static const int64_t pauses[] = {200, 400, 800, 1600, 1600};
    struct hf__queue g = refused_release();
    int64_t ms = 2;

    for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
        ms += pauses[i];
        assert_int_equal(hf__lease_timer(&g.lease), at(ms));
        assert_string_equal(run(&g, ms - 1), "");
        assert_string_equal(run(&g, ms), "R");
        assert_false(let_go(&g, HF_EAUTH, ms));
    }
}

/* A refusal that was on its way when a waiter came does not concern this
 * waiter. */
QUEUE_CASE(test_old_refusal_is_not_for_those_who_came_later)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    ask(g, &a, 0);
    line_up(g, &b, 1);
    refused(g, HF_EAUTH, true, 2);
    assert_int_equal(a.result, HF_EAUTH);
    assert_int_equal(b.state, HF__W_WAITING);
    assert_string_equal(run(g, 2), "A");
    line_up(g, &c, 3);
    refused(g, HF_EAUTH, false, 4); /* the attempt may have had an effect */
    assert_int_equal(b.result, HF_EAUTH);
    assert_string_equal(run(g, 4), "A");
    assert_int_equal(g->lease.hold_id, 102);
    answer(g, HF__GRANTED, 5);
    assert_int_equal(c.result, HF__GRANTED);
}

CASE(test_old_refusal_of_a_let_go_is_not_either)
{
    struct hf__queue g = refused_release();
    struct hf__waiter a = want(1), b = want(2);

    assert_int_equal(hf__queue_enter(&g, &a, at(3)), HF__PENDING);
    assert_string_equal(run(&g, 3), "R");
    line_up(&g, &b, 4);
    assert_false(let_go(&g, HF_EAUTH, 5));
    assert_int_equal(a.result, HF_EAUTH);
    assert_int_equal(b.state, HF__W_WAITING);
    assert_string_equal(run(&g, 5), "R");
    assert_true(let_go(&g, HF__DONE, 6));
    assert_string_equal(run(&g, 6), "A");
}

/* The next attempt is pending when the release is refused. That attempt would
 * wait for our own hold, which is why its waiters are notified of the
 * refusal. */
QUEUE_CASE(test_refused_let_go_before_the_next_question)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    grant(g, &a, 0);
    give_up(g, 1, 1);
    ask(g, &b, 1);
    assert_false(let_go(g, HF_EAUTH, 2));
    assert_int_equal(b.state, HF__W_WAITING); /* b came after the release was
                                                 sent */
    assert_string_equal(run(g, 2), "R");
    answer(g, HF__QUEUED, 3);
    assert_false(let_go(g, HF_EAUTH, 4));
    assert_int_equal(b.result, HF_EAUTH);
    assert_string_equal(run(g, 4), "");
    c.is_try = true; /* a try is notified of the refusal too, and is not busy */
    assert_int_equal(hf__queue_enter(g, &c, at(5)), HF__PENDING);
    assert_string_equal(run(g, 5), "RA");
    assert_false(let_go(g, HF_EAUTH, 6));
    assert_int_equal(c.result, HF_EAUTH);
}

/* While a local owner holds the lock again, the waiters are not notified that
 * the release of the earlier hold was refused. */
QUEUE_CASE(test_refused_let_go_while_it_is_held_again)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    grant(g, &a, 0);
    give_up(g, 1, 1);
    grant(g, &b, 2);
    line_up(g, &c, 3);
    assert_false(let_go(g, HF_EAUTH, 4));
    assert_int_equal(c.state, HF__W_WAITING);
    assert_string_equal(run(g, 204), "R");
    assert_false(let_go(g, HF_EAUTH, 205));
    assert_int_equal(c.state, HF__W_WAITING);
    /* Now the waiters are notified, because the new hold cannot be released
     * before the old one. */
    give_up(g, 2, 300);
    assert_false(let_go(g, HF_EAUTH, 301));
    assert_int_equal(c.result, HF_EAUTH);
}

/* Busy is an answer, after which the time limit of silence starts again. The
 * remaining waiters wait for the answer to the release. */
QUEUE_CASE(test_busy_while_unsure_is_not_silence)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    grant(g, &a, 0);
    give_up(g, 1, 1);
    b.is_try = true;
    ask(g, &b, 1);
    line_up(g, &c, 2);
    assert_false(let_go(g, HF_EUNKNOWN, 3));
    assert_string_equal(run(g, 3), "R");
    answer(g, HF__BUSY, 400);
    assert_int_equal(b.result, HF_EBUSY);
    assert_string_equal(run(g, 400), "");
    hf__queue_tick(g, at(1 + OP_TIMEOUT), wake);
    assert_int_equal(c.state, HF__W_WAITING);
    assert_int_equal(hf__lease_timer(&g->lease), at(400 + OP_TIMEOUT));
    hf__queue_tick(g, at(400 + OP_TIMEOUT), wake);
    assert_int_equal(c.result, HF_EBACKEND);
}

/* A try resumes an attempt that was given up, and waits for its answer. */
QUEUE_CASE(test_try_takes_up_what_was_given_up)
{
    struct hf__waiter a = want(1), b = want(2), c = want(3);

    ask(g, &a, 0);
    hf__queue_leave(g, &a, HF_ECANCELED, wake);
    assert_string_equal(run(g, 1), "B");
    ask(g, &b, 1);
    answer(g, HF__QUEUED, 2);
    hf__queue_leave(g, &b, HF_ECANCELED, wake);
    assert_string_equal(run(g, 3), ""); /* the first abandon is still pending */
    c.is_try = true;
    ask(g, &c, 4);
    assert_true(hf__lease_unanswered(&g->lease));
    answer(g, HF__QUEUED, 5);
    assert_int_equal(c.result, HF_EBUSY);
}

CASES_MAIN(NULL, NULL);
