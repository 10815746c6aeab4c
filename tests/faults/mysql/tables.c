/* Who may create the tables, which rights other users need, and tables that
 * were altered. */
#include "mysql_faults.h"

#include <ctype.h>
#include <stdio.h>

GROUP("tables");

#define CLERK "clerk"

/* Creates a user with these rights on each table or, if of_tables is false, on
 * the database, and returns the URL with which the user logs in. */
static const char *clerk_url(const char *rights, bool of_tables)
{
    static char url[128];

    my_do("drop user if exists " CLERK);
    my_server_do(&my_one,
                 "create user " CLERK " identified by '" MY_SERVER_SECRET "'");
    for (int i = 0; of_tables && i < MY_TABLES; i++)
        my_do("grant %s on " MY_SERVER_DB ".%s to " CLERK, rights,
              my_tables[i]);
    if (!of_tables)
        my_do("grant %s on " MY_SERVER_DB ".* to " CLERK, rights);
    snprintf(url, sizeof(url),
             "mysql://" CLERK ":" MY_SERVER_SECRET
             "@127.0.0.1:%d/" MY_SERVER_DB,
             my_one.port);
    return url;
}

static void has_tables(struct world *w)
{
    world_ends(w, my_open(w, my_one.url));
}

static void mutex_works(struct world *w, hf_client *a, hf_client *b)
{
    hf_lock *mine = my_lock(w, a, "n"), *theirs = my_lock(w, b, "n");
    static struct my_waiter waiter;
    hf_names *all = NULL;

    OK(hf_lock_try(mine, &w->err));
    OK(hf_lock_put(mine, "k", 1, "v", 1, &w->err));
    assert_true(any_faults.takes_value(w, "k", "v"));
    OK(hf_lock_renew(mine, 0, &w->err));
    my_waiter_start(&waiter, b, theirs);
    COMES(my_number("select count(*) from information_schema.processlist where "
                    "state='User lock'") == 1);
    OK(hf_lock_release(mine, &w->err));
    COMES_MS(my_waiter_back(&waiter), SOON_MS);
    assert_int_equal(waiter.rc, 0);
    OK(hf_list(a, "n", &all, &w->err));
    assert_int_equal(all->len, 1);
    hf_names_free(all);
    OK(hf_break(a, "n", 1, &w->err));
    my_waiter_end(&waiter);
    assert_int_equal(waiter.release_rc, HF_ELOST);
    world_ends(w, mine);
    world_ends(w, theirs);
}

static void all_works(struct world *w, const char *url)
{
    hf_client *a = my_open(w, url), *b = my_open(w, url);

    mutex_works(w, a, b);
    my_all_kinds_work(w, a, b);
    world_ends(w, a);
    world_ends(w, b);
    world_is_clean(w);
}

CASE(test_few_rights_are_enough)
{
    has_tables(w);
    all_works(w, clerk_url(MY_SERVER_GRANTS, true));
}

/* Returns the SQL statement in the error message, from this word on. */
static const char *statement_in(const char *text, const char *word)
{
    const char *at = strcasestr(text, word);

    if (!at)
        fail_msg("\"%s\" has no statement %s", text, word);
    return at;
}

/* Executes the statement in each error message until hf_open() succeeds;
 * returns how many statements there were. */
static int do_as_told(struct world *w, const char *url, const char *word)
{
    hf_client *c = NULL;
    int n = 0;

    while (hf_open(url, NULL, &c, &w->err)) {
        const char *sql;

        assert_true(++n <= 2 * MY_TABLES);
        assert_false(w->err.may_pass);
        sql = text_of("%s", statement_in(w->err.text, word));
        if (my_server_try(&my_one, "%s", sql))
            fail_msg("\"%s\" is no statement", sql);
    }
    OK(hf_close(c));
    return n;
}

CASE(test_without_create_says_the_statement)
{
    const char *url = clerk_url(MY_SERVER_GRANTS, false);

    my_drop_tables();
    my_open_refused(w, url, HF_EAUTH, "holdfast_", NULL, false);
    assert_true(do_as_told(w, url, "create table") > 0);
    all_works(w, url);
    /* Tables that a client has created by itself suffice as well. */
    my_drop_tables();
    has_tables(w);
    all_works(w, url);
}

/* A missing right to UPDATE is found only when an acquire changes an existing
 * row, and a missing right to INSERT only when an acquire adds a row. */
