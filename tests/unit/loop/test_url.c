/* The URL parser: the result for each URL, the error for invalid ones, and that
 * no error message shows a secret. */
#include "../cases.h"
#include "base/text.h"
#include "base/time.h"
#include "core/client.h"
#include "loop/url.h"

#include <limits.h>

static hf_client client; /* without hooks: memory is plain malloc() */

struct good {
    const char *url, *scheme, *user, *password, *path;
    const char *hosts;   /* "name:port name:port" */
    const char *options; /* "key=value key=value" */
};

static const struct good good[] = {
    {"shm:", "shm", "", "", "", "", ""},
    {"shm://", "shm", "", "", "", "", ""},
    {"shm:///", "shm", "", "", "/", "", ""},
    {"shm:///run/app", "shm", "", "", "/run/app", "", ""},
    {"shm:/run/app", "shm", "", "", "/run/app", "", ""},
    {"shm:///run/a%20b%2Fc", "shm", "", "", "/run/a b/c", "", ""},
    {"SHM:", "shm", "", "", "", "", ""},
    {"s3-X+2://h", "s3-x+2", "", "", "", "h:0", ""},
    {"Redis+Unix:///Run/R", "redis+unix", "", "", "/Run/R", "", ""},
    {"shm:?ttl=5s", "shm", "", "", "", "", "ttl=5s"},
    {"shm://?ttl=5s", "shm", "", "", "", "", "ttl=5s"},
    {"shm:///d?mode=0660&group=app", "shm", "", "", "/d", "",
     "mode=0660 group=app"},
    {"redis://h", "redis", "", "", "", "h:0", ""},
    {"redis://h/", "redis", "", "", "/", "h:0", ""},
    {"redis://h:6380/3", "redis", "", "", "/3", "h:6380", ""},
    {"redis://h:1", "redis", "", "", "", "h:1", ""},
    {"redis://h:65535", "redis", "", "", "", "h:65535", ""},
    {"redis://u@h", "redis", "u", "", "", "h:0", ""},
    {"redis://u:p@h", "redis", "u", "p", "", "h:0", ""},
    {"redis://:p@h", "redis", "", "p", "", "h:0", ""},
    {"redis://u:@h", "redis", "u", "", "", "h:0", ""},
    {"redis://u:p:q@h", "redis", "u", "p:q", "", "h:0", ""},
    {"redis://u:p@q@h", "redis", "u", "p@q", "", "h:0", ""},
    {"redis://%75:%70%3a%40%2f@h", "redis", "u", "p:@/", "", "h:0", ""},
    {"redis://u:p%25@h", "redis", "u", "p%", "", "h:0", ""},
    {"redis://[::1]", "redis", "", "", "", "::1:0", ""},
    {"redis://[::1]:6379/0", "redis", "", "", "/0", "::1:6379", ""},
    {"redis://u:p@[fe80::1%25eth0]:1", "redis", "u", "p", "", "fe80::1%eth0:1",
     ""},
    {"redis://a,b:2,[::3]:3/m", "redis", "", "", "/m", "a:0 b:2 ::3:3", ""},
    {"redis://a,b", "redis", "", "", "", "a:0 b:0", ""},
    {"redis+unix:///run/redis.sock", "redis+unix", "", "", "/run/redis.sock",
     "", ""},
    {"redis+unix://u:p@/run/r.sock?db=2", "redis+unix", "u", "p", "/run/r.sock",
     "", "db=2"},
    {"x:?a=%26%3d%20&b=&c=d=e", "x", "", "", "", "", "a=&=  b= c=d=e"},
    {"x://h?a=/b", "x", "", "", "", "h:0", "a=/b"},
    {"x:?", "x", "", "", "", "", ""},
    {"x:?a=1&", "x", "", "", "", "", "a=1"},
    {"x://%c3%a9%ff", "x", "", "", "", "\xc3\xa9\xff:0", ""},
};

