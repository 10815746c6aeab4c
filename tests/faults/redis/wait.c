/* Waiters that are notified but do not acquire, fair waiters alongside unfair
 * ones, and waiters whose server is down. */
#include "../any/any_faults.h"
#include "redis_faults.h"

GROUP("wait");

#define EAR "holdfast:wake:{}:" GHOST
#define CROWD "holdfast:crowd:{n}"

static char *field(struct world *w, const char *key, const char *owner)
{
    redisReply *reply = redis_ask(w, "HGET %s %s", key, owner);
    char *text = reply->str ? strdup(reply->str) : NULL;

    freeReplyObject(reply);
    return text;
}

static bool has_changed(struct world *w, const char *key, const char *owner,
                        const char *before)
{
    char *now = field(w, key, owner);
    bool changed = now && strcmp(now, before) != 0;

    free(now);
    return changed;
}

/* Waits until the waiter at that place of the list has polled again. */
static void await_look(struct world *w, const char *list, const char *hash,
                       int place)
{
    redisReply *owner = redis_ask(w, "LINDEX %s %d", list, place);
    char *before = field(w, hash, owner->str);

    assert_non_null(before);
    COMES_MS(has_changed(w, hash, owner->str, before), 4000);
    free(before);
    freeReplyObject(owner);
}

static void ghosts_wait(struct world *w, int first, int last)
{
    for (int i = first; i <= last; i++) {
        redis_do(w, "RPUSH " WAITERS " " GHOST ":%d", i);
        redis_do(w, "HSET " CROWD " " GHOST ":%d %s", i,
                 "9999999999999 0 30000 0 1");
    }
}

static void ghosts_wait_fair(struct world *w, int first, int last)
{
    long long ms = redis_now_ms(w);

    for (int i = first; i <= last; i++) {
        redis_do(w, "RPUSH " QUEUE " " GHOST ":%d", i);
        redis_do(w, "ZADD " DEADLINES " %lld " GHOST ":%d", ms + 600000, i);
        redis_do(w, "HSET " SEEN " " GHOST ":%d %s", i,
                 "9999999999999 0 1 30000 0 1");
    }
}

/* The first waiter never acquires, as if it were stopped. It is notified, but
 * the lock is not handed to it. The second waiter acquires instead, however
 * many waiters are behind it. */
CASE(test_told_one_that_does_not_come)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    redisContext *ear = redis_listens(w, EAR);
    struct taker *t;

    OK(hf_lock_acquire(a, NULL, NULL));
    ghosts_wait(w, 1, 1);
    t = taker_start(w, b, 30000);
    COMES(redis_do(w, "LLEN " WAITERS) == 2);
    ghosts_wait(w, 2, 100);
    await_look(w, WAITERS, CROWD, 1);
    OK(hf_lock_release(a, NULL));
    redis_hears(ear, "u1 0 0 n");
    taker_has_it(t, 3000);
    redis_do(w, "DEL " WAITERS " " CROWD);
    taker_end(t);
}

CASE(test_told_fair_one_that_does_not_come)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    redisContext *ear = redis_listens(w, EAR);
    struct taker *t;
    struct wait_mark began;

    OK(hf_lock_acquire(a, NULL, NULL));
    ghosts_wait_fair(w, 1, 1);
    t = taker_start(w, b, 30000);
    COMES(redis_do(w, "LLEN " QUEUE) == 2);
    ghosts_wait_fair(w, 2, 100);
    await_look(w, QUEUE, SEEN, 1);
    began = wait_mark();
    OK(hf_lock_release(a, NULL));
    redis_hears(ear, "f1 0 0 n");
    COMES(taker_back(t));
    assert_true(wait_took(began, 2900, 4400));
    assert_int_equal(t->rc, 0);
    redis_do(w, "DEL " QUEUE " " DEADLINES " " SEEN);
    taker_end(t);
}

/* Adds a waiter whose last poll was a second ago and whose next poll follows
 * again_ms after the last one. */
