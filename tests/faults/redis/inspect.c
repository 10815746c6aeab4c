/* Inspecting from outside: at what others have left, and without changing it.
 */
#include "side.h"

#define GHOST "11111111-2222-3333-4444-555555555555"
#define NOTE "u\nr\n5\n1700000000000\n0 77\nhost\nlabel"

/* A replica of the case's server, which refuses to write, and a client there.
 */
struct replica {
    struct redis_server server;
    hf_client *client;
};

static bool is_linked(struct redis_server *s)
{
    redisReply *reply = redis_server_ask(s, "INFO replication");
    bool up = strstr(reply->str, "master_link_status:up");

    freeReplyObject(reply);
    return up;
}

static void replica_begin(struct world *w, struct replica *r)
{
    assert_int_equal(redis_server_start(&r->server), 0);
    redis_server_do(w->redis, "CONFIG SET repl-diskless-sync-delay 0");
    redis_server_do(&r->server, "REPLICAOF 127.0.0.1 %d", w->redis->port);
    assert_true(WAIT_FOR(is_linked(&r->server)));
    assert_int_equal(redis_server_do(w->redis, "WAIT 1 20000"), 1);
    if (hf_open(r->server.url, NULL, &r->client, &w->err))
        fail_msg("%s", w->err.text);
}

static void replica_end(struct replica *r)
{
    hf_close(r->client);
    redis_server_end(&r->server);
}

static hf_info *inspect(struct world *w, hf_client *c)
{
    hf_info *info = NULL;

    if (hf_inspect(c, "n", 1, &info, &w->err))
        fail_msg("%s", w->err.text);
    return info;
}

/* A reader that died and whose field is there still; and one that lives. */
static void test_look_at_readers_writes_nothing(void **state)
{
    struct world *w = *state;
    struct replica r = {0};
    hf_info *info;

    redis_server_do(w->redis, "HSET n mode read " GHOST ":1 1 " GHOST ":2 1");
    redis_server_do(w->redis, "PEXPIRE n 60000");
    for (int i = 1; i <= 2; i++)
        redis_server_do(w->redis, "HSET holdfast:holds:{n} " GHOST ":%d %s", i,
                        NOTE);
    redis_server_do(w->redis,
                    "SET {n}:" GHOST ":2:rwlock_timeout:1 1 PX 50000");
    replica_begin(w, &r);
    info = inspect(w, r.client);
    assert_int_equal(info->kind, HF_RWLOCK);
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].owner, GHOST ":2");
    assert_int_equal(info->holders[0].pid, 77);
    hf_info_free(info);
    replica_end(&r);
    assert_int_equal(redis_server_do(w->redis, "HLEN n"), 3);
    redis_server_do(w->redis, "FLUSHDB");
}

/* A permit whose holder is dead counts as if it had been taken back. */
static void test_look_at_permits_writes_nothing(void **state)
{
    struct world *w = *state;
    struct replica r = {0};
    hf_info *info;

    redis_server_do(w->redis, "SET n 1");
    redis_server_do(w->redis, "SET holdfast:kind:{n} %s", "s 3");
    redis_server_do(w->redis, "ZADD {n}:timeout 1000 " GHOST ":1:1 "
                              "9999999999999 " GHOST ":2:1");
    replica_begin(w, &r);
    info = inspect(w, r.client);
    assert_int_equal(info->kind, HF_SEMAPHORE);
    assert_int_equal(info->permits, 3);
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].owner, GHOST ":2");
    hf_info_free(info);
    redis_server_do(w->redis, "ZADD {n}:timeout 1000 " GHOST ":2:1");
    assert_int_equal(redis_server_do(w->redis, "WAIT 1 20000"), 1);
    info = inspect(w, r.client);
    assert_int_equal(info->kind, 0); /* nobody has one, nobody uses it */
    assert_int_equal(info->holders_len, 0);
    hf_info_free(info);
    replica_end(&r);
    assert_int_equal(redis_server_do(w->redis, "ZCARD {n}:timeout"), 2);
    redis_server_do(w->redis, "FLUSHDB");
}