static const struct {
    const char *url, *text; /* text must be part of the error */
} bad[] = {
    {"", "scheme"},
    {":", "scheme"},
    {"shm", "scheme"},
    {"//host/path", "scheme"},
    {"://host", "scheme"},
    {"9p://host", "scheme"},
    {"SHM", "scheme"},
    {"9shm:", "scheme"},
    {"-shm:", "scheme"},
    {"red.is://h", "scheme"},
    {"red is://h", "scheme"},
    {"redis_://h", "scheme"},
    {"/run/app", "scheme"},
    {"x", "redlock://host,host,host"},
    {"x", "mysql://host"},
    {"localhost:6379", "did you mean redis://localhost:6379?"},
    {"127.0.0.1:6379/0", "did you mean redis://127.0.0.1:6379?"},
    {"zk-1.example:2181?ttl=5s", "did you mean zk://zk-1.example:2181?"},
    {"etcd:2379", "did you mean etcd://etcd:2379?"},
    {"my_sql:3306", "did you mean mysql://my_sql:3306?"},
    {"a.b:6378", "a scheme and a colon are missing"},
    {"a.b:63790", "a scheme and a colon are missing"},
    {"a.b:637", "a scheme and a colon are missing"},
    {"s3cr@t:6379", "a scheme and a colon are missing"},
    {"shm:///a%", "path"},
    {"shm:///a%2", "path"},
    {"shm:///a%zz", "path"},
    {"shm:///a%00b", "path"},
    {"redis://h:0", "port that is no number from 1 to 65535"},
    {"redis://h:65536", "port that is no number from 1 to 65535"},
    {"redis://u:pa/ss@h", "written as %2F"},
    {"redis://u:pa?ss@h", "? as %3F"},
    {"redis://h:99999999999999999999", "port"},
    {"redis://h:", "port"},
    {"redis://h:+1", "port"},
    {"redis://h: 1", "port"},
    {"redis://h:6379x", "port"},
    {"redis://a,b:x", "port"},
    {"redis://:1", "empty host"},
    {"redis://,a", "empty host"},
    {"zk://a,,b/", "empty host"},
    {"zk://a,", "empty host"},
    {"zk://u:p@a,/p", "empty host"},
    {"redis://h%", "host"},
    {"redis://h%00", "host"},
    {"redis://[::1", "["},
    {"redis://[::1]x", "["},
    {"redis://[]", "host"},
    {"redis://u%@h", "user"},
    {"redis://u:%0@h", "user"},
    {"redis://u:%00@h", "user"},
    {"shm:?ttl", "key=value"},
    {"shm:?=1", "without a name"},
    {"shm:?ttl=1s&=", "without a name"},
    {"shm:?a=1&b", "key=value"},
    {"shm:?a=%", "bad %xx"},
    {"shm:?a%0=1", "bad %xx"},
    {"shm:?a=%00", "bad %xx"},
    {"shm:?a=1&a=2", "twice"},
    {"shm:?a=1&%61=2", "twice"},
};

#define LEN(x) (sizeof(x) / sizeof(*(x)))

static void describe(const struct hf__url *u, char *hosts, char *options,
                     size_t size)
{
    size_t at = 0;

    *hosts = *options = '\0';
    for (size_t i = 0; i < u->hosts_len; i++)
        at += (size_t)snprintf(hosts + at, size - at, "%s%s:%u", i ? " " : "",
                               u->hosts[i].name, u->hosts[i].port);
    at = 0;
    for (size_t i = 0; i < u->options_len; i++)
        at += (size_t)snprintf(options + at, size - at, "%s%s=%s", i ? " " : "",
                               u->options[i].key, u->options[i].value);
}

CASE(test_url_good_ones_are_taken_apart)
{
    for (size_t i = 0; i < LEN(good); i++) {
        const struct good *g = &good[i];
        hf_error err = HF_ERROR_INIT;
        struct hf__url url;
        char hosts[256], options[256];

        if (hf__url_parse(&client, g->url, &url, &err))
            fail_msg("%s: %s", g->url, err.text);
        describe(&url, hosts, options, sizeof(hosts));
        if (strcmp(url.scheme, g->scheme) != 0 ||
            strcmp(url.user, g->user) != 0 ||
            strcmp(url.password, g->password) != 0 ||
            strcmp(url.path, g->path) != 0 || strcmp(hosts, g->hosts) != 0 ||
            strcmp(options, g->options) != 0)
            fail_msg("%s: scheme %s, user %s, password %s, path %s, hosts %s, "
                     "options %s",
                     g->url, url.scheme, url.user, url.password, url.path,
                     hosts, options);
        hf__url_free(&client, &url);
        assert_null(url.memory);
    }
}

CASE(test_url_bad_ones_say_what_is_wrong)
{
    for (size_t i = 0; i < LEN(bad); i++) {
        hf_error err = HF_ERROR_INIT;
        struct hf__url url;
        int rc = hf__url_parse(&client, bad[i].url, &url, &err);

        if (rc != HF_EINVAL || err.code != HF_EINVAL ||
            !strstr(err.text, bad[i].text))
            fail_msg("%s: %s: %s", bad[i].url, hf_error_name(rc), err.text);
        hf__url_free(&client, &url);
    }
}