static void ghost_looks(struct world *w, enum hf_fairness fair, int again_ms)
{
    long long seen = redis_now_ms(w) - 1000;

    ghosts_wait(w, 1, fair == HF_FAIR ? 0 : 1);
    ghosts_wait_fair(w, 1, fair == HF_FAIR ? 1 : 0);
    redis_do(w, "HSET %s " GHOST ":1 %s", fair == HF_FAIR ? SEEN : CROWD,
             text_of("%lld %lld %s30000 0 1", seen + again_ms, seen,
                     fair == HF_FAIR ? "1 " : ""));
}

/* Returns the token in the next message, or 0 if the message only notifies the
 * waiter, which must then poll. */
static long long token_told(redisContext *ear)
{
    return atoll(redis_next(ear) + strlen("u1 "));
}

/* The script of the release hands the lock to a waiter that has just polled.
 * The new lease counts from that poll. */
static void handed_over(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, fair);
    redisContext *ear = redis_listens(w, EAR);

    OK(hf_lock_acquire(a, NULL, NULL));
    ghost_looks(w, fair, 3000);
    OK(hf_lock_release(a, NULL));
    assert_true(token_told(ear) > 0);
    assert_int_equal(redis_do(w, "HEXISTS n " GHOST ":1"), 1);
    assert_true(redis_do(w, "PTTL n") <= 29000);
    redis_do(w, "DEL n holdfast:info:{n}");
}

CASE_IS(test_handed_to_one_that_has_just_come, handed_over(w, HF_UNFAIR))
CASE_IS(test_handed_to_a_fair_one_that_has_just_come, handed_over(w, HF_FAIR))

/* The lock is not handed to a waiter that will not poll soon: if the message
 * were lost, the waiter would not learn for a long time that it holds the
 * lock. */
static void not_handed_over(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, fair);
    redisContext *ear = redis_listens(w, EAR);

    OK(hf_lock_acquire(a, NULL, NULL));
    ghost_looks(w, fair, 20000);
    OK(hf_lock_release(a, NULL));
    assert_int_equal(token_told(ear), 0);
    assert_int_equal(redis_do(w, "EXISTS n"), 0);
    redis_do(w, "DEL " QUEUE " " DEADLINES " " SEEN);
}

CASE_IS(test_not_handed_to_one_that_looks_rarely, not_handed_over(w, HF_UNFAIR))
CASE_IS(test_not_handed_to_a_fair_one_that_looks_rarely,
        not_handed_over(w, HF_FAIR))

/* Returns how many ms after its last poll the only waiter that is not simulated
 * polls again, or 0 if there is no such waiter. */
static long long looks_within(struct world *w, const char *hash)
{
    return redis_do(w, "EVAL %s 1 %s " GHOST,
                    "local all=redis.call('hgetall',KEYS[1]) "
                    "for i=1,#all,2 do "
                    "  if string.sub(all[i],1,36)~=ARGV[1] then "
                    "    local til,seen="
                    "      string.match(all[i+1],'^(%d+) (%d+)') "
                    "    return til-seen "
                    "  end "
                    "end "
                    "return 0",
                    hash);
}

struct crowd {
    enum hf_fairness fair;
    const char *list, *hash;
    char letter;
    void (*wait)(struct world *, int first, int last);
};

static const struct crowd unfair_crowd = {HF_UNFAIR, WAITERS, CROWD, 'u',
                                          ghosts_wait};
static const struct crowd fair_crowd = {HF_FAIR, QUEUE, SEEN, 'f',
                                        ghosts_wait_fair};

static void looks_now(struct world *w, const struct crowd *c, int place)
{
    redisReply *owner = redis_ask(w, "LINDEX %s %d", c->list, place);
    char *before = field(w, c->hash, owner->str);

    assert_non_null(before);
    redis_tell(w, c->list, place, c->letter);
    COMES(has_changed(w, c->hash, owner->str, before));
    free(before);
    freeReplyObject(owner);
}

/* A waiter polls often while it is among the last four in the queue. So it soon
 * acquires even if another waiter was notified instead or the message was
 * lost. */
