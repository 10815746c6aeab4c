/*
 * Children of unknown form alongside all kinds of locks: which of them are
 * waited for, which belong to another kind of lock, and which are ignored.
 */
#include "zk_faults.h"

#include <stdio.h>

GROUP("strays");

#define LEN(a) (sizeof(a) / sizeof(*(a)))
#define FIRST "0000000000" /* the first sequence number */

static const struct manner manners[] = {{HF_MUTEX, HF_FAIR, HF_WRITE},
                                        {HF_MUTEX, HF_UNFAIR, HF_WRITE},
                                        {HF_RWLOCK, HF_FAIR, HF_WRITE},
                                        {HF_RWLOCK, HF_FAIR, HF_READ},
                                        {HF_SEMAPHORE, HF_FAIR, HF_WRITE}};

static hf_lock *new_lock(struct world *w, const struct manner *m)
{
    hf_lock *lock = NULL;

    OK(hf_lock_new(w->clients[0], "n", 1,
                   KIND(m->kind, .fairness = m->fairness,
                        .permits = m->kind == HF_SEMAPHORE ? 2 : 0,
                        .flags = HF_OWNER_HANDLE),
                   &lock, &w->err));
    return lock;
}

static int take(struct world *w, hf_lock *lock, const struct manner *m,
                int64_t wait_ms)
{
    return hf_lock_acquire(lock, HOW(wait_ms, .mode = m->mode), &w->err);
}

static void takes_all_kinds(struct world *w)
{
    for (size_t i = 0; i < LEN(manners); i++) {
        hf_lock *lock = new_lock(w, &manners[i]);

        if (take(w, lock, &manners[i], WAIT_LONG_MS))
            fail_msg("%zu: %s", i, w->err.text);
        OK(hf_lock_release(lock, &w->err));
        OK(hf_lock_free(lock));
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

    OK(zk_hand_create(hand(w), below(child, path), "", mode, NULL, 0, NULL));
}

static void remove_it(struct world *w, const char *child)
{
    char path[64];

    OK(zk_hand_delete(hand(w), below(child, path)));
}

/* Creates the lock's node, not as a container, so that the server does not
 * delete it while it has no children. Uses up the node's first sequence number
 * (FIRST), so that no entry of the client gets that number. */
static void make_node(struct world *w)
{
    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    put(w, "x", 0);
    remove_it(w, "x");
}

/* Adds a client without a handle for the case's lock, and creates the lock's
 * node. */
static void begin(struct world *w)
{
    world_near(w);
    OK(hf_lock_free(w->locks[0]));
    w->locks[0] = NULL;
    make_node(w);
}

static void remove_node(struct world *w)
{
    zk_hand_delete(hand(w), NODE "/locks");
    zk_hand_delete(hand(w), NODE "/leases");
    COMES(!zk_hand_delete(hand(w), NODE));
    world_is_clean(w);
}

/* Asserts that the client lets an entry of Curator or kazoo with the first
 * sequence number go before its own, even while there are other nodes. */
static void minds_entries(struct world *w)
{
    static const char *const entries[] = {
        "_c_00000000-0000-4000-8000-000000000001-lock-" FIRST,
        "00000000000040008000000000000001__lock__" FIRST};
    hf_lock *lock = new_lock(w, &manners[0]);

    for (size_t i = 0; i < LEN(entries); i++) {
        put(w, entries[i], ZOO_EPHEMERAL);
        EXPECT(HF_EBUSY, take(w, lock, &manners[0], 0));
        remove_it(w, entries[i]);
    }
    OK(hf_lock_free(lock));
}

/* Neither Curator nor kazoo counts these nodes, so our client ignores them. */
CASE(test_strays_are_ignored)
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

/* The nodes of other locks below this one are not logged, whatever their
 * names. */
CASE(test_other_locks_are_no_strays)
{
    static const char *const names[] = {"aaa",
                                        FIRST,
                                        "-",
                                        "000",
                                        "xlock-" FIRST,
                                        "x-1a-" FIRST,
                                        "00000000000040008000000000000001"};
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

/* Asserts that the client waits for this child. The child may be an entry of
 * another client, or a node for which other libraries wait. */
static void is_waited_for(struct world *w, const char *child,
                          const struct manner *m)
{
    hf_lock *lock = new_lock(w, m);
    struct taker *t;

    put(w, child, ZOO_EPHEMERAL);
    if (take(w, lock, m, 0) != HF_EBUSY)
        fail_msg("%s is not waited for: %s", child, w->err.text);
    t = taker_start_as(w, lock, m->mode, 0, WAIT_LONG_MS);
    COMES(zk_server_number(w->zk, "zk_watch_count") >= 1);
    assert_false(taker_back(t));
    remove_it(w, child);
    taker_gets_it(t, 1000);
    OK(hf_lock_free(lock));
}

CASE(test_foreign_entries_are_waited_for)
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
    begin(w);
    for (size_t i = 0; i < LEN(each); i++)
        for (size_t k = 0; k < each[i].len; k++)
            is_waited_for(w, each[i].child, &manners[each[i].by[k]]);
    assert_int_equal(world_lines(w, 0), 0);
    remove_node(w);
}

/* Entries of other kinds of lock: an acquire in a manner whose element of
 * `minded` is true fails with HF_EMISMATCH. */
CASE(test_foreign_entries_of_another_kind)
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
    begin(w);
    for (size_t i = 0; i < LEN(each); i++) {
        put(w, each[i].child, ZOO_EPHEMERAL);
        for (size_t k = 0; k < LEN(manners); k++) {
            hf_lock *lock = new_lock(w, &manners[k]);

            if (each[i].minded[k] &&
                take(w, lock, &manners[k], WAIT_LONG_MS) != HF_EMISMATCH)
                fail_msg("%s, %zu: %s", each[i].child, k, w->err.text);
            OK(hf_lock_free(lock));
        }
        remove_it(w, each[i].child);
        takes_all_kinds(w);
        zk_hand_delete(hand(w), NODE "/locks");
        zk_hand_delete(hand(w), NODE "/leases");
    }
    remove_node(w);
}

