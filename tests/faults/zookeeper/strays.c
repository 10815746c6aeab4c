/*
 * Children of no known form, of all shapes and beside all kinds: which are
 * waited for, which are another kind, which are ignored.
 */
#include "zk_faults.h"

#include <stdio.h>

#define LEN(a) (sizeof(a) / sizeof(*(a)))
#define FIRST "0000000000" /* of all sequences */

static const struct manner manners[] = {{HF_MUTEX, HF_FAIR, HF_WRITE},
                                        {HF_MUTEX, HF_UNFAIR, HF_WRITE},
                                        {HF_RWLOCK, HF_FAIR, HF_WRITE},
                                        {HF_RWLOCK, HF_FAIR, HF_READ},
                                        {HF_SEMAPHORE, HF_FAIR, HF_WRITE}};

static hf_lock *new_lock(struct world *w, const struct manner *m)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *lock = NULL;

    opt.kind = m->kind;
    opt.fairness = m->fairness;
    opt.permits = m->kind == HF_SEMAPHORE ? 2 : 0;
    opt.flags = HF_OWNER_HANDLE;
    if (hf_lock_new(w->clients[0], "n", 1, &opt, &lock, &w->err))
        fail_msg("%s", w->err.text);
    return lock;
}

static int take(struct world *w, hf_lock *lock, const struct manner *m,
                int64_t wait_ms)
{
    hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;

    how.mode = m->mode;
    how.wait_ms = wait_ms;
    return hf_lock_acquire(lock, &how, &w->err);
}

static void takes_all_kinds(struct world *w)
{
    for (size_t i = 0; i < LEN(manners); i++) {
        hf_lock *lock = new_lock(w, &manners[i]);

        if (take(w, lock, &manners[i], WAIT_LONG_MS))
            fail_msg("%zu: %s", i, w->err.text);
        assert_int_equal(hf_lock_release(lock, &w->err), 0);
        assert_int_equal(hf_lock_free(lock), 0);
    }
}

static const char *below(const char *child, char path[64])
{
    snprintf(path, 64, NODE "/%s", child);
    return path;
}

static void put(struct world *w, const char *child, int mode)
{
    char path[64];

    assert_int_equal(
        zk_hand_create(hand(w), below(child, path), "", mode, NULL, 0, NULL),
        0);
}

static void remove_it(struct world *w, const char *child)
{
    char path[64];

    assert_int_equal(zk_hand_delete(hand(w), below(child, path)), 0);
}

/* Parents that stay: the sequence goes on, and is not the first any more. */
static void make_node(struct world *w)
{
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    put(w, "x", 0);
    remove_it(w, "x");
}

/* A client, which has no lock of that name yet. */
static void begin(struct world *w)
{
    world_near(w);
    assert_int_equal(hf_lock_free(w->locks[0]), 0);
    w->locks[0] = NULL;
    make_node(w);
}

static void remove_node(struct world *w)
{
    zk_hand_delete(hand(w), NODE "/locks");
    zk_hand_delete(hand(w), NODE "/leases");
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

/* An entry of Curator's or kazoo's is before us, whatever is beside it. */
static void minds_entries(struct world *w)
{
    static const char *const entries[] = {
        "_c_00000000-0000-4000-8000-000000000001-lock-" FIRST,
        "00000000000040008000000000000001__lock__" FIRST};
    hf_lock *lock = new_lock(w, &manners[0]);

    for (size_t i = 0; i < LEN(entries); i++) {
        put(w, entries[i], ZOO_EPHEMERAL);
        assert_int_equal(take(w, lock, &manners[0], 0), HF_EBUSY);
        remove_it(w, entries[i]);
    }
    assert_int_equal(hf_lock_free(lock), 0);
}

/* Neither Curator nor kazoo counts them. */
static void test_strays_are_ignored(void **state)
{
    static const char *const strays[] = {"aaa",
                                         "what-is-this",
                                         "lock-x",
                                         "Lock",
                                         "05",
                                         "locks-1",
                                         "a-0000000000",
                                         "x-no-0000000000",
                                         "_c_",
                                         "1",
                                         "lock-9999999999x",
                                         "_h_"};
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < LEN(strays); i++)
        put(w, strays[i], ZOO_EPHEMERAL);
    for (int i = 0; i < 3; i++)
        takes_all_kinds(w);
    zk_hand_delete(hand(w), NODE "/locks");
    zk_hand_delete(hand(w), NODE "/leases");
    minds_entries(w);
    assert_int_equal(world_lines(w, 0), 0);
    for (size_t i = 0; i < LEN(strays); i++)
        remove_it(w, strays[i]);
    remove_node(w);
}

/* The nodes of other locks are nothing to talk about, whatever their names. */
static void test_other_locks_are_no_strays(void **state)
{
    static const char *const names[] = {"aaa",
                                        FIRST,
                                        "-",
                                        "000",
                                        "xlock-" FIRST,
                                        "x-1a-" FIRST,
                                        "00000000000040008000000000000001"};
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < LEN(names); i++)
        put(w, names[i], 0);
    for (int i = 0; i < 2; i++)
        takes_all_kinds(w);
    assert_int_equal(world_lines(w, 0), 0);
    for (size_t i = 0; i < LEN(names); i++)
        remove_it(w, names[i]);
    remove_node(w);
}

