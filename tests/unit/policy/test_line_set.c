/* Which line a verb uses. */
#include "local_queue_fixture.h"
#include "policy/line_set.h"

static struct hf__queue queues[4];
static struct hf__line_entry line[4];
static struct hf__reader entry[8];
static size_t entries;

/* Returns a set of n lines, the first of which is for writing, as in a
 * client. */
static struct hf__line_set lines_of(enum hf_kind kind, size_t n)
{
    struct hf__line_set s = {0};

    woken_len = 0;
    entries = 0;
    for (size_t i = 0; i < n; i++) {
        hf__queue_init(&queues[i], true, false, (i + 1) << 32);
        queues[i].shared = kind == HF_RWLOCK && i;
        queues[i].latch = kind == HF_LATCH;
        line[i] = (struct hf__line_entry){.queue = &queues[i]};
        if (i)
            hf__line_set_add(&s, &line[i]);
        else
            hf__line_set_init(&s, kind, &line[i]);
    }
    for (size_t i = 0; i < n; i++)
        hf__line_set_rest(&s, &line[i]);
    return s;
}

/* Returns the queue of the line chosen for w, or NULL if it needs a new
 * line. */
static struct hf__queue *led(struct hf__line_set *s, struct hf__waiter *w,
                             enum hf_mode mode, int64_t ms)
{
    struct hf__line_entry *found;

    assert_int_equal(hf__line_set_for(s, w, mode, at(ms), &found), 0);
    if (found && found->queue->shared)
        w->reader = &entry[entries++];
    return found ? found->queue : NULL;
}

/* Chooses a line for w, sends an attempt and grants it; returns the queue of
 * the line. */
static struct hf__queue *take(struct hf__line_set *s, struct hf__waiter *w,
                              enum hf_mode mode, int64_t ms)
{
    struct hf__queue *g = led(s, w, mode, ms);

    assert_non_null(g);
    grant(g, w, ms);
    return g;
}

static struct hf__queue *held(struct hf__line_set *s, uint64_t owner)
{
    return hf__line_set_held(s, owner)->queue;
}

static void leave(struct hf__line_set *s, struct hf__queue *g, uint64_t owner,
                  int64_t ms)
{
    give_up(g, owner, ms);
    hf__line_set_rest(s, &line[g - queues]);
}

CASE(test_lines_writers_share_the_first)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 2);
    struct hf__waiter a = want(1), b = want(2);

    assert_ptr_equal(take(&s, &a, HF_WRITE, 0), &queues[0]);
    assert_ptr_equal(led(&s, &b, HF_WRITE, 1), &queues[0]);
    assert_ptr_equal(held(&s, 1), &queues[0]);
    assert_ptr_equal(held(&s, 9), &queues[0]); /* owner 9 has no hold */
}

CASE(test_lines_readers_share_while_it_is_young)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 3);
    struct hf__waiter a = want(1), b = want(2), c = want(3);
    struct hf__queue *g = take(&s, &a, HF_READ, 0), *other;

    assert_true(g->shared);
    assert_ptr_equal(led(&s, &b, HF_READ, 1), g);
    assert_int_equal(hf__queue_enter(g, &b, at(1)), HF__GRANTED);
    other = led(&s, &c, HF_READ, 100);
    assert_non_null(other);
    assert_ptr_not_equal(other, g);
    assert_ptr_equal(held(&s, 2), g);
    grant(other, &c, 100);
    assert_ptr_equal(held(&s, 3), other);
}

CASE(test_lines_read_again_is_where_one_reads)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 3);
    struct hf__waiter a = want(1), again = want(1);
    struct hf__queue *g = take(&s, &a, HF_READ, 0);

    assert_ptr_equal(led(&s, &again, HF_READ, 1000), g);
    /* After a loss the owner uses the same line, from which it learns of the
     * loss. */
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    assert_ptr_equal(led(&s, &again, HF_READ, 1001), g);
}

CASE(test_lines_read_within_a_write)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 2);
    struct hf__waiter a = want(1), again = want(1);

    take(&s, &a, HF_WRITE, 0);
    assert_ptr_equal(led(&s, &again, HF_READ, 1), &queues[0]);
    hf__queue_lose(&queues[0], true, HF__LOSS_TAKEN, at(0));
    assert_ptr_equal(led(&s, &again, HF_READ, 2), &queues[0]);
}

CASE(test_lines_write_within_a_read_is_refused)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 2);
    struct hf__waiter a = want(1);
    struct hf__queue *g = take(&s, &a, HF_READ, 0);
    struct hf__line_entry *found;

    assert_int_equal(hf__line_set_for(&s, &a, HF_WRITE, at(1), &found),
                     HF_ENOTSUP);
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    assert_int_equal(hf__line_set_for(&s, &a, HF_WRITE, at(1), &found),
                     HF_ELOST);
}

