/*
 * Two servers, one the replica of the other: the connection for commands ends
 * at one of them, the connection for messages at the other. A replica passes on
 * what is published at its master, so that messages come; but the master counts
 * nobody who listens, and gives the lock to nobody by them.
 */
#include "side.h"

#define FAR_TTL_MS 30000
#define FAR_OP_MS 2000

static const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};

/* A way to hold something, and whether it is a fair mutex. */
struct way {
    const struct side *side;
    bool fair;
    const char *waiters; /* the key of those who wait */
};

static const struct way unfair = {&mutex, false, "holdfast:waiters:{n}"};
static const struct way fair = {&mutex, true, "holdfast:seen:{n}"};
static const struct way read_side = {&reads, false, "holdfast:line:{n}"};
static const struct way write_side = {&writes, false, "holdfast:line:{n}"};
static const struct way permit_side = {&permits, false, "holdfast:line:{n}"};

static hf_lock *party(struct world *w, const char *url, const struct way *way)
{
    if (way->side->kind != HF_MUTEX)
        return lock_of(w, url, FAR_TTL_MS, FAR_OP_MS, way->side->kind);
    return world_lock(w, url, FAR_TTL_MS, FAR_OP_MS,
                      way->fair ? HF_FAIR : HF_UNFAIR);
}

static void follow(struct redis_server *s, struct redis_server *master)
{
    assert_int_equal(redis_server_follow(s, master->port), 0);
}

static long long calls_of(struct redis_server *s, const char *command)
{
    return redis_server_do(
        s, "EVAL %s 0 %s",
        "local all=redis.call('info','commandstats') "
        "local n=string.match(all,'cmdstat_'..ARGV[1]..':calls=(%d+)') "
        "return tonumber(n) or 0",
        command);
}

/* The waiter listens, and so does the holder, whose program hears of events. */
static bool are_heard(struct world *w)
{
    redisReply *reply =
        redis_server_ask(w->redis, "PUBSUB CHANNELS holdfast:wake:*");
    bool are_two = reply->elements == 2;

    freeReplyObject(reply);
    hf_client_dispatch(w->clients[0]);
    return are_two;
}

/* The other server becomes the master, and new connections go there; so many of
 * those that exist are lost, and those that stay are a replica's. */
static void fail_over(struct world *w, struct redis_server *other,
                      unsigned lost)
{
    assert_int_equal(redis_server_do(w->redis, "WAIT 1 20000"), 1);
    redis_server_do(other, "REPLICAOF NO ONE");
    proxy_lead_to(w->proxy, other->port);
    proxy_cut_oldest(w->proxy, lost);
    follow(w->redis, other);
}

/* It is the taker's, in that time, and the server of the commands says so. */
static void really_gets_it(struct world *w, const struct way *way, hf_lock *a,
                           int64_t within_ms)
{
    struct taker *t = &w->taker;

    assert_true(WAIT_FOR_MS(taker_back(t), within_ms));
    if (t->rc)
        fail_msg("%s", t->err.text);
    assert_int_equal(take_other(a, way->side, 0, &w->err), HF_EBUSY);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    all_of_it_is_free(w, way->side, a);
}

static struct taker *waits(struct world *w, const struct way *way, hf_lock *a,
                           hf_lock *b)
{
    struct taker *t;

    assert_int_equal(take_other(a, way->side, 0, &w->err), 0);
    t = taker_start_as(w, b, way->side->mode, way->side->permits, 20000);
    world_has_waiter(w, way->waiters);
    return t;
}

