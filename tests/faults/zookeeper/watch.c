/* Changes that ZooKeeper tells of. */
#include "zk_faults.h"

#include "../any/watch.h"

#include <stdio.h>

/* All watches of the server's are gone with the session. */
static void test_watch_outlives_its_session(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->near_url, 30000, 5000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    unsigned calls;
    char path[128], hosts[32];
    struct Stat stat;
    struct seen s;

    calls = watch_taken(w, &s, a);
    world_first_entry(w, path, sizeof(path));
    assert_int_equal(zk_hand_stat(hand(w), path, &stat), 0);
    snprintf(hosts, sizeof(hosts), "127.0.0.1:%d", w->zk->port);
    do /* it may be taken back before it is closed */
        zk_hand_close(zk_hand_steal(hosts, stat.ephemeralOwner));
    while (hf_lock_check(a) == 0 &&
           !WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST, 3000));
    assert_true(WAIT_FOR(is_seen(&s, calls)));
    hf_lock_release(a, NULL);
    hears_and_ends(w, &s, b);
    world_is_clean(w);
}

static void test_watch_needs_rights(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    struct seen s;

    world_near(w);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_READ);
    watch_is_refused(w, w->clients[1], "n", 0, HF_EAUTH, "READ");
    set_rights(w, NODE, ZOO_PERM_ALL);
    watch(w, 1, "n", 0, &s);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    hears_and_ends(w, &s, a);
    world_is_clean(w);
}

static void test_watch_of_a_prefix_is_refused(void **state)
{
    struct world *w = *state;

    world_near(w);
    watch_is_refused(w, w->clients[0], "n", HF_WATCH_PREFIX, HF_ENOTSUP,
                     "recursive");
    watch_is_refused(w, w->clients[0], "a/locks", 0, HF_EINVAL, "locks");
}

static void test_watch_again_and_again(void **state)
{
    watch_again_and_again(*state, 0);
}

int run_watch_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_watch_hears_after_a_cut),  T(test_watch_hears_of_an_outage),
        T(test_watch_is_freed_while_cut), T(test_watch_outlives_its_session),
        T(test_watch_needs_rights),       T(test_watch_of_a_prefix_is_refused),
        T(test_watch_again_and_again),
    };

    return cmocka_run_group_tests_name("zookeeper: watches", tests, group_one,
                                       group_one_end);
}
