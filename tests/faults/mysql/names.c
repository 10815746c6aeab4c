/* Names and sessions: names that a database may take for one, and servers whose
 * settings change what a statement means. */
#include "mysql_faults.h"

#include "relay.h"

#include <stdio.h>

/* ---- names -----------------------------------------------------------------
 */

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

    if (hf_lock_new(c, name->bytes, name->len, NULL, &lock, &w->err))
        fail_msg("%s", w->err.text);
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

/* Each is held by another client, all at the same time: were two of them one,
 * the second would be busy. */
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

        assert_int_equal(hf_lock_try(same, NULL), HF_EBUSY);
        assert_int_equal(
            hf_inspect(other, names[i].bytes, names[i].len, &info, &w->err), 0);
        assert_int_equal(info->holders_len, 1);
        hf_info_free(info);
        assert_int_equal(hf_lock_release(lock[i], &w->err), 0);
        assert_int_equal(hf_lock_try(same, &w->err), 0);
        assert_int_equal(hf_lock_release(same, &w->err), 0);
        assert_int_equal(hf_lock_free(same), 0);
        assert_int_equal(hf_lock_free(lock[i]), 0);
        assert_int_equal(hf_close(c[i]), 0);
    }
    assert_int_equal(hf_close(other), 0);
    world_is_clean(w);
}

static void test_names_differ(void **state)
{
    all_names_differ(*state);
}

/* Names that differ, but not for the database, wait for nobody. */
static void test_queues_of_names_differ(void **state)
{
    struct world *w = *state;
    hf_client *a = my_open(w, my_one.url), *b = my_open(w, my_one.url);
    hf_lock *small = my_lock(w, a, "queue"), *large = my_lock(w, a, "QUEUE");
    hf_lock *wanted = my_lock(w, b, "QUEUE");
    static struct my_waiter waiter;

    assert_int_equal(hf_lock_try(small, &w->err), 0);
    assert_int_equal(hf_lock_try(large, &w->err), 0);
    my_waiter_start(&waiter, b, wanted);
    my_has_waiters(1);
    assert_int_equal(hf_lock_release(small, &w->err), 0);
    assert_true(NEVER_MS(my_waiter_back(&waiter), 300));
    assert_int_equal(hf_lock_release(large, &w->err), 0);
    assert_true(WAIT_FOR_MS(my_waiter_back(&waiter), SOON_MS));
    my_waiter_end(&waiter);
    assert_int_equal(waiter.rc, 0);
    assert_int_equal(hf_lock_free(small), 0);
    assert_int_equal(hf_lock_free(large), 0);
    assert_int_equal(hf_lock_free(wanted), 0);
    assert_int_equal(hf_close(a), 0);
    assert_int_equal(hf_close(b), 0);
    world_is_clean(w);
}

/* ---- lists ----------------------------------------------------------------
 */

/* Names n-0, n-1, ... behind the prefix, and as many that have another one. */
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
    char first[16];

    my_server_empty(&my_one);
    hold_many(prefix, n);
    if (hf_list(c, "n-", &list, &w->err))
        fail_msg("%d names: %s", n, w->err.text);
    if (list->len != (size_t)n)
        fail_msg("%zu names of %d", list->len, n);
    for (int i = 0; i < n; i += 97) {
        size_t at = 0;

        snprintf(first, sizeof(first), "n-%d", i + 1);
        while (at < list->len && strcmp(list->names[at].bytes, first) != 0)
            at++;
        assert_true(at < list->len);
    }
    hf_names_free(list);
    assert_int_equal(hf_close(c), 0);
    my_server_empty(&my_one);
}

/* The server is asked for 1000 at a time. */
static void test_long_lists(void **state)
{
    static const int lens[] = {1, 999, 1000, 1001, 2500};

    for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
        lists(*state, "", "n-", lens[i]);
        lists(*state, "?prefix=app:", "app:n-", lens[i]);
    }
}

/* Behind a name with another prefix the list would go on somewhere else, as
 * long as the server likes. */
