/* hf_inspect() shows what other clients have left at the server, and must not
 * change it. Further cases: keys that are not locks, and token counters that do
 * not expire (keep_tokens=yes). */
#include "side.h"

GROUP("inspect");

#define NOTE "u\nr\n5\n1700000000000\n0 77\nhost\nlabel"

/* Returns a client of a replica of the case's server; the replica refuses to
 * write. */
static hf_client *client_of_replica(struct world *w)
{
    struct redis_server *replica;

    redis_do(w, "CONFIG SET repl-diskless-sync-delay 0");
    replica = redis_replica(w);
    assert_int_equal(redis_do(w, "WAIT 1 20000"), 1);
    return world_open(w, replica->url, NULL);
}

/* A reader died and another one lives: both still have entries. */
CASE(test_look_at_readers_writes_nothing)
{
    hf_client *c;
    hf_info *info;

    redis_do(w, "HSET n mode read " GHOST ":1 1 " GHOST ":2 1");
    redis_do(w, "PEXPIRE n 60000");
    for (int i = 1; i <= 2; i++)
        redis_do(w, "HSET holdfast:holds:{n} " GHOST ":%d %s", i, NOTE);
    redis_server_do(w->redis,
                    "SET {n}:" GHOST ":2:rwlock_timeout:1 1 PX 50000");
    c = client_of_replica(w);
    info = world_inspect(w, c);
    assert_int_equal(info->kind, HF_RWLOCK);
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].owner, GHOST ":2");
    assert_int_equal(info->holders[0].pid, 77);
    assert_int_equal(redis_do(w, "HLEN n"), 3);
    redis_do(w, "FLUSHDB");
}

/* The permit of a holder that died counts as free. */
CASE(test_look_at_permits_writes_nothing)
{
    hf_client *c;
    hf_info *info;

    redis_do(w, "SET n 1");
    redis_do(w, "SET holdfast:kind:{n} %s", "s 3");
    redis_do(w, "ZADD {n}:timeout 1000 " GHOST ":1:1 "
                "9999999999999 " GHOST ":2:1");
    c = client_of_replica(w);
    info = world_inspect(w, c);
    assert_int_equal(info->kind, HF_SEMAPHORE);
    assert_int_equal(info->permits, 3);
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].owner, GHOST ":2");
    redis_do(w, "ZADD {n}:timeout 1000 " GHOST ":2:1");
    assert_int_equal(redis_do(w, "WAIT 1 20000"), 1);
    info = world_inspect(w, c);
    assert_int_equal(info->kind, 0); /* nothing is held, so there is no kind */
    assert_int_equal(info->holders_len, 0);
    assert_int_equal(redis_do(w, "ZCARD {n}:timeout"), 2);
    redis_do(w, "FLUSHDB");
}

CASE(test_look_at_a_latch_and_a_mutex_writes_nothing)
{
    hf_client *c;
    hf_info *info;

    redis_do(w, "SET n 5 PX 6311520000000");
    c = client_of_replica(w);
    info = world_inspect(w, c);
    assert_int_equal(info->kind, HF_LATCH);
    assert_int_equal(info->count, 5);
    redis_do(w, "DEL n");
    redis_do(w, "HSET n " GHOST ":1 1");
    assert_int_equal(redis_do(w, "WAIT 1 20000"), 1);
    info = world_inspect(w, c);
    assert_int_equal(info->kind, HF_MUTEX);
    assert_int_equal(info->holders_len, 1);
    redis_do(w, "FLUSHDB");
}

/* Another program may store an owner with any bytes. */
CASE(test_owners_of_others_are_printable)
{
    static const char owner[] = "\x1b[31m\xff\xc3\xa9\0\n7";
    hf_lock *a = world_near(w);
    hf_client *c = NULL;
    hf_info *info;

    redis_do(w, "HSET n %b 1", owner, sizeof(owner) - 1);
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].owner,
                        "\\x1b[31m\\xff\xc3\xa9\\x00\\x0a7");
    OK(hf_open(text_of("%s?dialect=string", w->redis->url), NULL, &c, &w->err));
    redis_do(w, "SET n %b", owner, sizeof(owner) - 1);
    info = world_inspect(w, c);
    assert_string_equal(info->holders[0].owner,
                        "\\x1b[31m\\xff\xc3\xa9\\x00\\x0a7");
    hf_close(c);
    redis_do(w, "DEL n");
    world_free_for_all(w, a);
}

/* The key is a lock as the other value of `dialect` (a URL option) stores it:
 * the error message names that value. */
CASE(test_other_dialect_is_named)
{
    hf_lock *a = world_near(w), *b;

    redis_do(w, "SET n 0123456789abcdef PX 60000");
    EXPECT(HF_EMISMATCH, hf_lock_try(a, &w->err));
    expect_words(w->err.text, "dialect=string");
    expect_words(w->err.text, "redis-py");
    b = world_lock(w, text_of("%s?dialect=string", w->redis->url), 30000, 5000,
                   HF_FAIR_DEFAULT);
    EXPECT(HF_EBUSY, hf_lock_try(b, &w->err));
    redis_do(w, "DEL n");
    OK(hf_lock_try(a, &w->err));
    EXPECT(HF_EMISMATCH, hf_lock_try(b, &w->err));
    expect_words(w->err.text, "dialect=redisson");
    OK(hf_lock_release(a, NULL));
}

