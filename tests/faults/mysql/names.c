/* Names that a database may treat as equal, and servers whose settings change
 * what a statement means. */
#include "mysql_faults.h"

#include "relay.h"

#include <stdio.h>

GROUP("session");
static const struct world_group lock_names = {.name = "lock-names"};

static const struct name {
    const char *bytes;
    size_t len;
} names[] = {
#define NAME(text)                                                             \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }
    NAME("stock"),
    NAME("Stock"),
    NAME("stock "),
    NAME("stock\t"),
    NAME("stock\x01"),
    NAME("st\xc3\xb6"),
    NAME("st\xf6"),
    NAME("\xff"),
    NAME("\xff\xfe"),
    NAME("sto%"),
    NAME("s_ock"),
    NAME("it's"),
    NAME("it''s"),
    NAME("it\\'s"),
    NAME("\"it\""),
    NAME("`it`"),
    NAME("\\"),
    NAME("\\\\"),
    NAME("'; drop table holdfast_locks; -- "),
#undef NAME
};
enum { NAMES = sizeof(names) / sizeof(*names) };

static hf_lock *lock_of(struct world *w, hf_client *c, const struct name *name)
{
    hf_lock *lock = NULL;

    OK(hf_lock_new(c, name->bytes, name->len, NULL, &lock, &w->err));
    return lock;
}

static bool has_row(const struct name *name)
{
    char hex[128] = "";

    for (size_t i = 0; i < name->len; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)name->bytes[i]);
    return my_server_number(&my_one,
                            "select count(*) from holdfast_locks where "
                            "name=x'%s' and lease_until > utc_timestamp(6)",
                            hex) == 1;
}

/* Asserts that the names are different locks: each name is held by another
 * client, all at the same time. If two names were one lock, the second acquire
 * would find the lock busy. */
static void all_names_differ(struct world *w)
{
    hf_client *c[NAMES], *other = my_open(w, my_one.url);
    hf_lock *lock[NAMES];

    for (int i = 0; i < NAMES; i++) {
        c[i] = my_open(w, my_one.url);
        lock[i] = lock_of(w, c[i], &names[i]);
        if (hf_lock_try(lock[i], &w->err))
            fail_msg("name %d: %s", i, w->err.text);
        assert_true(has_row(&names[i]));
    }
    assert_int_equal(my_server_left(&my_one, false), NAMES);
    for (int i = 0; i < NAMES; i++) {
        hf_lock *same = lock_of(w, other, &names[i]);
        hf_info *info = NULL;

        EXPECT(HF_EBUSY, hf_lock_try(same, NULL));
        OK(hf_inspect(other, names[i].bytes, names[i].len, &info, &w->err));
        assert_int_equal(info->holders_len, 1);
        hf_info_free(info);
        OK(hf_lock_release(lock[i], &w->err));
        OK(hf_lock_try(same, &w->err));
        OK(hf_lock_release(same, &w->err));
        OK(hf_lock_free(same));
        OK(hf_lock_free(lock[i]));
    }
}

CASE_OF(lock_names, test_names_differ)
{
    all_names_differ(w);
}

/* Names that the database would compare as equal are different locks. */
CASE_OF(lock_names, test_queues_of_names_differ)
{
    hf_client *a = my_open(w, my_one.url), *b = my_open(w, my_one.url);
    hf_lock *small = my_lock(w, a, "queue"), *large = my_lock(w, a, "QUEUE");
    hf_lock *wanted = my_lock(w, b, "QUEUE");
    static struct my_waiter waiter;

    OK(hf_lock_try(small, &w->err));
    OK(hf_lock_try(large, &w->err));
    my_waiter_start(&waiter, b, wanted);
    my_has_waiters(1);
    OK(hf_lock_release(small, &w->err));
    assert_true(NEVER_MS(my_waiter_back(&waiter), 300));
    OK(hf_lock_release(large, &w->err));
    COMES_MS(my_waiter_back(&waiter), SOON_MS);
    my_waiter_end(&waiter);
    assert_int_equal(waiter.rc, 0);
}

/* Inserts n locks whose names begin with the prefix, and as many with another
 * prefix. */
static void hold_many(const char *prefix, int n)
{
    my_server_do(
        &my_one,
        "replace into holdfast_locks select concat(p.prefix,s.seq),1,0,"
        "1,'stranger',1,0,0,'',0,'',utc_timestamp(6),60000000,"
        "utc_timestamp(6)+interval 60 second,0 from seq_1_to_%d s "
        "join (select '%s' prefix union select 'z:') p",
        n, prefix);
}