/* The password may be anywhere in the URL, next to any other mistake. */
CASE(test_url_texts_show_no_secret)
{
    static const char *const urls[] = {
        "s3cret",
        "://u:s3cret@h",
        "redis:/u:s3cret@h:x/y%zz",
        "redis://u:s3cret@",
        "redis://u:s3cret%@h",
        "redis://u:s3cret@h:x",
        "redis://u:s3cret@[h",
        "redis://u:s3cret@h,",
        "redis://u:s3cret@h%",
        "redis://u:s3cret@h/%",
        "redis://u:s3cret@h?x",
        "redis://u:s3cret/@h:1",
        "redis://h:s3cret",
        "redis://h?password=s3cret&password=s3cret",
        "redis://h?s3cret",
    };

    for (size_t i = 0; i < LEN(urls); i++) {
        hf_error err = HF_ERROR_INIT;
        struct hf__url url;

        hf__url_parse(&client, urls[i], &url, &err);
        if (strstr(err.text, "s3cret"))
            fail_msg("%s: %s", urls[i], err.text);
        hf__url_free(&client, &url);
    }
}

CASE(test_url_has_limits)
{
    char text[4096] = "x://";
    hf_error err = HF_ERROR_INIT;
    struct hf__url url;

    for (int i = 0; i < 16; i++)
        sprintf(text + strlen(text), "%sh%d", i ? "," : "", i);
    assert_int_equal(hf__url_parse(&client, text, &url, &err), 0);
    assert_int_equal(url.hosts_len, 16);
    hf__url_free(&client, &url);
    strcat(text, ",h");
    assert_int_equal(hf__url_parse(&client, text, &url, &err), HF_EINVAL);
    assert_non_null(strstr(err.text, "hosts"));
    hf__url_free(&client, &url);
    strcpy(text, "x:?");
    for (int i = 0; i < 32; i++)
        sprintf(text + strlen(text), "k%d=v&", i);
    assert_int_equal(hf__url_parse(&client, text, &url, &err), 0);
    assert_int_equal(url.options_len, 32);
    hf__url_free(&client, &url);
    strcat(text, "k=v");
    assert_int_equal(hf__url_parse(&client, text, &url, &err), HF_EINVAL);
    assert_non_null(strstr(err.text, "options"));
    hf__url_free(&client, &url);
}

CASE(test_url_options_are_found)
{
    struct hf__url url;

    assert_int_equal(hf__url_parse(&client, "x:?a=1&b=", &url, NULL), 0);
    assert_null(hf__url_option(&url, "c"));
    assert_string_equal(hf__url_option(&url, "a"), "1");
    assert_string_equal(hf__url_option(&url, "b"), "");
    hf__url_free(&client, &url);
    hf__url_free(&client, &url); /* a second time, and NULL */
    hf__url_free(&client, NULL);
}

/* Secrets must be wiped before their memory is freed. keep_free() does not free
 * the memory, so that the test can read it afterwards. */
static char *freed;
static size_t freed_len;

static void *keep_alloc(void *ctx, size_t size)
{
    freed_len = size;
    return freed = malloc(size);
}

static void keep_free(void *ctx, void *p)
{
    assert_ptr_equal(p, freed);
}

CASE(test_url_memory_is_wiped)
{
    hf_client keeping = {.hooks = {.alloc = keep_alloc, .free = keep_free}};
    struct hf__url url;

    assert_int_equal(hf__url_parse(&keeping, "x://u:s3cret@h?a=b", &url, NULL),
                     0);
    assert_string_equal(url.password, "s3cret");
    hf__url_free(&keeping, &url);
    for (size_t i = 0; i < freed_len; i++)
        assert_int_equal(freed[i], 0);
    free(freed);
}

static void *no_alloc(void *ctx, size_t size)
{
    return NULL;
}

CASE(test_url_out_of_memory_is_said)
{
    hf_client poor = {.hooks = {.alloc = no_alloc, .free = keep_free}};
    hf_error err = HF_ERROR_INIT;
    struct hf__url url;

    assert_int_equal(hf__url_parse(&poor, "shm:", &url, &err), HF_ENOMEM);
    assert_int_equal(err.code, HF_ENOMEM);
    hf__url_free(&poor, &url);
}

