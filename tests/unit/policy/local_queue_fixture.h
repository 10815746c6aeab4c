/*
 * A queue, its waiters, and a server that answers what the test says. Times are
 * milliseconds after T0; the first hold id is 101. run() returns the requests
 * that hf__queue_next() wants sent, as letters: A attempt, R release, B
 * abandon.
 */
#ifndef GATE_FIXTURE_H
#define GATE_FIXTURE_H

#include "../cases.h"
#include "policy/local_queue.h"

#define TTL 10000u /* ms */
#define T0 (1000 * HF__MS)
#define OP_TIMEOUT 500 /* ms */

static struct hf__waiter *woken[16]; /* in the order in which they were woken */
static size_t woken_len;
static bool may_queue; /* whether the last attempt might queue */
static uint64_t tokens;

static inline hf__time at(int64_t ms)
{
    return T0 + ms * HF__MS;
}

static inline void wake(struct hf__queue *g, struct hf__waiter *w)
{
    woken[woken_len++] = w;
}

static inline struct hf__queue queue(bool fair)
{
    struct hf__queue g;

    hf__queue_init(&g, fair, false, 100);
    woken_len = 0;
    tokens = 0;
    return g;
}

static inline struct hf__waiter want(uint64_t owner)
{
    return (struct hf__waiter){
        .owner = owner, .lease_ms = TTL, .reentrant = true};
}

static inline struct hf__waiter want_turns(uint64_t owner, uint32_t turns)
{
    struct hf__waiter w = want(owner);

    w.handoff = turns ? turns + 1 : 0; /* the first turn is the waiter's own */
    return w;
}

static inline const char *run(struct hf__queue *g, int64_t ms)
{
    static char sent[8];
    struct hf__waiter *first = NULL;
    size_t n = 0;

    for (;;) {
        enum hf__todo todo = hf__queue_next(g, at(ms), &first, &may_queue);

        if (todo == HF__TODO_NOTHING || n == sizeof(sent) - 1)
            break;
        if (todo == HF__TODO_ATTEMPT) {
            assert_non_null(first);
            hf__lease_attempted(&g->lease, at(ms), OP_TIMEOUT);
            sent[n++] = 'A';
        } else {
            sent[n++] = g->lease.let_go_op == HF__RELEASE ? 'R' : 'B';
        }
    }
    sent[n] = '\0';
    return sent;
}

/* Answers the last attempt, as if it had been sent at the time of the
 * answer. */
static inline void answer(struct hf__queue *g, int result, int64_t ms)
{
    struct hf__req req = {.hold_id = g->lease.hold_id,
                          .sent_at = at(ms),
                          .result = (int16_t)result};

    if (result == HF__GRANTED)
        req.token = ++tokens;
    else
        req.poll_at = at(ms + 2000);
    hf__queue_answered(g, &req, at(ms), wake);
}

/* Lets w enter; asserts that an attempt is sent. */
static inline void ask(struct hf__queue *g, struct hf__waiter *w, int64_t ms)
{
    assert_int_equal(hf__queue_enter(g, w, at(ms)), HF__PENDING);
    assert_string_equal(run(g, ms), "A");
}

/* Lets w enter at ms; w is granted the hold at once. */
static inline void grant(struct hf__queue *g, struct hf__waiter *w, int64_t ms)
{
    ask(g, w, ms);
    answer(g, HF__GRANTED, ms);
    assert_int_equal(w->state, HF__W_FINISHED);
    assert_int_equal(w->result, HF__GRANTED);
    assert_string_equal(run(g, ms), "");
    woken_len = 0;
}

/* Lets w enter while other waiters are ahead of it; asserts that nothing is
 * sent. */
static inline void line_up(struct hf__queue *g, struct hf__waiter *w,
                           int64_t ms)
{
    assert_int_equal(hf__queue_enter(g, w, at(ms)), HF__PENDING);
    assert_string_equal(run(g, ms), "");
}

static inline int release(struct hf__queue *g, uint64_t owner, int64_t ms)
{
    return hf__queue_release(g, owner, at(ms), wake);
}

/* Lets the owner release for the last time; asserts that the release is sent to
 * the server. */
static inline void give_up(struct hf__queue *g, uint64_t owner, int64_t ms)
{
    assert_int_equal(release(g, owner, ms), HF__DONE);
    assert_string_equal(run(g, ms), "R");
}

/* Answers the release or abandon that was sent. */
static inline bool let_go(struct hf__queue *g, int result, int64_t ms)
{
    return hf__queue_let_go_answered(g, result, at(ms), wake);
}

/* Defines a case with a queue g, which the expression `made` creates. */
#define CASE_OF(fn, made)                                                      \
    CASE_CALLED(fn, struct hf__queue *g, NULL, NULL,                           \
                fn((struct hf__queue[]){made}))
#define QUEUE_CASE(fn) CASE_OF(fn, queue(true))

#endif