static void lists(struct world *w, const char *options, const char *prefix,
                  int n)
{
    hf_client *c = my_open(w, my_url(options));
    hf_names *list = NULL;

    my_server_empty(&my_one);
    hold_many(prefix, n);
    if (hf_list(c, "n-", &list, &w->err))
        fail_msg("%d names: %s", n, w->err.text);
    if (list->len != (size_t)n)
        fail_msg("%zu names of %d", list->len, n);
    for (int i = 0; i < n; i += 97) {
        size_t at = 0;

        while (at < list->len &&
               strcmp(list->names[at].bytes, text_of("n-%d", i + 1)) != 0)
            at++;
        assert_true(at < list->len);
    }
    hf_names_free(list);
    world_ends(w, c);
    my_server_empty(&my_one);
}

/* The client requests 1000 names at a time. */
CASE_OF(lock_names, test_long_lists)
{
    static const int lens[] = {1, 999, 1000, 1001, 2500};

    for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
        lists(w, "", "n-", lens[i]);
        lists(w, "?prefix=app:", "app:n-", lens[i]);
    }
}

/* The proxy changes one name in a list so that it no longer begins with the
 * requested prefix. The client must treat that as an error: it requests each
 * further page of the list from the last name on, so with wrong names a server
 * could prolong the list forever. */
static size_t say_another_name(char *data, size_t *len)
{
    char *at = memmem(data, *len, "app:n-1", 7);

    if (at)
        memcpy(at, "bpp", 3);
    return *len;
}

CASE_OF(lock_names, test_list_answers_what_was_not_asked_for)
{
    hf_names *list = NULL;
    hf_client *c = my_open(w, text_of("%s?prefix=app:", w->far_url));

    hold_many("app:n-", 1);
    OK(hf_list(c, "n-", &list, &w->err));
    assert_int_equal(list->len, 1);
    hf_names_free(list);
    proxy_censors(w->proxy, say_another_name);
    EXPECT(HF_EPROTO, hf_list(c, "n-", &list, &w->err));
    proxy_censors(w->proxy, NULL);
    my_server_empty(&my_one);
}

/* Asserts that client b cannot acquire what client a holds, but can inspect it,
 * and can acquire it after the release. */
static void excludes(struct world *w, hf_client *a, hf_client *b,
                     enum hf_kind kind)
{
    hf_lock *mine = my_lock_as(w, a, "o'clock", kind);
    hf_lock *theirs = my_lock_as(w, b, "o'clock", kind);
    hf_info *info = NULL;

    OK(hf_lock_try(mine, &w->err));
    EXPECT(HF_EBUSY, hf_lock_try(theirs, NULL));
    OK(hf_lock_renew(mine, 0, &w->err));
    OK(hf_inspect(b, "o'clock", HF_CSTRING, &info, &w->err));
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].label, MY_LABEL);
    assert_in_range(info->holders[0].left_ms, 1, 60000);
    assert_true(llabs(info->holders[0].since_unix_ms / 1000 -
                      (long long)time(NULL)) < 60);
    hf_info_free(info);
    OK(hf_lock_release(mine, &w->err));
    if (hf_lock_try(theirs, &w->err))
        fail_msg("%d: %s", (int)kind, w->err.text);
    OK(hf_lock_release(theirs, &w->err));
    world_ends(w, mine);
    world_ends(w, theirs);
}

static void latch_works(struct world *w, hf_client *a, hf_client *b)
{
    hf_latch *mine = NULL, *theirs = NULL;
    uint64_t count = 9;

    OK(hf_latch_new(a, "gate", 4, &mine, &w->err));
    OK(hf_latch_new(b, "gate", 4, &theirs, &w->err));
    OK(hf_latch_set(mine, 1, &w->err));
    EXPECT(HF_EBUSY, hf_latch_wait(mine, 0, NULL, NULL));
    OK(hf_latch_down(theirs, &count, &w->err));
    assert_int_equal(count, 0);
    OK(hf_latch_wait(mine, 5000, NULL, &w->err));
    hf_latch_free(mine);
    hf_latch_free(theirs);
}

void my_all_kinds_work(struct world *w, hf_client *a, hf_client *b)
{
    excludes(w, a, b, HF_MUTEX);
    excludes(w, b, a, HF_RWLOCK);
    excludes(w, a, b, HF_SEMAPHORE);
    latch_works(w, b, a);
}

/* Runs all kinds of locks between a client whose sessions have the setting and
 * a client whose sessions do not. The client that opens first creates the
 * tables: in the first pass the client with the setting, in the second pass the
 * client without it. */
static void works_with(struct world *w, const char *variable, const char *value)
{
    hf_client *a, *b;
    const char *before =
        text_of("%s", my_server_text(&my_one, "select @@global.%s", variable));

    for (int i = 0; i < 2; i++) {
        my_drop_tables();
        my_do("set global %s='%s'", variable, i ? before : value);
        a = my_open(w, my_one.url);
        my_do("set global %s='%s'", variable, i ? value : before);
        b = my_open(w, my_one.url);
        my_do("set global %s='%s'", variable, before);
        my_all_kinds_work(w, a, b);
        world_ends(w, a);
        world_ends(w, b);
    }
    world_is_clean(w);
}

