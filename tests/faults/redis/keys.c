/* The keys at the server: keys of other programs, the expiry of keys, and
 * requests that arrive in the wrong order. */
#include "side.h"

GROUP("keys");

/* The key in which we store permits belongs to another program: it is left
 * unchanged. */
CASE(test_strangers_key_is_spared)
{
    hf_lock *a = near_of(w, &permits);

    redis_do(w, "HSET {n}:timeout x:1 1");
    EXPECT(HF_EMISMATCH, take(a, &permits, 0, &w->err));
    assert_int_equal(redis_do(w, "HLEN {n}:timeout"), 1);
    redis_do(w, "DEL {n}:timeout");
    all_of_it_is_free(w, &permits, a);
}

/* Another program replaces the lock's key by a key of its own. The waiter fails
 * and must remove its entry; otherwise the lock could be handed to that entry
 * when the key is a lock again. */
static void stranger_comes(struct world *w, hf_lock *a, hf_lock *b,
                           const char *list, char letter)
{
    struct taker *t = taker_behind(w, a, b, 30000);

    redis_do(w, "EVAL %s 1 n",
             "redis.call('del',KEYS[1]) redis.call('rpush',KEYS[1],1)");
    redis_tell(w, list, 0, letter);
    COMES(taker_back(t));
    assert_int_equal(t->rc, HF_EMISMATCH);
    assert_int_equal(redis_do(w, "EXISTS %s", list), 0);
    taker_end(t);
    assert_int_equal(redis_do(w, "LLEN n"), 1);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    redis_do(w, "FLUSHDB");
}

CASE_IS(test_stranger_comes_to_a_mutex,
        stranger_comes(w, world_near(w), world_near(w), WAITERS, 'u'))

CASE(test_stranger_comes_to_a_fair_mutex)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);

    stranger_comes(w, a, b, QUEUE, 'f');
}

CASE_IS(test_stranger_comes_to_a_writer,
        stranger_comes(w, near_of(w, &writes), near_of(w, &writes), LINE, 'r'))

CASE(test_stranger_comes_to_permits)
{
    static const struct side one = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, 1, 1};
    hf_lock *a, *b;

    near_of(w, &one);
    near_of(w, &one);
    a = world_change(w, 0, HF_SEMAPHORE, 1);
    b = world_change(w, 1, HF_SEMAPHORE, 1);
    stranger_comes(w, a, b, LINE, 's');
}

/* A hold may have only a limited number of permits, because one script writes
 * an entry for each of them. */
CASE(test_permits_of_one_hold_have_a_limit)
{
    hf_lock *a;

    near_of(w, &permits);
    a = world_change(w, 0, HF_SEMAPHORE, UINT32_MAX);
    EXPECT(HF_EINVAL, take_as(a, HF_WRITE, 4096, 0, &w->err));
    expect_words(w->err.text, "4095");
    EXPECT(HF_EINVAL, take_as(a, HF_WRITE, 4096, 1000, &w->err));
    assert_int_equal(redis_do(w, "DBSIZE"), 0);
    OK(take_as(a, HF_WRITE, 4095, 0, &w->err));
    assert_int_equal(redis_do(w, "ZCARD {n}:timeout"), 4095);
    OK(hf_lock_release(a, &w->err));
}

/* A hold can be renewed, downgraded and released even if the server has no
 * memory left. */
static void held_without_memory(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    OK(take(a, s, 0, NULL));
    redis_do(w, "CONFIG SET maxmemory 1");
    OK(hf_lock_renew(a, 0, &w->err));
    if (s->mode == HF_READ)
        redis_do(w, "EVAL %s 0",
                 "for _,k in ipairs(redis.call('keys','*rwlock_ti*'))"
                 " do redis.call('del',k) end");
    OK(hf_lock_renew(a, 0, &w->err));
    if (s == &writes) {
        OK(hf_lock_downgrade(a, &w->err));
        OK(hf_lock_renew(a, 0, &w->err));
    }
    OK(hf_lock_release(a, &w->err));
    redis_do(w, "CONFIG SET maxmemory 0");
    all_of_it_is_free(w, s, a);
}

CASE_IS(test_reader_without_memory, held_without_memory(w, &reads))
CASE_IS(test_writer_without_memory, held_without_memory(w, &writes))
CASE_IS(test_permits_without_memory, held_without_memory(w, &permits))

