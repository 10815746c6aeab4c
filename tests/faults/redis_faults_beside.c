/* Beside Redisson in the queue of a fair mutex: its waiter is a place there and
 * a time, written as it does; and a channel, by which it is told. */
#include "redis_faults.h"

#define REDISSON "11111111-2222-3333-4444-555555555555:7"
#define ANOTHER "11111111-2222-3333-4444-555555555555:8"
#define QUEUE "redisson_lock_queue:{n}"
#define DEADLINES "redisson_lock_timeout:{n}"
#define SEEN "holdfast:seen:{n}"
#define REDISSON_WAIT_MS 300000

static hf_lock *fair_of(struct world *w)
{
    return world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
}

/* As RedissonFairLock comes: behind the last, by its own wait. */
static void comes_behind(struct world *w, const char *owner)
{
    redis_server_do(w->redis, "EVAL %s 2 " QUEUE " " DEADLINES " %s %d",
                    "local last=redis.call('lindex',KEYS[1],-1) "
                    "local d=last and redis.call('zscore',KEYS[2],last) or "
                    "  redis.call('time')[1]*1000 "
                    "if redis.call('zadd',KEYS[2],d+ARGV[2],ARGV[1])==1 then "
                    "  redis.call('rpush',KEYS[1],ARGV[1]) "
                    "end",
                    owner, REDISSON_WAIT_MS);
}

/* ms until it is taken for dead. */
static long long lives_for(struct world *w, const char *owner)
{
    return redis_server_do(
        w->redis, "EVAL %s 1 " DEADLINES " %s",
        "local t=redis.call('time') "
        "return (redis.call('zscore',KEYS[1],ARGV[1]) or 0)-t[1]*1000",
        owner);
}

static void forget_redisson(struct world *w)
{
    redis_server_do(w->redis, "DEL " QUEUE " " DEADLINES);
    world_is_clean(w);
}

static redisContext *redisson_listens(struct world *w)
{
    redisContext *ear = redisConnectUnix(w->redis->socket);

    assert_non_null(ear);
    redisSetTimeout(ear, (struct timeval){10, 0});
    freeReplyObject(
        redisCommand(ear, "SUBSCRIBE redisson_lock__channel:{n}:" REDISSON));
    return ear;
}

static void expect_told(redisContext *ear)
{
    redisReply *reply = NULL;

    assert_int_equal(redisGetReply(ear, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->element[2]->str, "0");
    freeReplyObject(reply);
    redisFree(ear);
}

static struct taker *waits_first(struct world *w, hf_lock *lock)
{
    struct taker *t = taker_start(w, lock, 30000);

    world_has_waiter(w, SEEN);
    return t;
}

/* ---- who goes before it ---------------------------------------------------
 */

/* It has counted with a little, since the first looks often: no more is taken
 * off when that one goes. */
static void test_ours_gets_it(void **state)
{
    struct world *w = *state;
    hf_lock *a = fair_of(w), *b = fair_of(w);
    redisContext *ear = redisson_listens(w);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = waits_first(w, b);
    comes_behind(w, REDISSON);
    comes_behind(w, ANOTHER);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_true(lives_for(w, REDISSON) > REDISSON_WAIT_MS / 2);
    assert_true(lives_for(w, ANOTHER) > REDISSON_WAIT_MS * 3 / 2);
    taker_end(t);
    expect_told(ear);
    forget_redisson(w);
}

struct waiter {
    hf_lock *lock;
    hf_cancel cancel;
    pthread_t thread;
    int rc;
};

static void *wait_for_it(void *arg)
{
    struct waiter *waiter = arg;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.cancel = &waiter->cancel;
    waiter->rc = hf_lock_acquire(waiter->lock, &opt, NULL);
    return NULL;
}

static void waiter_start(struct world *w, struct waiter *waiter)
{
    hf_cancel_init(&waiter->cancel);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_it, waiter),
                     0);
    world_has_waiter(w, SEEN);
}

static void waiter_gives_up(struct world *w, struct waiter *waiter)
{
    hf_cancel_fire(&waiter->cancel);
    pthread_join(waiter->thread, NULL);
    assert_int_equal(waiter->rc, HF_ECANCELED);
    assert_true(WAIT_FOR(!redis_server_do(w->redis, "EXISTS " SEEN)));
}

static void test_ours_gives_up(void **state)
{
    struct world *w = *state;
    hf_lock *a = fair_of(w);
    struct waiter b = {.lock = fair_of(w)};
    redisContext *ear = redisson_listens(w);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    waiter_start(w, &b);
    comes_behind(w, REDISSON);
    waiter_gives_up(w, &b);
    assert_true(lives_for(w, REDISSON) > REDISSON_WAIT_MS / 2);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    expect_told(ear);
    forget_redisson(w);
}

/* It has counted with us as with one of its own. */
static void test_ours_in_between_gives_up(void **state)
{
    struct world *w = *state;
    hf_lock *a = fair_of(w);
    struct waiter b = {.lock = fair_of(w)};

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    comes_behind(w, REDISSON);
    waiter_start(w, &b);
    comes_behind(w, ANOTHER);
    assert_true(lives_for(w, ANOTHER) > REDISSON_WAIT_MS * 5 / 2);
    waiter_gives_up(w, &b);
    assert_true(lives_for(w, REDISSON) > REDISSON_WAIT_MS / 2);
    assert_true(lives_for(w, ANOTHER) > REDISSON_WAIT_MS * 3 / 2);
    assert_true(lives_for(w, ANOTHER) < REDISSON_WAIT_MS * 5 / 2);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    forget_redisson(w);
}

/* ---- a question of a connection that was lost ---------------------------- */

/* When ours, who waits alone, looked last. */
static long long looked_at(struct world *w)
{
    redisReply *reply = redis_server_ask(w->redis, "HVALS " SEEN);
    long long at = -1;

    if (reply->elements == 1)
        assert_int_equal(sscanf(reply->element[0]->str, "%*d %lld", &at), 1);
    freeReplyObject(reply);
    return at;
}

/* The first gets there after the second: it stands in the queue once. Twice, it
 * would be somebody of Redisson's when it is gone, of whom nobody knows until
 * when he lives. */
static void test_first_question_comes_second(void **state)
{
    struct world *w = *state;
    hf_lock *a = fair_of(w);
    hf_lock *b = world_lock(w, w->far_url, 30000, 5000, HF_FAIR);
    struct taker *t;
    long long at;

    world_free_for_all(w, b);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    proxy_hoard(w->proxy);
    t = taker_start(w, b, 10000);
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    proxy_cut(w->proxy);
    world_has_waiter(w, SEEN);
    at = looked_at(w);
    proxy_deliver(w->proxy);
    assert_true(WAIT_FOR(looked_at(w) != at));
    assert_int_equal(redis_server_do(w->redis, "LLEN " QUEUE), 1);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    taker_gets_it(t, 3000);
    world_is_clean(w);
}

int run_beside_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_ours_gets_it),
        T(test_ours_gives_up),
        T(test_ours_in_between_gives_up),
        T(test_first_question_comes_second),
    };

    return cmocka_run_group_tests_name("redis: beside Redisson", tests, NULL,
                                       NULL);
}
