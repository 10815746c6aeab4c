/* One hold is broken, and no other: by its token, and by its owner as
 * hf_inspect() shows it. */
#include "side.h"

/* A plain lock of Redisson's does not raise the counter of tokens: the token of
 * the holder before it is not the token of this one. */
static void test_breaking_a_strangers_hold(void **state)
{
    static const char owner[] = "11111111-2222-3333-4444-555555555555:7";
    struct world *w = *state;
    hf_lock *a = world_near(w);
    hf_client *c = w->clients[0];
    uint64_t token;

    assert_int_equal(hf_lock_try(a, &w->err), 0);
    token = token_of(a);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    redis_server_do(w->redis, "HSET n %s 1", owner);
    redis_server_do(w->redis, "PEXPIRE n 60000");
    assert_int_equal(hf_break_hold(c, "n", 1, token, NULL, &w->err),
                     HF_ENOTOWNER);
    assert_non_null(strstr(w->err.text, "without a known token"));
    assert_int_equal(hf_break_hold(c, "n", 1, 0, "somebody", &w->err),
                     HF_ENOTOWNER);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    assert_int_equal(hf_break_hold(c, "n", 1, 0, owner, &w->err), 0);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 0);
}

/* Readers of Redisson's in a hash that never ends, and of their timeouts
 * nothing is left: one of them goes, the other stays. */
static void test_breaking_one_of_redissons_readers(void **state)
{
    static const char a[] = "11111111-2222-3333-4444-555555555555:7";
    static const char b[] = "11111111-2222-3333-4444-555555555555:8";
    struct world *w = *state;

    near_of(w, &reads);
    redis_server_do(w->redis, "HSET n mode read %s 1 %s 1", a, b);
    assert_int_equal(hf_break_hold(w->clients[0], "n", 1, 0, a, &w->err), 0);
    assert_int_equal(redis_server_do(w->redis, "HEXISTS n %s", a), 0);
    assert_int_equal(redis_server_do(w->redis, "HEXISTS n %s", b), 1);
    assert_int_equal(redis_server_do(w->redis, "PTTL n"), -1);
    assert_int_equal(hf_break_hold(w->clients[0], "n", 1, 0, b, &w->err), 0);
}

/* Redisson's permits have random bytes as their names, and show them as hex;
 * of two one goes. */