/* A reader that comes after a local writer waits for the writer, in the
 * server's queue. */
CASE(test_lines_reader_does_not_pass_a_writer)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 3);
    struct hf__waiter a = want(1), writer = want(2), c = want(3);
    struct hf__queue *g = take(&s, &a, HF_READ, 0);

    assert_ptr_equal(led(&s, &writer, HF_WRITE, 1), &queues[0]);
    assert_int_equal(hf__queue_enter(&queues[0], &writer, at(1)), HF__PENDING);
    assert_ptr_not_equal(led(&s, &c, HF_READ, 2), g);
}

CASE(test_lines_semaphore_has_one_for_each_hold)
{
    struct hf__line_set s = lines_of(HF_SEMAPHORE, 2);
    struct hf__waiter a = want(1), b = want(1), c = want(1);
    struct hf__queue *older = take(&s, &a, HF_WRITE, 0);
    struct hf__queue *newer = take(&s, &b, HF_WRITE, 1);

    assert_ptr_not_equal(older, newer);
    assert_null(led(&s, &c, HF_WRITE, 2));
    assert_ptr_equal(held(&s, 1), newer);
    leave(&s, newer, 1, 3);
    assert_ptr_equal(held(&s, 1), older);
    assert_null(led(&s, &c, HF_WRITE, 4)); /* its release is pending */
    assert_true(let_go(newer, HF__DONE, 5));
    hf__line_set_rest(&s, &line[newer - queues]);
    assert_ptr_equal(led(&s, &c, HF_WRITE, 5), newer);
}

/* The order of grants counts, not that of attempts. */
CASE(test_lines_newest_was_granted_last)
{
    struct hf__line_set s = lines_of(HF_SEMAPHORE, 2);
    struct hf__waiter a = want(1), b = want(1);
    struct hf__queue *first = led(&s, &a, HF_WRITE, 0), *second;

    ask(first, &a, 0);
    second = take(&s, &b, HF_WRITE, 1);
    assert_ptr_equal(held(&s, 1), second);
    answer(first, HF__GRANTED, 2);
    hf__line_set_granted(&s, &line[first - queues]);
    assert_ptr_equal(held(&s, 1), first);
    leave(&s, first, 1, 3);
    assert_ptr_equal(held(&s, 1), second);
}

CASE(test_lines_lost_holds_come_last)
{
    for (int i = 0; i < 2; i++) {
        struct hf__line_set s = lines_of(HF_SEMAPHORE, 2);
        struct hf__waiter a = want(1), b = want(1);
        struct hf__queue *g[2];

        g[0] = take(&s, &a, HF_WRITE, 0);
        g[1] = take(&s, &b, HF_WRITE, 1);
        hf__queue_lose(g[i], true, HF__LOSS_TAKEN, at(0));
        assert_ptr_equal(held(&s, 1), g[!i]);
        leave(&s, g[!i], 1, 2);
        assert_ptr_equal(held(&s, 1), g[i]);
        assert_int_equal(release(g[i], 1, 3), HF_ELOST);
    }
}

/* The owner still has to release the lost hold: no other owner gets its
 * line. */
CASE(test_lines_lost_hold_keeps_its_line)
{
    struct hf__line_set s = lines_of(HF_SEMAPHORE, 1);
    struct hf__waiter a = want(1), b = want(2);
    struct hf__queue *g = take(&s, &a, HF_WRITE, 0);

    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    hf__line_set_rest(&s, &line[0]);
    assert_null(led(&s, &b, HF_WRITE, 1));
    assert_int_equal(release(g, 1, 2), HF_ELOST);
    hf__line_set_rest(&s, &line[0]);
    assert_ptr_equal(led(&s, &b, HF_WRITE, 3), g);
}

CASE(test_lines_stuck_one_is_waited_for)
{
    struct hf__line_set s = lines_of(HF_SEMAPHORE, 1);
    struct hf__waiter a = want(1), b = want(2);
    struct hf__queue *g = take(&s, &a, HF_WRITE, 0);

    leave(&s, g, 1, 1);
    assert_null(led(&s, &b, HF_WRITE, 2));
    assert_false(hf__lease_let_go_answered(&g->lease, HF_EBACKEND, at(3)));
    assert_ptr_equal(led(&s, &b, HF_WRITE, 4), g);
    assert_int_equal(hf__queue_enter(g, &b, at(4)), HF__PENDING);
    assert_string_equal(run(g, 4), "R");   /* again, for the new waiter */
    assert_null(led(&s, &a, HF_WRITE, 5)); /* each waiter needs a line */
    /* A downgrade cannot use this line either, because a downgrade cannot
     * wait. */
    assert_null(hf__line_set_unused(&s, HF_WRITE));
}