static const struct {
    const char *text;
    int64_t ms; /* -1: EINVAL */
} times[] = {
    {"0", 0},
    {"0ms", 0},
    {"1ms", 1},
    {"1500ms", 1500},
    {"30s", 30000},
    {"3", 3000},
    {"007s", 7000},
    {"2m", 120000},
    {"1h", 3600000},
    {"1d", 86400000},
    {"36525d", HF_TIME_MAX_MS},
    {"3155760000000ms", HF_TIME_MAX_MS},
    {"3155760000001ms", -1},
    {"36526d", -1},
    {"9223372036854775807", -1},
    {"9223372036854775808", -1},
    {"99999999999999999999ms", -1},
    {"", -1},
    {"s", -1},
    {"ms", -1},
    {"-1s", -1},
    {"+1s", -1},
    {" 1s", -1},
    {"1 s", -1},
    {"1s ", -1},
    {"1S", -1},
    {"1sec", -1},
    {"1.5s", 1500},
    {"0.5", 500},
    {".5", 500},
    {"1.", 1000},
    {"0.05", 50},
    {"0.001m", 60},
    {"1.5d", 129600000},
    {"0.0001", 1}, /* rounded up */
    {"0.5ms", 1},
    {"1.0000000s", 1000},
    {"0.999999999ms", 1},
    {"36524.999999999d", 3155759999999 + 1},
    {"36525.1d", -1},
    {"3155760000000.5ms", -1},
    {"0.0000000001s", -1},
    {".", -1},
    {".s", -1},
    {"1.2.3", -1},
    {"1,5", -1},
    {"inf", -1},
    {"1e3", -1},
    {"0x10", -1},
    {"1y", -1},
    {"1msms", -1},
    {"1m30s", -1},
};

CASE(test_url_times)
{
    for (size_t i = 0; i < LEN(times); i++) {
        int64_t ms = -7;
        int rc = hf__parse_ms(times[i].text, &ms);

        if (times[i].ms < 0 ? rc != HF_EINVAL || ms != -7
                            : rc != 0 || ms != times[i].ms)
            fail_msg("\"%s\": %s, %lld", times[i].text, hf_error_name(rc),
                     (long long)ms);
    }
}

CASE(test_url_names_are_cut_where_they_are_shown)
{
    char name[HF_NAME_MAX + 1];
    struct hf__shown shown;

    assert_string_equal(hf__show("nightly").text, "nightly");
    assert_string_equal(hf__show("").text, "");
    assert_string_equal(hf__show("a\nb\x1b[m\x7f").text, "a?b?[m?");
    memset(name, 'n', sizeof(name));
    name[sizeof(shown.text) - 1] = '\0'; /* just fits */
    assert_string_equal(hf__show(name).text, name);
    name[sizeof(shown.text) - 1] = 'n';
    name[HF_NAME_MAX] = '\0';
    shown = hf__show(name);
    assert_int_equal(strlen(shown.text), sizeof(shown.text) - 1);
    assert_string_equal(shown.text + strlen(shown.text) - 4, "n...");
    memcpy(name + sizeof(shown.text) - 5, "\xc3\xa9", 2); /* at the cut */
    shown = hf__show(name);
    assert_string_equal(shown.text + strlen(shown.text) - 4, "n...");
}

static void shows(const char *text, const char *shown)
{
    char party[64];

    snprintf(party, sizeof(party), "%s", text);
    hf__printable(party, sizeof(party));
    assert_string_equal(party, shown);
}

