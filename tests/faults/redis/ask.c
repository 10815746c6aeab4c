/* Holders that are asked, and those whose hold is broken: what they hear while
 * nothing is renewed, and what others are spared. */
#include "side.h"

#define REDISSON "11111111-2222-3333-4444-555555555555:7"
#define LONG_MS 3600000 /* nothing is renewed */

static const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};

static int ask(struct world *w, size_t i)
{
    return hf_ask(w->clients[i], "n", 1, &w->err);
}

/* Programs that dispatch: nothing comes of itself. */
static void dispatch(struct world *w)
{
    for (size_t i = 0; i < w->len; i++)
        hf_client_dispatch(w->clients[i]);
}

/* How many clients listen. */
static long long ears(struct world *w)
{
    dispatch(w);
    return redis_server_do(
        w->redis, "EVAL %s 0",
        "return #redis.call('pubsub','channels','holdfast:wake:*')");
}

static hf_lock *holder(struct world *w, const struct side *s)
{
    hf_lock *a = lock_of(w, w->redis->url, LONG_MS, 5000, s->kind);

    if (take(a, s, 0, &w->err))
        fail_msg("%s", w->err.text);
    return a;
}

/* How often a client with two connections has proved that they are of one
 * server. */
static long long proofs(struct world *w)
{
    dispatch(w);
    return redis_calls(w, "pubsub|numsub");
}

/* ---- asked --------------------------------------------------------------- */

/* What is asked while a holder has no connection it hears when it has one. */
static void test_asked_while_cut_off(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, LONG_MS, 5000);

    world_near(w);
    assert_int_equal(hf_lock_acquire(a, NULL, &w->err), 0);
    assert_true(WAIT_FOR(ears(w) == 1));
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    assert_true(WAIT_FOR(ears(w) == 0));
    assert_int_equal(ask(w, 1), 0);
    assert_false(world_heard_wish(w, 0));
    world_heal(w);
    assert_true(WAIT_FOR(world_heard_wish(w, 0)));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* Those that were lost are subscribed to again. */
static void test_asked_after_a_cut(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, LONG_MS, 5000);

    world_near(w);
    assert_int_equal(hf_lock_acquire(a, NULL, &w->err), 0);
    assert_true(WAIT_FOR(proofs(w) == 1));
    proxy_cut(w->proxy);
    assert_true(WAIT_FOR(proofs(w) > 1));
    assert_int_equal(ask(w, 1), 0);
    assert_true(WAIT_FOR(world_heard_wish(w, 0)));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* A wish for one hold is not heard by the next of the same lock. */
static void test_wish_for_an_earlier_hold(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, LONG_MS, 5000);

    world_near(w);
    assert_int_equal(hf_lock_acquire(a, NULL, &w->err), 0);
    assert_true(WAIT_FOR(ears(w) == 1));
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    assert_true(WAIT_FOR(ears(w) == 0));
    assert_int_equal(ask(w, 1), 0);
    assert_int_equal(hf_break(w->clients[1], "n", 1, &w->err), 0);
    world_heal(w);
    assert_int_not_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(hf_lock_acquire(a, NULL, &w->err), 0);
    assert_true(WAIT_FOR(ears(w) == 1));
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    assert_false(world_heard_wish(w, 0));
    assert_int_equal(ask(w, 1), 0);
    assert_true(WAIT_FOR(world_heard_wish(w, 0)));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* Whatever is said there, by whomever. */