/* The key is not a lock, whatever the URL's `dialect`. The error message must
 * say so, and must not suggest another dialect. */
CASE(test_key_of_another_program_is_said)
{
    static const struct {
        const char *command, *text;
    } keys[] = {{"RPUSH n x", "the key is a list"},
                {"SADD n x", "the key is a set"},
                {"ZADD n 1 x", "the key is a zset"},
                {"XADD n * f x", "the key is a stream"}};
    const char *url = text_of("%s?dialect=string", w->redis->url);

    world_near(w);
    world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    world_near(w);
    world_change(w, 2, HF_RWLOCK, 0);
    world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        redis_do(w, keys[i].command);
        for (size_t j = 0; j < w->len; j++) {
            EXPECT(HF_EMISMATCH, hf_lock_try(w->locks[j], &w->err));
            expect_words(w->err.text, keys[i].text);
            expect_words(w->err.text, "something other than a lock");
            assert_null(strstr(w->err.text, "dialect="));
        }
        redis_do(w, "DEL n");
    }
}

/* Neither a semaphore nor a lock of dialect=string is stored in a hash. So if
 * the key of a semaphore is a hash, the error message must not suggest that
 * dialect. */
CASE(test_hash_where_a_semaphore_would_be)
{
    world_near(w);
    world_change(w, 0, HF_SEMAPHORE, SIZE);
    redis_do(w, "HSET n x 1");
    EXPECT(HF_EMISMATCH, hf_lock_try(w->locks[0], &w->err));
    expect_words(w->err.text, "another kind of lock");
    assert_null(strstr(w->err.text, "dialect="));
    redis_do(w, "DEL n");
}

static const struct side whole = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, SIZE, 1};

static hf_lock *helper_of(struct world *w, const struct side *s)
{
    return lock_of(w, text_of("%s?keep_tokens=yes", w->redis->url), 30000, 5000,
                   s->kind);
}

static long long token_ttl(struct world *w)
{
    return redis_do(w, "PTTL " TOKEN);
}

static void counter_stays(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = helper_of(w, s);
    uint64_t before;

    OK(take(a, s, 0, &w->err));
    before = token_of(a);
    OK(hf_lock_release(a, NULL));
    assert_true(token_ttl(w) > 0);
    OK(take(b, s, 0, &w->err));
    assert_int_equal(token_ttl(w), -1);
    assert_true(token_of(b) >= before);
    OK(hf_lock_release(b, NULL));
    OK(take(a, s, 0, &w->err)); /* a's client lacks keep_tokens */
    OK(hf_lock_release(a, NULL));
    assert_int_equal(token_ttl(w), -1);
    redis_do(w, "DEL " TOKEN);
    OK(take(b, s, 0, &w->err));
    OK(hf_lock_release(b, NULL));
    assert_int_equal(token_ttl(w), -1);
}

CASE_IS(test_counter_of_a_mutex_stays, counter_stays(w, &mutex))
CASE_IS(test_counter_of_a_writer_stays, counter_stays(w, &writes))
CASE_IS(test_counter_of_a_reader_stays, counter_stays(w, &reads))
CASE_IS(test_counter_of_permits_stays, counter_stays(w, &permits))
CASE_IS(test_counter_of_all_permits_stays, counter_stays(w, &whole))

/* A client without keep_tokens hands the lock over to a client that has the
 * option. */
static void handed_over(struct world *w, const struct side *s,
                        const char *waiters)
{
    hf_lock *a = near_of(w, s), *b = helper_of(w, s);
    struct taker *t;

    OK(take(a, s, 0, &w->err));
    t = taker_start_as(w, b, s->mode, s->permits, 20000);
    world_has_waiter(w, waiters);
    assert_true(token_ttl(w) > 0);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, WAIT_LONG_MS);
    assert_int_equal(token_ttl(w), -1);
    taker_end(t);
}

CASE_IS(test_counter_handed_to_a_mutex_stays, handed_over(w, &mutex, WAITERS))
CASE_IS(test_counter_handed_to_a_writer_stays, handed_over(w, &writes, LINE))

CASE(test_keep_tokens_is_yes_or_no)
{
    hf_client *c = NULL;
    char url[96];

    snprintf(url, sizeof(url), "%s?keep_tokens=maybe", w->redis->url);
    EXPECT(HF_EINVAL, hf_open(url, NULL, &c, &w->err));
    expect_words(w->err.text, "keep_tokens=maybe: must be yes or no");
    snprintf(url, sizeof(url), "%s?keep_tokens=no", w->redis->url);
    OK(hf_open(url, NULL, &c, &w->err));
    hf_close(c);
}
