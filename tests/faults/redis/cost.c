/* What it costs the server, by its own count. */
#include "side.h"

#define GHOST "11111111-2222-3333-4444-555555555555"
#define LINE "holdfast:line:{n}"
#define PARTY "holdfast:party:{n}"

static redisContext *ghosts_listen(struct world *w)
{
    redisContext *c = redisConnectUnix(w->redis->socket);

    assert_non_null(c);
    redisSetTimeout(c, (struct timeval){10, 0});
    freeReplyObject(redisCommand(c, "SUBSCRIBE holdfast:wake:{}:" GHOST));
    return c;
}

/* ---- a long line --------------------------------------------------------- */

static const struct side one = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, 1, 1};

static hf_lock *only_permit(struct world *w)
{
    lock_of(w, w->redis->url, 30000, 5000, HF_SEMAPHORE);
    return world_change(w, w->len - 1, HF_SEMAPHORE, 1);
}

/* Unfair ones, who would come if they were told. */
static void crowd_waits(struct world *w, int many)
{
    redis_server_do(w->redis, "EVAL %s 2 " LINE " " PARTY " %d " GHOST,
                    "for i=1,ARGV[1] do "
                    "  redis.call('rpush',KEYS[1],ARGV[2]..':'..i) "
                    "  redis.call('hset',KEYS[2],ARGV[2]..':'..i,"
                    "    '9999999999999 0 1 0 1 30000 1 0 x') "
                    "end",
                    many);
}

/* What is let go is one's: those behind are left alone. */
static void test_release_does_not_walk_the_line(void **state)
{
    struct world *w = *state;
    hf_lock *a = only_permit(w);
    redisContext *ear = ghosts_listen(w);
    long long before;

    assert_int_equal(take(a, &one, 0, NULL), 0);
    crowd_waits(w, 1000);
    before = redis_calls(w, "hmget");
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(redis_calls(w, "hmget"), before + 1);
    assert_int_equal(redis_server_do(w->redis, "LLEN " LINE), 999);
    redisFree(ear);
    redis_server_do(w->redis, "FLUSHDB");
}

/* Neither does who gives up behind a holder. */
static void test_leaving_does_not_walk_the_line(void **state)
{
    struct world *w = *state;
    hf_lock *a = only_permit(w), *b = only_permit(w);
    redisContext *ear = ghosts_listen(w);

    assert_int_equal(take(a, &one, 0, NULL), 0);
    crowd_waits(w, 1000);
    assert_int_equal(take(b, &one, 100, NULL), HF_ETIMEDOUT);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "LLEN " LINE) == 1000));
    assert_int_equal(redis_calls(w, "hmget"), 0);
    redis_server_do(w->redis, "DEL " LINE " " PARTY);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    redisFree(ear);
    world_is_clean(w);
}

/* All permits are there, nobody has come for them yet: as many are told. */
static void test_leaving_tells_as_many_as_may_come(void **state)
{
    struct world *w = *state;
    hf_lock *a = only_permit(w), *b = only_permit(w);
    redisContext *ear = ghosts_listen(w);
    struct taker *t;

    assert_int_equal(take(a, &one, 0, NULL), 0);
    t = taker_start_as(w, b, HF_WRITE, 1, 1000);
    world_has_waiter(w, LINE);
    crowd_waits(w, 1000);
    redis_server_do(w->redis, "DEL n {n}:timeout");
    assert_true(WAIT_FOR(taker_back(t)));
    taker_end(t);
    assert_true(redis_server_do(w->redis, "LLEN " LINE) >= 998);
    redisFree(ear);
    redis_server_do(w->redis, "FLUSHDB");
    (void)hf_lock_release(a, NULL);
}

/* ---- as little as can be ------------------------------------------------- */

/* One script each. */
static void test_acquire_and_release_are_one_call_each(void **state)
{
    enum { ROUNDS = 50 };
    struct world *w = *state;
    hf_lock *a = world_near(w);

    world_free_for_all(w, a);
    redis_server_do(w->redis, "CONFIG RESETSTAT");
    for (int i = 0; i < ROUNDS; i++)
        world_free_for_all(w, a);
    assert_int_equal(redis_calls(w, "evalsha"), 2 * ROUNDS);
    world_is_clean(w);
}

struct sleeper {
    pthread_t thread;
    hf_lock *held, *wanted;
    int rc;
};

static void *sleep_on_it(void *arg)
{
    struct sleeper *s = arg;

    s->rc = hf_lock_acquire(s->wanted, NULL, NULL);
    if (!s->rc)
        s->rc = hf_lock_release(s->wanted, NULL);
    return NULL;
}

static void sleeper_start(struct world *w, struct sleeper *s, int i)
{
    char name[16];
    size_t len = (size_t)snprintf(name, sizeof(name), "n%d", i);

    assert_int_equal(
        hf_lock_new(w->clients[0], name, len, NULL, &s->held, NULL), 0);
    assert_int_equal(
        hf_lock_new(w->clients[1], name, len, NULL, &s->wanted, NULL), 0);
    assert_int_equal(hf_lock_acquire(s->held, NULL, NULL), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_on_it, s), 0);
    assert_true(WAIT_FOR(
        redis_server_do(w->redis, "EXISTS holdfast:waiters:{n%d}", i)));
}

static void sleeper_end(struct sleeper *s)
{
    assert_int_equal(hf_lock_release(s->held, NULL), 0);
    pthread_join(s->thread, NULL);
    assert_int_equal(s->rc, 0);
    hf_lock_free(s->held);
    hf_lock_free(s->wanted);
}

/* A client asks by one connection, and listens by one if somebody waits, or if
 * the program listens and holds something. */
static void test_a_client_is_two_connections(void **state)
{
    enum { MANY = 24 };
    struct world *w = *state;
    struct sleeper all[MANY];
    long long others = redis_connections(w);

    world_near(w);
    world_near(w);
    for (int i = 0; i < MANY; i++)
        sleeper_start(w, &all[i], i);
    assert_true(WAIT_FOR(redis_connections(w) - others == 4));
    for (int i = 0; i < MANY; i++)
        sleeper_end(&all[i]);
    assert_int_equal(redis_connections(w) - others, 4);
    world_is_clean(w);
}

int run_cost_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_release_does_not_walk_the_line),
        T(test_leaving_does_not_walk_the_line),
        T(test_leaving_tells_as_many_as_may_come),
        T(test_acquire_and_release_are_one_call_each),
        T(test_a_client_is_two_connections),
    };

    return cmocka_run_group_tests_name("redis: cost", tests, NULL, NULL);
}
