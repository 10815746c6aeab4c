/* One hold is broken, and no other: by its token, and by its owner as
 * hf_inspect() shows it. */
#include "redis_faults_side.h"

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

int run_break_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_breaking_a_strangers_hold),
        T(test_breaking_one_of_redissons_readers),
        T(test_breaking_one_of_redissons_permits),
    };

    return cmocka_run_group_tests_name("redis: breaking", tests, NULL, NULL);
}
