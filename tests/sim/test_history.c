/* Tests the checkers: each must reject a wrong history, and accept the same
 * history once it is corrected. */
#include "../lib/history.h"
#include "../unit/cases.h"

#define MS 1000000LL
#define SEC (1000 * MS)
#define NEVER HISTORY_NEVER

static const struct history_rules usual = {
    .ttl_ns = 3 * SEC, .tick_ns = 100 * MS, .wake_ns = 2 * SEC};

static struct history_event call(int64_t at_ms, uint32_t owner, int64_t wait_ms)
{
    return (struct history_event){
        .kind = HISTORY_CALL,
        .at = at_ms * MS,
        .owner = owner,
        .process = owner,
        .until = wait_ms < 0 ? NEVER : (at_ms + wait_ms) * MS};
}

static struct history_event got(int64_t at_ms, uint32_t owner, uint64_t token,
                                int64_t until_ms)
{
    return (struct history_event){.kind = HISTORY_RETURN,
                                  .at = at_ms * MS,
                                  .owner = owner,
                                  .process = owner,
                                  .token = token,
                                  .cap = NEVER,
                                  .until =
                                      until_ms < 0 ? NEVER : until_ms * MS};
}

static struct history_event of(int kind, int64_t at_ms, uint32_t owner)
{
    return (struct history_event){.kind = (uint8_t)kind,
                                  .at = at_ms * MS,
                                  .owner = owner,
                                  .process = owner,
                                  .until = (at_ms + 1000) * MS};
}

static struct history_event end(int64_t at_ms)
{
    return (struct history_event){.kind = HISTORY_END, .at = at_ms * MS};
}

/* Returns the name of the check that fails on the events, or "fine". The events
 * may be given in any order. */
static const char *judge_by(const struct history_rules *rules,
                            const struct history_event *e, size_t n)
{
    struct history h;
    struct history_verdict v;

    history_init(&h);
    for (size_t i = 0; i < n; i++)
        history_add(&h, &e[i]);
    history_sort(&h);
    if (history_check(&h, rules, &v))
        v.check = "fine";
    history_fini(&h);
    return v.check;
}

#define EXPECT_BY(rules, verdict, ...)                                         \
    assert_string_equal(                                                       \
        judge_by(rules, (const struct history_event[]){__VA_ARGS__},           \
                 sizeof((const struct history_event[]){__VA_ARGS__}) /         \
                     sizeof(struct history_event)),                            \
        verdict)

#define EXPECT(verdict, ...) EXPECT_BY(&usual, verdict, __VA_ARGS__)

/* Owner 1 holds the lock with token 5 until `ms`, and owner 2 waits. */
#define HELD_UNTIL(ms) call(0, 1, -1), got(1, 1, 5, ms), call(2, 2, -1)

CASE(test_claim_catches_two_holders)
{
    EXPECT("CLAIM", HELD_UNTIL(100), got(50, 2, 6, 150));
    EXPECT("fine", HELD_UNTIL(100), of(HISTORY_RELEASE, 49, 1),
           got(50, 2, 6, 150));
}

ROW(test_claim_ends_at_the_deadline,
    EXPECT("fine", HELD_UNTIL(50), got(50, 2, 6, 150)));

CASE(test_claim_ends_at_death)
{
    EXPECT("fine", HELD_UNTIL(100), of(HISTORY_KILLED, 10, 1),
           got(50, 2, 6, 150));
    EXPECT("CLAIM", HELD_UNTIL(100), of(HISTORY_KILLED, 10, 3),
           got(50, 2, 6, 150));
}

CASE(test_claim_follows_a_deadline_that_moves)
{
    struct history_event more = of(HISTORY_DEADLINE, 40, 1);
    struct history_event late = of(HISTORY_DEADLINE, 60, 1);

    more.until = 90 * MS;
    late.until = 90 * MS;
    EXPECT("CLAIM", HELD_UNTIL(50), more, got(70, 2, 6, 150));
    EXPECT("CLAIM", HELD_UNTIL(50), got(55, 2, 6, 150), late);
}

CASE(test_claim_counts_reentry)
{
    EXPECT("CLAIM", call(0, 1, -1), got(1, 1, 5, -1), call(2, 1, -1),
           got(2, 1, 5, -1), of(HISTORY_RELEASE, 3, 1), call(4, 2, -1),
           got(5, 2, 6, -1));
    EXPECT("fine", call(0, 1, -1), got(1, 1, 5, -1), call(2, 1, -1),
           got(2, 1, 5, -1), of(HISTORY_RELEASE, 3, 1),
           of(HISTORY_RELEASE, 4, 1), call(4, 2, -1), got(5, 2, 6, -1));
}

