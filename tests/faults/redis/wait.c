/* Waiters: told and not coming, of two kinds, behind a server that is gone. */
#include "redis_faults.h"

#define GHOST "11111111-2222-3333-4444-555555555555"
#define EAR "holdfast:wake:{}:" GHOST
#define WAITERS "holdfast:waiters:{n}"
#define CROWD "holdfast:crowd:{n}"
#define QUEUE "redisson_lock_queue:{n}"
#define DEADLINES "redisson_lock_timeout:{n}"
#define SEEN "holdfast:seen:{n}"

static long long server_ms(struct world *w)
{
    redisReply *reply = redis_server_ask(w->redis, "TIME");
    long long ms = atoll(reply->element[0]->str) * 1000 +
                   atoll(reply->element[1]->str) / 1000;

    freeReplyObject(reply);
    return ms;
}

static char *field(struct world *w, const char *key, const char *owner)
{
    redisReply *reply = redis_server_ask(w->redis, "HGET %s %s", key, owner);
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

/* Until the one at that place has looked again. */
static void await_look(struct world *w, const char *list, const char *hash,
                       int place)
{
    redisReply *owner = redis_server_ask(w->redis, "LINDEX %s %d", list, place);
    char *before = field(w, hash, owner->str);

    assert_non_null(before);
    assert_true(WAIT_FOR_MS(has_changed(w, hash, owner->str, before), 4000));
    free(before);
    freeReplyObject(owner);
}

/* Waiters of ours that are stopped: their connection is there, they are not. */
static redisContext *ghost_listens(struct world *w)
{
    redisContext *c = redisConnectUnix(w->redis->socket);

    assert_non_null(c);
    redisSetTimeout(c, (struct timeval){10, 0});
    freeReplyObject(redisCommand(c, "SUBSCRIBE " EAR));
    return c;
}

static void ghosts_wait(struct world *w, int first, int last)
{
    for (int i = first; i <= last; i++) {
        redis_server_do(w->redis, "RPUSH " WAITERS " " GHOST ":%d", i);
        redis_server_do(w->redis, "HSET " CROWD " " GHOST ":%d %s", i,
                        "9999999999999 0 30000 0 1");
    }
}

static void ghosts_wait_fair(struct world *w, int first, int last)
{
    long long ms = server_ms(w);

    for (int i = first; i <= last; i++) {
        redis_server_do(w->redis, "RPUSH " QUEUE " " GHOST ":%d", i);
        redis_server_do(w->redis, "ZADD " DEADLINES " %lld " GHOST ":%d",
                        ms + 600000, i);
        redis_server_do(w->redis, "HSET " SEEN " " GHOST ":%d %s", i,
                        "9999999999999 0 1 30000 0 1");
    }
}

static void expect_told(redisContext *ear, const char *text)
{
    redisReply *reply = NULL;

    assert_int_equal(redisGetReply(ear, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->element[2]->str, text);
    freeReplyObject(reply);
}

/* One that may be stopped is told and gets nothing; when it does not come the
 * next one does, however many wait behind. */
static void test_told_one_that_does_not_come(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    redisContext *ear = ghost_listens(w);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    ghosts_wait(w, 1, 1);
    t = taker_start(w, b, 30000);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "LLEN " WAITERS) == 2));
    ghosts_wait(w, 2, 100);
    await_look(w, WAITERS, CROWD, 1);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    expect_told(ear, "u1 0 0 n");
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_int_equal(t->rc, 0);
    redis_server_do(w->redis, "DEL " WAITERS " " CROWD);
    taker_end(t);
    redisFree(ear);
    world_is_clean(w);
}

static void test_told_fair_one_that_does_not_come(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    redisContext *ear = ghost_listens(w);
    struct taker *t;
    struct wait_mark began;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    ghosts_wait_fair(w, 1, 1);
    t = taker_start(w, b, 30000);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "LLEN " QUEUE) == 2));
    ghosts_wait_fair(w, 2, 100);
    await_look(w, QUEUE, SEEN, 1);
    began = wait_mark();
    assert_int_equal(hf_lock_release(a, NULL), 0);
    expect_told(ear, "f1 0 0 n");
    assert_true(WAIT_FOR(taker_back(t)));
    assert_true(wait_took(began, 2900, 4400));
    assert_int_equal(t->rc, 0);
    redis_server_do(w->redis, "DEL " QUEUE " " DEADLINES " " SEEN);
    taker_end(t);
    redisFree(ear);
    world_is_clean(w);
}

/* One who waits, has looked a second ago, and looks again so long after that.
 */
