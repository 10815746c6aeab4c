/*
 * The lower layers of the Redis module without a server: replies that are cut
 * off anywhere, keys of different names, commands on the wire, and the digests
 * of scripts.
 */
#include "../../cases.h"
#include "backends/redis/keys.h"
#include "backends/redis/pipe.h"
#include "backends/redis/reply.h"
#include "backends/redis/scripts.h"

#include <openssl/sha.h>

static size_t taken, allowed = SIZE_MAX; /* allocations, and their limit */

static void *test_take(hf_client *client, size_t size)
{
    return taken++ < allowed ? calloc(1, size) : NULL;
}

static void test_give(hf_client *client, void *p)
{
    free(p);
}

static const struct hf__core core = {.alloc = test_take, .free = test_give};

/* Feeds the text in pieces of `piece` bytes; returns the first whole reply, or
 * NULL. */
static struct rd_node *feed(redisReader *reader, struct hf__arena *arena,
                            const char *text, size_t len, size_t piece, int *rc)
{
    struct rd_node *node = NULL;

    *rc = 0;
    for (size_t at = 0; at < len && *rc == 0; at += piece) {
        size_t some = len - at < piece ? len - at : piece;

        assert_int_equal(redisReaderFeed(reader, text + at, some), REDIS_OK);
        *rc = hf__rd_reader_next(reader, arena, &node);
    }
    return *rc == 1 ? node : NULL;
}

CASE(test_reply_in_every_cut)
{
    static const char text[] =
        "*5\r\n:2\r\n$16\r\n1700000000000000\r\n$-1\r\n*2\r\n+OK\r\n$3\r\n"
        "a\0b\r\n-ERR no\r\n";

    for (size_t piece = 1; piece < sizeof(text); piece++) {
        struct hf__arena arena;
        redisReader *reader;
        struct rd_node *node;
        int64_t n;
        int rc;

        hf__arena_init(&arena, &core, NULL, RD_ARENA_MAX);
        reader = hf__rd_reader_new(&arena);
        node = feed(reader, &arena, text, sizeof(text) - 1, piece, &rc);
        assert_non_null(node);
        assert_true(hf__rd_int(hf__rd_at(node, 0), &n) && n == 2);
        assert_true(hf__rd_int(hf__rd_at(node, 1), &n));
        assert_int_equal(n, 1700000000000000);
        assert_int_equal(hf__rd_at(node, 2)->type, REDIS_REPLY_NIL);
        assert_true(hf__rd_is(hf__rd_at(hf__rd_at(node, 3), 0), "OK"));
        assert_int_equal(hf__rd_at(hf__rd_at(node, 3), 1)->len, 3);
        assert_int_equal(hf__rd_at(node, 4)->type, REDIS_REPLY_ERROR);
        assert_null(hf__rd_at(node, 5));
        redisReaderFree(reader);
        hf__arena_fini(&arena);
    }
}

CASE(test_reply_that_is_none)
{
    static const char *const texts[] = {
        "hello\r\n",
        "*99999999999\r\n",
        "$-2\r\n",
        ":x\r\n",
        ":99999999999999999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct hf__arena arena;
        redisReader *reader;
        int rc;

        hf__arena_init(&arena, &core, NULL, RD_ARENA_MAX);
        reader = hf__rd_reader_new(&arena);
        feed(reader, &arena, texts[i], strlen(texts[i]), 4, &rc);
        if (rc != HF_EPROTO)
            fail_msg("%s: %d", texts[i], rc);
        redisReaderFree(reader);
        hf__arena_fini(&arena);
    }
}

/* A length that the server announces must not cause an allocation. The amount
 * of data that arrives is limited. */
CASE(test_reply_without_end)
{
    static char many[1 << 16];
    struct hf__arena arena;
    redisReader *reader;
    struct rd_node *node;
    int rc = 0;

    for (size_t i = 0; i + 4 <= sizeof(many); i += 4)
        memcpy(many + i, "+\r\n:", 4);
    for (size_t i = 0; i + 4 <= sizeof(many); i += 4)
        memcpy(many + i, ":1\r\n", 4);
    hf__arena_init(&arena, &core, NULL, RD_ARENA_MAX);
    reader = hf__rd_reader_new(&arena);
    assert_int_equal(redisReaderFeed(reader, "*2147483647\r\n", 13), REDIS_OK);
    assert_int_equal(hf__rd_reader_next(reader, &arena, &node), 0);
    assert_true(arena.used < 1024);
    for (int i = 0; i < 10000 && rc == 0; i++) {
        assert_int_equal(redisReaderFeed(reader, many, sizeof(many)), REDIS_OK);
        rc = hf__rd_reader_next(reader, &arena, &node);
    }
    assert_int_equal(rc, HF_EPROTO);
    assert_true(arena.used <= 4u * RD_REPLY_MAX);
    redisReaderFree(reader);
    hf__arena_fini(&arena);
}

