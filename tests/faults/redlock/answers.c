/* A few servers refuse requests or send malformed replies. As long as the
 * others are a majority, they grant the lock. */
#include "../redis/liar.h"
#include "redlock_faults.h"

GROUP("answers");

static const char hello[] =
    "$39\r\n# S\r\nrun_id:abc\r\nuptime_in_seconds:9999\r\n"
    "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";

/* The fake server replaces the first server, and the second server is behind a
 * proxy that a case may cut. */
static void lie(struct world *w, const char *text, size_t len)
{
    struct liar l = {.hello = hello, .lie = text, .lie_len = len, .repeat = 1};
    struct redlock_servers servers = five;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    hf_lock *lock = NULL;
    char url[256];
    uint64_t last = 0;

    liar_start(&l, url);
    servers.server[0].port = l.port;
    servers.server[1].port = proxy_port(way[1]);
    redlock_servers_url(&servers, url, sizeof(url), "server_timeout=200ms");
    if (hf_open(url, &opt, &c, &w->err))
        fail_msg("%.40s: %s", text, w->err.text);
    OK(hf_lock_new(c, "n", 1, NULL, &lock, NULL));
    for (int i = 0; i < 3; i++) {
        world_takes(w, lock, 2000);
        assert_true(token_of(lock) > last);
        last = token_of(lock);
        assert_true(last < UINT64_C(1) << 53);
        renews(w, lock);
        gives(w, lock);
    }
    OK(hf_lock_free(lock));
    hf_close(c);
    liar_end(&l);
}

#define LIE(text)                                                              \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }

CASE(test_nonsense_of_one_server)
{
    static const struct {
        const char *text;
        size_t len;
    } lies[] = {
        LIE("garbage\r\n"),
        LIE("\0\0\0\0\r\n"),
        LIE("+OK\r\n"),
        LIE("$-1\r\n"),
        LIE("*-1\r\n"),
        LIE("*0\r\n"),
        LIE(":2\r\n"),
        LIE("*1\r\n:2\r\n"),
        LIE("*2\r\n:2\r\n:1700000000000000\r\n"),
        LIE("*3\r\n:2\r\n:1700000000000000\r\n:-5\r\n"),
        LIE("*3\r\n:2\r\n:1700000000000000\r\n$3\r\nabc\r\n"),
        LIE("*3\r\n:2\r\n:-1\r\n:5\r\n"),
        LIE("*3\r\n:99\r\n:1700000000000000\r\n:5\r\n"),
        LIE("*3\r\n:2\r\n:99999999999999999999999\r\n:5\r\n"),
        LIE("*3\r\n:2\r\n:1700000000000000\r\n:9007199254740993\r\n"),
        LIE("*3\r\n:2\r\n:1700000000000000\r\n:4611686018427387903\r\n"),
        LIE("*3\r\n:2\r\n:1700000000000000\r\n:9223372036854775807\r\n"),
        LIE("*3\r\n:2\r\n:9223372036854775807\r\n:5\r\n"),
        LIE("$99999999999\r\nabc"),
        LIE("*99999999999999\r\n"),
        LIE("-\r\n"),
        LIE("-NOSCRIPT\r\n"), /* sent every time, like the other lies */
        LIE("-ERR %s%n\r\n"),
        LIE("-WRONGTYPE\r\n"),
        LIE("*2\r\n:5\r\n:1700000000000000\r\n"),
        LIE("*3\r\n:0\r\n:1700000000000000\r\n:0\r\n"),
        LIE("*3\r\n:1\r\n:1700000000000000\r\n:0\r\n"),
        LIE("*3\r\n:3\r\n:1700000000000000\r\n:7\r\n"),
        LIE("*3\r\n:4\r\n:1700000000000000\r\n:7\r\n"),
        LIE("*1\r\n:0\r\n"),
        LIE("*1\r\n:1\r\n"),
        LIE("*1\r\n:3\r\n"),
        LIE("*4\r\n:4\r\n:1700000000000000\r\n:1\r\n:1\r\n"),
    };

    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
        lie(w, lies[i].text, lies[i].len);
    cut(1); /* three real servers are left */
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++)
        lie(w, lies[i].text, lies[i].len);
}

/* Two servers have stored an unusable number in the key of the reserved tokens
 * (holdfast:reserve). That number must not become a token. */
CASE(test_numbers_that_cannot_be_counted)
{
    static const char *const reserves[] = {
        "9223372036854775807",
        "9007199254740993",
        "99999999999999999999",
        "1e30",
        "inf",
        "nan",
        "-5",
        "nonsense",
        "",
    };
    hf_lock *a = far(w, 30000, 5000, PATIENT);
    uint64_t last = 0;

    for (size_t i = 0; i < sizeof(reserves) / sizeof(*reserves); i++) {
        for (int j = 0; j < 2; j++)
            do_at(j, "SET holdfast:reserve:{n} %s", reserves[i]);
        for (int j = 0; j < 3; j++) {
            world_takes(w, a, 2000);
            assert_true(token_of(a) > last);
            last = token_of(a);
            assert_true(last < UINT64_C(1) << 53);
            gives(w, a);
        }
    }
}