static void test_look_at_a_latch_and_a_mutex_writes_nothing(void **state)
{
    struct world *w = *state;
    struct replica r = {0};
    hf_info *info;

    redis_server_do(w->redis, "SET n 5 PX 6311520000000");
    replica_begin(w, &r);
    info = inspect(w, r.client);
    assert_int_equal(info->kind, HF_LATCH);
    assert_int_equal(info->count, 5);
    hf_info_free(info);
    redis_server_do(w->redis, "DEL n");
    redis_server_do(w->redis, "HSET n " GHOST ":1 1");
    assert_int_equal(redis_server_do(w->redis, "WAIT 1 20000"), 1);
    info = inspect(w, r.client);
    assert_int_equal(info->kind, HF_MUTEX);
    assert_int_equal(info->holders_len, 1);
    hf_info_free(info);
    replica_end(&r);
    redis_server_do(w->redis, "FLUSHDB");
}

/* A program that is none of ours calls itself what it likes. */
static void test_owners_of_others_are_printable(void **state)
{
    static const char owner[] = "\x1b[31m\xff\xc3\xa9\0\n7";
    struct world *w = *state;
    hf_lock *a = world_near(w);
    char url[96];
    hf_client *c = NULL;
    hf_info *info;

    redis_server_do(w->redis, "HSET n %b 1", owner, sizeof(owner) - 1);
    info = inspect(w, w->clients[0]);
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].owner,
                        "\\x1b[31m\\xff\xc3\xa9\\x00\\x0a7");
    hf_info_free(info);
    snprintf(url, sizeof(url), "%s?dialect=string", w->redis->url);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), 0);
    redis_server_do(w->redis, "SET n %b", owner, sizeof(owner) - 1);
    info = inspect(w, c);
    assert_string_equal(info->holders[0].owner,
                        "\\x1b[31m\\xff\xc3\xa9\\x00\\x0a7");
    hf_info_free(info);
    hf_close(c);
    redis_server_do(w->redis, "DEL n");
    world_free_for_all(w, a);
    world_is_clean(w);
}

/* The other dialect's key at the name: the text says how to use it. */
static void test_other_dialect_is_named(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b;
    char url[96];

    redis_server_do(w->redis, "SET n 0123456789abcdef PX 60000");
    assert_int_equal(hf_lock_try(a, &w->err), HF_EMISMATCH);
    assert_non_null(strstr(w->err.text, "dialect=string"));
    assert_non_null(strstr(w->err.text, "redis-py"));
    snprintf(url, sizeof(url), "%s?dialect=string", w->redis->url);
    b = world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    assert_int_equal(hf_lock_try(b, &w->err), HF_EBUSY);
    redis_server_do(w->redis, "DEL n");
    assert_int_equal(hf_lock_try(a, &w->err), 0);
    assert_int_equal(hf_lock_try(b, &w->err), HF_EMISMATCH);
    assert_non_null(strstr(w->err.text, "dialect=redisson"));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

/* A key that is no lock of any dialect, for each kind of lock. */
static void test_key_of_another_program_is_said(void **state)
{
    static const struct {
        const char *command, *text;
    } keys[] = {{"RPUSH n x", "the key is a list"},
                {"SADD n x", "the key is a set"},
                {"ZADD n 1 x", "the key is a zset"},
                {"XADD n * f x", "the key is a stream"}};
    struct world *w = *state;
    char url[96];

    snprintf(url, sizeof(url), "%s?dialect=string", w->redis->url);
    world_near(w);
    world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    world_near(w);
    world_change(w, 2, HF_RWLOCK, 0);
    world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        redis_server_do(w->redis, keys[i].command);
        for (size_t j = 0; j < w->len; j++) {
            assert_int_equal(hf_lock_try(w->locks[j], &w->err), HF_EMISMATCH);
            assert_non_null(strstr(w->err.text, keys[i].text));
            assert_non_null(strstr(w->err.text, "something other than a lock"));
            assert_null(strstr(w->err.text, "dialect="));
        }
        redis_server_do(w->redis, "DEL n");
    }
}

/* A semaphore uses strings: a hash is no lock of dialect=string. */
static void test_hash_where_a_semaphore_would_be(void **state)
{
    struct world *w = *state;

    world_near(w);
    world_change(w, 0, HF_SEMAPHORE, SIZE);
    redis_server_do(w->redis, "HSET n x 1");
    assert_int_equal(hf_lock_try(w->locks[0], &w->err), HF_EMISMATCH);
    assert_non_null(strstr(w->err.text, "another kind of lock"));
    assert_null(strstr(w->err.text, "dialect="));
    redis_server_do(w->redis, "DEL n");
}