CASE(test_reply_out_of_memory)
{
    struct hf__arena arena;
    redisReader *reader;
    int rc;

    hf__arena_init(&arena, &core, NULL, RD_ARENA_MAX);
    reader = hf__rd_reader_new(&arena);
    taken = 0;
    allowed = 0;
    feed(reader, &arena, "*1\r\n:1\r\n", 8, 8, &rc);
    allowed = SIZE_MAX;
    assert_int_equal(rc, HF_ENOMEM);
    redisReaderFree(reader);
    hf__arena_fini(&arena);
}

CASE(test_numbers_as_text)
{
    static const struct {
        const char *text;
        bool good;
    } texts[] = {{"0", true},    {"-5", true},
                 {"12x", false}, {"", false},
                 {"1 2", false}, {"x", false},
                 {"1e3", false}, {"9223372036854775808", false}};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct rd_node node = {.type = REDIS_REPLY_STRING,
                               .text = texts[i].text,
                               .len = strlen(texts[i].text)};
        int64_t n;

        if (hf__rd_int(&node, &n) != texts[i].good)
            fail_msg("%s", texts[i].text);
    }
}

/* Returns whether the names "m" and "{m}" may share this key. They may if an
 * owner is appended to the key, or if sharing costs no more than a needless
 * poll. */
static bool may_meet(enum rd_key key)
{
    return key == RD_KEY_TOKEN || key == RD_KEY_BASE || key == RD_CHANNEL ||
           key == RD_CHANNEL_RW || key == RD_CHANNEL_SEM;
}

/* Two names never share a key, except some keys of Redisson. */
CASE(test_keys_never_meet)
{
    static const char *const names[] = {
        "m",  "{m}", "{m",   "m}",   "{}",  "{{m}}", "a{m}",   "{m}a",
        ":m", "m:",  ":{m}", "{m}:", "::m", "{m}}",  "{m}{m}",
    };
    const size_t len = sizeof(names) / sizeof(*names);
    char one[RD_KEY_MAX + 1], two[RD_KEY_MAX + 1];

    for (int key = RD_KEY_LOCK; key <= RD_CHANNEL_LATCH; key++)
        for (size_t i = 0; i < len; i++)
            for (size_t k = 0; k < i; k++) {
                size_t a = hf__rd_key(one, key, names[i], strlen(names[i]));
                size_t b = hf__rd_key(two, key, names[k], strlen(names[k]));

                if (a != b || memcmp(one, two, a) != 0 || may_meet(key))
                    continue;
                fail_msg("key %d of %s and %s", key, names[i], names[k]);
            }
}

static void expect_key(enum rd_key key, const char *name, const char *wanted)
{
    char text[RD_KEY_MAX + 1];

    text[hf__rd_key(text, key, name, strlen(name))] = '\0';
    assert_string_equal(text, wanted);
}

