/* A URL that leads to two servers: one of its two hosts is read-only or was
 * down for a while, or its only host is a load balancer. All connections of a
 * client must lead to the same server. */
#include "mysql_faults.h"

#include <mysql.h>
#include <stdio.h>

enum { STRANGERS = 30 };

static struct my_server other;

static int start_other(struct world *w)
{
    return my_server_start(&other);
}

static int end_other(struct world *w)
{
    world_close(w);
    my_server_end(&other);
    return 0;
}

GROUP("hosts", .begin = start_other, .end = end_other);

/* Returns a URL that names both servers, the group's own one first. */
static const char *both(struct world *w)
{
    static char url[160];

    world_url(w, text_of("127.0.0.1:%d,127.0.0.1:%d", my_one.port, other.port),
              url, sizeof(url));
    return url;
}

static long held_at(struct my_server *s)
{
    return my_server_left(s, false);
}

/* A client leaves a server that has become a read-only replica. */
CASE(test_read_only_leads_to_the_other_host)
{
    hf_lock *a = world_lock(w, both(w), 30000, 5000, HF_FAIR_DEFAULT);

    OK(hf_lock_timed(a, 5000, &w->err));
    assert_int_equal(held_at(&my_one), 1);
    OK(hf_lock_release(a, &w->err));
    my_do("set global read_only=1");
    OK(hf_lock_timed(a, 5000, &w->err));
    assert_int_equal(held_at(&my_one), 0);
    assert_int_equal(held_at(&other), 1);
    OK(hf_lock_release(a, &w->err));
    /* A client that is opened now does not stay at the read-only host. */
    a = world_lock(w, both(w), 30000, 5000, HF_FAIR_DEFAULT);
    OK(hf_lock_timed(a, 5000, &w->err));
    assert_int_equal(held_at(&other), 1);
    OK(hf_lock_release(a, &w->err));
    assert_int_equal(held_at(&other), 0);
}

/* The holder's server becomes read-only, and the client switches to a server
 * that has no row of the hold. The holder learns of its loss. */
CASE(test_read_only_while_holding)
{
    hf_lock *a = world_lock(w, both(w), 5000, 5000, HF_FAIR_DEFAULT);

    OK(hf_lock_timed(a, 5000, &w->err));
    my_do("set global read_only=1");
    COMES(hf_lock_check(a) == HF_ELOST);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    my_do("set global read_only=0");
}

static long long statements(struct my_server *s)
{
    return my_server_number(s, "select variable_value from information_schema."
                               "global_status where variable_name='questions'");
}

/* Asserts that a waiter sends few statements: almost none if it waits in a
 * queue, two or three every half second if it polls. */
static void nobody_spins(struct taker *t)
{
    enum { MS = 2000, MOST = 60 };
    long long before = statements(&my_one) + statements(&other), now;

    assert_true(NEVER_MS(taker_back(t), MS));
    now = statements(&my_one) + statements(&other);
    if (now - before > MOST)
        fail_msg("%lld statements within %d ms", now - before, MS);
}

/* Asserts that the clients wait at the second server although the first one is
 * running. */
static void waits_at_the_other(struct world *w, hf_lock *a, hf_lock *b)
{
    struct taker *t;

    world_takes(w, a, 5000);
    t = taker_start(w, b, WAIT_MS);
    COMES(my_server_waiting(&other) == 1);
    assert_int_equal(my_server_connections(&my_one), 0);
    nobody_spins(t);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    COMES(my_server_left(&other, false) == 0);
}

CASE(test_waits_beside_a_read_only_host)
{
    hf_lock *a, *b;

    my_do("set global read_only=1");
    a = world_lock(w, other.url, 30000, 5000, HF_FAIR_DEFAULT);
    b = world_lock(w, both(w), 30000, 5000, HF_FAIR_DEFAULT);
    waits_at_the_other(w, a, b);
}

/* The client was opened while the first host was down, and stays at the second
 * when the first is back. */
CASE(test_waits_after_the_first_host_is_back)
{
    hf_lock *a, *b;

    my_server_kill(&my_one);
    a = world_lock(w, other.url, 30000, 5000, HF_FAIR_DEFAULT);
    b = world_lock(w, both(w), 30000, 5000, HF_FAIR_DEFAULT);
    OK(my_server_again(&my_one));
    waits_at_the_other(w, a, b);
}

static MYSQL *stranger(struct my_server *s)
{
    MYSQL *db = mysql_init(NULL);

    if (!mysql_real_connect(db, "127.0.0.1", MY_SERVER_USER, MY_SERVER_SECRET,
                            MY_SERVER_DB, (unsigned)s->port, NULL, 0))
        fail_msg("%s", mysql_error(db));
    return db;
}

static unsigned long next_number(struct my_server *s)
{
    MYSQL *db = stranger(s);
    unsigned long number = mysql_thread_id(db);

    mysql_close(db);
    return number;
}

/* Opens sessions of strangers at the first server, each of which executes a
 * statement. Before that, makes the next thread ids of both servers equal, so
 * that the next connections at the other server get the same thread ids as the
 * sessions. */
static void strangers_begin(MYSQL **db)
{
    static const char sleep[] = "select sleep(600)";
    unsigned long here = next_number(&my_one), there = next_number(&other);

    while (there < here)
        there = next_number(&other);
    while (here < there)
        here = next_number(&my_one);
    for (int i = 0; i < STRANGERS; i++) {
        db[i] = stranger(&my_one);
        assert_int_equal(mysql_send_query(db[i], sleep, sizeof(sleep) - 1), 0);
    }
}

static long strangers_asleep(void)
{
    return (long)my_number(
        "select count(*) from information_schema.processlist where "
        "info='select sleep(600)' and state='User sleep'");
}
static void strangers_end(MYSQL **db)
{
    for (int i = 0; i < STRANGERS; i++) {
        my_server_try(&my_one, "kill %lu", mysql_thread_id(db[i]));
        mysql_close(db[i]);
    }
}

/* A waiting connection is useless if it leads to a server other than that of
 * the command connection: the client polls, and kills no statement of another
 * session. */
CASE(test_balancer_leads_the_waits_elsewhere)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    MYSQL *db[STRANGERS];
    struct taker *t;

    world_takes(w, a, 5000);
    strangers_begin(db);
    COMES(strangers_asleep() == STRANGERS);
    proxy_lead_to(w->proxy, other.port);
    for (int i = 0; i < 10; i++)
        EXPECT(HF_ETIMEDOUT, hf_lock_timed(b, 100, NULL));
    t = taker_start(w, b, WAIT_MS);
    nobody_spins(t);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    assert_int_equal(strangers_asleep(), STRANGERS);
    strangers_end(db);
    assert_int_equal(my_server_left(&other, false), 0);
    COMES(my_server_left(&my_one, false) == 0);
}