CASE(test_claim_is_not_asked_for_when_the_server_forgot)
{
    struct history_rules lossy = usual;

    lossy.lossy = true;
    EXPECT_BY(&lossy, "fine", HELD_UNTIL(100), got(50, 2, 6, 150));
}

static struct history_event touch(int kind, int64_t at_ms, uint64_t token,
                                  uint64_t value, int result)
{
    return (struct history_event){.kind = (uint8_t)kind,
                                  .at = at_ms * MS,
                                  .token = token,
                                  .value = value,
                                  .result = result};
}

CASE(test_me_catches_an_old_token)
{
    EXPECT("ME", touch(HISTORY_READ, 1, 5, 0, 0),
           touch(HISTORY_READ, 2, 6, 0, 0), touch(HISTORY_WRITE, 3, 5, 1, 0));
    EXPECT("fine", touch(HISTORY_READ, 1, 5, 0, 0),
           touch(HISTORY_READ, 2, 6, 0, 0), touch(HISTORY_WRITE, 3, 5, 1, 1),
           touch(HISTORY_WRITE, 4, 6, 1, 0));
}

CASE(test_me_catches_a_lost_update)
{
    EXPECT("ME", touch(HISTORY_WRITE, 1, 5, 1, 0),
           touch(HISTORY_WRITE, 2, 5, 1, 0));
    EXPECT("fine", touch(HISTORY_WRITE, 1, 5, 1, 0),
           touch(HISTORY_WRITE, 2, 5, 2, 0));
}

CASE(test_tok_catches_a_token_that_falls)
{
    EXPECT("TOK", call(0, 1, -1), got(1, 1, 5, 2), call(3, 2, -1),
           got(4, 2, 4, 10));
    /* The two calls overlap, so either order of the tokens is right. */
    EXPECT("fine", call(0, 1, -1), call(0, 2, -1), got(1, 1, 5, 2),
           got(4, 2, 4, 10));
}

ROW(test_tok_catches_a_token_twice,
    EXPECT("TOK", call(0, 1, -1), call(0, 2, -1), call(0, 3, -1),
           got(1, 1, 5, 2), got(3, 2, 7, 4), got(5, 3, 5, 6)));
ROW(test_tok_catches_a_reentry_with_a_new_token,
    EXPECT("TOK", call(0, 1, -1), got(1, 1, 5, -1), call(2, 1, -1),
           got(3, 1, 6, -1)));

CASE(test_wake_catches_a_lost_wakeup)
{
    EXPECT("WAKE", HELD_UNTIL(-1), of(HISTORY_RELEASE, 10, 1),
           got(2100, 2, 6, -1));
    EXPECT("fine", HELD_UNTIL(-1), of(HISTORY_RELEASE, 10, 1),
           got(2000, 2, 6, -1));
}

CASE(test_wake_catches_a_wait_that_never_ends)
{
    EXPECT("WAKE", HELD_UNTIL(-1), of(HISTORY_RELEASE, 10, 1), end(60000));
    EXPECT("fine", HELD_UNTIL(-1), end(60000));
}

CASE(test_wake_waits_for_the_end_of_a_fault)
{
    struct history_event fault = of(HISTORY_FAULT, 20, 0);

    fault.until = 5000 * MS;
    EXPECT("fine", HELD_UNTIL(-1), of(HISTORY_RELEASE, 10, 1), fault,
           got(6900, 2, 6, -1));
    EXPECT("WAKE", HELD_UNTIL(-1), of(HISTORY_RELEASE, 10, 1), fault,
           got(7100, 2, 6, -1));
}

CASE(test_wake_does_not_count_those_who_are_stopped)
{
    EXPECT("fine", HELD_UNTIL(-1), of(HISTORY_STOPPED, 3, 2),
           of(HISTORY_RELEASE, 10, 1), of(HISTORY_CONTINUED, 60000, 2),
           got(60010, 2, 6, -1));
    EXPECT("WAKE", HELD_UNTIL(-1), of(HISTORY_STOPPED, 3, 2),
           of(HISTORY_RELEASE, 10, 1), of(HISTORY_CONTINUED, 60000, 2),
           got(62010, 2, 6, -1));
}

CASE(test_bound_catches_the_dead_who_hold_on)
{
    EXPECT("fine", HELD_UNTIL(-1), of(HISTORY_KILLED, 10, 1),
           got(4100, 2, 6, -1));
    EXPECT("BOUND", HELD_UNTIL(-1), of(HISTORY_KILLED, 10, 1),
           got(4200, 2, 6, -1));
}

