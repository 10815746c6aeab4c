/* Our clients share the queue of a fair mutex with Redisson. The tests simulate
 * a Redisson waiter: they write its entry in the queue and its deadline, and
 * subscribe to the channel on which it is notified. */
#include "redis_faults.h"

GROUP("beside");

#define REDISSON STRANGER
#define ANOTHER GHOST ":8"
#define REDISSON_WAIT_MS 300000

static hf_lock *fair_of(struct world *w)
{
    return world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
}

/* Enqueues a waiter as RedissonFairLock does: its deadline is the deadline of
 * the last waiter plus the time that a Redisson client waits. */
static void comes_behind(struct world *w, const char *owner)
{
    redis_do(w, "EVAL %s 2 " QUEUE " " DEADLINES " %s %d",
             "local last=redis.call('lindex',KEYS[1],-1) "
             "local d=last and redis.call('zscore',KEYS[2],last) or "
             "  redis.call('time')[1]*1000 "
             "if redis.call('zadd',KEYS[2],d+ARGV[2],ARGV[1])==1 then "
             "  redis.call('rpush',KEYS[1],ARGV[1]) "
             "end",
             owner, REDISSON_WAIT_MS);
}

/* Returns the time in ms until Redisson treats the waiter `owner` as dead. */
static long long lives_for(struct world *w, const char *owner)
{
    return redis_do(
        w, "EVAL %s 1 " DEADLINES " %s",
        "local t=redis.call('time') "
        "return (redis.call('zscore',KEYS[1],ARGV[1]) or 0)-t[1]*1000",
        owner);
}

static void forget_redisson(struct world *w)
{
    redis_do(w, "DEL " QUEUE " " DEADLINES);
    world_is_clean(w);
}

static redisContext *redisson_listens(struct world *w)
{
    return redis_listens(w, "redisson_lock__channel:{n}:" REDISSON);
}

static struct taker *waits_first(struct world *w, hf_lock *lock)
{
    struct taker *t = taker_start(w, lock, 30000);

    world_has_waiter(w, SEEN);
    return t;
}

/* Our waiter is the first in the queue, in front of two Redisson waiters. Our
 * waiter's deadline is only 3 s after its last poll, and the deadlines of the
 * two include only these 3 s for our waiter. When it gets the lock, at most 3 s
 * may be subtracted from the two deadlines. */
CASE(test_ours_gets_it)
{
    hf_lock *a = fair_of(w), *b = fair_of(w);
    redisContext *ear = redisson_listens(w);
    struct taker *t;

    OK(hf_lock_acquire(a, NULL, NULL));
    t = waits_first(w, b);
    comes_behind(w, REDISSON);
    comes_behind(w, ANOTHER);
    OK(hf_lock_release(a, NULL));
    COMES(taker_back(t));
    assert_true(lives_for(w, REDISSON) > REDISSON_WAIT_MS / 2);
    assert_true(lives_for(w, ANOTHER) > REDISSON_WAIT_MS * 3 / 2);
    taker_end(t);
    redis_hears(ear, "0");
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

    waiter->rc = hf_lock_acquire(
        waiter->lock, HOW(HF_FOREVER, .cancel = &waiter->cancel), NULL);
    return NULL;
}

static void waiter_start(struct world *w, struct waiter *waiter)
{
    hf_cancel_init(&waiter->cancel);
    OK(pthread_create(&waiter->thread, NULL, wait_for_it, waiter));
    world_has_waiter(w, SEEN);
}

static void waiter_gives_up(struct world *w, struct waiter *waiter)
{
    hf_cancel_fire(&waiter->cancel);
    pthread_join(waiter->thread, NULL);
    assert_int_equal(waiter->rc, HF_ECANCELED);
    COMES(!redis_do(w, "EXISTS " SEEN));
}

CASE(test_ours_gives_up)
{
    hf_lock *a = fair_of(w);
    struct waiter b = {.lock = fair_of(w)};
    redisContext *ear = redisson_listens(w);

    OK(hf_lock_acquire(a, NULL, NULL));
    waiter_start(w, &b);
    comes_behind(w, REDISSON);
    waiter_gives_up(w, &b);
    assert_true(lives_for(w, REDISSON) > REDISSON_WAIT_MS / 2);
    OK(hf_lock_release(a, NULL));
    redis_hears(ear, "0");
    forget_redisson(w);
}

/* Our waiter is between two Redisson waiters, so the deadline of the last one
 * includes a full wait time for ours. When our waiter gives up, that time is
 * subtracted again. */
CASE(test_ours_in_between_gives_up)
{
    hf_lock *a = fair_of(w);
    struct waiter b = {.lock = fair_of(w)};

    OK(hf_lock_acquire(a, NULL, NULL));
    comes_behind(w, REDISSON);
    waiter_start(w, &b);
    comes_behind(w, ANOTHER);
    assert_true(lives_for(w, ANOTHER) > REDISSON_WAIT_MS * 5 / 2);
    waiter_gives_up(w, &b);
    assert_true(lives_for(w, REDISSON) > REDISSON_WAIT_MS / 2);
    assert_true(lives_for(w, ANOTHER) > REDISSON_WAIT_MS * 3 / 2);
    assert_true(lives_for(w, ANOTHER) < REDISSON_WAIT_MS * 5 / 2);
    OK(hf_lock_release(a, NULL));
    forget_redisson(w);
}