/* A waiter's first request is delayed and arrives after the second one. The
 * server sees only one waiter and grants it a permit only once. */
CASE(test_first_question_comes_second)
{
    hf_lock *a = near_of(w, &permits), *b = far_of(w, &permits, 30000, 3000);
    struct taker *t;
    long long at;

    all_of_it_is_free(w, &permits, b);
    OK(take_as(a, HF_WRITE, SIZE, 0, NULL));
    proxy_hoard(w->proxy);
    t = taker_start_as(w, b, HF_WRITE, 1, 10000);
    COMES(proxy_hoarded(w->proxy) > 0);
    proxy_cut(w->proxy);
    world_has_waiter(w, LINE);
    at = redis_looked_at(w, PARTY);
    proxy_deliver(w->proxy);
    COMES(redis_looked_at(w, PARTY) != at);
    assert_int_equal(redis_do(w, "LLEN holdfast:line:{n}"), 1);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, 2000);
    assert_int_equal(redis_do(w, "INCRBY n 0"), SIZE - 1);
    taker_gives(t);
    all_of_it_is_free(w, &permits, a);
}

/* Asserts that all keys expire if the holder of the permits dies and no other
 * client uses the semaphore. */
static void permits_expire(struct world *w)
{
    static const char *const keys[] = {"n", "{n}:timeout", "holdfast:kind:{n}",
                                       "holdfast:holds:{n}"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (redis_do(w, "PTTL %s", keys[i]) <= 0)
            fail_msg("%s stays", keys[i]);
}

CASE(test_permits_that_were_handed_over_expire)
{
    hf_lock *a = near_of(w, &permits), *b = near_of(w, &permits);
    struct taker *t;

    OK(take(a, &permits, 0, NULL));
    t = taker_start_as(w, b, HF_WRITE, SIZE, 10000);
    world_has_waiter(w, LINE);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, WAIT_LONG_MS);
    permits_expire(w);
    taker_end(t);
}

/* All permits are free, but the semaphore's key remains because a Redisson
 * client listens. When permits are acquired again, the keys expire as usual. */
CASE(test_permits_of_one_that_stayed_expire)
{
    hf_lock *a = near_of(w, &permits);

    redis_listens(w, "redisson_sc:{n}");
    OK(take(a, &permits, 0, NULL));
    OK(hf_lock_release(a, NULL));
    assert_int_equal(redis_do(w, "EXISTS n"), 1);
    OK(take(a, &permits, 0, NULL));
    permits_expire(w);
    /* Takes back the expired permits in the way that Redisson does. */
    redis_do(w, "DEL {n}:timeout");
    redis_do(w, "SET n %d KEEPTTL", SIZE);
    OK(take(a, &permits, 0, &w->err));
    permits_expire(w);
    redis_do(w, "FLUSHDB");
}

/* A latch has not been used for a day, so the key that stores its kind has
 * expired. The latch can still be found, and no client can take permits from
 * it. */
CASE(test_latch_that_rests_stays_one)
{
    hf_lock *a = near_of(w, &permits);
    hf_latch *latch;
    hf_names *names = NULL;
    hf_info *info;
    uint64_t left = 0;

    w->may_leave = true; /* results of latch requests stay for a while */
    hf_lock_free(a);
    w->locks[0] = NULL;
    latch = world_latch(w, w->clients[0], "n");
    OK(hf_latch_set(latch, SIZE, NULL));
    world_ends(w, latch);
    redis_do(w, "DEL holdfast:kind:{n}");
    OK(hf_list(w->clients[0], NULL, &names, &w->err));
    assert_int_equal(names->len, 1);
    hf_names_free(names);
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->kind, HF_LATCH);
    a = near_of(w, &permits);
    EXPECT(HF_EMISMATCH, take(a, &permits, 0, &w->err));
    latch = world_latch(w, w->clients[0], "n");
    OK(hf_latch_get(latch, &left, NULL));
    assert_int_equal(left, SIZE);
    redis_do(w, "DEL holdfast:kind:{n}");
    OK(hf_break(w->clients[0], "n", 1, &w->err));
    OK(hf_latch_wait(latch, 0, NULL, NULL));
    world_ends(w, latch);
    OK(take_as(a, HF_WRITE, SIZE, 0, &w->err));
    OK(hf_lock_release(a, NULL));
}

#define DEAD "66666666-2222-3333-4444-555555555555:8"

static long long in_ms(long long ms)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000LL + ms;
}

