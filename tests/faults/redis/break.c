/* hf_break_hold() breaks exactly one hold, identified by its token or by its
 * owner as hf_inspect() shows it. */
#include "side.h"

GROUP("break");

/* A Redisson client that acquires a plain lock does not increment the token
 * counter. So the counter still has the token of the previous holder. The new
 * hold must not be broken by that token. */
CASE(test_breaking_a_strangers_hold)
{
    hf_lock *a = world_near(w);
    hf_client *c = w->clients[0];
    uint64_t token;

    OK(hf_lock_try(a, &w->err));
    token = token_of(a);
    OK(hf_lock_release(a, &w->err));
    redis_do(w, "HSET n " STRANGER " 1");
    redis_do(w, "PEXPIRE n 60000");
    EXPECT(HF_ENOTOWNER, hf_break_hold(c, "n", 1, token, NULL, &w->err));
    expect_words(w->err.text, "without a known token");
    EXPECT(HF_ENOTOWNER, hf_break_hold(c, "n", 1, 0, "another", &w->err));
    assert_int_equal(redis_do(w, "EXISTS n"), 1);
    OK(hf_break_hold(c, "n", 1, 0, STRANGER, &w->err));
    assert_int_equal(redis_do(w, "EXISTS n"), 0);
}

/* Two Redisson readers share a hash that never expires, and have no timeout
 * keys: breaking the hold of one leaves that of the other. */
CASE(test_breaking_one_of_redissons_readers)
{
    static const char a[] = STRANGER, b[] = GHOST ":8";

    near_of(w, &reads);
    redis_do(w, "HSET n mode read %s 1 %s 1", a, b);
    OK(hf_break_hold(w->clients[0], "n", 1, 0, a, &w->err));
    assert_int_equal(redis_do(w, "HEXISTS n %s", a), 0);
    assert_int_equal(redis_do(w, "HEXISTS n %s", b), 1);
    assert_int_equal(redis_do(w, "PTTL n"), -1);
    OK(hf_break_hold(w->clients[0], "n", 1, 0, b, &w->err));
}

/* Redisson identifies permits by random bytes, which hf_inspect() shows as hex;
 * one of two permits is broken. */
CASE(test_breaking_one_of_redissons_permits)
{
    static const char *const ids[] = {"\xff\n:7 456789abcde",
                                      "\x01:3456789abcdef:1"};
    hf_client *c;
    hf_info *info;
    const char *owner;

    near_of(w, &permits);
    c = w->clients[0];
    redis_do(w, "SET n 1");
    for (int i = 0; i < 2; i++)
        redis_do(w, "ZADD {n}:timeout 9000000000000 %b", ids[i],
                 strlen(ids[i]));
    info = world_inspect(w, c);
    assert_int_equal(info->holders_len, 2);
    owner = text_of("%s", info->holders[0].owner);
    EXPECT(HF_ENOTOWNER, hf_break_hold(c, "n", 1, 0, "01", &w->err));
    OK(hf_break_hold(c, "n", 1, 0, owner, &w->err));
    assert_int_equal(redis_do(w, "ZCARD {n}:timeout"), 1);
    info = world_inspect(w, c);
    assert_int_equal(info->holders_len, 1);
    assert_string_not_equal(info->holders[0].owner, owner);
    redis_do(w, "DEL n {n}:timeout");
}

static void counter_is_gone(struct world *w)
{
    redis_do(w, "EVAL %s 0",
             "for _,k in ipairs(redis.call('keys','*token*')) do "
             "  redis.call('del',k) end");
    assert_int_equal(redis_do(w, "DBSIZE"), 2);
}

/* The token counter expires a day or more after the last grant. A hold that
 * lasts longer can still be broken by its token. */
static void broken_after_days(struct world *w, hf_lock *a)
{
    hf_client *c = w->clients[0];
    uint64_t token = token_of(a);
    hf_info *info;

    OK(hf_lock_renew(a, 0, &w->err));
    counter_is_gone(w);
    info = world_inspect(w, c);
    assert_int_equal(info->holders_len, 1);
    assert_true(info->holders[0].token == token);
    assert_true(info->token == token);
    EXPECT(HF_ENOTOWNER, hf_break_hold(c, "n", 1, token + 1, NULL, &w->err));
    OK(hf_break_hold(c, "n", 1, token, NULL, &w->err));
    EXPECT(HF_ELOST, hf_lock_renew(a, 0, &w->err));
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
}

static hf_lock *mutex_of(struct world *w, const char *options,
                         enum hf_fairness fairness)
{
    return world_lock(w, text_of("%s%s", w->redis->url, options), 30000, 5000,
                      fairness);
}

static void held_for_days(struct world *w, const char *options,
                          enum hf_fairness fairness)
{
    hf_lock *a = mutex_of(w, options, fairness);

    OK(hf_lock_try(a, &w->err));
    broken_after_days(w, a);
    world_free_for_all(w, a);
}

CASE_IS(test_unfair_mutex_held_for_days, held_for_days(w, "", HF_UNFAIR))
CASE_IS(test_fair_mutex_held_for_days, held_for_days(w, "", HF_FAIR))
CASE_IS(test_string_held_for_days,
        held_for_days(w, "?dialect=string", HF_UNFAIR))

/* A hold that was handed over can be broken by its token even after the token
 * counter has expired. */
CASE(test_handed_over_and_held_for_days)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, 10000);

    OK(hf_lock_release(a, NULL));
    taker_has_it(t, WAIT_LONG_MS);
    counter_is_gone(w);
    OK(hf_break_hold(w->clients[0], "n", 1, t->token, NULL, &w->err));
    taker_end(t);
}

/* A client of an older version of holdfast does not store the token of its
 * hold. The token is then read from the counter. */
CASE(test_breaking_an_older_clients_hold)
{
    hf_info *info;
    hf_client *c;

    world_near(w);
    c = w->clients[0];
    redis_do(w, "HSET n " STRANGER " 1");
    redis_do(w, "SET holdfast:info:{n} %s\nu\n1700000000000\n%s", STRANGER,
             "0 77\nhost\nlabel");
    redis_do(w, "SET redisson_lock_token:{n} 4711");
    info = world_inspect(w, c);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->holders[0].token, 4711);
    assert_int_equal(info->holders[0].pid, 77);
    assert_true(info->holders[0].since_unix_ms == 1700000000000);
    EXPECT(HF_ENOTOWNER, hf_break_hold(c, "n", 1, 4710, NULL, &w->err));
    expect_words(w->err.text, "4711");
    OK(hf_break_hold(c, "n", 1, 4711, NULL, &w->err));
}