/* Messages have come from the replica from the beginning. */
static void messages_of_a_replica(struct world *w, const struct way *way)
{
    struct redis_server other = {0};
    hf_lock *a, *b;

    assert_int_equal(redis_server_start(&other), 0);
    follow(&other, w->redis);
    a = party(w, w->redis->url, way);
    b = party(w, w->far_url, way);
    proxy_lead_to(w->proxy, other.port);
    waits(w, way, a, b);
    assert_true(WAIT_FOR(calls_of(&other, "subscribe") > 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    really_gets_it(w, way, a, 2000);
    redis_server_end(&other);
}

/* The commands go to the new master, the messages come from the old one. */
static void commands_move(struct world *w, const struct way *way)
{
    struct redis_server other = {0};
    hf_lock *a, *b;

    assert_int_equal(redis_server_start(&other), 0);
    follow(&other, w->redis);
    a = party(w, w->far_url, way);
    b = party(w, w->far_url, way);
    waits(w, way, a, b);
    assert_true(WAIT_FOR(are_heard(w)));
    fail_over(w, &other, 2);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    really_gets_it(w, way, a, 2000);
    redis_server_end(&other);
}

/* Both connections stay, at a server that has become a replica. */
static void master_is_demoted(struct world *w, const struct way *way)
{
    struct redis_server other = {0};
    hf_lock *a, *b;
    int64_t began;

    assert_int_equal(redis_server_start(&other), 0);
    follow(&other, w->redis);
    a = party(w, w->far_url, way);
    b = party(w, w->far_url, way);
    waits(w, way, a, b);
    assert_true(WAIT_FOR(are_heard(w)));
    began = wait_now(); /* a young connection is not left for READONLY */
    assert_true(WAIT_FOR(wait_ms_since(began) > 2100));
    fail_over(w, &other, 1);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    really_gets_it(w, way, a, 2000);
    redis_server_end(&other);
}

/* The old master goes on, for those who do not know; what it gives is worth
 * nothing to one whose commands go to the new one. */
static void old_master_goes_on(struct world *w, const struct way *way)
{
    struct redis_server other = {0};
    hf_lock *a, *b;

    assert_int_equal(redis_server_start(&other), 0);
    follow(&other, w->redis);
    a = party(w, w->redis->url, way);
    b = party(w, w->far_url, way);
    waits(w, way, a, b);
    assert_true(WAIT_FOR(are_heard(w)));
    assert_int_equal(redis_server_do(w->redis, "WAIT 1 20000"), 1);
    redis_server_do(&other, "REPLICAOF NO ONE");
    proxy_lead_to(w->proxy, other.port);
    proxy_cut_oldest(w->proxy, 1);
    assert_true(WAIT_FOR(calls_of(&other, "time") > 0)); /* its first word */
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(NEVER_MS(taker_back(&w->taker), 2500));
    redis_server_do(&other, "DEL n {n}:timeout");
    assert_true(WAIT_FOR_MS(taker_back(&w->taker), 2000));
    assert_int_equal(w->taker.rc, 0);
    taker_end(&w->taker);
    redis_server_end(&other);
}

static bool is_busy(struct redis_server *s)
{
    redisReply *reply = redis_server_ask(s, "GET n");
    bool busy = reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "BUSY");

    freeReplyObject(reply);
    return busy;
}

/* The server of the messages refuses them for now: it runs a script. Later
 * connections end at one that does not. */
static void test_subscription_is_repeated(void **state)
{
    struct world *w = *state;
    struct redis_server other = {0};
    redisContext *script;
    hf_lock *a, *b;

    assert_int_equal(redis_server_start(&other), 0);
    redis_server_do(&other, "CONFIG SET lua-time-limit 1");
    script = redisConnect("127.0.0.1", other.port);
    assert_true(script && !script->err);
    assert_int_equal(
        redisAppendCommand(script, "EVAL %s 0", "while true do end"), REDIS_OK);
    for (int done = 0; !done;)
        assert_int_equal(redisBufferWrite(script, &done), REDIS_OK);
    assert_true(WAIT_FOR(is_busy(&other)));
    a = party(w, w->redis->url, &unfair);
    b = party(w, w->far_url, &unfair);
    proxy_lead_to(w->proxy, other.port);
    waits(w, &unfair, a, b);
    assert_true(WAIT_FOR(world_lines(w, 1) > 0)); /* that it is refused */
    proxy_lead_to(w->proxy, w->redis->port);
    assert_true(WAIT_FOR(are_heard(w)));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    really_gets_it(w, &unfair, a, 2000);
    redisFree(script);
    redis_server_end(&other);
}

#define EACH(name)                                                             \
    static void test_unfair_##name(void **state)                               \
    {                                                                          \
        name(*state, &unfair);                                                 \
    }                                                                          \
    static void test_fair_##name(void **state)                                 \
    {                                                                          \
        name(*state, &fair);                                                   \
    }                                                                          \
    static void test_read_##name(void **state)                                 \
    {                                                                          \
        name(*state, &read_side);                                              \
    }                                                                          \
    static void test_write_##name(void **state)                                \
    {                                                                          \
        name(*state, &write_side);                                             \
    }                                                                          \
    static void test_permits_##name(void **state)                              \
    {                                                                          \
        name(*state, &permit_side);                                            \
    }

EACH(messages_of_a_replica)
EACH(commands_move)
EACH(master_is_demoted)
EACH(old_master_goes_on)

#define FAULT(name)                                                            \
    cmocka_unit_test_setup_teardown(name, world_setup, world_end)
#define FAULTS(name)                                                           \
    FAULT(test_unfair_##name), FAULT(test_fair_##name),                        \
        FAULT(test_read_##name), FAULT(test_write_##name),                     \
        FAULT(test_permits_##name)

int run_same_server_faults(void)
{
    const struct CMUnitTest tests[] = {
        FAULTS(messages_of_a_replica),
        FAULTS(commands_move),
        FAULTS(master_is_demoted),
        FAULTS(old_master_goes_on),
        FAULT(test_subscription_is_repeated),
    };

    return cmocka_run_group_tests_name("redis: two servers", tests, NULL, NULL);
}