static void test_breaking_one_of_redissons_permits(void **state)
{
    static const char *const ids[] = {"\xff\n:7 456789abcde",
                                      "\x01:3456789abcdef:1"};
    struct world *w = *state;
    hf_client *c;
    hf_info *info = NULL;
    char owner[64];

    near_of(w, &permits);
    c = w->clients[0];
    redis_server_do(w->redis, "SET n 1");
    for (int i = 0; i < 2; i++)
        redis_server_do(w->redis, "ZADD {n}:timeout 9000000000000 %b", ids[i],
                        strlen(ids[i]));
    assert_int_equal(hf_inspect(c, "n", 1, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 2);
    snprintf(owner, sizeof(owner), "%s", info->holders[0].owner);
    hf_info_free(info);
    assert_int_equal(hf_break_hold(c, "n", 1, 0, "01", &w->err), HF_ENOTOWNER);
    assert_int_equal(hf_break_hold(c, "n", 1, 0, owner, &w->err), 0);
    assert_int_equal(redis_server_do(w->redis, "ZCARD {n}:timeout"), 1);
    assert_int_equal(hf_inspect(c, "n", 1, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 1);
    assert_string_not_equal(info->holders[0].owner, owner);
    hf_info_free(info);
    redis_server_do(w->redis, "DEL n {n}:timeout");
}

/* ---- a mutex that is held for days ----------------------------------------
 */

static void counter_is_gone(struct world *w)
{
    redis_server_do(w->redis, "EVAL %s 0",
                    "for _,k in ipairs(redis.call('keys','*token*')) do "
                    "  redis.call('del',k) end");
    assert_int_equal(redis_server_do(w->redis, "DBSIZE"), 2);
}

/* The counter of tokens is kept for a day after the last grant: the hold is
 * longer there, and is found by its token. */
static void broken_after_days(struct world *w, hf_lock *a)
{
    hf_client *c = w->clients[0];
    uint64_t token = token_of(a);
    hf_info *info = NULL;

    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    counter_is_gone(w);
    assert_int_equal(hf_inspect(c, "n", 1, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 1);
    assert_true(info->holders[0].token == token);
    assert_true(info->token == token);
    hf_info_free(info);
    assert_int_equal(hf_break_hold(c, "n", 1, token + 1, NULL, &w->err),
                     HF_ENOTOWNER);
    assert_int_equal(hf_break_hold(c, "n", 1, token, NULL, &w->err), 0);
    assert_int_equal(hf_lock_renew(a, 0, &w->err), HF_ELOST);
    assert_int_equal(hf_lock_release(a, &w->err), HF_ELOST);
}

static hf_lock *mutex_of(struct world *w, const char *options,
                         enum hf_fairness fairness)
{
    char url[96];

    snprintf(url, sizeof(url), "%s%s", w->redis->url, options);
    return world_lock(w, url, 30000, 5000, fairness);
}

static void held_for_days(struct world *w, const char *options,
                          enum hf_fairness fairness)
{
    hf_lock *a = mutex_of(w, options, fairness);

    assert_int_equal(hf_lock_try(a, &w->err), 0);
    broken_after_days(w, a);
    world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_unfair_mutex_held_for_days(void **state)
{
    held_for_days(*state, "", HF_UNFAIR);
}

static void test_fair_mutex_held_for_days(void **state)
{
    held_for_days(*state, "", HF_FAIR);
}

static void test_string_held_for_days(void **state)
{
    held_for_days(*state, "?dialect=string", HF_UNFAIR);
}

/* It was handed over before that. */
static void test_handed_over_and_held_for_days(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    assert_int_equal(hf_lock_try(a, &w->err), 0);
    t = taker_start(w, b, 10000);
    world_has_waiter(w, "holdfast:waiters:{n}");
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, 0);
    counter_is_gone(w);
    assert_int_equal(
        hf_break_hold(w->clients[0], "n", 1, t->token, NULL, &w->err), 0);
    taker_end(t);
    world_is_clean(w);
}

/* An older client has not noted the token of its hold: the counter tells it. */
static void test_breaking_an_older_clients_hold(void **state)
{
    static const char owner[] = "11111111-2222-3333-4444-555555555555:7";
    struct world *w = *state;
    hf_info *info = NULL;
    hf_client *c;

    world_near(w);
    c = w->clients[0];
    redis_server_do(w->redis, "HSET n %s 1", owner);
    redis_server_do(w->redis, "SET holdfast:info:{n} %s\nu\n1700000000000\n%s",
                    owner, "0 77\nhost\nlabel");
    redis_server_do(w->redis, "SET redisson_lock_token:{n} 4711");
    assert_int_equal(hf_inspect(c, "n", 1, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->holders[0].token, 4711);
    assert_int_equal(info->holders[0].pid, 77);
    assert_true(info->holders[0].since_unix_ms == 1700000000000);
    hf_info_free(info);
    assert_int_equal(hf_break_hold(c, "n", 1, 4710, NULL, &w->err),
                     HF_ENOTOWNER);
    assert_non_null(strstr(w->err.text, "4711"));
    assert_int_equal(hf_break_hold(c, "n", 1, 4711, NULL, &w->err), 0);
}

int run_break_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_breaking_a_strangers_hold),
        T(test_breaking_one_of_redissons_readers),
        T(test_breaking_one_of_redissons_permits),
        T(test_unfair_mutex_held_for_days),
        T(test_fair_mutex_held_for_days),
        T(test_string_held_for_days),
        T(test_handed_over_and_held_for_days),
        T(test_breaking_an_older_clients_hold),
    };

    return cmocka_run_group_tests_name("redis: breaking", tests, NULL, NULL);
}
