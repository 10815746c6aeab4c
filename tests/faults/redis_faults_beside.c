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
                    "local d=redis.call('zscore',KEYS[2],last) "
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

static void test_ours_gives_up(void **state)
{
    struct world *w = *state;
    hf_lock *a = fair_of(w);
    struct waiter b = {.lock = fair_of(w)};
    redisContext *ear = redisson_listens(w);
    pthread_t thread;

    hf_cancel_init(&b.cancel);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, &b), 0);
    world_has_waiter(w, SEEN);
    comes_behind(w, REDISSON);
    hf_cancel_fire(&b.cancel);
    pthread_join(thread, NULL);
    assert_int_equal(b.rc, HF_ECANCELED);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "LLEN " QUEUE) == 1));
    assert_true(lives_for(w, REDISSON) > REDISSON_WAIT_MS / 2);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    expect_told(ear);
    forget_redisson(w);
}

int run_beside_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_ours_gets_it),
        T(test_ours_gives_up),
    };

    return cmocka_run_group_tests_name("redis: beside Redisson", tests, NULL,
                                       NULL);
}