static void ghost_looks(struct world *w, enum hf_fairness fair, int again_ms)
{
    long long seen = server_ms(w) - 1000;
    char alive[64];

    ghosts_wait(w, 1, fair == HF_FAIR ? 0 : 1);
    ghosts_wait_fair(w, 1, fair == HF_FAIR ? 1 : 0);
    snprintf(alive, sizeof(alive), "%lld %lld %s30000 0 1", seen + again_ms,
             seen, fair == HF_FAIR ? "1 " : "");
    redis_server_do(w->redis, "HSET %s " GHOST ":1 %s",
                    fair == HF_FAIR ? SEEN : CROWD, alive);
}

/* What it is told; 0: to ask. */
static long long token_told(redisContext *ear)
{
    redisReply *reply = NULL;
    long long token;

    assert_int_equal(redisGetReply(ear, (void **)&reply), REDIS_OK);
    token = atoll(reply->element[2]->str + strlen("u1 "));
    freeReplyObject(reply);
    return token;
}

/* One that has just come gets it in the same script. Its lease counts from
 * then. */
static void handed_over(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, fair);
    redisContext *ear = ghost_listens(w);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    ghost_looks(w, fair, 3000);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(token_told(ear) > 0);
    assert_int_equal(redis_server_do(w->redis, "HEXISTS n " GHOST ":1"), 1);
    assert_true(redis_server_do(w->redis, "PTTL n") <= 29000);
    redis_server_do(w->redis, "DEL n holdfast:info:{n}");
    redisFree(ear);
    world_is_clean(w);
}

static void test_handed_to_one_that_has_just_come(void **state)
{
    handed_over(*state, HF_UNFAIR);
}

static void test_handed_to_a_fair_one_that_has_just_come(void **state)
{
    handed_over(*state, HF_FAIR);
}

/* One that will not look soon would not know what it has, if the message was
 * lost. */
static void not_handed_over(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, fair);
    redisContext *ear = ghost_listens(w);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    ghost_looks(w, fair, 20000);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(token_told(ear), 0);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 0);
    redis_server_do(w->redis, "DEL " QUEUE " " DEADLINES " " SEEN);
    redisFree(ear);
    world_is_clean(w);
}

static void test_not_handed_to_one_that_looks_rarely(void **state)
{
    not_handed_over(*state, HF_UNFAIR);
}

static void test_not_handed_to_a_fair_one_that_looks_rarely(void **state)
{
    not_handed_over(*state, HF_FAIR);
}

/* ---- the last in line ---------------------------------------------------- */

/* How soon ours, the only one that is no ghost, will have looked again. */
static long long looks_within(struct world *w, const char *hash)
{
    return redis_server_do(w->redis, "EVAL %s 1 %s " GHOST,
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

/* The one at that place, because it is told to. */
static void looks_now(struct world *w, const struct crowd *c, int place)
{
    redisReply *owner =
        redis_server_ask(w->redis, "LINDEX %s %d", c->list, place);
    char *before = field(w, c->hash, owner->str);

    assert_non_null(before);
    redis_tell(w, c->list, place, c->letter);
    assert_true(WAIT_FOR(has_changed(w, c->hash, owner->str, before)));
    free(before);
    freeReplyObject(owner);
}

/* Whoever is told, and the message is lost: the last is there still, and takes
 * it. It looks often as long as it is among the last. */
static void last_looks_often(struct world *w, const struct crowd *c)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, c->fair);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, c->fair);
    redisContext *ear = ghost_listens(w);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    c->wait(w, 1, 100);
    t = taker_start(w, b, 30000);
    assert_true(WAIT_FOR(looks_within(w, c->hash) > 0));
    assert_int_equal(looks_within(w, c->hash), 3000);
    c->wait(w, 101, 103);
    looks_now(w, c, 100);
    assert_int_equal(looks_within(w, c->hash), 3000);
    c->wait(w, 104, 104);
    looks_now(w, c, 100);
    assert_true(looks_within(w, c->hash) > 3000);
    redis_server_do(w->redis, "LTRIM %s 100 100", c->list);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    taker_gets_it(t, 3000);
    redisFree(ear);
    redis_server_do(w->redis, "DEL %s " DEADLINES, c->hash);
    world_is_clean(w);
}

static void test_last_looks_often(void **state)
{
    last_looks_often(*state, &unfair_crowd);
}

static void test_last_fair_one_looks_often(void **state)
{
    last_looks_often(*state, &fair_crowd);
}