static void test_nonsense_is_not_heard(void **state)
{
    static const char *const texts[] = {"w",
                                        "w0",
                                        "w-1",
                                        "wx",
                                        "w99999999999999999999999",
                                        "b",
                                        "b0",
                                        "bx",
                                        "b-1",
                                        "",
                                        " ",
                                        "w1 ",
                                        "b18446744073709551615",
                                        "u1 1 1 n"};
    struct world *w = *state;
    hf_lock *a = holder(w, &mutex);

    assert_true(WAIT_FOR(ears(w) == 1));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        redis_server_do(
            w->redis, "EVAL %s 0 %s",
            "for _,c in ipairs(redis.call('pubsub','channels',"
            "'holdfast:wake:*')) do redis.call('publish',c,ARGV[1]) end",
            texts[i]);
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    assert_int_equal(hf_lock_check(a), 0);
    assert_int_equal(ask(w, 0), 0);
    assert_true(WAIT_FOR(world_heard_wish(w, 0)));
    assert_false(world_heard_loss(w, 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* ---- holders of others --------------------------------------------------- */

static void stranger_is_spared(struct world *w, const char *dump)
{
    redisReply *before = redis_server_ask(w->redis, "DUMP %s", dump), *after;

    assert_int_equal(before->type, REDIS_REPLY_STRING);
    assert_int_equal(ask(w, 0), HF_ENOTSUP);
    assert_non_null(strstr(w->err.text, "held by another program"));
    after = redis_server_ask(w->redis, "DUMP %s", dump);
    assert_int_equal(after->len, before->len);
    assert_memory_equal(after->str, before->str, before->len);
    freeReplyObject(before);
    freeReplyObject(after);
    redis_server_do(w->redis, "DEL n {n}:timeout");
    world_is_clean(w);
}

static void test_redissons_mutex_is_spared(void **state)
{
    struct world *w = *state;

    world_free_for_all(w, world_near(w));
    redis_server_do(w->redis, "HSET n " REDISSON " 1");
    stranger_is_spared(w, "n");
}

static void test_redissons_permit_is_spared(void **state)
{
    struct world *w = *state;

    near_of(w, &permits);
    redis_server_do(w->redis, "SET n 1");
    redis_server_do(w->redis,
                    "ZADD {n}:timeout 9000000000000 0123456789abcdef");
    stranger_is_spared(w, "{n}:timeout");
}

static void test_stranger_with_a_string_is_spared(void **state)
{
    struct world *w = *state;
    char url[128];

    snprintf(url, sizeof(url), "%s?dialect=string", w->redis->url);
    world_lock(w, url, LONG_MS, 5000, HF_FAIR_DEFAULT);
    redis_server_do(w->redis, "SET n random");
    stranger_is_spared(w, "n");
}

/* Who reads beside one of Redisson's hears it. */
static void test_ours_beside_redissons_is_asked(void **state)
{
    struct world *w = *state;
    hf_lock *a = holder(w, &reads);

    redis_server_do(w->redis, "HSET n " REDISSON " 1");
    assert_int_equal(ask(w, 0), 0);
    assert_true(WAIT_FOR(world_heard_wish(w, 0)));
    redis_server_do(w->redis, "HDEL n " REDISSON);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

static void no_event(void *arg, const hf_event *e)
{
    (void)arg, (void)e;
}

/* The helper thread makes the connection: the program holds, and does nothing.
 */
static void test_the_ear_needs_no_dispatch(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    hf_lock *lock = NULL;

    opt.on_event = no_event;
    opt.connect_timeout_ms = 600000;
    opt.op_timeout_ms = 60000;
    opt.ttl_ms = LONG_MS;
    assert_int_equal(hf_open(w->redis->url, &opt, &c, &w->err), 0);
    assert_int_equal(hf_lock_new(c, "n", 1, NULL, &lock, &w->err), 0);
    assert_int_equal(hf_lock_acquire(lock, NULL, &w->err), 0);
    assert_true(WAIT_FOR(redis_calls(w, "pubsub|numsub") > 0));
    assert_int_equal(hf_lock_release(lock, &w->err), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
    world_is_clean(w);
}

/* ---- broken -------------------------------------------------------------- */

/* The answer to the proof comes before that of the renewal. */
static void until_told(struct world *w, hf_lock *a)
{
    assert_true(WAIT_FOR(proofs(w) > 0));
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
}

static void broken_is_heard(struct world *w, const struct side *s)
{
    hf_lock *a = holder(w, s);

    until_told(w, a);
    world_near(w);
    assert_int_equal(hf_break(w->clients[1], "n", 1, &w->err), 0);
    assert_true(WAIT_FOR(world_heard_loss(w, 0)));
    if (s->kind == HF_SEMAPHORE) /* another hold of it is possible */
        assert_int_equal(hf_lock_release(a, &w->err), HF_ELOST);
    else
        world_loses(w, 0, "broken by another client");
    assert_int_equal(take(a, s, 0, &w->err), 0);
    assert_int_equal(hf_lock_check(a), 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

static void test_broken_mutex_is_heard(void **state)
{
    broken_is_heard(*state, &mutex);
}

static void test_broken_write_is_heard(void **state)
{
    broken_is_heard(*state, &writes);
}

static void test_broken_read_is_heard(void **state)
{
    broken_is_heard(*state, &reads);
}

static void test_broken_permits_are_heard(void **state)
{
    broken_is_heard(*state, &permits);
}

static void test_broken_string_is_heard(void **state)
{
    struct world *w = *state;
    char url[128];
    hf_lock *a;

    snprintf(url, sizeof(url), "%s?dialect=string", w->redis->url);
    a = world_lock(w, url, LONG_MS, 5000, HF_FAIR_DEFAULT);
    assert_int_equal(hf_lock_acquire(a, NULL, &w->err), 0);
    until_told(w, a);
    assert_int_equal(hf_break(w->clients[0], "n", 1, &w->err), 0);
    assert_true(WAIT_FOR(world_heard_loss(w, 0)));
    world_loses(w, 0, "broken by another client");
    world_is_clean(w);
}

/* The downgrade has moved the hold to another line. */
static void test_broken_after_a_downgrade_is_heard(void **state)
{
    struct world *w = *state;
    hf_lock *a = holder(w, &writes);

    until_told(w, a);
    assert_int_equal(hf_lock_downgrade(a, &w->err), 0);
    assert_int_equal(hf_break(w->clients[0], "n", 1, &w->err), 0);
    assert_true(WAIT_FOR(world_heard_loss(w, 0)));
    world_loses(w, 0, "broken by another client");
    world_is_clean(w);
}

static void say_broken(struct world *w, uint64_t token)
{
    redis_server_do(w->redis, "EVAL %s 0 %llu",
                    "local w=redis.call('hkeys','n')[1] "
                    "redis.call('publish','holdfast:wake:{}:'.."
                    "string.sub(w,1,36),'b'..string.sub(w,38)..' '..ARGV[1])",
                    (unsigned long long)token);
}

/* The same request may have been granted anew since: the token tells. */
static void test_broken_of_an_earlier_grant(void **state)
{
    struct world *w = *state;
    hf_lock *a = holder(w, &mutex);
    uint64_t token = 0;

    until_told(w, a);
    assert_int_equal(hf_lock_token(a, &token), 0);
    say_broken(w, token - 1);
    assert_int_equal(ask(w, 0), 0);
    assert_true(WAIT_FOR(world_heard_wish(w, 0))); /* behind the other */
    assert_false(world_heard_loss(w, 0));
    assert_int_equal(hf_lock_check(a), 0);
    say_broken(w, token);
    assert_true(WAIT_FOR(world_heard_loss(w, 0)));
    redis_server_do(w->redis, "FLUSHALL");
}

/* However often it is asked before it listens: it hears of the loss. */
static void test_wishes_leave_room_for_the_loss(void **state)
{
    struct world *w = *state;
    hf_lock *a = holder(w, &mutex);

    until_told(w, a);
    redis_server_do(w->redis, "EVAL %s 0",
                    "local w=redis.call('hkeys','n')[1] for i=1,3000 do "
                    "redis.call('publish','holdfast:wake:{}:'.."
                    "string.sub(w,1,36),'w'..string.sub(w,38)) end");
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    assert_int_equal(hf_break(w->clients[0], "n", 1, &w->err), 0);
    assert_true(WAIT_FOR(hf_lock_check(a) == HF_ELOST));
    assert_true(WAIT_FOR(world_heard_loss(w, 0)));
    world_loses(w, 0, "broken by another client");
    world_is_clean(w);
}

/* Of two who read one is broken, and the other hears nothing. */
static void test_only_the_broken_one_hears(void **state)
{
    struct world *w = *state;
    hf_lock *a = holder(w, &reads), *b = holder(w, &reads);
    hf_info *info = NULL;
    char owner[64];

    assert_true(WAIT_FOR(proofs(w) > 1));
    assert_int_equal(hf_lock_renew(a, 0, &w->err), 0);
    assert_int_equal(hf_lock_renew(b, 0, &w->err), 0);
    assert_int_equal(hf_inspect(w->clients[0], "n", 1, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 2);
    snprintf(owner, sizeof(owner), "%s", info->holders[0].owner);
    hf_info_free(info);
    assert_int_equal(hf_break_hold(w->clients[0], "n", 1, 0, owner, &w->err),
                     0);
    assert_true(WAIT_FOR(world_heard_loss(w, 0) || world_heard_loss(w, 1)));
    assert_true(!world_heard_loss(w, 0) || !world_heard_loss(w, 1));
    assert_int_equal(hf_lock_renew(world_heard_loss(w, 0) ? b : a, 0, &w->err),
                     0);
    hf_lock_release(a, NULL);
    hf_lock_release(b, NULL);
    world_is_clean(w);
}

int run_ask_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_asked_while_cut_off),
        T(test_asked_after_a_cut),
        T(test_wish_for_an_earlier_hold),
        T(test_nonsense_is_not_heard),
        T(test_redissons_mutex_is_spared),
        T(test_redissons_permit_is_spared),
        T(test_stranger_with_a_string_is_spared),
        T(test_ours_beside_redissons_is_asked),
        T(test_broken_mutex_is_heard),
        T(test_broken_write_is_heard),
        T(test_broken_read_is_heard),
        T(test_broken_permits_are_heard),
        T(test_broken_string_is_heard),
        T(test_broken_after_a_downgrade_is_heard),
        T(test_broken_of_an_earlier_grant),
        T(test_the_ear_needs_no_dispatch),
        T(test_wishes_leave_room_for_the_loss),
        T(test_only_the_broken_one_hears),
    };

    return cmocka_run_group_tests_name("redis: ask", tests, NULL, NULL);
}
