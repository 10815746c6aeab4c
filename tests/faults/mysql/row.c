/* Rows that an administrator changes, hf_ask(), guarded writes, and a full
 * disk. */
#include "mysql_faults.h"

#include <stdio.h>

GROUP("row");

enum { SHORT_MS = 2000 };

/* In the row, the lease ends an hour too late, as if the server's clock had
 * been set back. The waiter shortens the lease as if it began now. */
CASE(test_lease_that_ends_too_late)
{
    hf_lock *b = world_near(w);
    struct taker *t;
    struct proc p;

    any_puppet(w, &p, SHORT_MS);
    proc_kill(&p);
    assert_int_equal(my_do("update holdfast_locks set lease_until=lease_until "
                           "+ interval 1 hour where name='n'"),
                     1);
    t = taker_start(w, b, WAIT_MS);
    assert_true(NEVER_MS(taker_back(t), 300));
    taker_gets_it(t, 2 * SHORT_MS + SOON_MS);
}

/* A holder that is alive keeps the lock while it renews, even if the row says
 * that its lease ends an hour too late. */
CASE(test_lease_that_ends_too_late_is_kept)
{
    hf_lock *a = world_lock(w, w->near_url, 4500, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);

    my_do("update holdfast_locks set lease_until=lease_until + interval 1 hour "
          "where name='n'");
    assert_true(NEVER_MS(taker_back(t), 6000));
    OK(hf_lock_check(a));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
}

/* The lease in the row has ended, as if the server's clock had been set
 * forward. Another client gets the lock. */
CASE(test_lease_that_ends_at_once)
{
    hf_lock *a = world_lock(w, w->near_url, 4500, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);

    OK(hf_lock_timed(a, 5000, &w->err));
    my_do("update holdfast_locks set lease_until='1999-12-31' where name='n'");
    world_takes(w, b, SOON_MS);
    assert_true(token_of(b) > token_of(a));
    world_loses(w, 0, "it is no longer on the server (broken, its row was ");
    OK(hf_lock_check(b));
    assert_int_equal(any_faults.holds(w), 1);
    OK(hf_lock_release(b, &w->err));
}

/* An administrator changes the row, which notifies no client: the waiter finds
 * the change by polling. */
