/* What is written at the server: keys that are not ours, or not all ours, the
 * order of what is written, and how much. */
#include "side.h"

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

/* The lock goes, and something else is there: who waits leaves nothing behind
 * to which the lock could be handed when it is one again. */
static void stranger_comes(struct world *w, hf_lock *a, hf_lock *b,
                           const char *list, char letter)
{
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, &w->err), 0);
    t = taker_start(w, b, 30000);
    world_has_waiter(w, list);
    redis_server_do(w->redis, "EVAL %s 1 n",
                    "redis.call('del',KEYS[1]) redis.call('rpush',KEYS[1],1)");
    redis_tell(w, list, 0, letter);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, HF_EMISMATCH);
    assert_int_equal(redis_server_do(w->redis, "EXISTS %s", list), 0);
    taker_end(t);
    assert_int_equal(redis_server_do(w->redis, "LLEN n"), 1);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    redis_server_do(w->redis, "FLUSHDB");
}

static void test_stranger_comes_to_a_mutex(void **state)
{
    struct world *w = *state;

    stranger_comes(w, world_near(w), world_near(w), "holdfast:waiters:{n}",
                   'u');
}

static void test_stranger_comes_to_a_fair_mutex(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);

    stranger_comes(w, a, b, "redisson_lock_queue:{n}", 'f');
}

static void test_stranger_comes_to_a_writer(void **state)
{
    struct world *w = *state;

    stranger_comes(w, near_of(w, &writes), near_of(w, &writes),
                   "holdfast:line:{n}", 'r');
}

static void test_stranger_comes_to_permits(void **state)
{
    static const struct side one = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, 1, 1};
    struct world *w = *state;
    hf_lock *a, *b;

    near_of(w, &one);
    near_of(w, &one);
    a = world_change(w, 0, HF_SEMAPHORE, 1);
    b = world_change(w, 1, HF_SEMAPHORE, 1);
    stranger_comes(w, a, b, "holdfast:line:{n}", 's');
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
    at = redis_looked_at(w, "holdfast:party:{n}");
    proxy_deliver(w->proxy);
    assert_true(WAIT_FOR(redis_looked_at(w, "holdfast:party:{n}") != at));
    assert_int_equal(redis_server_do(w->redis, "LLEN holdfast:line:{n}"), 1);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 2000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(redis_server_do(w->redis, "INCRBY n 0"), SIZE - 1);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    all_of_it_is_free(w, &permits, a);
}

/* ---- nothing stays for ever -----------------------------------------------
 */

/* Whoever has the permits, dies, and is the last one ever. */
static void permits_expire(struct world *w)
{
    static const char *const keys[] = {"n", "{n}:timeout", "holdfast:kind:{n}",
                                       "holdfast:holds:{n}"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (redis_server_do(w->redis, "PTTL %s", keys[i]) <= 0)
            fail_msg("%s stays", keys[i]);
}

static void test_permits_that_were_handed_over_expire(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &permits), *b = near_of(w, &permits);
    struct taker *t;

    assert_int_equal(take(a, &permits, 0, NULL), 0);
    t = taker_start_as(w, b, HF_WRITE, SIZE, 10000);
    world_has_waiter(w, "holdfast:line:{n}");
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, 0);
    permits_expire(w);
    taker_end(t);
    world_is_clean(w);
}

/* All permits were back, and the semaphore stayed: Redisson was listening. */
static void test_permits_of_one_that_stayed_expire(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &permits);
    redisContext *ear = redisConnectUnix(w->redis->socket);

    assert_non_null(ear);
    freeReplyObject(redisCommand(ear, "SUBSCRIBE redisson_sc:{n}"));
    assert_int_equal(take(a, &permits, 0, NULL), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    assert_int_equal(take(a, &permits, 0, NULL), 0);
    permits_expire(w);
    /* Redisson has taken back what it thought was due. */
    redis_server_do(w->redis, "DEL {n}:timeout");
    redis_server_do(w->redis, "SET n %d KEEPTTL", SIZE);
    assert_int_equal(take(a, &permits, 0, &w->err), 0);
    permits_expire(w);
    redisFree(ear);
    redis_server_do(w->redis, "FLUSHDB");
}