CASE(test_keys_are_redissons)
{
    char longest[HF_NAME_MAX], text[RD_KEY_MAX + 1];

    expect_key(RD_KEY_LOCK, "order:1", "order:1");
    expect_key(RD_KEY_TOKEN, "order:1", "redisson_lock_token:{order:1}");
    expect_key(RD_KEY_QUEUE, "a{b}", "redisson_lock_queue:a{b}");
    expect_key(RD_KEY_TIMEOUT, "a", "redisson_lock_timeout:{a}");
    expect_key(RD_CHANNEL, "a", "redisson_lock__channel:{a}");
    expect_key(RD_CHANNEL, "{t}a", "redisson_lock__channel:{t}a");
    expect_key(RD_KEY_PERMITS, "a", "{a}:timeout");
    expect_key(RD_KEY_PERMITS, "a{b}", "a{b}:timeout");
    expect_key(RD_KEY_BASE, "a", "{a}");
    expect_key(RD_KEY_BASE, "a{b}", "a{b}");
    expect_key(RD_CHANNEL_RW, "a", "redisson_rwlock:{a}");
    expect_key(RD_CHANNEL_SEM, "a{b}", "redisson_sc:a{b}");
    expect_key(RD_CHANNEL_LATCH, "a", "redisson_countdownlatch__channel__{a}");
    expect_key(RD_CHANNEL_LATCH, "{a}",
               "redisson_countdownlatch__channel__{{a}}");
    memset(longest, 'x', sizeof(longest));
    for (int key = RD_KEY_LOCK; key <= RD_CHANNEL_LATCH; key++)
        assert_true(hf__rd_key(text, key, longest, sizeof(longest)) <=
                    RD_KEY_MAX);
}

CASE(test_reserved_names)
{
    assert_true(hf__rd_reserved("holdfast:info:{x}", 17));
    assert_true(hf__rd_reserved("redisson_lock_queue:{x}", 23));
    assert_true(hf__rd_reserved("redisson_lock__channel:{x}", 26));
    assert_true(hf__rd_reserved("{x}:timeout", 11));
    assert_true(hf__rd_reserved("a{x}:timeout", 12));
    assert_true(hf__rd_reserved("{x}:o:1:rwlock_timeout:1", 24));
    assert_false(hf__rd_reserved("x:timeout", 9));
    assert_false(hf__rd_reserved("{x}:timeouts", 12));
    assert_false(hf__rd_reserved("{x}:time", 8));
    assert_false(hf__rd_reserved("holdfast", 8));
    assert_false(hf__rd_reserved("redisson", 8));
    assert_false(hf__rd_reserved("x", 1));
}

CASE(test_commands_on_the_wire)
{
    static const char wanted[] = "*4\r\n$3\r\nSET\r\n$3\r\na\0b\r\n$0\r\n\r\n"
                                 "$20\r\n-9223372036854775808\r\n";
    struct net_stream s;
    struct net_out *o = &s.out;

    hf__net_init(&s, &core, NULL);
    assert_int_equal(hf__net_reserve(&s, 128), 0);
    hf__rd_put_count(o, '*', 4);
    hf__rd_put_text(o, "SET");
    hf__rd_put(o, "a\0b", 3);
    hf__rd_put(o, NULL, 0);
    hf__rd_put_num(o, INT64_MIN);
    assert_int_equal(o->len, sizeof(wanted) - 1);
    assert_memory_equal(o->data, wanted, o->len);
    o->from = 4; /* half sent, and the next command does not fit */
    assert_int_equal(hf__net_reserve(&s, 1 << 16), 0);
    assert_int_equal(o->from, 0);
    assert_memory_equal(o->data, wanted + 4, o->len);
    hf__net_fini(&s);
}

CASE(test_scripts_have_the_servers_digests)
{
    for (int i = 0; i < RD_SCRIPTS; i++) {
        const struct rd_text *script = &hf__rd_script[i];
        unsigned char digest[SHA_DIGEST_LENGTH];
        char hex[2 * SHA_DIGEST_LENGTH + 1];

        assert_non_null(script->text);
        assert_int_equal(script->len, strlen(script->text));
        SHA1((const unsigned char *)script->text, script->len, digest);
        for (int k = 0; k < SHA_DIGEST_LENGTH; k++)
            snprintf(hex + 2 * k, 3, "%02x", digest[k]);
        assert_string_equal(script->digest, hex);
    }
}

/*
 * Clients of different versions share locks, so they must run the same scripts.
 * If this test fails unexpectedly, restore the script. If a script has to
 * change, make sure that the old and the new script can work on the same keys,
 * and insert the digest that the failure prints (sha1sum of
 * build/src/backends/redis/lua/NAME.lua prints the same digest).
 */