CASE(test_ret_catches_a_call_that_is_late)
{
    struct history_event busy = of(HISTORY_RETURN, 1600, 1);

    busy.result = -1;
    EXPECT("RET", call(0, 1, 500), busy);
    EXPECT("fine", call(0, 1, 600), busy);
    EXPECT("fine", call(0, 1, -1), busy);
    EXPECT("fine", call(0, 1, 500), of(HISTORY_STOPPED, 1, 1),
           of(HISTORY_CONTINUED, 1500, 1), busy);
}

CASE(test_ret_catches_a_call_that_never_returns)
{
    struct history_rules patient = usual;

    patient.unhurried = true;
    EXPECT_BY(&patient, "RET", call(0, 1, 500), end(1600));
    EXPECT_BY(&patient, "fine", call(0, 1, 500), end(1400));
    EXPECT_BY(&patient, "fine", call(0, 1, 500), of(HISTORY_KILLED, 10, 1),
              end(1600));
}

CASE(test_ret_catches_a_release_that_is_late)
{
    EXPECT("RET", call(0, 1, -1), got(1, 1, 5, -1), of(HISTORY_RELEASE, 2, 1),
           of(HISTORY_RELEASED, 2100, 1));
    EXPECT("fine", call(0, 1, -1), got(1, 1, 5, -1), of(HISTORY_RELEASE, 2, 1),
           of(HISTORY_RELEASED, 1900, 1));
}

CASE(test_leak_catches_what_is_left)
{
    struct history_event left = of(HISTORY_LEFT, 5, 0);

    EXPECT("fine", left);
    left.value = 1;
    EXPECT("LEAK", left);
}

CASE(test_cap_catches_a_hold_that_outlasts_its_lease)
{
    struct history_event fixed = got(1, 1, 5, 100);
    struct history_event more = of(HISTORY_DEADLINE, 50, 1);
    struct history_event asked = of(HISTORY_RENEW, 40, 1);

    fixed.cap = 101 * MS;
    more.until = 150 * MS;
    asked.until = 160 * MS;
    EXPECT("CAP", call(0, 1, -1), fixed, more);
    EXPECT("fine", call(0, 1, -1), fixed, asked, more);
}

CASE(test_turn_catches_too_many_owners_on_one_grant)
{
    struct history_rules one = usual;
    struct history_event second = got(3, 2, 5, -1), third = got(5, 3, 5, -1);

    one.turns = 1;
    second.process = third.process = 1;
    EXPECT_BY(&one, "fine", call(0, 1, -1), got(1, 1, 5, -1),
              of(HISTORY_RELEASE, 2, 1), second, of(HISTORY_RELEASE, 4, 2));
    EXPECT_BY(&one, "TURN", call(0, 1, -1), got(1, 1, 5, -1),
              of(HISTORY_RELEASE, 2, 1), second, of(HISTORY_RELEASE, 4, 2),
              third);
}

static struct history_event part(int64_t at_ms, uint32_t owner, uint32_t share,
                                 uint32_t whole)
{
    struct history_event e = call(at_ms, owner, -1);

    e.share = share;
    e.whole = whole;
    return e;
}

static struct history_event reads(int64_t at_ms, uint32_t owner)
{
    return part(at_ms, owner, 1, HISTORY_MANY);
}

static struct history_event writes(int64_t at_ms, uint32_t owner)
{
    return part(at_ms, owner, HISTORY_MANY, HISTORY_MANY);
}

CASE(test_claim_lets_readers_share_and_no_writer)
{
    EXPECT("fine", reads(0, 1), got(1, 1, 5, 100), reads(2, 2),
           got(3, 2, 5, 100), reads(4, 3), got(5, 3, 5, 100));
    EXPECT("CLAIM", reads(0, 1), got(1, 1, 5, 100), writes(2, 2),
           got(3, 2, 6, 100));
    EXPECT("CLAIM", writes(0, 1), got(1, 1, 5, 100), reads(2, 2),
           got(3, 2, 5, 100));
    /* A writer is excluded while even one of several readers still holds the
     * lock. */
    EXPECT("CLAIM", reads(0, 1), got(1, 1, 5, 100), reads(0, 2),
           got(2, 2, 5, 50), reads(0, 3), got(3, 3, 5, 50), writes(4, 4),
           got(60, 4, 6, 100));
    EXPECT("fine", reads(0, 1), got(1, 1, 5, 50), reads(0, 2), got(2, 2, 5, 50),
           of(HISTORY_RELEASE, 3, 2), writes(4, 4), got(60, 4, 6, 100));
}