/* Strings from other programs may contain any bytes. */
CASE(test_url_bytes_of_others_are_made_printable)
{
    char text[64];

    shows("", "");
    shows("worker 7 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92",
          "worker 7 \xc3\xa9 \xe2\x82\xac \xf0\x9f\x94\x92");
    shows("a\nb\x1b[31m\x7f", "a\\x0ab\\x1b[31m\\x7f");
    shows("\xff\xc3(", "\\xff\\xc3(");
    shows("\xc2\x9b"
          "31m",
          "\\xc2\\x9b"
          "31m");                             /* also a control character */
    shows("\xc0\xaf", "\\xc0\\xaf");          /* overlong */
    shows("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half a surrogate pair */
    shows("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    /* A string is cut where the next escape no longer fits, and never within an
     * escape. */
    memset(text, 'n', 63);
    text[63] = '\0';
    shows(text, text);
    text[61] = '\n';
    text[61 + 1] = '\0';
    {
        char cut[64];

        memcpy(cut, text, 61);
        cut[61] = '\0';
        shows(text, cut);
    }
    /* Half a character at the end, which an earlier cut has left, is
     * removed. */
    memset(text, 'n', 63);
    memcpy(text + 61, "\xe2\x82", 2);
    {
        char cut[64];

        memcpy(cut, text, 61);
        cut[61] = '\0';
        shows(text, cut);
    }
}

static unsigned mistyped(const char *word, const char *meant)
{
    return hf__mistyped(word, meant, strlen(meant));
}

/* A duration below a second is exact, a longer one is rounded to tenths of a
 * second. */
CASE(test_span_texts)
{
    static const struct {
        int64_t ms;
        const char *text;
    } spans[] = {{0, "0 ms"},
                 {1, "1 ms"},
                 {999, "999 ms"},
                 {1000, "1 s"},
                 {1049, "1 s"},
                 {1050, "1.1 s"},
                 {1999, "2 s"},
                 {2800, "2.8 s"},
                 {4375, "4.4 s"},
                 {4500, "4.5 s"},
                 {10000, "10 s"},
                 {90000, "90 s"},
                 {HF_TIME_MAX_MS, "3155760000 s"}};

    for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++)
        assert_string_equal(hf__span(spans[i].ms).text, spans[i].text);
}

CASE(test_mistyped_counts_letters)
{
    assert_int_equal(mistyped("bench", "bench"), 0);
    assert_int_equal(mistyped("benhc", "bench"), 1); /* swapped */
    assert_int_equal(mistyped("ebnch", "bench"), 1);
    assert_int_equal(mistyped("bnch", "bench"), 1);
    assert_int_equal(mistyped("benech", "bench"), 1);
    assert_int_equal(mistyped("banch", "bench"), 1);
    /* A missing letter is one mistake, and so are two swapped letters. */
    assert_int_equal(mistyped("semahpre", "semaphore"), 2);
    assert_int_equal(mistyped("rnu", "run"), 1);
    assert_int_equal(mistyped("conect_timeuot", "connect_timeout"), 2);
}

/* `word` may have one mistake, or one for every three letters of the longer
 * word if that is more. It must have more letters than mistakes. */
CASE(test_mistyped_knows_other_words)
{
    assert_int_equal(mistyped("keep", "help"), UINT_MAX);
    assert_int_equal(mistyped("wiat", "wait"), 1);
    assert_int_equal(mistyped("wati", "wait"), 1);
    assert_int_equal(mistyped("iwta", "wait"), UINT_MAX);
    assert_int_equal(mistyped("bnhce", "bench"), UINT_MAX);
    assert_int_equal(mistyped("shraed", "shared"), 1);
    assert_int_equal(mistyped("hsraed", "shared"), 2);
    assert_int_equal(mistyped("redis-x", "redis"), 2);
    assert_int_equal(mistyped("redis-xy", "redis"), UINT_MAX);
    assert_int_equal(mistyped("xyzzy", "bench"), UINT_MAX);
    assert_int_equal(mistyped("lab", "run"), UINT_MAX);
    assert_int_equal(mistyped("x", "ls"), UINT_MAX);
    assert_int_equal(mistyped("l", "ls"), UINT_MAX);
    assert_int_equal(mistyped("la", "ls"), 1);
    assert_int_equal(mistyped("Bench", "bench"), 1);
    assert_int_equal(mistyped("BENCH", "bench"), UINT_MAX);
}

CASE(test_mistyped_empty_and_long_words)
{
    static const char long_word[] = "abcdefghijklmnopqrstuvwxyz01234";
    char longer[256];

    assert_int_equal(mistyped("", "run"), UINT_MAX);
    assert_int_equal(mistyped("run", ""), UINT_MAX);
    assert_int_equal(mistyped("", ""), UINT_MAX);
    assert_int_equal(strlen(long_word), 31);
    assert_int_equal(mistyped(long_word, long_word), 0);
    assert_int_equal(mistyped(long_word, "abcdefghijklmnopqrstuvwxyz0123"), 1);
    memset(longer, 'a', sizeof(longer));
    longer[32] = '\0';
    assert_int_equal(mistyped(longer, longer), UINT_MAX);
    longer[32] = 'a';
    longer[255] = '\0';
    assert_int_equal(mistyped(longer, "run"), UINT_MAX);
    assert_int_equal(mistyped("run", longer), UINT_MAX);
    /* Only the first 3 bytes of `meant` count. */
    assert_int_equal(hf__mistyped("runn", "run, lab", 3), 1);
    assert_int_equal(hf__mistyped("r\xc3\xbcn", "run", 3), UINT_MAX);
}

CASES_MAIN(NULL, NULL);