/* One of our waiters has died. Redisson has removed it from the queue, but our
 * own list still contains it. A Redisson waiter is in the queue. */
static void queue_without_the_dead(struct world *w)
{
    redis_do(w, "HSET n " STRANGER "0 1");
    redis_do(w, "PEXPIRE n 30000");
    redis_do(w, "HSET " SEEN " " DEAD " %s", "1 1 1 0 x");
    redis_do(w, "RPUSH " QUEUE " " STRANGER);
    redis_do(w, "ZADD " DEADLINES " %lld " STRANGER, in_ms(300000));
}

/* The Redisson waiter keeps its place when our waiter polls or gives up. */
CASE(test_redisson_stays_in_the_queue)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);

    queue_without_the_dead(w);
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(a, 2500, &w->err));
    assert_int_equal(redis_do(w, "EXISTS " SEEN), 0);
    assert_true(redis_do(w, "PTTL " QUEUE) > 60000);
    assert_true(redis_do(w, "PTTL " DEADLINES) > 60000);
    redis_do(w, "FLUSHDB");
    queue_without_the_dead(w);
    redis_do(w, "PEXPIRE " QUEUE " 50000");
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(a, 100, &w->err));
    assert_true(redis_do(w, "PTTL " QUEUE) > 60000);
    redis_do(w, "FLUSHDB");
    world_free_for_all(w, a);
}

#define A_DAY_MS (86400000LL - 5000)

static const struct side whole = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, SIZE, 1};

static long long token_ttl(struct world *w)
{
    return redis_do(w, "PTTL " TOKEN);
}

/* Returns the time `hours` hours ago, in microseconds, the unit of tokens. */
static long long hours_ago(int hours)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec - hours * 3600LL) * 1000000;
}

/* Acquires and releases; returns the TTL of the token counter. */
static long long token_ttl_after(struct world *w, hf_lock *lock,
                                 const struct side *s)
{
    OK(take(lock, s, 0, &w->err));
    OK(hf_lock_release(lock, NULL));
    return token_ttl(w);
}

/* Redisson's counter never expires, and we must not let it expire, because
 * Redisson's tokens would then start again at 1. */
static void counter_of_redisson_stays(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    redis_do(w, "SET " TOKEN " 5");
    assert_int_equal(token_ttl_after(w, a, s), -1);
    assert_true(redis_do(w, "INCR " TOKEN) > hours_ago(1));
    assert_int_equal(token_ttl_after(w, a, s), -1);
    redis_do(w, "SET " TOKEN " %lld", hours_ago(100));
    assert_int_equal(token_ttl_after(w, a, s), -1);
}

/* Our counter expires a day or more after the last grant. */
static void counter_of_ours_ends(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
    assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
    for (int ago = 12; ago < 40; ago += 4) {
        redis_do(w, "SET " TOKEN " %lld PX 50000", hours_ago(ago));
        assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
    }
    /* The counter is a time in the future, as if the clock had been set
     * back. */
    redis_do(w, "SET " TOKEN " %lld PX 50000", hours_ago(-9));
    assert_true(token_ttl_after(w, a, s) >= A_DAY_MS);
}

#define EACH_COUNTER(name, side)                                               \
    CASE_IS(test_##name##_counter_of_redisson_stays,                           \
            counter_of_redisson_stays(w, side))                                \
    CASE_IS(test_##name##_counter_of_ours_ends, counter_of_ours_ends(w, side))

EACH_COUNTER(mutex, &mutex)
EACH_COUNTER(writer, &writes)
EACH_COUNTER(permits, &whole)

CASE(test_handed_over_counter_stays)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    redis_do(w, "SET " TOKEN " 5");
    t = taker_behind(w, a, b, 10000);
    redis_do(w, "SET " TOKEN " 5");
    OK(hf_lock_release(a, NULL));
    COMES(taker_back(t));
    taker_end(t);
    assert_int_equal(token_ttl(w), -1);
}

/* A reader also needs a counter. It gives a new counter an expiry, but does not
 * change the expiry of an existing counter. */
CASE(test_reader_makes_a_counter_that_ends)
{
    hf_lock *a = near_of(w, &reads);

    assert_true(token_ttl_after(w, a, &reads) >= A_DAY_MS);
    redis_do(w, "SET " TOKEN " 5");
    assert_int_equal(token_ttl_after(w, a, &reads), -1);
}