static void changed_while_waiting(struct world *w, const char *sql)
{
    hf_lock *a = world_lock(w, w->near_url, 3000, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, WAIT_MS);

    assert_int_equal(my_do("%s", sql), 1);
    taker_has_it(t, REPEAT_MS);
    COMES(hf_lock_check(a) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    assert_int_equal(any_faults.holds(w), 1);
    taker_gives(t);
}

CASE_IS(test_row_deleted,
        changed_while_waiting(w, "delete from holdfast_locks where name='n'"))
CASE_IS(test_row_freed,
        changed_while_waiting(w, "update holdfast_locks set "
                                 "lease_until='1970-01-02' where name='n'"))
CASE_IS(test_row_of_another_owner,
        changed_while_waiting(
            w, "update holdfast_locks set owner=x'00', lease_us=1000000, "
               "lease_until=utc_timestamp(6) + interval 1 second "
               "where name='n'"))

/* A stranger's transaction locks the row: clients wait for it, but not
 * forever. */
CASE(test_row_is_locked_by_a_stranger)
{
    hf_lock *a = world_lock(w, w->near_url, 30000, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = world_lock(w, w->near_url, 30000, 1000, HF_FAIR_DEFAULT);

    OK(hf_lock_timed(a, 5000, &w->err));
    my_do("start transaction");
    my_server_do(&my_one,
                 "select * from holdfast_locks where name='n' for update");
    WITHIN(500 + 1000, FAILS(hf_lock_timed(b, 500, &w->err)));
    OK(hf_lock_check(a));
    my_do("rollback");
    OK(hf_lock_release(a, &w->err));
    world_free_for_all(w, b);
}

/* The server gives up a transaction of the client because another session has
 * locked the row that the transaction needs. The other requests of the same
 * client still succeed, and soon. */
CASE(test_row_is_locked_beside_others)
{
    hf_client *c = my_open(w, my_url("")), *d = my_open(w, my_url(""));
    hf_lock *lock = my_lock(w, c, "beside");
    hf_lock *rw = my_lock_as(w, c, "rw", HF_RWLOCK);
    struct my_waiter waiter;

    my_waiter_start(&waiter, c, rw);
    COMES(my_waiter_back(&waiter));
    my_waiter_end(&waiter); /* creates the row */
    my_do("start transaction");
    my_server_do(&my_one,
                 "select * from holdfast_locks where name='rw' for update");
    my_waiter_start(&waiter, c, rw);
    for (int i = 0; i < 4; i++) {
        hf_info *info = NULL;

        OK(hf_lock_timed(lock, WAIT_MS, &w->err));
        OK(hf_inspect(d, "beside", HF_CSTRING, &info, &w->err));
        assert_int_equal(info->holders_len, 1);
        assert_int_equal(info->holders[0].token, token_of(lock));
        hf_info_free(info);
        OK(hf_lock_release(lock, &w->err));
    }
    my_do("rollback");
    my_waiter_end(&waiter);
}

/* Returns how often clients have begun a transaction. */
static long begun(void)
{
    return my_number("select variable_value from information_schema."
                     "global_status where variable_name='com_begin'");
}

static void *break_it(void *client)
{
    return (void *)(intptr_t)hf_break(client, "n", 1, NULL);
}

/* When a wait for a locked row takes too long, the server ends the statement
 * but leaves the transaction open. What the transaction has done by then must
 * be undone before the break is sent again; otherwise the second break would
 * find no holder. */
CASE(test_break_is_sent_again)
{
    hf_lock *a = world_near(w);
    pthread_t thread;
    long before;
    void *rc;

    world_near(w);
    OK(hf_lock_timed(a, WAIT_MS, &w->err));
    my_do("insert into holdfast_holds set name='n',owner=x'00',hold=1,mode=1,"
          "permits=1,token=1,host='',pid=1,label='',since=utc_timestamp(6),"
          "lease_us=1,lease_until='1999-12-31'");
    my_do("start transaction");
    my_server_do(&my_one,
                 "select * from holdfast_holds where name='n' for update");
    before = begun();
    OK(pthread_create(&thread, NULL, break_it, w->clients[1]));
    COMES(begun() - before >= 2);
    my_do("rollback");
    OK(pthread_join(thread, &rc));
    OK((int)(intptr_t)rc);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_free_for_all(w, a);
}

CASE(test_put_needs_the_row)
{
    hf_lock *a = world_near(w), *b = world_near(w);

    EXPECT(HF_ENOTOWNER, hf_lock_put(a, "v", 1, "no", 2, NULL));
    OK(hf_lock_timed(a, 5000, &w->err));
    OK(hf_lock_put(a, "v", 1, "it's", 4, &w->err));
    EXPECT(HF_ENOTOWNER, hf_lock_put(b, "v", 1, "no", 2, NULL));
    OK(hf_lock_put(a, "v", 1, "mine", 4, &w->err));
    OK(hf_break(w->clients[1], "n", 1, &w->err));
    OK(hf_lock_timed(b, 5000, &w->err));
    EXPECT(HF_ELOST, hf_lock_put(a, "v", 1, "late", 4, &w->err));
    OK(hf_lock_put(b, "w", 1, "theirs", 6, &w->err));
    assert_true(any_faults.takes_value(w, "v", "mine"));
    assert_true(any_faults.takes_value(w, "w", "theirs"));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    OK(hf_lock_release(b, &w->err));
}

/* The server's clock, and not the client, decides whether the lease has
 * ended. */
CASE(test_put_after_the_lease)
{
    hf_lock *a = world_near(w);

    OK(hf_lock_timed(a, 5000, &w->err));
    my_do("update holdfast_locks set lease_until=utc_timestamp(6) where "
          "name='n'");
    OK(hf_lock_check(a));
    EXPECT(HF_ELOST, hf_lock_put(a, "v", 1, "late", 4, &w->err));
    assert_int_equal(my_number("select count(*) from holdfast_values"), 0);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
}

/* Renews, and returns how often the first client has been asked for its
 * lock. */
static unsigned asked(struct world *w)
{
    OK(hf_lock_renew(w->locks[0], 0, &w->err));
    world_heard_wish(w, 0); /* dispatches */
    return w->ears[0].wanted;
}

static void ask(struct world *w)
{
    OK(hf_ask(w->clients[w->len - 1], "n", 1, &w->err));
}

/* For each kind of lock: asks are reported once, at the next renewal. The lease
 * is fixed so that no other renewal interferes. */
CASE(test_ask_is_told_once)
{
    unsigned told = 0;

    world_near(w);
    world_near(w);
    for (enum hf_kind kind = HF_MUTEX; kind <= HF_SEMAPHORE; kind++) {
        hf_lock *a = world_change(w, 0, kind, kind == HF_SEMAPHORE);

        OK(hf_lock_acquire(a, HOW(HF_FOREVER, .lease_ms = WAIT_MS), &w->err));
        assert_int_equal(asked(w), told);
        ask(w);
        assert_int_equal(asked(w), told + 1);
        assert_int_equal(asked(w), told + 1);
        ask(w);
        ask(w);
        assert_int_equal(asked(w), told + 2);
        if (kind == HF_RWLOCK)
            OK(hf_lock_downgrade(a, &w->err));
        assert_int_equal(asked(w), told + 2);
        ask(w);
        assert_int_equal(asked(w), told + 3);
        told += 3;
        OK(hf_lock_release(a, &w->err));
    }
}

/* An ask for an earlier hold is not reported to the next hold. This is true
 * even if the kind of lock in the row has changed in between, in which case
 * another SQL statement grants the lock. */
CASE(test_ask_is_not_for_the_next_hold)
{
    static const enum hf_kind kinds[] = {HF_MUTEX, HF_MUTEX, HF_RWLOCK,
                                         HF_MUTEX};
    world_near(w);
    world_near(w);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        hf_lock *a = world_change(w, 0, kinds[i], 0);

        OK(hf_lock_timed(a, WAIT_MS, &w->err));
        assert_int_equal(asked(w), 0);
        ask(w);
        OK(hf_lock_release(a, &w->err));
        EXPECT(HF_ENOTOWNER, hf_ask(w->clients[1], "n", 1, &w->err));
    }
}

/* A hold whose lease has ended cannot be asked for, and an ask for it is not
 * reported to the next holder in the row. */
CASE(test_ask_after_the_lease)
{
    struct proc p;

    world_near(w);
    any_puppet(w, &p, SHORT_MS);
    ask(w);
    proc_kill(&p);
    COMES(any_faults.holds(w) == 0);
    EXPECT(HF_ENOTOWNER, hf_ask(w->clients[0], "n", 1, &w->err));
    OK(hf_lock_timed(w->locks[0], WAIT_MS, &w->err));
    assert_int_equal(asked(w), 0);
    OK(hf_lock_release(w->locks[0], &w->err));
}

/* The server has renewed the hold, but the reply, which contained the ask, is
 * lost: the next renewal, on another connection, reports the ask. */
CASE(test_ask_is_not_lost_with_an_answer)
{
    hf_lock *a = world_far(w, WAIT_MS, 1000);

    world_near(w);
    OK(hf_lock_timed(a, WAIT_MS, &w->err));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    ask(w);
    EXPECT(HF_EUNKNOWN, hf_lock_renew(a, 0, &w->err));
    assert_false(world_heard_wish(w, 0));
    world_heal(w);
    COMES(hf_lock_renew(a, 0, NULL) == 0);
    COMES(world_heard_wish(w, 0));
    assert_int_equal(asked(w), 1);
    OK(hf_lock_release(a, &w->err));
}

/* An administrator increments the count of asks in the row while the holder has
 * no connection. */
CASE(test_ask_by_hand)
{
    hf_lock *a = world_far(w, WAIT_MS, 1000);

    OK(hf_lock_timed(a, WAIT_MS, &w->err));
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    my_do("update holdfast_locks set asks=asks + 1 where name='n'");
    proxy_set(w->proxy, PROXY_PASS, 0);
    COMES(hf_lock_renew(a, 0, NULL) == 0);
    COMES(world_heard_wish(w, 0));
    assert_int_equal(asked(w), 1);
    OK(hf_lock_release(a, &w->err));
}

/* The tables are in one file with a maximum size. When the file is full, InnoDB
 * reports the same error as for a full disk, so the test needs no root. */
static const char small_file[] =
    "--innodb-data-file-path=ibdata1:12M:autoextend:max:16M";
static const char large_file[] =
    "--innodb-data-file-path=ibdata1:12M:autoextend:max:64M";

static int start_small(void)
{
    my_one.args[0] = "--innodb-file-per-table=0";
    my_one.args[1] = small_file;
    return my_start();
}

static void end_small(void)
{
    my_end();
    memset(my_one.args, 0, sizeof(my_one.args));
}

static const struct world_group full = {
    .name = "full", .start = start_small, .stop = end_small};

static void fill(void)
{
    unsigned error;
    int n = 0;

    my_do("create table filler(b longblob)");
    do {
        error = my_server_try(
            &my_one, "insert into filler values(repeat('x', 1000000))");
        assert_true(n++ < 100);
    } while (!error);
    assert_int_equal(error, 1114);
    /* Even this short row must not fit into the pages that the table has. */
    assert_int_equal(my_server_try(&my_one, "insert into filler values('x')"),
                     1114);
}

static void refuses(struct world *w, int rc, int64_t began)
{
    if (rc != HF_EBACKEND || !strstr(w->err.text, "is full"))
        fail_msg("%s: %s", hf_error_name(rc), w->err.text);
    assert_true(wait_within(began, 1000));
}

/* The disk is full: every acquire and renewal fails with the server's error,
 * and the hold lasts as long as its lease. Once there is space, everything
 * works again. */
CASE_OF(full, test_disk_full)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    uint64_t token;
    int64_t began;

    OK(hf_lock_timed(a, 5000, &w->err));
    token = token_of(a);
    fill();
    for (int i = 0; i < 3; i++) {
        hf_lock *other = my_lock(w, w->clients[1], "another");

        began = wait_fair();
        refuses(w, hf_lock_timed(other, i ? 3000 : 0, &w->err), began);
        world_ends(w, other);
        began = wait_fair();
        refuses(w, hf_lock_renew(a, 0, &w->err), began);
    }
    OK(hf_lock_check(a));
    FAILS(hf_lock_try(b, NULL));
    my_server_kill(&my_one);
    my_one.args[1] = large_file;
    OK(my_server_again(&my_one));
    COMES(hf_lock_renew(a, 0, &w->err) == 0);
    assert_int_equal(token_of(a), token);
    EXPECT(HF_EBUSY, hf_lock_try(b, NULL));
    OK(hf_lock_release(a, &w->err));
    world_free_for_all(w, b);
}