/* The short way (hf__queue_quiet) is taken only while no line is in use. */
CASE(test_lines_quiet_while_none_is_in_use)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 3);
    struct hf__waiter a = want(1), b = want(2);
    struct hf__queue *g;

    assert_ptr_equal(hf__line_set_quiet(&s, HF_WRITE), &line[0]);
    assert_true(hf__line_set_quiet(&s, HF_READ)->queue->shared);
    g = take(&s, &a, HF_READ, 0);
    assert_null(hf__line_set_quiet(&s, HF_READ));
    assert_null(hf__line_set_quiet(&s, HF_WRITE));
    hf__queue_lose(g, true, HF__LOSS_TAKEN, at(0));
    assert_null(hf__line_set_quiet(&s, HF_WRITE)); /* the lost hold is not
                                                      released yet */
    release(g, 1, 1);
    hf__line_set_rest(&s, &line[g - queues]);
    assert_ptr_equal(hf__line_set_quiet(&s, HF_WRITE), &line[0]);
    take(&s, &b, HF_WRITE, 2);
    assert_null(hf__line_set_quiet(&s, HF_READ));
}

/* Counts the lines in use, which are the only ones that verbs examine. */
static size_t taken(const struct hf__line_set *s)
{
    size_t n = 0;

    for (const struct hf__line_entry *l = s->at[HF__TAKEN]; l; l = l->next)
        n++;
    return n;
}

CASE(test_lines_at_rest_are_apart)
{
    struct hf__line_set s = lines_of(HF_RWLOCK, 4);
    struct hf__waiter a = want(1), b = want(2), writer = want(3);
    struct hf__queue *g, *other;

    assert_int_equal(taken(&s), 0);
    g = take(&s, &a, HF_READ, 0);
    other = take(&s, &b, HF_READ, 100);
    assert_int_equal(taken(&s), 2);
    leave(&s, g, 1, 101);
    assert_int_equal(taken(&s), 1);
    assert_ptr_equal(s.at[HF__LEAVING], &line[g - queues]);
    assert_true(let_go(g, HF__DONE, 102));
    hf__line_set_rest(&s, &line[g - queues]);
    assert_null(s.at[HF__LEAVING]);
    hf__queue_lose(other, true, HF__LOSS_TAKEN, at(0));
    hf__line_set_rest(&s, &line[other - queues]);
    assert_int_equal(taken(&s), 1); /* its reader must release the lost hold */
    assert_int_equal(release(other, 2, 103), HF_ELOST);
    hf__line_set_rest(&s, &line[other - queues]);
    assert_int_equal(taken(&s), 0);
    assert_ptr_equal(led(&s, &writer, HF_WRITE, 104), &queues[0]);
    assert_int_equal(taken(&s), 1); /* the writer may be about to enter */
    hf__line_set_rest(&s, &line[0]);
    assert_int_equal(taken(&s), 0); /* it did not enter */
}

CASE(test_lines_latch_waits_together)
{
    struct hf__line_set s = lines_of(HF_LATCH, 2);
    struct hf__waiter a = want(1), b = want(2);
    struct hf__queue *g = led(&s, &a, HF_WRITE, 0);

    ask(g, &a, 0);
    assert_ptr_not_equal(led(&s, &b, HF_WRITE, 1), g);
    answer(g, HF__QUEUED, 2);
    assert_ptr_equal(led(&s, &b, HF_WRITE, 3), g);
}

CASE(test_lines_all_but_the_first)
{
    struct hf__line_set s = lines_of(HF_SEMAPHORE, 3);
    struct hf__line_entry *n;
    size_t others = 0;

    for (n = hf__line_set_all_but_first(&s); n; n = n->next) {
        assert_ptr_not_equal(n, &line[0]);
        others++;
    }
    assert_int_equal(others, 2);
    assert_ptr_equal(s.at[HF__RESTING], &line[0]);
    assert_null(line[0].next);
    assert_null(s.at[HF__TAKEN]);
    /* Later changes of these lines do not affect the list. */
    hf__line_set_rest(&s, &line[1]);
    assert_ptr_equal(s.at[HF__RESTING], &line[0]);
    assert_null(line[0].next);
    assert_null(hf__line_set_all_but_first(&s));
}

CASES_MAIN(NULL, NULL);