static const char *const digests[RD_SCRIPTS] = {
    [RD_TAKE] = "b867564126bf280ed0021c39618c8cb24283d5fa",
    [RD_DROP] = "bfffc0f9d99c4633bf9733fc2c96aac41eda24ee",
    [RD_LEAVE] = "2151eeaa2a06fa23011746c9e93e3fc21c23bc6c",
    [RD_TAKE_FAIR] = "a5d8a45c768b0ef177b63786a9f87e6010dafbcf",
    [RD_DROP_FAIR] = "f6e52db8880cc19d154698360a555ae425db6aed",
    [RD_LEAVE_FAIR] = "69cf83520f1f5fa33bc1b5a76f9d650f9084d05f",
    [RD_RENEW] = "0a0f79237f14a376b0de9b8aa3d550b120b6474a",
    [RD_INSPECT] = "14c955ed1f9088d73b753ed5a3529eca3a54d499",
    [RD_LIST] = "bedbf25ac3da3d8e3c489a76371c658fe7ca8cb7",
    [RD_BREAK] = "3a68adc536afb4103f7f3fa3d5d561d0a52f3c85",
    [RD_TAKE_RW] = "e598356491b04f0afb26f1973933db476e913401",
    [RD_DROP_RW] = "ed68bfc9d0efd456f51ec94d6bd5ac981243228d",
    [RD_LEAVE_RW] = "e150ed3a9c2c6b5770872814d99881f5638587f6",
    [RD_RENEW_RW] = "d95ef215104003729aa642fd3f98e9af8538c743",
    [RD_DOWNGRADE] = "60ff7403fef104498f113b8eeae4b9af58a0ef21",
    [RD_INSPECT_RW] = "84646683c0c26ae524063620689e000c30317c62",
    [RD_BREAK_RW] = "7662733aabf2c4edd9cec1da2e9ef131ef56c93a",
    [RD_TAKE_SEM] = "258921ab56df725206d6974296ae3f31cbde73a9",
    [RD_DROP_SEM] = "de4165cc27160106ca285c2637f7d95fc48a7a63",
    [RD_LEAVE_SEM] = "a1b5781a21966ad1f7078ed32b80e22d691a6469",
    [RD_RENEW_SEM] = "996c10d9fa0c5d48188c2eabca86fa8825216129",
    [RD_INSPECT_STRING] = "c813e7d1a43f50f157d975360b72be853d963db7",
    [RD_BREAK_STRING] = "740d7b80af9fd8bc96c137f27735a7ff5ee968ba",
    [RD_WAIT_LATCH] = "76d13ec3970baa7c593392fd92b6a5d47462c54f",
    [RD_LATCH] = "a8a5be5c2db6edba48b4bd8271677394eaf3f046",
    [RD_ASK] = "88db3a384c4d2cd7f0dffee8f31c8b15b68c3ff0",
    [RD_RIGHTS] = "59fd86b79587aacb5eaad41f799f68b21ad59da3",
    [RD_PROVE] = "57e66b78e0c2d6860adb21bbe35a9db01f7ed288",
    [RD_TAKE_S] = "07f2467886b923a24480accc93e312bc129fd666",
    [RD_DROP_S] = "bf70cd5448c4148d7134551cedc52d411c9074c5",
    [RD_LEAVE_S] = "ce718d39ad8eb784b3b236e4fe83a4ea92eca14b",
    [RD_RENEW_S] = "a91e0c92353d2ef28fb0f47cc789f8c78d25ef68",
    [RD_INSPECT_S] = "c3b2ed3e604b628113377423657a0060b5786aff",
    [RD_LIST_S] = "6e35f0841b72302f50943dc97984ce2a89d250c4",
    [RD_BREAK_S] = "8c1b379ede313edef0594d8f9bb5d752699a3d22",
    [RD_VOTE] = "022c6b5ea50bdbd111d83b843588563f9d848ffd",
};

CASE(test_scripts_are_those_of_older_clients)
{
    int changed = 0;

    for (int i = 0; i < RD_SCRIPTS; i++) {
        assert_non_null(digests[i]);
        if (strcmp(hf__rd_script[i].digest, digests[i]) != 0) {
            print_error("script %d has the digest %s, not %s\n", i,
                        hf__rd_script[i].digest, digests[i]);
            changed++;
        }
    }
    assert_int_equal(changed, 0);
}