CASE(test_sql_modes)
{
    static const char *const modes[] = {
        "",
        "ANSI",
        "ANSI_QUOTES",
        "NO_BACKSLASH_ESCAPES",
        "ORACLE",
        "MSSQL",
        "TRADITIONAL",
        "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
        "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE",
        "NO_UNSIGNED_SUBTRACTION,PAD_CHAR_TO_FULL_LENGTH,HIGH_NOT_PRECEDENCE",
        "EMPTY_STRING_IS_NULL",
    };

    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        works_with(w, "sql_mode", modes[i]);
}

CASE(test_time_zones)
{
    works_with(w, "time_zone", "+13:00");
    works_with(w, "time_zone", "-11:30");
}

CASE(test_isolation_and_transactions)
{
    static const char *const levels[] = {"READ-UNCOMMITTED", "SERIALIZABLE"};

    for (int i = 0; i < 2; i++)
        works_with(w, "tx_isolation", levels[i]);
    works_with(w, "init_connect", "set autocommit=0");
    works_with(w, "completion_type", "CHAIN");
}

CASE(test_character_sets)
{
    static const char *const sets[][2] = {
        {"latin1", "latin1_german1_ci"},
        {"utf8mb4", "utf8mb4_general_ci"},
        {"utf16", "utf16_general_ci"},
    };

    for (int i = 0; i < 3; i++) {
        my_drop_tables();
        my_server_do(&my_one,
                     "alter database " MY_SERVER_DB
                     " character set %s collate %s",
                     sets[i][0], sets[i][1]);
        works_with(w, "collation_server", sets[i][1]);
        my_drop_tables();
        all_names_differ(w);
    }
}

static long long statements_ended(void)
{
    return my_server_number(&my_one,
                            "select variable_value from information_schema."
                            "global_status where variable_name="
                            "'max_statement_time_exceeded'");
}

/* The server ends statements that take long; waiting must not be affected. */
CASE(test_statement_time_is_limited)
{
    long long before = statements_ended();
    hf_lock *a, *b;
    struct taker *t;

    my_do("set global max_statement_time=0.3");
    a = world_near(w);
    b = world_near(w);
    t = taker_behind(w, a, b, WAIT_MS);
    my_do("set global max_statement_time=0");
    assert_true(NEVER_MS(taker_back(t), 1000));
    assert_int_equal(statements_ended(), before);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
}

/* By the server's default, idle connections end after a second. The client sets
 * a longer time, so neither the hold nor the next acquire is affected. */
CASE(test_idle_connections_are_ended)
{
    hf_lock *a;

    my_do("set global wait_timeout=1");
    a = world_near(w);
    my_do("set global wait_timeout=28800");
    OK(hf_lock_timed(a, 5000, &w->err));
    assert_true(NEVER_MS(hf_lock_check(a) != 0, 2500));
    OK(hf_lock_release(a, &w->err));
    world_free_for_all(w, a);
}

static void works_without_a_name(struct world *w, bool direct)
{
    struct relay *relay = relay_start(my_one.port);
    hf_client *c, *d;
    char url[128];

    assert_non_null(relay);
    relay_hides_name(relay);
    if (direct)
        relay_keeps_number(relay);
    my_server_url_at(relay_port(relay), "", url, sizeof(url));
    c = my_open(w, url);
    d = my_open(w, my_one.url);
    my_all_kinds_work(w, c, d);
    world_ends(w, c);
    world_ends(w, d);
    relay_end(relay);
}

CASE(test_version_without_a_name)
{
    works_without_a_name(w, false);
    works_without_a_name(w, true);
}

static void refused_as_old(struct world *w, void (*and)(struct relay *))
{
    struct relay *relay = relay_start(my_one.port);
    char url[128];

    assert_non_null(relay);
    relay_greets_as_old(relay);
    and(relay);
    my_server_url_at(relay_port(relay), "", url, sizeof(url));
    my_open_refused(w, url, HF_EBACKEND, "MySQL 5.5.30 is too old",
                    "use MySQL 5.7 or MariaDB 10.1, or later", false);
    relay_end(relay);
}

/* The proxy passes on the server's thread id, so the client does not detect the
 * proxy, and takes the old version for the server's own: hf_open() refuses the
 * server. */
CASE_IS(test_old_server_is_refused, refused_as_old(w, relay_keeps_number))

/* The old version may be the proxy's own. But the server answers a statement
 * with a syntax error, which only a server that is too old does, so hf_open()
 * refuses the server. */
CASE_IS(test_old_server_does_not_understand,
        refused_as_old(w, relay_garbles_clock))