static size_t say_another_name(char *data, size_t *len)
{
    char *at = memmem(data, *len, "app:n-1", 7);

    if (at)
        memcpy(at, "bpp", 3);
    return *len;
}

static void test_list_answers_what_was_not_asked_for(void **state)
{
    struct world *w = *state;
    hf_client *c;
    hf_names *list = NULL;
    char url[192];

    snprintf(url, sizeof(url), "%s?prefix=app:", w->far_url);
    c = my_open(w, url);
    hold_many("app:n-", 1);
    assert_int_equal(hf_list(c, "n-", &list, &w->err), 0);
    assert_int_equal(list->len, 1);
    hf_names_free(list);
    proxy_censors(w->proxy, say_another_name);
    assert_int_equal(hf_list(c, "n-", &list, &w->err), HF_EPROTO);
    proxy_censors(w->proxy, NULL);
    assert_int_equal(hf_close(c), 0);
    my_server_empty(&my_one);
}

int run_name_faults(void)
{
    const struct CMUnitTest tests[] = {
        MY_CASE(test_names_differ),
        MY_CASE(test_queues_of_names_differ),
        MY_CASE(test_long_lists),
        MY_CASE(test_list_answers_what_was_not_asked_for),
    };

    return cmocka_run_group_tests_name("mysql: names", tests, my_group,
                                       my_group_end);
}

/* ---- settings ---------------------------------------------------------------
 */

/* What one client holds the other is kept out of, and sees. */
static void excludes(struct world *w, hf_client *a, hf_client *b,
                     enum hf_kind kind)
{
    hf_lock *mine = my_lock_as(w, a, "o'clock", kind);
    hf_lock *theirs = my_lock_as(w, b, "o'clock", kind);
    hf_info *info = NULL;

    if (hf_lock_try(mine, &w->err))
        fail_msg("%s", w->err.text);
    assert_int_equal(hf_lock_try(theirs, NULL), HF_EBUSY);
    assert_int_equal(hf_lock_renew(mine, 0, &w->err), 0);
    assert_int_equal(hf_inspect(b, "o'clock", HF_CSTRING, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 1);
    assert_string_equal(info->holders[0].label, MY_LABEL);
    assert_in_range(info->holders[0].left_ms, 1, 60000);
    assert_true(llabs(info->holders[0].since_unix_ms / 1000 -
                      (long long)time(NULL)) < 60);
    hf_info_free(info);
    assert_int_equal(hf_lock_release(mine, &w->err), 0);
    if (hf_lock_try(theirs, &w->err))
        fail_msg("%d: %s", (int)kind, w->err.text);
    assert_int_equal(hf_lock_release(theirs, &w->err), 0);
    assert_int_equal(hf_lock_free(mine), 0);
    assert_int_equal(hf_lock_free(theirs), 0);
}

static void latch_works(struct world *w, hf_client *a, hf_client *b)
{
    hf_latch *mine = NULL, *theirs = NULL;
    uint64_t count = 9;

    assert_int_equal(hf_latch_new(a, "gate", 4, &mine, &w->err), 0);
    assert_int_equal(hf_latch_new(b, "gate", 4, &theirs, &w->err), 0);
    assert_int_equal(hf_latch_set(mine, 1, &w->err), 0);
    assert_int_equal(hf_latch_wait(mine, 0, NULL, NULL), HF_EBUSY);
    assert_int_equal(hf_latch_down(theirs, &count, &w->err), 0);
    assert_int_equal(count, 0);
    assert_int_equal(hf_latch_wait(mine, 5000, NULL, &w->err), 0);
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

/* A client with the setting and one without, and the tables made by either. */
static void works_with(struct world *w, const char *variable, const char *value)
{
    char before[256];
    hf_client *a, *b;

    snprintf(before, sizeof(before), "%s",
             my_server_text(&my_one, "select @@global.%s", variable));
    for (int i = 0; i < 2; i++) {
        my_drop_tables();
        my_server_do(&my_one, "set global %s='%s'", variable,
                     i ? before : value);
        a = my_open(w, my_one.url);
        my_server_do(&my_one, "set global %s='%s'", variable,
                     i ? value : before);
        b = my_open(w, my_one.url);
        my_server_do(&my_one, "set global %s='%s'", variable, before);
        my_all_kinds_work(w, a, b);
        assert_int_equal(hf_close(a), 0);
        assert_int_equal(hf_close(b), 0);
    }
    world_is_clean(w);
}

static void test_sql_modes(void **state)
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
        works_with(*state, "sql_mode", modes[i]);
}

static void test_time_zones(void **state)
{
    works_with(*state, "time_zone", "+13:00");
    works_with(*state, "time_zone", "-11:30");
}

static void test_isolation_and_transactions(void **state)
{
    static const char *const levels[] = {"READ-UNCOMMITTED", "SERIALIZABLE"};

    for (int i = 0; i < 2; i++)
        works_with(*state, "tx_isolation", levels[i]);
    works_with(*state, "init_connect", "set autocommit=0");
    works_with(*state, "completion_type", "CHAIN");
}

static void test_character_sets(void **state)
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
        works_with(*state, "collation_server", sets[i][1]);
        my_drop_tables();
        all_names_differ(*state);
    }
}

