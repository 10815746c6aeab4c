/* How many connections a client opens, and servers that accept no more. */
#include "mysql_faults.h"

#include <stdio.h>

GROUP("limits");

enum { MANY = 200, NAMES = 20, MOST = 12 };

CASE(test_who_does_not_wait_has_one_connection)
{
    hf_lock *a = world_near(w);

    for (int i = 0; i < 5; i++)
        world_free_for_all(w, a);
    assert_int_equal(my_server_connections(&my_one), 1);
    OK(hf_lock_timed(a, 0, &w->err));
    world_near(w);
    EXPECT(HF_EBUSY, hf_lock_try(w->locks[1], NULL));
    assert_int_equal(my_server_connections(&my_one), 2);
    OK(hf_lock_release(a, &w->err));
}

CASE(test_many_locks_have_few_connections)
{
    hf_client *c = my_open(w, my_one.url);
    hf_lock *lock[MANY];

    for (int i = 0; i < MANY; i++) {
        lock[i] = my_lock(w, c, text_of("many-%d", i));
        OK(hf_lock_timed(lock[i], 5000, &w->err));
    }
    assert_int_equal(my_server_left(&my_one, false), MANY);
    assert_true(my_server_connections(&my_one) <= 2);
    world_renews(lock[MANY - 1]);
    assert_true(my_server_connections(&my_one) <= 2);
    for (int i = 0; i < MANY; i++) {
        OK(hf_lock_check(lock[i]));
        OK(hf_lock_release(lock[i], &w->err));
    }
}

static void take_names(struct world *w, hf_client *c, hf_lock **lock, bool take)
{
    for (int i = 0; i < NAMES; i++) {
        lock[i] = my_lock(w, c, text_of("name-%d", i));
        if (take)
            OK(hf_lock_timed(lock[i], 5000, &w->err));
    }
}

static bool all_back(struct my_waiter *waiter)
{
    for (int i = 0; i < NAMES; i++)
        if (!my_waiter_back(&waiter[i]))
            return false;
    return true;
}

/* The URL limits how many waiters have their own connection; the others
 * poll. */
CASE(test_waiting_connections_are_bounded)
{
    enum { WAITING = 4 };
    hf_client *a = my_open(w, my_one.url);
    hf_client *b = my_open(w, my_url("?wait_connections=4"));
    hf_lock *held[NAMES], *wanted[NAMES];
    static struct my_waiter waiter[NAMES];

    take_names(w, a, held, true);
    take_names(w, b, wanted, false);
    for (int i = 0; i < NAMES; i++)
        my_waiter_start(&waiter[i], b, wanted[i]);
    my_has_waiters(WAITING);
    assert_true(NEVER_MS(my_server_connections(&my_one) > 2 + WAITING, 500));
    for (int i = 0; i < NAMES; i++)
        OK(hf_lock_release(held[i], &w->err));
    COMES_MS(all_back(waiter), 2 * SOON_MS);
    for (int i = 0; i < NAMES; i++) {
        my_waiter_end(&waiter[i]);
        assert_int_equal(waiter[i].rc, 0);
        assert_int_equal(waiter[i].release_rc, 0);
    }
}

/* Opens clients until the server refuses one; returns how many it accepted. */
static int open_all(struct world *w, hf_client **c)
{
    int n = 0;

    while (n < MOST && !hf_open(my_one.url, NULL, &c[n], &w->err))
        n++;
    assert_true(n < MOST);
    return n;
}

static void no_more_connections(struct world *w, const char *set,
                                const char *word)
{
    hf_client *c[MOST] = {0};
    int64_t began;
    int n;

    my_do("%s", set);
    n = open_all(w, c);
    assert_true(n > 1);
    began = wait_fair();
    my_open_refused(w, my_one.url, HF_EBACKEND, word, NULL, true);
    assert_true(wait_within(began, 1000));
    OK(hf_close(c[--n]));
    COMES(!hf_open(my_one.url, NULL, &c[n], &w->err));
    for (; n >= 0; n--)
        OK(hf_close(c[n]));
}

CASE_IS(test_too_many_connections,
        no_more_connections(w, "set global max_connections=10",
                            "Too many connections"))
CASE_IS(test_too_many_connections_of_the_user,
        no_more_connections(w, "set global max_user_connections=3",
                            "max_user_connections"))

/* The server accepts no connection on which to wait: the client polls. */
static void no_connection_to_wait_on(struct world *w, const char *set)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    hf_client *c[MOST] = {0};
    struct taker *t;
    int n;

    my_do("%s", set);
    n = open_all(w, c);
    OK(hf_lock_timed(a, 5000, &w->err));
    t = taker_start(w, b, WAIT_MS);
    assert_true(NEVER_MS(taker_back(t), 300));
    assert_int_equal(my_server_waiting(&my_one), 0);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, SOON_MS);
    while (n > 0)
        OK(hf_close(c[--n]));
}

CASE_IS(test_no_connection_to_wait_on,
        no_connection_to_wait_on(w, "set global max_connections=10"))
CASE_IS(test_no_connection_of_the_user_to_wait_on,
        no_connection_to_wait_on(w, "set global max_user_connections=3"))