/* ---- a latch that rests ----------------------------------------------------
 */

/* It is not counted for a day, and what we noted of it is gone: no permits are
 * taken of it, and it can be found still. */
static void test_latch_that_rests_stays_one(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &permits);
    hf_latch *latch = NULL;
    hf_names *names = NULL;
    hf_info *info = NULL;
    uint64_t left = 0;

    hf_lock_free(a);
    w->locks[0] = NULL;
    assert_int_equal(hf_latch_new(w->clients[0], "n", 1, &latch, NULL), 0);
    assert_int_equal(hf_latch_set(latch, SIZE, NULL), 0);
    assert_int_equal(hf_latch_free(latch), 0);
    redis_server_do(w->redis, "DEL holdfast:kind:{n}");
    assert_int_equal(hf_list(w->clients[0], NULL, &names, &w->err), 0);
    assert_int_equal(names->len, 1);
    hf_names_free(names);
    assert_int_equal(hf_inspect(w->clients[0], "n", 1, &info, &w->err), 0);
    assert_int_equal(info->kind, HF_LATCH);
    hf_info_free(info);
    a = near_of(w, &permits);
    assert_int_equal(take(a, &permits, 0, &w->err), HF_EMISMATCH);
    assert_int_equal(hf_latch_new(w->clients[0], "n", 1, &latch, NULL), 0);
    assert_int_equal(hf_latch_get(latch, &left, NULL), 0);
    assert_int_equal(left, SIZE);
    redis_server_do(w->redis, "DEL holdfast:kind:{n}");
    assert_int_equal(hf_break(w->clients[0], "n", 1, &w->err), 0);
    assert_int_equal(hf_latch_wait(latch, 0, NULL, NULL), 0);
    assert_int_equal(hf_latch_free(latch), 0);
    assert_int_equal(take_as(a, HF_WRITE, SIZE, 0, &w->err), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
}

/* ---- Redisson's fair queue ------------------------------------------------
 */

#define STRANGER "11111111-2222-3333-4444-555555555555:7"
#define DEAD "66666666-2222-3333-4444-555555555555:8"
#define QUEUE "redisson_lock_queue:{n}"
#define DEADLINES "redisson_lock_timeout:{n}"
#define SEEN "holdfast:seen:{n}"

static long long in_ms(long long ms)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000LL + ms;
}

/* One of ours died in the queue, and Redisson has dropped it: it is in what
 * we keep of our own still. One of Redisson's waits. */
static void queue_without_the_dead(struct world *w)
{
    redis_server_do(w->redis, "HSET n " STRANGER "0 1");
    redis_server_do(w->redis, "PEXPIRE n 30000");
    redis_server_do(w->redis, "HSET " SEEN " " DEAD " %s", "1 1 1 0 x");
    redis_server_do(w->redis, "RPUSH " QUEUE " " STRANGER);
    redis_server_do(w->redis, "ZADD " DEADLINES " %lld " STRANGER,
                    in_ms(300000));
}

/* Its place does not go when ours looks, or leaves. */
static void test_redisson_stays_in_the_queue(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);

    queue_without_the_dead(w);
    /* Looks once. */
    assert_int_equal(hf_lock_timed(a, 2500, &w->err), HF_ETIMEDOUT);
    assert_int_equal(redis_server_do(w->redis, "EXISTS " SEEN), 0);
    assert_true(redis_server_do(w->redis, "PTTL " QUEUE) > 60000);
    assert_true(redis_server_do(w->redis, "PTTL " DEADLINES) > 60000);
    redis_server_do(w->redis, "FLUSHDB");
    queue_without_the_dead(w);
    redis_server_do(w->redis, "PEXPIRE " QUEUE " 50000");
    /* Leaves at once. */
    assert_int_equal(hf_lock_timed(a, 100, &w->err), HF_ETIMEDOUT);
    assert_true(redis_server_do(w->redis, "PTTL " QUEUE) > 60000);
    redis_server_do(w->redis, "FLUSHDB");
    world_free_for_all(w, a);
    world_is_clean(w);
}

/* ---- the counter of tokens ----------------------------------------------- */