/* By whichever of the others, or by a recipe. */
static void is_waited_for(struct world *w, const char *child,
                          const struct manner *m)
{
    hf_lock *lock = new_lock(w, m);
    struct taker *t;

    put(w, child, ZOO_EPHEMERAL);
    if (take(w, lock, m, 0) != HF_EBUSY)
        fail_msg("%s is not minded: %s", child, w->err.text);
    t = taker_start_as(w, lock, m->mode, 0, WAIT_LONG_MS);
    assert_true(WAIT_FOR(zk_server_number(w->zk, "zk_watch_count") >= 1));
    assert_false(taker_back(t));
    remove_it(w, child);
    taker_gets_it(t, 1000);
    assert_int_equal(hf_lock_free(lock), 0);
}

static void test_foreign_entries_are_waited_for(void **state)
{
    static const struct {
        const char *child;
        size_t by[2];
        size_t len;
    } each[] = {
        {FIRST, {0, 2}, 2},
        {"-", {0, 2}, 2},
        {"000", {0, 2}, 2},
        {"lock-", {0}, 1},
        {"xlock-" FIRST, {0}, 1},
        {"_c_00000000000040008000000000000001-lock-" FIRST, {0}, 1},
        {"x-1a-" FIRST, {0}, 1},
        {"a__lock__" FIRST, {0, 2}, 2},
        {"a__lock__" FIRST, {3}, 1},
        {"a__WRIT__" FIRST, {2, 3}, 2},
        {"a__READ__" FIRST, {2}, 1},
        {"a__rlock__" FIRST, {2}, 1},
        {"a__WRIT__", {2, 3}, 2},
    };
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < LEN(each); i++)
        for (size_t k = 0; k < each[i].len; k++)
            is_waited_for(w, each[i].child, &manners[each[i].by[k]]);
    assert_int_equal(world_lines(w, 0), 0);
    remove_node(w);
}

/* Entries that no other kind could wait for. */
static void test_foreign_entries_of_another_kind(void **state)
{
    static const struct {
        const char *child;
        bool minded[LEN(manners)];
    } each[] = {
        {"00000000000040008000000000000001", {true, true, true, true, true}},
        {"xlock-" FIRST, {false, true, true, true, true}},
        {"x-1a-" FIRST, {false, true, true, true, true}},
        {"a__lock__" FIRST, {false, true, false, false, true}},
        {"a__READ__" FIRST, {true, true, false, false, true}},
    };
    struct world *w = *state;

    begin(w);
    for (size_t i = 0; i < LEN(each); i++) {
        put(w, each[i].child, ZOO_EPHEMERAL);
        for (size_t k = 0; k < LEN(manners); k++) {
            hf_lock *lock = new_lock(w, &manners[k]);

            if (each[i].minded[k] &&
                take(w, lock, &manners[k], WAIT_LONG_MS) != HF_EMISMATCH)
                fail_msg("%s, %zu: %s", each[i].child, k, w->err.text);
            assert_int_equal(hf_lock_free(lock), 0);
        }
        remove_it(w, each[i].child);
        takes_all_kinds(w);
        zk_hand_delete(hand(w), NODE "/locks");
        zk_hand_delete(hand(w), NODE "/leases");
    }
    remove_node(w);
}

/* Who holds it is seen, too. */
static void test_foreign_holder_is_seen(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    hf_info *info = NULL;
    struct taker *t;

    make_node(w);
    put(w, "x-1a-" FIRST, ZOO_EPHEMERAL);
    put(w, "xlock-" FIRST, 0); /* another lock */
    t = taker_start(w, a, WAIT_LONG_MS);
    world_has_entries(w, 3);
    assert_int_equal(hf_inspect(w->clients[0], "n", 1, &info, &w->err), 0);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->waiters_len, 1);
    assert_int_equal(info->kind, HF_MUTEX);
    hf_info_free(info);
    remove_it(w, "x-1a-" FIRST);
    taker_gets_it(t, 1000);
    remove_it(w, "xlock-" FIRST);
    remove_node(w);
}

/* Children whose names fill a packet: no more is made of them than of others.
 */
static void test_stray_with_a_long_name(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    static char path[100000];

    make_node(w);
    memset(path, 'a', sizeof(path) - 1);
    memcpy(path, NODE "/", strlen(NODE "/"));
    assert_int_equal(
        zk_hand_create(hand(w), path, "", ZOO_EPHEMERAL, NULL, 0, NULL), 0);
    world_free_for_all(w, a);
    assert_int_equal(zk_hand_delete(hand(w), path), 0);
    path[strlen(NODE "/")] = '0';
    path[strlen(NODE "/") + 1] = '-'; /* before all sequences */
    assert_int_equal(
        zk_hand_create(hand(w), path, "", ZOO_EPHEMERAL, NULL, 0, NULL), 0);
    assert_int_equal(hf_lock_timed(a, WAIT_LONG_MS, &w->err), HF_EPROTO);
    assert_int_equal(zk_hand_delete(hand(w), path), 0);
    world_free_for_all(w, a);
    remove_node(w);
}

int run_stray_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_strays_are_ignored),
        T(test_other_locks_are_no_strays),
        T(test_foreign_entries_are_waited_for),
        T(test_foreign_entries_of_another_kind),
        T(test_foreign_holder_is_seen),
        T(test_stray_with_a_long_name),
    };

    return cmocka_run_group_tests_name("zookeeper: strays", tests, group_one,
                                       group_one_end);
}