CASE(test_foreign_holder_is_seen)
{
    hf_lock *a = world_near(w);
    hf_info *info;
    struct taker *t;

    make_node(w);
    put(w, "x-1a-" FIRST, ZOO_EPHEMERAL);
    put(w, "xlock-" FIRST, 0); /* a node of another lock */
    t = taker_start(w, a, WAIT_LONG_MS);
    world_has_entries(w, 3);
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->holders_len, 1);
    assert_int_equal(info->waiters_len, 1);
    assert_int_equal(info->kind, HF_MUTEX);
    remove_it(w, "x-1a-" FIRST);
    taker_gets_it(t, 1000);
    remove_it(w, "xlock-" FIRST);
    remove_node(w);
}

/* A child with a very long name is ignored like other strays. But if it sorts
 * before our entry, the client would have to ask the server about it. Its path
 * is too long for the client, so the acquire fails. */
CASE(test_stray_with_a_long_name)
{
    hf_lock *a = world_near(w);
    static char path[100000];

    make_node(w);
    memset(path, 'a', sizeof(path) - 1);
    memcpy(path, NODE "/", strlen(NODE "/"));
    OK(zk_hand_create(hand(w), path, "", ZOO_EPHEMERAL, NULL, 0, NULL));
    world_free_for_all(w, a);
    OK(zk_hand_delete(hand(w), path));
    path[strlen(NODE "/")] = '0';
    path[strlen(NODE "/") + 1] = '-'; /* sorts before all sequence numbers */
    OK(zk_hand_create(hand(w), path, "", ZOO_EPHEMERAL, NULL, 0, NULL));
    EXPECT(HF_EPROTO, hf_lock_timed(a, WAIT_LONG_MS, &w->err));
    OK(zk_hand_delete(hand(w), path));
    world_free_for_all(w, a);
    remove_node(w);
}
