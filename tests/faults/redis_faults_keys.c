/* What is written at the server: keys that are not ours, or not all ours, the
 * order of what is written, and how much. */
#include "redis_faults_side.h"

/* ---- somebody else's keys ------------------------------------------------ */

/* What we keep our permits in is there, and not ours: it stays as it is. */
static void test_strangers_key_is_spared(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &permits);

    redis_server_do(w->redis, "HSET {n}:timeout x:1 1");
    assert_int_equal(take(a, &permits, 0, &w->err), HF_EMISMATCH);
    assert_int_equal(redis_server_do(w->redis, "HLEN {n}:timeout"), 1);
    redis_server_do(w->redis, "DEL {n}:timeout");
    all_of_it_is_free(w, &permits, a);
}

/* ---- many permits -------------------------------------------------------- */

/* Each is an entry at the server, written by one script. */
static void test_permits_of_one_hold_have_a_limit(void **state)
{
    struct world *w = *state;
    hf_lock *a;

    near_of(w, &permits);
    a = world_change(w, 0, HF_SEMAPHORE, UINT32_MAX);
    assert_int_equal(take_as(a, HF_WRITE, 4096, 0, &w->err), HF_EINVAL);
    assert_non_null(strstr(w->err.text, "4095"));
    assert_int_equal(take_as(a, HF_WRITE, 4096, 1000, &w->err), HF_EINVAL);
    assert_int_equal(redis_server_do(w->redis, "DBSIZE"), 0);
    assert_int_equal(take_as(a, HF_WRITE, 4095, 0, &w->err), 0);
    assert_int_equal(redis_server_do(w->redis, "ZCARD {n}:timeout"), 4095);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* ---- the server is full -------------------------------------------------- */

/* What is held goes on all the same. */
static void held_without_memory(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    assert_int_equal(take(a, s, 0, NULL), 0);
    redis_server_do(w->redis, "CONFIG SET maxmemory 1");
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    if (s->mode == HF_READ)
        redis_server_do(w->redis, "EVAL %s 0",
                        "for _,k in ipairs(redis.call('keys','*rwlock_ti*'))"
                        " do redis.call('del',k) end");
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    if (s == &writes) {
        assert_int_equal(hf_lock_downgrade(a, &w->err), 0);
        assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    }
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    redis_server_do(w->redis, "CONFIG SET maxmemory 0");
    all_of_it_is_free(w, s, a);
}

static void test_reader_without_memory(void **state)
{
    held_without_memory(*state, &reads);
}

static void test_writer_without_memory(void **state)
{
    held_without_memory(*state, &writes);
}

static void test_permits_without_memory(void **state)
{
    held_without_memory(*state, &permits);
}

/* ---- questions in another order ------------------------------------------ */

/* When the one who waits, alone, looked last. */
static long long looked_at(struct world *w)
{
    redisReply *reply = redis_server_ask(w->redis, "HVALS holdfast:party:{n}");
    long long at = -1;

    if (reply->elements == 1)
        assert_int_equal(sscanf(reply->element[0]->str, "%*d %lld", &at), 1);
    freeReplyObject(reply);
    return at;
}

/* The first question gets there after the second: it is one waiter, and is
 * given what it wants once. */
static void test_first_question_comes_second(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &permits), *b = far_of(w, &permits, 30000, 3000);
    struct taker *t;
    long long at;

    all_of_it_is_free(w, &permits, b);
    assert_int_equal(take_as(a, HF_WRITE, SIZE, 0, NULL), 0);
    proxy_hoard(w->proxy);
    t = taker_start_as(w, b, HF_WRITE, 1, 10000);
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    proxy_cut(w->proxy);
    world_has_waiter(w, "holdfast:line:{n}");
    at = looked_at(w);
    proxy_deliver(w->proxy);
    assert_true(WAIT_FOR(looked_at(w) != at));
    assert_int_equal(redis_server_do(w->redis, "LLEN holdfast:line:{n}"), 1);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 2000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(redis_server_do(w->redis, "INCRBY n 0"), SIZE - 1);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    all_of_it_is_free(w, &permits, a);
}

int run_keys_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_strangers_key_is_spared),
        T(test_permits_of_one_hold_have_a_limit),
        T(test_reader_without_memory),
        T(test_writer_without_memory),
        T(test_permits_without_memory),
        T(test_first_question_comes_second),
    };

    return cmocka_run_group_tests_name("redis: keys", tests, NULL, NULL);
}
