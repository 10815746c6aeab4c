/* Entries that somebody deletes by hand. */
#include "zk_faults.h"

#include <stdio.h>

/* ---- granted unseen ---------------------------------------------------- */

/* The last of the queue, deleted by somebody. */
static void delete_last_entry(struct world *w)
{
    struct String_vector names = {0};
    const char *last = NULL;
    char path[256];

    assert_int_equal(zk_hand_children(hand(w), NODE, &names), 0);
    for (int i = 0; i < names.count; i++)
        if (!last ||
            strcmp(strrchr(names.data[i], '-'), strrchr(last, '-')) > 0)
            last = names.data[i];
    assert_non_null(last);
    snprintf(path, sizeof(path), NODE "/%s", last);
    deallocate_String_vector(&names);
    assert_int_equal(zk_hand_delete(hand(w), path), 0);
}

/* The second of two is granted when the first has gone, by that alone. If it
 * had lost its place meanwhile it hears of it, long before its renewal. */
static void test_second_without_an_entry_is_told(void **state)
{
    struct world *w = *state;
    hf_lock *a = deaf_lock(w), *b = deaf_lock(w), *c = deaf_lock(w);
    struct taker *t;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, 20000);
    world_has_entries(w, 2);
    assert_true(WAIT_FOR(zk_server_number(w->zk, "zk_watch_count") >= 1));
    delete_last_entry(w);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, 0);
    assert_int_equal(hf_lock_timed(c, 5000, &w->err), 0);
    assert_true(WAIT_FOR_MS(hf_lock_check(b) == HF_ELOST, 3000));
    assert_int_equal(hf_lock_check(c), 0);
    taker_end(t);
    assert_int_equal(t->release_rc, HF_ELOST);
    assert_int_equal(hf_lock_release(c, &w->err), 0);
    world_is_clean(w);
}

/* One of Curator's, at the end of the queue. */
static void join_queue(struct world *w, char *path, size_t size)
{
    static const char uuid[] = "00000000-0000-4000-8000-000000000001";
    char prefix[128];

    snprintf(prefix, sizeof(prefix), NODE "/_c_%s-lock-", uuid);
    assert_int_equal(zk_hand_create(hand(w), prefix, "",
                                    ZOO_EPHEMERAL_SEQUENTIAL, path, size, NULL),
                     0);
}

/* The same, and by the time the first goes its proofs are old: it looks, finds
 * its place gone, makes another, and hears no more than that this is done. It
 * was second with the one before. */
static void test_second_with_another_entry_is_not_second(void **state)
{
    enum { OTHERS = 40 }; /* enough for a list that is cut before its end */
    struct world *w = *state;
    char first[256], other[OTHERS][256];
    struct taker *t;
    hf_lock *b = world_far(w, 3000, 10000);

    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    join_queue(w, first, sizeof(first));
    t = taker_start(w, b, 30000);
    assert_true(WAIT_FOR(zk_server_number(w->zk, "zk_watch_count") >= 1));
    delete_last_entry(w);
    for (int i = 0; i < OTHERS; i++)
        join_queue(w, other[i], sizeof(other[i]));
    proxy_set(w->proxy, PROXY_DELAY, 1300);
    assert_int_equal(zk_hand_delete(hand(w), first), 0);
    world_has_entries(w, OTHERS + 1);
    proxy_set(w->proxy, PROXY_HALF_CLOSE, 1000);
    assert_true(NEVER_MS(taker_back(t), 1500));
    for (int i = 0; i < OTHERS; i++)
        assert_int_equal(zk_hand_delete(hand(w), other[i]), 0);
    taker_gets_it(t, 4000);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

/* ---- unfair ------------------------------------------------------------ */

/* Only who has it is deleted, and not the lock, which is of a session that goes
 * on. */
static void delete_holder(struct world *w)
{
    struct String_vector names = {0};
    char path[256] = "";

    assert_int_equal(zk_hand_children(hand(w), NODE, &names), 0);
    for (int i = 0; i < names.count; i++)
        if (strncmp(names.data[i], "_h_", 3) == 0)
            snprintf(path, sizeof(path), NODE "/%s", names.data[i]);
    deallocate_String_vector(&names);
    assert_int_equal(zk_hand_delete(hand(w), path), 0);
}

static void test_unfair_holder_is_deleted_alone(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->zk->url, 1500, 5000, HF_UNFAIR);
    hf_lock *b = world_lock(w, w->zk->url, 30000, 5000, HF_UNFAIR);

    for (int renewed = 0; renewed < 2; renewed++) {
        assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
        delete_holder(w);
        if (renewed)
            assert_true(WAIT_FOR(hf_lock_check(a) == HF_ELOST));
        assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
        world_free_for_all(w, b);
    }
    world_is_clean(w);
}

int run_hand_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_second_without_an_entry_is_told),
        T(test_second_with_another_entry_is_not_second),
        T(test_unfair_holder_is_deleted_alone),
    };

    return cmocka_run_group_tests_name("zookeeper: by hand", tests, group_one,
                                       group_one_end);
}
