/* Servers that send malformed or endless replies, or the same refusal for ever.
 */
#include "liar.h"
#include "redis_faults.h"

GROUP("hostile");

static void lie_to_acquire(struct world *w, const char *lie, size_t len,
                           int repeat, bool closes, int64_t op_timeout_ms)
{
    struct liar l = {.lie = lie, .lie_len = len, .repeat = repeat};
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    int64_t began;
    char url[64];
    int rc;

    liar_start(&l, url);
    OK(hf_open(url, CLIENT(.op_timeout_ms = op_timeout_ms), &c, &w->err));
    OK(hf_lock_new(c, "n", 1, NULL, &lock, NULL));
    began = wait_fair();
    rc = hf_lock_try(lock, &w->err);
    if (rc >= 0 || !wait_within(began, op_timeout_ms + 1000))
        fail_msg("%.40s: %d, %s", lie, rc, rc >= 0 ? "believed" : "late");
    if (closes) {
        assert_int_equal(rc, HF_EPROTO);
        COMES_MS(__atomic_load_n(&l.closed, __ATOMIC_ACQUIRE), 2000);
    }
    OK(hf_lock_free(lock));
    hf_close(c);
    liar_end(&l);
}

#define LIE(text, closes)                                                      \
    {                                                                          \
        text, sizeof(text) - 1, closes                                         \
    }