CASE(test_without_rights_says_which)
{
    static const char *const rights[] = {"select, insert, delete",
                                         "select, update, delete"};
    world_free_for_all(w, world_near(w));
    my_open_refused(w, clerk_url("insert, update, delete", true), HF_EAUTH,
                    "SELECT", "grant select", false);
    for (int i = 0; i < MY_TABLES; i++)
        statement_in(w->err.text, my_tables[i]);
    for (int i = 0; i < 2; i++) {
        hf_client *c = my_open(w, clerk_url(rights[i], true));
        hf_lock *lock = my_lock(w, c, i ? "new" : "n");

        EXPECT(HF_EAUTH, hf_lock_timed(lock, 3000, &w->err));
        if (!strstr(w->err.text, i ? "INSERT" : "UPDATE") ||
            !strstr(w->err.text, "grant select"))
            fail_msg("%s", w->err.text);
        world_ends(w, lock);
        world_ends(w, c);
    }
}

/* A right is revoked while the lock is held: the reason for the loss contains
 * the whole statement that grants it. */
CASE(test_a_refused_renewal_says_the_statement)
{
    hf_lock *a = world_lock(w, clerk_url(MY_SERVER_GRANTS, true), 3000, 1000,
                            HF_FAIR_DEFAULT);
    const char *reason, *sql;
    int len;

    OK(hf_lock_timed(a, 5000, &w->err));
    my_do("revoke update on " MY_SERVER_DB ".holdfast_locks from " CLERK);
    reason = world_loses(w, 0, "the server refused to renew it (UPDATE");
    sql = statement_in(reason, "grant select");
    expect_words(sql, "names the account)"); /* nothing is truncated */
    len = (int)(strstr(sql, " to ") - sql);
    if (my_server_try(&my_one, "%.*s to " CLERK, len, sql))
        fail_msg("\"%s\" is no statement", sql);
    COMES(hf_lock_timed(a, 1000, &w->err) == 0);
    OK(hf_lock_release(a, &w->err));
}

CASE(test_wrong_password_and_database)
{
    char url[128];

    snprintf(url, sizeof(url),
             "mysql://" MY_SERVER_USER ":wr0ng@127.0.0.1:%d/" MY_SERVER_DB,
             my_one.port);
    my_open_refused(w, url, HF_EAUTH, "password", NULL, false);
    assert_null(strstr(w->err.text, "wr0ng"));
    snprintf(url, sizeof(url),
             "mysql://" MY_SERVER_USER ":" MY_SERVER_SECRET
             "@127.0.0.1:%d/none",
             my_one.port);
    my_open_refused(w, url, HF_EAUTH, "none", NULL, false);
}

CASE(test_unknown_column)
{
    my_drop_tables();
    has_tables(w);
    for (int i = 0; i < MY_TABLES; i++)
        my_server_do(&my_one,
                     "alter table %s add column remark varchar(20) first, "
                     "add column changed timestamp",
                     my_tables[i]);
    all_works(w, my_one.url);
    my_drop_tables();
}

/* A table was created by an older version: the error message contains the
 * statement that alters it. */
CASE(test_missing_column_says_the_statement)
{
    static const char *const columns[] = {"rings", "since", "lease_us",
                                          "label", "size",  "asks"};
    for (size_t i = 0; i < sizeof(columns) / sizeof(*columns); i++) {
        my_drop_tables();
        has_tables(w);
        my_do("alter table holdfast_locks drop column %s", columns[i]);
        my_open_refused(w, my_one.url, HF_EBACKEND, columns[i],
                        "holdfast_locks", false);
        assert_int_equal(do_as_told(w, my_one.url, "alter table"), 1);
        all_works(w, my_one.url);
    }
    my_drop_tables();
}

/* The tables are dropped while they are in use: the holder learns of its loss,
 * and the tables are created again. */
CASE(test_tables_dropped)
{
    hf_lock *a = world_lock(w, w->near_url, 3000, 1000, HF_FAIR_DEFAULT);

    OK(hf_lock_timed(a, 5000, &w->err));
    my_drop_tables();
    world_loses(w, 0, "");
    has_tables(w);
    COMES(hf_lock_timed(a, 1000, &w->err) == 0);
    OK(hf_lock_release(a, &w->err));
}