#define TOKEN "redisson_lock_token:{n}"
#define A_DAY_MS (86400000LL - 5000)

static const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};
static const struct side whole = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, SIZE, 1};

static long long token_ttl(struct world *w)
{
    return redis_server_do(w->redis, "PTTL " TOKEN);
}

/* In microseconds, as tokens are. */
static long long hours_ago(int hours)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec - hours * 3600LL) * 1000000;
}

/* How long the counter lives after a hold. */
static long long token_ttl_after(struct world *w, hf_lock *lock,
                                 const struct side *s)
{
    assert_int_equal(take(lock, s, 0, &w->err), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    return token_ttl(w);
}

/* Redisson's has no end, and gets none by us: its holders would begin anew. */
static void counter_of_redisson_stays(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    redis_server_do(w->redis, "SET " TOKEN " 5");
    assert_int_equal(token_ttl_after(w, a, s), -1);
    assert_true(redis_server_do(w->redis, "INCR " TOKEN) > hours_ago(1));
    assert_int_equal(token_ttl_after(w, a, s), -1);
    redis_server_do(w->redis, "SET " TOKEN " %lld", hours_ago(100));
    assert_int_equal(token_ttl_after(w, a, s), -1);
}

/* Ours outlives the last grant by a day. */
static void counter_of_ours_ends(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
    assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
    for (int ago = 12; ago < 40; ago += 4) {
        redis_server_do(w->redis, "SET " TOKEN " %lld PX 50000",
                        hours_ago(ago));
        assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
    }
    /* The clock was set back. */
    redis_server_do(w->redis, "SET " TOKEN " %lld PX 50000", hours_ago(-9));
    assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
}

#define EACH_COUNTER(name, side)                                               \
    static void test_##name##_counter_of_redisson_stays(void **state)          \
    {                                                                          \
        counter_of_redisson_stays(*state, side);                               \
    }                                                                          \
    static void test_##name##_counter_of_ours_ends(void **state)               \
    {                                                                          \
        counter_of_ours_ends(*state, side);                                    \
    }

EACH_COUNTER(mutex, &mutex)
EACH_COUNTER(writer, &writes)
EACH_COUNTER(permits, &whole)

/* Handed over, it is no other. */
static void test_handed_over_counter_stays(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    redis_server_do(w->redis, "SET " TOKEN " 5");
    assert_int_equal(hf_lock_try(a, NULL), 0);
    t = taker_start(w, b, 10000);
    world_has_waiter(w, "holdfast:waiters:{n}");
    redis_server_do(w->redis, "SET " TOKEN " 5");
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR(taker_back(t)));
    taker_end(t);
    assert_int_equal(token_ttl(w), -1);
    world_is_clean(w);
}

/* Who reads needs one, too, and leaves one that there is as it was. */
static void test_reader_makes_a_counter_that_ends(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &reads);

    assert_true(token_ttl_after(w, a, &reads) >= A_DAY_MS);
    redis_server_do(w->redis, "SET " TOKEN " 5");
    assert_int_equal(token_ttl_after(w, a, &reads), -1);
}

int run_keys_faults(void)
{
#define EACH(name)                                                             \
    T(test_mutex_##name), T(test_writer_##name), T(test_permits_##name)
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_strangers_key_is_spared),
        T(test_stranger_comes_to_a_mutex),
        T(test_stranger_comes_to_a_fair_mutex),
        T(test_stranger_comes_to_a_writer),
        T(test_stranger_comes_to_permits),
        T(test_permits_of_one_hold_have_a_limit),
        T(test_reader_without_memory),
        T(test_writer_without_memory),
        T(test_permits_without_memory),
        T(test_first_question_comes_second),
        T(test_permits_that_were_handed_over_expire),
        T(test_permits_of_one_that_stayed_expire),
        T(test_redisson_stays_in_the_queue),
        T(test_latch_that_rests_stays_one),
        EACH(counter_of_redisson_stays),
        EACH(counter_of_ours_ends),
        T(test_handed_over_counter_stays),
        T(test_reader_makes_a_counter_that_ends),
    };

    return cmocka_run_group_tests_name("redis: keys", tests, NULL, NULL);
}