/* The lease of a holder that died ends: everybody who looked knows when. */
static void test_expiry_is_not_missed(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    struct taker *t;

    redis_server_do(w->redis, "HSET n " GHOST ":1 1");
    redis_server_do(w->redis, "PEXPIRE n 5000");
    ghosts_wait(w, 1, 100);
    t = taker_start(w, a, 30000);
    assert_true(WAIT_FOR_MS(taker_back(t), 7000));
    assert_int_equal(t->rc, 0);
    redis_server_do(w->redis, "DEL " WAITERS " " CROWD);
    taker_end(t);
    world_is_clean(w);
}

/* ---- fair beside unfair ---------------------------------------------------
 */

static void wakes_the_other_kind(struct world *w, enum hf_fairness holder,
                                 enum hf_fairness waiter)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, holder);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, waiter);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 30000);
    world_has_waiter(w, waiter == HF_FAIR ? SEEN : WAITERS);
    /* It looks when it is subscribed; then not for some time. */
    await_look(w, waiter == HF_FAIR ? QUEUE : WAITERS,
               waiter == HF_FAIR ? SEEN : CROWD, 0);
    await_look(w, waiter == HF_FAIR ? QUEUE : WAITERS,
               waiter == HF_FAIR ? SEEN : CROWD, 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 1400));
    assert_int_equal(t->rc, 0);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

static void test_fair_holder_wakes_unfair_waiter(void **state)
{
    wakes_the_other_kind(*state, HF_FAIR, HF_UNFAIR);
}

static void test_unfair_holder_wakes_fair_waiter(void **state)
{
    wakes_the_other_kind(*state, HF_UNFAIR, HF_FAIR);
}

/* ---- the server is gone for a while ---------------------------------------
 */

/* Shorter than the wait and than op_timeout: nobody notices. */
static void test_restart_during_timed_acquire(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 20000, HF_FAIR_DEFAULT);
    struct taker *t;

    world_free_for_all(w, a);
    redis_server_kill(w->redis);
    t = taker_start(w, a, 30000);
    assert_true(NEVER_MS(taker_back(t), 2200));
    assert_int_equal(redis_server_again(w->redis), 0);
    taker_gets_it(t, 2000);
    world_is_clean(w);
}

/* After a silence for which the connection was given up. */
static void test_acquire_begun_in_a_long_silence(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 2500, HF_FAIR_DEFAULT);
    struct taker *t;
    int64_t began = wait_now();

    world_free_for_all(w, a);
    assert_int_equal(redis_server_stop(w->redis), 0);
    assert_int_not_equal(hf_lock_timed(a, 100, &w->err), 0);
    while (wait_ms_since(began) < 5500)
        wait_tick();
    t = taker_start(w, a, 10000);
    assert_true(NEVER_MS(taker_back(t), 700));
    assert_int_equal(redis_server_continue(w->redis), 0);
    taker_gets_it(t, 3000);
    world_is_clean(w);
}

/* Not asked because what was given up before is not settled: it says so. */
static void test_acquire_behind_an_unsure_abandon(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 400);
    int64_t began;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    /* Nothing is under way when the server falls silent. */
    assert_int_equal(hf_lock_try(b, &w->err), HF_EBUSY);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    assert_int_not_equal(hf_lock_timed(b, 300, &w->err), 0);
    for (began = wait_now(); wait_ms_since(began) < 1200;)
        wait_tick();
    began = wait_fair();
    assert_int_equal(hf_lock_acquire(b, NULL, &w->err), HF_EBACKEND);
    assert_true(wait_within(began, 1400));
    proxy_set(w->proxy, PROXY_PASS, 0);
    proxy_cut(w->proxy);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_free_for_all(w, b);
    world_is_clean(w);
}

int run_wait_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_told_one_that_does_not_come),
        T(test_told_fair_one_that_does_not_come),
        T(test_handed_to_one_that_has_just_come),
        T(test_handed_to_a_fair_one_that_has_just_come),
        T(test_not_handed_to_one_that_looks_rarely),
        T(test_not_handed_to_a_fair_one_that_looks_rarely),
        T(test_last_looks_often),
        T(test_last_fair_one_looks_often),
        T(test_expiry_is_not_missed),
        T(test_fair_holder_wakes_unfair_waiter),
        T(test_unfair_holder_wakes_fair_waiter),
        T(test_restart_during_timed_acquire),
        T(test_acquire_begun_in_a_long_silence),
        T(test_acquire_behind_an_unsure_abandon),
    };

    return cmocka_run_group_tests_name("redis: waiters", tests, NULL, NULL);
}
