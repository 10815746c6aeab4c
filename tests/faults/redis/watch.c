/* Changes that a Redis server tells of, or not. */
#include "redis_faults.h"

#include "../any/watch.h"

#define SETTING "notify-keyspace-events"

#include <stdio.h>
#include <string.h>

static int world_setup_told(void **state)
{
    int rc = world_setup(state);
    struct world *w = *state;

    if (!rc)
        redis_server_do(w->redis, "CONFIG SET " SETTING " KA");
    return rc;
}

static void test_watch_needs_a_setting(void **state)
{
    struct world *w = *state;
    static const char *const wrong[] = {"", "EA", "K", "Kg$lhx", "K$x"};
    struct seen s;
    hf_lock *a = world_near(w);
    redisReply *reply;

    world_near(w);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        redis_server_do(w->redis, "CONFIG SET " SETTING " %s", wrong[i]);
        watch_is_refused(w, w->clients[1], "n", 0, HF_ENOTSUP,
                         "CONFIG SET notify-keyspace-events KA");
        watch_is_refused(w, w->clients[1], "n", HF_WATCH_PREFIX, HF_ENOTSUP,
                         SETTING);
    }
    reply = redis_server_ask(w->redis, "CONFIG GET " SETTING);
    assert_null(strchr(reply->element[1]->str, 'h')); /* nor is it set by us */
    freeReplyObject(reply);
    redis_server_do(w->redis, "CONFIG SET " SETTING " Kg$lhxe");
    watch(w, 1, "n", 0, &s);
    hears(w, &s, a);
    assert_int_equal(hf_watch_free(s.watch), 0);
}

static void test_watch_needs_rights(void **state)
{
    struct world *w = *state;
    struct seen s;
    hf_lock *a = world_near(w);
    char url[128];

    redis_server_do(w->redis,
                    "ACL SETUSER worker reset on >secret ~* &* +@all -config");
    snprintf(url, sizeof(url), "redis://worker:secret@127.0.0.1:%d",
             w->redis->port);
    world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    watch_is_refused(w, w->clients[1], "n", 0, HF_EAUTH, "+config|get");
    redis_server_do(w->redis, "ACL SETUSER worker resetchannels +config|get "
                              "&__keyspace@0__:n &__keyspace@0__:*{n}");
    watch(w, 1, "n", 0, &s);
    hears(w, &s, a);
    watch_is_refused(w, w->clients[1], "m", 0, HF_EAUTH, "channel");
    watch_is_refused(w, w->clients[1], "n", HF_WATCH_PREFIX, HF_EAUTH,
                     "channel");
    hears(w, &s, a); /* as before */
    assert_int_equal(hf_watch_free(s.watch), 0);
}

/* It is the keys that count: Redisson's locks, and those of redis-py. */
static void test_watch_hears_others(void **state)
{
    struct world *w = *state;
    struct seen s;

    world_near(w);
    watch(w, 0, "n", 0, &s);
    redis_server_do(w->redis,
                    "HSET n 8743c9c0-0795-4907-87fd-6c719a6b4586:1 1");
    assert_true(WAIT_FOR(is_seen(&s, 0)));
    redis_server_do(w->redis, "DEL n");
    assert_true(WAIT_FOR(is_seen(&s, 1)));
    redis_server_do(w->redis, "SET n x PX 100");
    assert_true(WAIT_FOR(is_seen(&s, 2)));
    assert_true(
        WAIT_FOR(redis_server_do(w->redis, "EXISTS n") == 0 && is_seen(&s, 3)));
    redis_server_do(w->redis, "RPUSH redisson_lock_queue:{n} x");
    assert_true(WAIT_FOR(is_seen(&s, 4)));
    redis_server_do(w->redis, "DEL redisson_lock_queue:{n}");
    assert_true(WAIT_FOR(is_seen(&s, 5)));
    assert_int_equal(hf_watch_free(s.watch), 0);
}