CASE(test_hostile_answers_to_an_acquire)
{
    static const struct {
        const char *text;
        size_t len;
        bool closes;
    } lies[] = {
        LIE("garbage\r\n", true),
        LIE("\0\0\0\0\r\n", true),
        LIE("+OK\r\n", true),
        LIE("$-1\r\n", true),
        LIE("*-1\r\n", true),
        LIE("*0\r\n", true),
        LIE(":2\r\n", true),
        LIE("*1\r\n:2\r\n", true),
        LIE("*2\r\n:2\r\n:1700000000000000\r\n", true),
        LIE("*3\r\n:2\r\n:1700000000000000\r\n:-5\r\n", true),
        LIE("*3\r\n:2\r\n:1700000000000000\r\n$3\r\nabc\r\n", true),
        LIE("*3\r\n:2\r\n:-1\r\n:5\r\n", true),
        LIE("*3\r\n:99\r\n:1700000000000000\r\n:5\r\n", true),
        LIE("*4\r\n:3\r\n:1700000000000000\r\n:5\r\n:0\r\n", true),
        LIE("*3\r\n:2\r\n:99999999999999999999999\r\n:5\r\n", true),
        LIE("$99999999999\r\nabc", false),
        LIE("$-99\r\n", true),
        LIE("*2147483647\r\n", false),
        LIE("*99999999999999\r\n", true),
        LIE("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
            ":1\r\n",
            true),
        LIE("-\r\n", false),
        LIE("-NOSCRIPT\r\n", false),
        LIE("-ERR %s%n\r\n", false),
        /* "The attempt came too late": the client sends it again and gets the
         * same reply each time. */
        LIE("*2\r\n:5\r\n:1700000000000000\r\n", false),
        /* "Busy", with superfluous elements. */
        LIE("*2\r\n:4\r\n:1700000000000000\r\n:1\r\n:1\r\n:1\r\n", false),
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
        lie_to_acquire(w, lies[i].text, lies[i].len, 1, lies[i].closes, 300);
}

/* A reply that never ends must not use up the program's memory. */
CASE(test_hostile_answer_without_end)
{
    static char lie[65536] = "*1000000\r\n";
    size_t head = strlen(lie);

    memset(lie + head, 'x', sizeof(lie) - head);
    memcpy(lie + head, "$16000000\r\n", 11);
    lie_to_acquire(w, lie, sizeof(lie), 300, true, 10000);
}

/* A list that always has one more page must not use up the program's memory. */
CASE(test_hostile_list_without_end)
{
    enum { NAMES = 8000, NAME = 500 };
    struct liar l = {.repeat = 1};
    hf_client *c = NULL;
    hf_names *names = NULL;
    char url[64], *lie = malloc(64 + NAMES * (NAME + 16)), *at = lie;

    assert_non_null(lie);
    at += sprintf(at, "*%d\r\n$1\r\n7\r\n", NAMES + 1);
    for (int i = 0; i < NAMES; i++)
        at += sprintf(at, "$%d\r\n%0*d\r\n", NAME, NAME, i);
    l.lie = lie;
    l.lie_len = (size_t)(at - lie);
    liar_start(&l, url);
    OK(hf_open(url, NULL, &c, &w->err));
    EXPECT(HF_EBACKEND, hf_list(c, NULL, &names, &w->err));
    assert_null(names);
    expect_words(w->err.text, "longer prefix");
    hf_close(c);
    liar_end(&l);
    free(lie);
}

/* The server greets each connection and closes it at the next request: the
 * client must pause between its attempts. */
CASE(test_server_that_always_hangs_up)
{
    struct liar l = {.hangs_up = true};
    hf_lock *lock;
    struct taker *t;
    uint32_t before;
    char url[64];

    liar_start(&l, url);
    lock = world_lock(w, url, 30000, 8000, HF_FAIR_DEFAULT);
    t = taker_start(w, lock, 4000);
    COMES(__atomic_load_n(&l.closed, __ATOMIC_ACQUIRE) > 0);
    assert_true(NEVER_MS(taker_back(t), 2000));
    before = __atomic_load_n(&l.closed, __ATOMIC_ACQUIRE);
    if (before < 5 || before > 20)
        fail_msg("%u connections in 2 s", before);
    COMES_MS(taker_back(t), 3500);
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
    liar_end(&l);
}

CASE(test_hostile_greetings)
{
    static const char *const hellos[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "-ERR unknown command\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-DENIED Redis is running in protected mode\r\n",
        "*0\r\n*0\r\n*0\r\n",
        "+PONG\r\n",
        "$5\r\nab",
    };
    for (size_t i = 0; i < sizeof(hellos) / sizeof(*hellos); i++) {
        struct liar l = {.hello = hellos[i]};
        hf_client *c = NULL;
        char url[64];
        int rc;

        liar_start(&l, url);
        rc = hf_open(url, CLIENT(.connect_timeout_ms = 500), &c, &w->err);
        if (rc != HF_EPROTO && rc != HF_EBACKEND)
            fail_msg("%s: %d", hellos[i], rc);
        assert_null(c);
        liar_end(&l);
    }
}

/* The script of the greeting returns the server's version only if redis.setresp
 * is missing, which is the case before Redis 6.0. Such a server must be
 * refused, because it has no SET ... KEEPTTL. */
CASE(test_server_that_is_too_old)
{
#define TIME_AND "*3\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"
    static const struct {
        const char *hello;
        int code;
        const char *version;
    } cases[] = {
        {TIME_AND "$32\r\n# Server\r\nredis_version:2.8.19\r\n\r\n",
         HF_EBACKEND, "Redis 2.8.19"},
        {TIME_AND "$32\r\n# Server\r\nredis_version:5.0.14\r\n\r\n",
         HF_EBACKEND, "Redis 5.0.14"},
        {TIME_AND "$31\r\n# Server\r\nredis_version:6.0.0\r\n\r\n", 0, ""},
        {TIME_AND "$16\r\nredis_version:\r\n\r\n", 0, ""},
        {TIME_AND "-ERR unknown command\r\n", 0, ""},
        {TIME_AND ":5\r\n", 0, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct liar l = {.hello = cases[i].hello};
        hf_client *c = NULL;
        char url[64];
        int rc;

        liar_start(&l, url);
        rc = hf_open(url, NULL, &c, &w->err);
        if (rc != cases[i].code ||
            (rc && (w->err.may_pass || !strstr(w->err.text, cases[i].version) ||
                    !strstr(w->err.text, "6.0 or later"))))
            fail_msg("case %zu: %d %s", i, rc, w->err.text);
        hf_close(c);
        liar_end(&l);
    }
#undef TIME_AND
}

/* A redlock needs only Redis 5.0. */
CASE(test_servers_of_redlock_that_are_too_old)
{
    static const char info[] = "redis_version:4.0.14\r\nrun_id:a\r\n"
                               "uptime_in_seconds:9\r\n";
    struct liar l[3] = {{.hello = NULL}};
    hf_client *c = NULL;
    char url[3][64];
    const char *hello = text_of("$%zu\r\n# Server\r\n%s\r\n",
                                strlen(info) + strlen("# Server\r\n"), info);

    for (int i = 0; i < 3; i++) {
        l[i].hello = hello;
        liar_start(&l[i], url[i]);
    }
    EXPECT(HF_EBACKEND,
           hf_open(text_of("redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d",
                           l[0].port, l[1].port, l[2].port),
                   NULL, &c, &w->err));
    if (w->err.may_pass || !strstr(w->err.text, "Redis 4.0.14") ||
        !strstr(w->err.text, "5.0 or later"))
        fail_msg("%s", w->err.text);
    for (int i = 0; i < 3; i++)
        liar_end(&l[i]);
}