CASE(test_claim_counts_permits)
{
    EXPECT("fine", part(0, 1, 1, 3), got(1, 1, 5, 100), part(2, 2, 2, 3),
           got(3, 2, 5, 100));
    EXPECT("CLAIM", part(0, 1, 2, 3), got(1, 1, 5, 100), part(2, 2, 2, 3),
           got(3, 2, 5, 100));
    EXPECT("fine", part(0, 1, 2, 3), got(1, 1, 5, 100), part(2, 2, 2, 3),
           of(HISTORY_KILLED, 3, 1), got(4, 2, 5, 100));
}

CASE(test_claim_follows_a_downgrade)
{
    EXPECT("fine", writes(0, 1), got(1, 1, 5, 100), reads(2, 2),
           of(HISTORY_DOWNGRADE, 3, 1), got(4, 2, 5, 100));
    EXPECT("CLAIM", writes(0, 1), got(1, 1, 5, 100), writes(2, 2),
           of(HISTORY_DOWNGRADE, 3, 1), got(4, 2, 6, 100));
}

CASE(test_tok_of_shared_holds_does_not_fall)
{
    EXPECT("fine", writes(0, 1), got(1, 1, 5, 2), reads(3, 2), got(4, 2, 5, 9),
           reads(3, 3), got(4, 3, 5, 9), writes(10, 4), got(11, 4, 6, 12));
    EXPECT("TOK", writes(0, 1), got(1, 1, 5, 2), reads(3, 2), got(4, 2, 4, 9));
    /* The next writer's token must exceed the tokens that readers showed to the
     * resource. */
    EXPECT("TOK", reads(0, 1), got(1, 1, 5, 2), writes(3, 2), got(4, 2, 5, 9));
}

/* The token need not rise even if one process takes all permits and another
 * process had the same token before. */
CASE(test_tok_of_permits_need_not_rise)
{
    EXPECT("fine", part(0, 1, 1, 3), got(1, 1, 5, 2), part(3, 2, 3, 3),
           got(4, 2, 5, 9));
    EXPECT("TOK", part(0, 1, 1, 3), got(1, 1, 5, 2), part(3, 2, 3, 3),
           got(4, 2, 4, 9));
}

CASE(test_turn_does_not_count_those_who_share)
{
    struct history_event second = got(2, 2, 5, -1), third = got(3, 3, 5, -1);

    second.process = third.process = 1;
    EXPECT("fine", reads(0, 1), reads(0, 2), reads(0, 3), got(1, 1, 5, -1),
           second, third);
}

CASE(test_wake_wants_room_for_each_who_waits)
{
    EXPECT("WAKE", part(0, 1, 1, 3), got(1, 1, 5, -1), part(2, 2, 2, 3),
           got(2100, 2, 5, -1));
    EXPECT("fine", part(0, 1, 2, 3), got(1, 1, 5, -1), part(2, 2, 2, 3),
           of(HISTORY_RELEASE, 3000, 1), got(4900, 2, 5, -1));
    EXPECT("WAKE", reads(0, 1), got(1, 1, 5, -1), reads(2, 2), end(60000));
    /* A waiting writer may be ahead of the reader, which then has to wait. */
    EXPECT("fine", reads(0, 1), got(1, 1, 5, -1), reads(2, 2), writes(2, 3),
           end(60000));
    EXPECT("WAKE", reads(0, 1), got(1, 1, 5, 3000), reads(2, 2), writes(2, 3),
           end(60000));
    EXPECT("WAKE", writes(0, 1), got(1, 1, 5, -1), reads(2, 2),
           of(HISTORY_DOWNGRADE, 3, 1), end(60000));
}

/* The time until a wakeup is due restarts with a grant, but not with a new
 * waiter. */
CASE(test_wake_is_not_put_off_by_those_who_come)
{
    EXPECT("WAKE", reads(0, 1), reads(1500, 2), got(2100, 1, 5, -1));
    EXPECT("fine", reads(0, 1), reads(100, 2), got(1500, 1, 5, -1),
           got(3400, 2, 5, -1));
}

CASE(test_history_sorts_by_time_and_keeps_order)
{
    struct history h;
    struct history_event e = {0};

    history_init(&h);
    for (uint32_t i = 0; i < 1000; i++) {
        e.at = (int64_t)(i * 7919 % 100);
        e.owner = i;
        history_add(&h, &e);
    }
    history_sort(&h);
    for (size_t i = 1; i < h.len; i++) {
        assert_true(h.event[i - 1].at <= h.event[i].at);
        if (h.event[i - 1].at == h.event[i].at)
            assert_true(h.event[i - 1].owner < h.event[i].owner);
    }
    history_fini(&h);
}

CASES_MAIN(NULL, NULL);
