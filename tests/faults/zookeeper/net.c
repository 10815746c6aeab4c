/* The way to the server: answers swallowed, late, cut in the middle. */
#include "../any/any_faults.h"
#include "zk_faults.h"

#define OP_MS 1000

/* ---- the answer goes nowhere -------------------------------------------- */

/* The connection gives way right after the create: the node that nobody told
 * us of is found and is ours, and there is no second. */
static void test_created_then_cut_is_adopted(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 5000);
    struct taker *t;

    world_free_for_all(w, a);
    /* Another lock's node below keeps the parent from being swept. */
    create_below(w, NODE, NODE "/x", ZOO_CONTAINER, NULL, 0);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, a, 10000);
    world_has_entries(w, 2);
    world_heal(w);
    assert_true(WAIT_FOR_MS(taker_back(t), 4000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(zk_server_children(w->zk, NODE), 2);
    assert_int_equal(zk_hand_delete(zk_server_hand(w->zk), NODE "/x"), 0);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

/* The same in a queue: it keeps the place that it did not know of. */
static void test_queued_then_cut_keeps_its_place(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    char path[256], own[256];
    struct taker *t;

    world_free_for_all(w, b);
    assert_int_equal(hf_lock_timed(a, 5000, NULL), 0);
    world_first_entry(w, path, sizeof(path));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, b, 10000);
    world_has_entries(w, 2);
    world_heal(w);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 4000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(zk_server_children(w->zk, NODE), 1);
    world_first_entry(w, own, sizeof(own));
    assert_string_not_equal(own, path);
    taker_end(t);
    world_is_clean(w);
}

/* ---- cut in the middle --------------------------------------------------- */

static void test_reset_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 5000), PROXY_RESET, 160,
                    7);
}

static void test_half_close_in_the_middle_of_an_answer(void **state)
{
    any_cut_answers(*state, world_far(*state, 30000, 5000), PROXY_HALF_CLOSE,
                    160, 7);
}

static void test_connection_reset_while_waiting(void **state)
{
    hf_lock *a = world_near(*state);

    any_cut_waiter(*state, a, world_far(*state, 30000, 5000));
}

/* The one before us went while nobody could tell us. */
static void test_release_while_the_waiter_is_away(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, NULL), 0);
    t = taker_start(w, b, 20000);
    world_has_entries(w, 2);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(NEVER_MS(taker_back(t), 300));
    proxy_set(w->proxy, PROXY_PASS, 0);
    taker_gets_it(t, 3000);
    world_is_clean(w);
}

static void test_open_says_at_once_what_is_wrong(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    int64_t began;

    opt.connect_timeout_ms = 500;
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    began = wait_fair();
    assert_int_equal(hf_open(w->far_url, &opt, &c, &w->err), HF_EBACKEND);
    assert_null(c);
    assert_true(w->err.text[0] != '\0');
    assert_true(w->err.may_pass);
    assert_true(wait_within(began, 1500));
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    began = wait_fair();
    w->err.may_pass = 0;
    assert_int_equal(hf_open(w->far_url, &opt, &c, &w->err), HF_EBACKEND);
    assert_true(w->err.may_pass);
    assert_true(wait_within(began, 1500));
}

/* ---- hostile ------------------------------------------------------------- */

/* hf_close ends the session even where the last words were lost: nothing stays
 * for longer than the session would. */
static void test_close_in_a_black_hole(void **state)
{
    enum { TTL_MS = 6000 };
    struct world *w = *state;
    hf_lock *a = world_far(w, TTL_MS, OP_MS), *b = world_near(w);
    int64_t taken, began;
    int rc;

    /* A busy machine may not answer in OP_MS. */
    assert_true(WAIT_FOR(hf_lock_timed(a, 5000, &w->err) == 0));
    taken = wait_now();
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    began = wait_fair();
    rc = hf_close(w->clients[0]);
    w->clients[0] = NULL;
    /* Or it stood until the hold was lost, and there was nothing to release. */
    if (rc || wait_ms_since(taken) < TTL_MS / 2)
        assert_int_equal(rc, HF_EUNKNOWN);
    assert_true(wait_within(began, OP_MS + 1200));
    world_takes(w, b, TTL_MS + ZK_TICK_MS + 1000);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    world_is_clean(w);
}

/* What was not done in time is not done to those who hold the lock later. */
static void test_break_in_an_outage_is_not_done_later(void **state)
{
    struct world *w = *state;
    hf_lock *b;
    hf_info *info = NULL;

    world_far(w, 30000, OP_MS);
    b = world_near(w);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    /* The first notices that the connection is gone. */
    assert_int_equal(hf_break(w->clients[0], "m", 1, &w->err), HF_EUNKNOWN);
    assert_int_equal(hf_break(w->clients[0], "n", 1, &w->err), HF_EUNKNOWN);
    /* When the last is over, the time of that one surely is. */
    assert_int_equal(hf_break(w->clients[0], "m", 1, &w->err), HF_EUNKNOWN);
    assert_int_equal(hf_lock_timed(b, 5000, &w->err), 0);
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(
        WAIT_FOR_MS(!hf_inspect(w->clients[0], "n", 1, &info, NULL), 4000));
    assert_int_equal(info->holders_len, 1);
    hf_info_free(info);
    assert_int_equal(hf_inspect(w->clients[0], "n", 1, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 1);
    hf_info_free(info);
    assert_int_equal(hf_lock_release(b, &w->err), 0);
    world_is_clean(w);
}

int run_net_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_created_then_cut_is_adopted),
        T(test_queued_then_cut_keeps_its_place),
        T(test_reset_in_the_middle_of_an_answer),
        T(test_half_close_in_the_middle_of_an_answer),
        T(test_connection_reset_while_waiting),
        T(test_release_while_the_waiter_is_away),
        T(test_open_says_at_once_what_is_wrong),
        T(test_close_in_a_black_hole),
        T(test_break_in_an_outage_is_not_done_later),
    };

    return cmocka_run_group_tests_name("zookeeper: the network", tests,
                                       group_one, group_one_end);
}