/* ---- counters that stay -------------------------------------------------- */

#define TOKEN "redisson_lock_token:{n}"

static const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};
static const struct side whole = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, SIZE, 1};

static hf_lock *helper_of(struct world *w, const struct side *s)
{
    char url[96];

    snprintf(url, sizeof(url), "%s?keep_tokens=yes", w->redis->url);
    return lock_of(w, url, 30000, 5000, s->kind);
}

static long long token_ttl(struct world *w)
{
    return redis_server_do(w->redis, "PTTL " TOKEN);
}

/* One that is made, and one that would have ended. */
static void counter_stays(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = helper_of(w, s);
    uint64_t before;

    assert_int_equal(take(a, s, 0, &w->err), 0);
    before = token_of(a);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(token_ttl(w) > 0);
    assert_int_equal(take(b, s, 0, &w->err), 0);
    assert_int_equal(token_ttl(w), -1);
    assert_true(token_of(b) >= before);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    assert_int_equal(take(a, s, 0, &w->err), 0); /* by others it stays so */
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(token_ttl(w), -1);
    redis_server_do(w->redis, "DEL " TOKEN);
    assert_int_equal(take(b, s, 0, &w->err), 0);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    assert_int_equal(token_ttl(w), -1);
    world_is_clean(w);
}

static void test_counter_of_a_mutex_stays(void **state)
{
    counter_stays(*state, &mutex);
}

static void test_counter_of_a_writer_stays(void **state)
{
    counter_stays(*state, &writes);
}

static void test_counter_of_a_reader_stays(void **state)
{
    counter_stays(*state, &reads);
}

static void test_counter_of_permits_stays(void **state)
{
    counter_stays(*state, &permits);
}

static void test_counter_of_all_permits_stays(void **state)
{
    counter_stays(*state, &whole);
}

/* Handed over by one that does not want it, to one that does. */
static void handed_over(struct world *w, const struct side *s,
                        const char *waiters)
{
    hf_lock *a = near_of(w, s), *b = helper_of(w, s);
    struct taker *t;

    assert_int_equal(take(a, s, 0, &w->err), 0);
    t = taker_start_as(w, b, s->mode, s->permits, 20000);
    world_has_waiter(w, waiters);
    assert_true(token_ttl(w) > 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, 0);
    assert_int_equal(token_ttl(w), -1);
    taker_end(t);
    world_is_clean(w);
}

static void test_counter_handed_to_a_mutex_stays(void **state)
{
    handed_over(*state, &mutex, "holdfast:waiters:{n}");
}

static void test_counter_handed_to_a_writer_stays(void **state)
{
    handed_over(*state, &writes, "holdfast:line:{n}");
}

static void test_keep_tokens_is_yes_or_no(void **state)
{
    struct world *w = *state;
    hf_client *c = NULL;
    char url[96];

    snprintf(url, sizeof(url), "%s?keep_tokens=maybe", w->redis->url);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), HF_EINVAL);
    assert_non_null(
        strstr(w->err.text, "keep_tokens=maybe: must be yes or no"));
    snprintf(url, sizeof(url), "%s?keep_tokens=no", w->redis->url);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), 0);
    hf_close(c);
}

int run_inspect_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_look_at_readers_writes_nothing),
        T(test_look_at_permits_writes_nothing),
        T(test_look_at_a_latch_and_a_mutex_writes_nothing),
        T(test_owners_of_others_are_printable),
        T(test_other_dialect_is_named),
        T(test_key_of_another_program_is_said),
        T(test_hash_where_a_semaphore_would_be),
        T(test_counter_of_a_mutex_stays),
        T(test_counter_of_a_writer_stays),
        T(test_counter_of_a_reader_stays),
        T(test_counter_of_permits_stays),
        T(test_counter_of_all_permits_stays),
        T(test_counter_handed_to_a_mutex_stays),
        T(test_counter_handed_to_a_writer_stays),
        T(test_keep_tokens_is_yes_or_no),
    };

    return cmocka_run_group_tests_name("redis: inspect and counters", tests,
                                       NULL, NULL);
}