static void last_looks_often(struct world *w, const struct crowd *c)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, c->fair);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, c->fair);
    struct taker *t;

    redis_listens(w, EAR);
    OK(hf_lock_acquire(a, NULL, NULL));
    c->wait(w, 1, 100);
    t = taker_start(w, b, 30000);
    COMES(looks_within(w, c->hash) > 0);
    assert_int_equal(looks_within(w, c->hash), 3000);
    c->wait(w, 101, 103);
    looks_now(w, c, 100);
    assert_int_equal(looks_within(w, c->hash), 3000);
    c->wait(w, 104, 104);
    looks_now(w, c, 100);
    assert_true(looks_within(w, c->hash) > 3000);
    redis_do(w, "LTRIM %s 100 100", c->list);
    OK(hf_lock_release(a, NULL));
    taker_gets_it(t, 3000);
    redis_do(w, "DEL %s " DEADLINES, c->hash);
}

CASE_IS(test_last_looks_often, last_looks_often(w, &unfair_crowd))
CASE_IS(test_last_fair_one_looks_often, last_looks_often(w, &fair_crowd))

/* A holder dies. Each waiter that has polled knows when the holder's lease
 * ends, and polls then. */
CASE(test_expiry_is_not_missed)
{
    hf_lock *a = world_near(w);
    struct taker *t;

    redis_do(w, "HSET n " GHOST ":1 1");
    redis_do(w, "PEXPIRE n 5000");
    ghosts_wait(w, 1, 100);
    t = taker_start(w, a, 30000);
    taker_has_it(t, 7000);
    redis_do(w, "DEL " WAITERS " " CROWD);
    taker_end(t);
}

static void wakes_the_other_kind(struct world *w, enum hf_fairness holder,
                                 enum hf_fairness waiter)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, holder);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, waiter);
    struct taker *t = taker_behind(w, a, b, 30000);

    /* After these two calls the waiter has subscribed, and does not poll for
     * some time. So only the message can make it acquire within 1.4 s. */
    await_look(w, waiter == HF_FAIR ? QUEUE : WAITERS,
               waiter == HF_FAIR ? SEEN : CROWD, 0);
    await_look(w, waiter == HF_FAIR ? QUEUE : WAITERS,
               waiter == HF_FAIR ? SEEN : CROWD, 0);
    OK(hf_lock_release(a, NULL));
    taker_gets_it(t, 1400);
}

CASE_IS(test_fair_holder_wakes_unfair_waiter,
        wakes_the_other_kind(w, HF_FAIR, HF_UNFAIR))
CASE_IS(test_unfair_holder_wakes_fair_waiter,
        wakes_the_other_kind(w, HF_UNFAIR, HF_FAIR))

/* An outage that is shorter than the caller's wait and the op_timeout does not
 * make the acquire fail. */
CASE_IS(test_restart_during_timed_acquire,
        any_restart_while_acquiring(w,
                                    world_lock(w, w->redis->url, 30000, 20000,
                                               HF_FAIR_DEFAULT),
                                    2200, 2000))

/* The acquire begins after the server has been silent for so long that the
 * client has given up the connection. */
CASE(test_acquire_begun_in_a_long_silence)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 2500, HF_FAIR_DEFAULT);
    struct taker *t;
    int64_t began = wait_now();

    world_free_for_all(w, a);
    OK(redis_server_stop(w->redis));
    FAILS(hf_lock_timed(a, 100, &w->err));
    while (wait_ms_since(began) < 5500)
        wait_tick();
    t = taker_start(w, a, 10000);
    assert_true(NEVER_MS(taker_back(t), 700));
    OK(redis_server_continue(w->redis));
    taker_gets_it(t, 3000);
}

/* The client must not send an attempt while the server may still execute one
 * that the client has abandoned: the acquire fails with HF_EBACKEND. */
CASE(test_acquire_behind_an_unsure_abandon)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 400);
    int64_t began;

    OK(hf_lock_acquire(a, NULL, NULL));
    /* Once this try has its reply, no request is in flight when the server
     * falls silent. */
    EXPECT(HF_EBUSY, hf_lock_try(b, &w->err));
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    FAILS(hf_lock_timed(b, 300, &w->err));
    for (began = wait_now(); wait_ms_since(began) < 1200;)
        wait_tick();
    WITHIN(1400, EXPECT(HF_EBACKEND, hf_lock_acquire(b, NULL, &w->err)));
    proxy_set(w->proxy, PROXY_PASS, 0);
    proxy_cut(w->proxy);
    OK(hf_lock_release(a, NULL));
    world_free_for_all(w, b);
}