CASE(test_errors_by_their_first_word)
{
    assert_int_equal(hf__rd_error_code("NOAUTH Authentication"), HF_EAUTH);
    assert_int_equal(hf__rd_error_code("WRONGPASS invalid"), HF_EAUTH);
    assert_int_equal(hf__rd_error_code("NOPERM"), HF_EAUTH);
    assert_int_equal(hf__rd_error_code("NOPERMX"), HF_EBACKEND);
    assert_int_equal(hf__rd_error_code("WRONGTYPE Operation"), HF_EMISMATCH);
    assert_int_equal(hf__rd_error_code("LOADING Redis"), HF_EBACKEND);
    assert_int_equal(hf__rd_error_code(""), HF_EBACKEND);
}

CASE(test_errors_that_may_pass)
{
    assert_true(hf__rd_may_pass("LOADING Redis is loading the dataset"));
    assert_true(hf__rd_may_pass("BUSY Redis is busy running a script"));
    assert_true(hf__rd_may_pass("READONLY You can't write"));
    assert_true(hf__rd_may_pass("ERR max number of clients reached"));
    assert_true(hf__rd_may_pass(
        "ERR Error running script (call to f_bed10a): @user_script:12: "
        "@user_script: 12: -OOM command not allowed"));
    assert_false(hf__rd_may_pass("LOADINGX"));
    assert_false(hf__rd_may_pass("ERR unknown command 'EVAL'"));
    assert_false(hf__rd_may_pass("ERR DB index is out of range"));
    assert_false(hf__rd_may_pass("MOVED 3999 127.0.0.1:6381"));
    assert_false(hf__rd_may_pass("NOPERM"));
    assert_false(hf__rd_may_pass(""));
}

#define QUOTED "ERR Error running script (call to f_bed10a): @user_script:12: "

/* The errors of scripts as Redis 6 reports them. */
CASE(test_errors_that_are_quoted)
{
    assert_int_equal(hf__rd_error_code(QUOTED "WRONGTYPE Operation against"),
                     HF_EMISMATCH);
    assert_int_equal(hf__rd_error_code(QUOTED "@user_script: 12: The user "
                                              "executing the script can't run"),
                     HF_EAUTH);
    assert_int_equal(
        hf__rd_error_code(QUOTED "@user_script: 12: -OOM command not allowed"),
        HF_EBACKEND);
    assert_true(
        hf__rd_is_replica(QUOTED "@user_script: 12: -READONLY You can't"));
    assert_true(hf__rd_is_replica("READONLY You can't write"));
    assert_true(hf__rd_is_replica("NOREPLICAS Not enough good replicas"));
    assert_false(hf__rd_is_replica(QUOTED "OOM READONLY"));
    assert_false(hf__rd_is_replica("ERR Error running script"));
    assert_false(hf__rd_is_replica("ERR @user_script:1: READONLY"));
}

CASE(test_errors_without_the_digest_of_the_script)
{
    static const char said[] = "READONLY You can't write.";
    char text[256];

    snprintf(text, sizeof(text),
             "%s script: 0123456789abcdef0123456789abcdef01234567, on "
             "@user_script:3.",
             said);
    assert_int_equal(hf__rd_error_len(text), strlen(said));
    assert_int_equal(hf__rd_error_len(said), strlen(said));
    assert_int_equal(hf__rd_error_len(""), 0);
    assert_int_equal(hf__rd_error_len("ERR no script: abc"), 18);
    assert_int_equal(hf__rd_error_len("BUSY script: "), 13);
}

CASE(test_refusals_that_did_nothing)
{
    static const char *const nothing[] = {
        "NOAUTH Authentication required.",
        "NOPERM this user has no permissions to run the 'eval' command",
        "OOM command not allowed. script: 67ed, on @user_script:1.",
        "MISCONF Redis is configured to save RDB snapshots",
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down",
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "NOREPLICAS Not enough good replicas to write.",
        "ERR Error running script (f_67): @user_script:3: -READONLY Not here"};
    static const char *const perhaps[] = {
        "ERR The user executing the script can't run this command",
        "NOPERM ACL failure in script: no permissions",
        "ERR Error running script (f): @user_script:3: ACL failure in script:",
        "ERR value is not an integer script: 33b4, on @user_script:1.", "OOMX"};

    for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++)
        assert_true(hf__rd_did_nothing(nothing[i]));
    for (size_t i = 0; i < sizeof(perhaps) / sizeof(*perhaps); i++)
        assert_false(hf__rd_did_nothing(perhaps[i]));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(hf__rd_error_code(perhaps[i]), HF_EAUTH);
}

CASES_MAIN(NULL, NULL);