/* Replaces the key by other data. Returns false if a slow server has executed a
 * grant between the two commands. */
static bool is_spoilt(int i)
{
    do_at(i, "DEL n");
    return do_at(i, "RPUSH n x") == 1;
}

static void spoil(int i)
{
    COMES(is_spoilt(i));
}

/* The lock's key contains other data at two servers, later at three. */
CASE(test_key_of_another_type)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT),
            *b = far(w, 30000, 5000, PATIENT);
    struct taker *t;
    int rc;

    takes(w, a);
    spoil(0);
    spoil(3);
    renews(w, a);
    t = taker_start(w, b, 60000);
    assert_true(NEVER_MS(taker_back(t), 300)); /* the waiter keeps waiting */
    gives(w, a);
    taker_gets_it(t, 3000);
    for (int i = 0; i < 3; i++)
        world_free_for_all(w, a);
    spoil(1);
    rc = hf_lock_timed(a, 5000, &w->err);
    if (rc != HF_EMISMATCH)
        fail_msg("%d: %s", rc, w->err.text);
    says(w->err.text, "other than a lock");
    EXPECT(HF_EMISMATCH, hf_lock_try(a, &w->err));
    for (int i = 0; i < SERVERS; i++)
        delete_key(i);
    world_free_for_all(w, a);
}

/* A key of another program stays at one server: it blocks neither waiters nor
 * clients that try again, whichever server it is. */
CASE(test_key_that_stays_at_one_server)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT),
            *b = far(w, 30000, 5000, PATIENT);
    struct taker *t;

    for (int i = 0; i < SERVERS; i++) {
        do_at(i, "SET n stranger");
        world_takes(w, a, 2000);
        is_busy(w, b);
        t = taker_start(w, b, 60000);
        assert_true(NEVER_MS(taker_back(t), 200));
        gives(w, a);
        taker_gets_it(t, 3000);
        world_takes(w, a, 2000);
        is_busy(w, b);
        is_busy(w, b);
        gives(w, a);
        COMES_MS(hf_lock_try(b, &w->err) == 0, 3000);
        gives(w, b);
        delete_key(i);
    }
}

static void set_rights(int i, const char *rights)
{
    do_at(i, "ACL DELUSER worker");
    assert_int_equal(
        do_at(i,
              text_of("ACL SETUSER worker on >secret ~* &* +@all %s", rights)),
        0);
}

static const char *worker_url(void)
{
    static char url[256];
    const char *far = far_url(PATIENT) + strlen("redlock://");

    snprintf(url, sizeof(url), "redlock://worker:secret@%s", far);
    return url;
}

CASE(test_user_without_rights)
{
    static const struct {
        const char *rights, *word;
        bool opens;
    } refused[] = {
        {"-info", "info", false},
        {"-evalsha -eval", "eval", true},
        {"resetkeys ~other", "", true},
        {"-set", "", true},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        hf_client *c = NULL;
        hf_lock *lock = NULL;
        int rc;

        for (int j = 0; j < SERVERS; j++)
            set_rights(j, refused[i].rights);
        rc = hf_open(worker_url(), NULL, &c, &w->err);
        assert_int_equal(rc == 0, refused[i].opens);
        if (!rc) {
            OK(hf_lock_new(c, "n", 1, NULL, &lock, NULL));
            rc = hf_lock_timed(lock, 5000, &w->err);
        }
        if (rc != HF_EAUTH)
            fail_msg("%s: %d, %s", refused[i].rights, rc, w->err.text);
        says(w->err.text, "127.0.0.1:");
        says(w->err.text, refused[i].word);
        hf_lock_free(lock);
        hf_close(c);
    }
}

/* Two servers that refuse the user count as unreachable: waiters keep
 * waiting. */
CASE(test_user_without_rights_at_two_servers)
{
    hf_lock *a, *b;
    struct taker *t;

    for (int i = 0; i < SERVERS; i++)
        set_rights(i, i == 1 ? "-info" : i == 2 ? "-evalsha -eval" : "");
    a = world_lock(w, worker_url(), 30000, 5000, HF_FAIR_DEFAULT);
    b = world_lock(w, worker_url(), 30000, 5000, HF_FAIR_DEFAULT);
    world_takes(w, a, 2000);
    renews(w, a);
    is_busy(w, b);
    t = taker_start(w, b, 60000);
    assert_true(NEVER_MS(taker_back(t), 300));
    gives(w, a);
    taker_gets_it(t, 3000);
}