/* A prefix is no pattern, and keys that are ours are no names. */
static void test_watch_prefix_means_itself(void **state)
{
    struct world *w = *state;
    struct seen glob, all;

    world_near(w);
    watch(w, 0, "a*[b]?\\", HF_WATCH_PREFIX, &glob);
    watch(w, 0, "", HF_WATCH_PREFIX, &all);
    redis_server_do(w->redis, "SET holdfast:info:{n} 1");
    redis_server_do(w->redis, "SET %s 1", "axb?\\1");
    redis_server_do(w->redis, "SET %s 1", "a*b?\\1");
    redis_server_do(w->redis, "SET %s 1", "a*[b]x\\1");
    redis_server_do(w->redis, "SET %s 1", "a*[b]?x");
    redis_server_do(w->redis, "SET %s 1", "a*[b]?\\2");
    assert_true(WAIT_FOR(is_seen(&glob, 0)));
    assert_int_equal(glob.calls, 1);
    assert_string_equal(glob.name, "a*[b]?\\2");
    redis_server_do(w->redis, "SET last 1");
    assert_true(WAIT_FOR(is_seen(&all, 0) && (strcmp(all.name, "last") == 0 ||
                                              all.name[0] == '\0')));
    assert_int_equal(hf_watch_free(glob.watch), 0);
    assert_int_equal(hf_watch_free(all.watch), 0);
    redis_server_do(w->redis, "FLUSHALL");
}

/* Of the same client's connection: what is heard comes in order. */
static void test_watch_renewals_are_no_change(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->near_url, 600, 5000, HF_FAIR_DEFAULT);
    struct seen n, m;
    unsigned calls;

    world_near(w);
    watch(w, 1, "n", 0, &n);
    watch(w, 1, "m", 0, &m);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    redis_server_do(w->redis, "SET m 1");
    assert_true(WAIT_FOR(is_seen(&m, 0) && is_seen(&n, 0)));
    calls = n.calls;
    world_renews(a);
    world_renews(a);
    redis_server_do(w->redis, "DEL m");
    assert_true(WAIT_FOR(is_seen(&m, 1)));
    assert_int_equal(n.calls, calls);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(WAIT_FOR(is_seen(&n, calls)));
    assert_int_equal(hf_watch_free(n.watch), 0);
    assert_int_equal(hf_watch_free(m.watch), 0);
}

/* Another database has the same keys. */
static void test_watch_is_of_one_database(void **state)
{
    struct world *w = *state;
    struct seen s;
    char url[96];
    hf_lock *other;

    snprintf(url, sizeof(url), "%s/3", w->redis->url);
    other = world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    watch(w, 1, "n", 0, &s);
    redis_server_do(w->redis, "SET n 1");
    redis_server_do(w->redis, "DEL n");
    assert_int_equal(s.calls, 0);
    hears(w, &s, other);
    assert_int_equal(hf_watch_free(s.watch), 0);
}

/* It is gone with the last watch. */
static void test_watch_has_one_connection(void **state)
{
    struct world *w = *state;
    long long before;
    struct seen n, m;

    world_near(w);
    before = redis_connections(w);
    watch(w, 0, "n", 0, &n);
    watch(w, 0, "m", 0, &m);
    assert_true(WAIT_FOR(redis_connections(w) == before + 1));
    assert_int_equal(hf_watch_free(n.watch), 0);
    assert_true(WAIT_FOR(is_seen(&m, 0)));
    assert_int_equal(hf_watch_free(m.watch), 0);
    assert_true(WAIT_FOR(redis_connections(w) == before));
}

/* The server begins anew, and has forgotten the setting. */
static void test_watch_over_a_restart(void **state)
{
    struct world *w = *state;
    struct seen s;
    hf_lock *a = world_near(w);

    world_near(w);
    watch(w, 1, "n", 0, &s);
    redis_server_kill(w->redis);
    assert_int_equal(redis_server_again(w->redis), 0);
    assert_true(WAIT_FOR(hf_client_dispatch(w->clients[1]) >= 0 &&
                         world_lines(w, 1) >= 2));
    watch_is_refused(w, w->clients[1], "m", 0, HF_ENOTSUP, SETTING);
    assert_int_equal(hf_watch_free(s.watch), 0);
    redis_server_do(w->redis, "CONFIG SET " SETTING " KA");
    watch(w, 1, "n", 0, &s);
    hears(w, &s, a);
    assert_int_equal(hf_watch_free(s.watch), 0);
}

int run_watch_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup_told, world_end)
    const struct CMUnitTest tests[] = {
        T(test_watch_hears_after_a_cut),   T(test_watch_hears_of_an_outage),
        T(test_watch_is_freed_while_cut),  T(test_watch_needs_a_setting),
        T(test_watch_needs_rights),        T(test_watch_hears_others),
        T(test_watch_prefix_means_itself), T(test_watch_renewals_are_no_change),
        T(test_watch_is_of_one_database),  T(test_watch_has_one_connection),
        T(test_watch_over_a_restart),
    };

    return cmocka_run_group_tests_name("redis: watches", tests, NULL, NULL);
}