static long long statements_ended(void)
{
    return my_server_number(&my_one,
                            "select variable_value from information_schema."
                            "global_status where variable_name="
                            "'max_statement_time_exceeded'");
}

/* A server that ends statements which take long: waiting is none. */
static void test_statement_time_is_limited(void **state)
{
    struct world *w = *state;
    long long before = statements_ended();
    hf_lock *a, *b;
    struct taker *t;

    my_server_do(&my_one, "set global max_statement_time=0.3");
    a = world_near(w);
    b = world_near(w);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, WAIT_MS);
    my_has_waiters(1);
    my_server_do(&my_one, "set global max_statement_time=0");
    assert_true(NEVER_MS(taker_back(t), 1000));
    assert_int_equal(statements_ended(), before);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, SOON_MS);
    world_is_clean(w);
}

/* A server that ends idle connections after a second: the hold and the next
 * acquire do not mind. */
static void test_idle_connections_are_ended(void **state)
{
    struct world *w = *state;
    hf_lock *a;

    my_server_do(&my_one, "set global wait_timeout=1");
    a = world_near(w);
    my_server_do(&my_one, "set global wait_timeout=28800");
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    assert_true(NEVER_MS(hf_lock_check(a) != 0, 2500));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_free_for_all(w, a);
    world_is_clean(w);
}

/* A version that does not say whose it is. */
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
    assert_int_equal(hf_close(c), 0);
    assert_int_equal(hf_close(d), 0);
    relay_end(relay);
}

/* Through a proxy, and where nothing tells of one. */
static void test_version_without_a_name(void **state)
{
    works_without_a_name(*state, false);
    works_without_a_name(*state, true);
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

/* The number of the connection is the server's, so the version is, too. */
static void test_old_server_is_refused(void **state)
{
    refused_as_old(*state, relay_keeps_number);
}

/* A proxy is between, but the server does not know what later versions know. */
static void test_old_server_does_not_understand(void **state)
{
    refused_as_old(*state, relay_garbles_clock);
}

int run_session_faults(void)
{
    const struct CMUnitTest tests[] = {
        MY_CASE(test_sql_modes),
        MY_CASE(test_time_zones),
        MY_CASE(test_isolation_and_transactions),
        MY_CASE(test_character_sets),
        MY_CASE(test_statement_time_is_limited),
        MY_CASE(test_idle_connections_are_ended),
        MY_CASE(test_version_without_a_name),
        MY_CASE(test_old_server_is_refused),
        MY_CASE(test_old_server_does_not_understand),
    };

    return cmocka_run_group_tests_name("mysql: settings", tests, my_group,
                                       my_group_end);
}