/* The first waiter is a Redisson client that does not listen, and its deadline
 * is minutes away. The lock is free, so no release will follow. Our waiter must
 * soon pass the Redisson waiter nevertheless. */
CASE(test_dead_first_is_passed_over)
{
    hf_lock *a = fair_of(w), *b = fair_of(w);

    OK(hf_lock_acquire(a, NULL, NULL));
    comes_behind(w, REDISSON);
    OK(hf_lock_release(a, NULL));
    assert_true(lives_for(w, REDISSON) < REDISSON_WAIT_MS / 2);
    OK(hf_lock_timed(b, 20000, &w->err));
    OK(hf_lock_release(b, NULL));
}

/* A waiter's first request is delayed on a lost connection and arrives after
 * the second one. The waiter must be in the queue only once: when its wait has
 * ended, a second entry would look like a Redisson waiter without a known
 * deadline. */
CASE(test_first_question_comes_second)
{
    hf_lock *a = fair_of(w);
    hf_lock *b = world_lock(w, w->far_url, 30000, 5000, HF_FAIR);
    struct taker *t;
    long long at;

    world_free_for_all(w, b);
    OK(hf_lock_acquire(a, NULL, NULL));
    proxy_hoard(w->proxy);
    t = taker_start(w, b, 10000);
    COMES(proxy_hoarded(w->proxy) > 0);
    proxy_cut(w->proxy);
    world_has_waiter(w, SEEN);
    at = redis_looked_at(w, SEEN);
    proxy_deliver(w->proxy);
    COMES(redis_looked_at(w, SEEN) != at);
    assert_int_equal(redis_do(w, "LLEN " QUEUE), 1);
    OK(hf_lock_release(a, NULL));
    taker_gets_it(t, 3000);
}

static void looks_now(struct world *w)
{
    long long at = redis_looked_at(w, SEEN);

    redis_tell(w, QUEUE, -1, 'f');
    COMES(redis_looked_at(w, SEEN) != at);
}

/* Returns how long after our waiter's last poll Redisson would treat it as
 * dead. */
static long long outlives_its_look_by(struct world *w, int place)
{
    redisReply *owner = redis_ask(w, "LINDEX " QUEUE " %d", place);
    redisReply *until = redis_ask(w, "ZSCORE " DEADLINES " %s", owner->str);
    long long ms = atoll(until->str) - redis_looked_at(w, SEEN);

    freeReplyObject(owner);
    freeReplyObject(until);
    return ms;
}

/* Our waiter is behind a Redisson waiter with a long wait time. When the
 * Redisson waiter gets the lock, it subtracts that wait time from our waiter's
 * deadline. It may then release before our waiter polls again, and our waiter
 * must still be in the queue. So each poll must set our waiter's deadline to
 * the time of the poll plus that wait time plus 3 s. */
CASE(test_second_survives_a_quick_first)
{
    hf_lock *a = fair_of(w);
    struct waiter b = {.lock = fair_of(w)};

    OK(hf_lock_acquire(a, NULL, NULL));
    comes_behind(w, REDISSON);
    waiter_start(w, &b);
    redis_do(w, "ZREM " DEADLINES " " REDISSON);
    redis_do(w, "EVAL %s 1 " DEADLINES,
             "local w=redis.call('zrange',KEYS[1],0,0)[1] "
             "redis.call('zadd',KEYS[1],redis.call('time')[1]*1000,w)");
    looks_now(w);
    assert_true(outlives_its_look_by(w, 1) >= REDISSON_WAIT_MS + 3000);
    waiter_gives_up(w, &b);
    OK(hf_lock_release(a, NULL));
    forget_redisson(w);
}

static void crowd_waits(struct world *w, int many)
{
    redis_do(w, "EVAL %s 3 " QUEUE " " DEADLINES " " SEEN " " ANOTHER " %d",
             "for i=1,ARGV[2] do "
             "  local w=ARGV[1]..i "
             "  redis.call('rpush',KEYS[1],w) "
             "  redis.call('zadd',KEYS[2],9999999999999,w) "
             "  redis.call('hset',KEYS[3],w,'9999999999999 0 1 30000 x') "
             "end",
             many);
}

/* A Redisson waiter is in front of many of ours: a poll of the last waiter does
 * not walk through the whole queue. */
CASE(test_look_does_not_walk_the_queue)
{
    hf_lock *a = fair_of(w);
    struct waiter b = {.lock = fair_of(w)};

    OK(hf_lock_acquire(a, NULL, NULL));
    comes_behind(w, REDISSON);
    crowd_waits(w, 1000);
    waiter_start(w, &b);
    COMES(redis_calls(w, "llen") >= 2);
    assert_true(redis_calls(w, "zscore") < 100);
    redis_do(w, "DEL " QUEUE " " DEADLINES " " SEEN);
    waiter_gives_up(w, &b);
    OK(hf_lock_release(a, NULL));
}

/* A Redisson client may wait for the same key with RLock, the unfair lock. Such
 * a waiter is not in the queue, so a release cannot see it. Therefore a release
 * publishes Redisson's message even if the queue is empty. */
CASE(test_fair_release_tells_an_rlock)
{
    hf_lock *a = fair_of(w);
    redisContext *ear = redis_listens(w, "redisson_lock__channel:{n}");

    OK(hf_lock_acquire(a, NULL, NULL));
    OK(hf_lock_release(a, NULL));
    redis_hears(ear, "0");
}
