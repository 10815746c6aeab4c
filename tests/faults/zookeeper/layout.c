/* What a lock is at the server: its token, what is sent for it, and what is
 * seen of those of kazoo's; where names may be. */
#include "zk_faults.h"

#include <stdio.h>

/* ---- tokens -------------------------------------------------------------- */

/* All nodes of the hold were made by one transaction, or it has one node. */
static void token_is_czxid(struct world *w, hf_lock *lock, const char *dir)
{
    struct String_vector names = {0};
    struct Stat stat = {0};
    char path[256];

    assert_int_equal(zk_hand_children(hand(w), dir, &names), 0);
    assert_true(names.count > 0);
    for (int i = 0; i < names.count; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names.data[i]);
        assert_int_equal(zk_hand_stat(hand(w), path, &stat), 0);
        assert_true(stat.ephemeralOwner != 0);
        assert_true(token_of(lock) == (uint64_t)stat.czxid);
    }
    deallocate_String_vector(&names);
}

static void test_token_is_the_czxid(void **state)
{
    static const struct {
        struct manner manner;
        const char *dir;
    } each[] = {{{HF_MUTEX, HF_FAIR, HF_WRITE}, NODE},
                {{HF_MUTEX, HF_UNFAIR, HF_WRITE}, NODE},
                {{HF_RWLOCK, HF_FAIR, HF_WRITE}, NODE},
                {{HF_RWLOCK, HF_FAIR, HF_READ}, NODE},
                {{HF_SEMAPHORE, HF_FAIR, HF_WRITE}, NODE "/leases"}};
    struct world *w = *state;

    world_near(w);
    assert_int_equal(hf_lock_free(w->locks[0]), 0);
    w->locks[0] = NULL;
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        hf_lock *lock = held_as(w, "n", &each[i].manner);

        token_is_czxid(w, lock, each[i].dir);
        assert_int_equal(hf_lock_release(lock, NULL), 0);
        assert_int_equal(hf_lock_free(lock), 0);
    }
    world_is_clean(w);
}

/* The next holder of a plain `lock` has a node of the same name. */
static void test_breaking_a_plain_lock(void **state)
{
    struct world *w = *state;
    struct Stat stat = {0};
    hf_client *c;

    world_near(w);
    c = w->clients[0];
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    assert_int_equal(zk_hand_create(hand(w), NODE "/lock", "", ZOO_EPHEMERAL,
                                    NULL, 0, &stat),
                     0);
    assert_int_equal(
        hf_break_hold(c, "n", 1, (uint64_t)stat.czxid, NULL, &w->err),
        HF_ENOTSUP);
    assert_non_null(strstr(w->err.text, "without a token"));
    assert_int_equal(
        hf_break_hold(c, "n", 1, (uint64_t)stat.czxid + 1, NULL, &w->err),
        HF_ENOTOWNER);
    assert_int_equal(zk_hand_stat(hand(w), NODE "/lock", &stat), 0);
    assert_int_equal(hf_break(c, "n", 1, &w->err), 0);
    assert_int_equal(zk_hand_delete(hand(w), NODE), 0);
}

/* ---- trips --------------------------------------------------------------- */

/* Something that was asked after it was made, on the connection of its session,
 * is answered: if nothing else, that it is alive. */
static bool was_asked_more(struct world *w, const struct Stat *made)
{
    char text[8192], sid[40];
    const char *line, *zxid;

    zk_server_ask(w->zk, "cons", text, sizeof(text));
    snprintf(sid, sizeof(sid), "sid=0x%llx,", (long long)made->ephemeralOwner);
    line = strstr(text, sid);
    zxid = line ? strstr(line, "lzxid=0x") : NULL;
    return zxid && strtoll(zxid + strlen("lzxid="), NULL, 16) >= made->czxid &&
           strncmp(line + strlen(sid), "lop=CREA,", strlen("lop=CREA,")) != 0;
}

/* The answers are kept back, and by the time they come nothing that the client
 * says does: what it needs it has asked for with the first word. */
static void test_free_lock_is_one_trip(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 10000);
    char path[256];
    struct Stat stat = {0};
    struct taker *t;

    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_DELAY, 60000);
    t = taker_start(w, a, WAIT_LONG_MS);
    world_has_entries(w, 1);
    world_first_entry(w, path, sizeof(path));
    assert_int_equal(zk_hand_stat(hand(w), path, &stat), 0);
    assert_true(WAIT_FOR(was_asked_more(w, &stat)));
    assert_false(taker_back(t));
    proxy_hoard(w->proxy);
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, 0);
    proxy_deliver(w->proxy);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

/* ---- kazoo's ------------------------------------------------------------- */

#define KAZOO_1 "0000000000004000800000000000000a"
#define KAZOO_2 "0000000000004000800000000000000b"
#define KAZOO_3 "0000000000004000800000000000000c"

static void kazoo_entry(struct world *w, const char *name, const char *who,
                        struct Stat *stat)
{
    char path[256];

    snprintf(path, sizeof(path), NODE "/%s", name);
    assert_int_equal(
        zk_hand_create(hand(w), path, who, ZOO_EPHEMERAL, NULL, 0, stat), 0);
}

static void drop_entries(struct world *w)
{
    struct String_vector names = {0};
    char path[256];

    assert_int_equal(zk_hand_children(hand(w), NODE, &names), 0);
    for (int i = 0; i < names.count; i++) {
        snprintf(path, sizeof(path), NODE "/%s", names.data[i]);
        assert_int_equal(zk_hand_delete(hand(w), path), 0);
    }
    deallocate_String_vector(&names);
}

static hf_info *inspect(struct world *w, size_t holders, size_t waiters)
{
    hf_info *info = NULL;

    if (hf_inspect(w->clients[0], "n", 1, &info, &w->err))
        fail_msg("hf_inspect: %s", w->err.text);
    assert_int_equal(info->holders_len, holders);
    assert_int_equal(info->waiters_len, waiters);
    assert_false(info->waiters_unknown);
    assert_int_equal(info->fairness, HF_FAIR);
    return info;
}

static void is_party(const hf_party *p, const char *owner, const char *label,
                     enum hf_mode mode)
{
    assert_string_equal(p->owner, owner);
    assert_string_equal(p->label, label);
    assert_string_equal(p->host, "");
    assert_int_equal(p->mode, mode);
    assert_int_equal(p->left_ms, -1);
}

/* Those who wait are in their order, which is not that of their names. */
static void test_kazoos_lock_is_seen(void **state)
{
    struct world *w = *state;
    struct Stat first = {0};
    hf_info *info;

    world_near(w);
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    kazoo_entry(w, KAZOO_1 "__lock__0000000007", "ann", NULL);
    kazoo_entry(w, KAZOO_3 "__lock__0000000003", "bob", &first);
    kazoo_entry(w, KAZOO_2 "__lock__0000000005", "", NULL);
    info = inspect(w, 1, 2);
    assert_int_equal(info->kind, HF_MUTEX);
    is_party(&info->holders[0], KAZOO_3, "bob", HF_WRITE);
    assert_true(info->holders[0].token == (uint64_t)first.czxid);
    is_party(&info->waiters[0], KAZOO_2, "", HF_WRITE);
    is_party(&info->waiters[1], KAZOO_1, "ann", HF_WRITE);
    hf_info_free(info);
    drop_entries(w);
    assert_int_equal(zk_hand_delete(hand(w), NODE), 0);
    world_is_clean(w);
}

static void test_kazoos_readers_are_seen(void **state)
{
    struct world *w = *state;
    hf_info *info;

    world_near(w);
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    kazoo_entry(w, KAZOO_2 "__rlock__0000000001", "ann", NULL);
    kazoo_entry(w, KAZOO_1 "__lock__0000000002", "bob", NULL);
    kazoo_entry(w, KAZOO_3 "__rlock__0000000003", "cid", NULL);
    info = inspect(w, 1, 2);
    assert_int_equal(info->kind, HF_RWLOCK);
    is_party(&info->holders[0], KAZOO_2, "ann", HF_READ);
    is_party(&info->waiters[0], KAZOO_1, "bob", HF_WRITE);
    is_party(&info->waiters[1], KAZOO_3, "cid", HF_READ);
    hf_info_free(info);
    drop_entries(w);
    assert_int_equal(zk_hand_delete(hand(w), NODE), 0);
    world_is_clean(w);
}

/* A container that has become empty is swept: whatever else could be, was. */
static void is_swept(struct world *w)
{
    struct Stat stat;

    zk_hand_create(hand(w), "/swept", "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(hand(w), "/swept/x", "", 0, NULL, 0, NULL);
    zk_hand_delete(hand(w), "/swept/x");
    assert_true(WAIT_FOR(zk_hand_stat(hand(w), "/swept", &stat) == ZNONODE));
}

/* A Lock object of kazoo's makes its path once, and then relies on it. */
static void test_kazoos_path_stays(void **state)
{
    static const struct manner each[] = {{HF_MUTEX, HF_FAIR, HF_WRITE},
                                         {HF_MUTEX, HF_UNFAIR, HF_WRITE},
                                         {HF_RWLOCK, HF_FAIR, HF_READ}};
    struct world *w = *state;
    char url[128], theirs[256];
    hf_lock *lock;

    snprintf(url, sizeof(url), "%s?dialect=kazoo", w->zk->url);
    world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        lock = held_as(w, "n/m", &each[i]);
        assert_int_equal(hf_lock_release(lock, &w->err), 0);
        assert_int_equal(hf_lock_free(lock), 0);
        is_swept(w);
        is_swept(w);
        assert_int_equal(zk_hand_create(hand(w), NODE "/m/" KAZOO_1 "__lock__",
                                        "", ZOO_EPHEMERAL_SEQUENTIAL, theirs,
                                        sizeof(theirs), NULL),
                         0);
        assert_int_equal(zk_hand_delete(hand(w), theirs), 0);
        assert_int_equal(zk_hand_delete(hand(w), NODE "/m"), 0);
        assert_int_equal(zk_hand_delete(hand(w), NODE), 0);
    }
    world_is_clean(w);
}

/* tooz locks at /tooz/locks/NAME. A part `locks' cannot be in a name, but in
 * the path of the URL. */
static void test_leading_parts_go_into_the_url(void **state)
{
    struct world *w = *state;
    hf_lock *lock = NULL;
    hf_info *info = NULL;
    char url[128];

    world_near(w);
    assert_int_equal(hf_lock_new(w->clients[0], "tooz/locks/job", HF_CSTRING,
                                 NULL, &lock, &w->err),
                     HF_EINVAL);
    assert_non_null(strstr(w->err.text, "zk://HOST/tooz/locks"));
    assert_non_null(strstr(w->err.text, "\"job\""));
    assert_int_equal(
        hf_inspect(w->clients[0], "tooz/locks/job", HF_CSTRING, &info, &w->err),
        HF_EINVAL);
    assert_non_null(strstr(w->err.text, "zk://HOST/tooz/locks"));
    /* What is last cannot go there. */
    assert_int_equal(hf_lock_new(w->clients[0], "tooz/locks", HF_CSTRING, NULL,
                                 &lock, &w->err),
                     HF_EINVAL);
    assert_non_null(strstr(w->err.text, "\"locks\""));
    assert_null(strstr(w->err.text, "zk://"));
    snprintf(url, sizeof(url), "%s/tooz/locks?dialect=kazoo", w->zk->url);
    world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
    assert_int_equal(
        hf_lock_new(w->clients[1], "job", HF_CSTRING, NULL, &lock, &w->err), 0);
    assert_int_equal(hf_lock_timed(lock, 5000, &w->err), 0);
    assert_int_equal(zk_server_children(w->zk, "/tooz/locks/job"), 1);
    assert_int_equal(hf_lock_release(lock, &w->err), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(zk_hand_delete(hand(w), "/tooz/locks/job"), 0);
    assert_int_equal(zk_hand_delete(hand(w), "/tooz/locks"), 0);
    assert_int_equal(zk_hand_delete(hand(w), "/tooz"), 0);
    world_is_clean(w);
}

int run_layout_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_token_is_the_czxid),
        T(test_breaking_a_plain_lock),
        T(test_free_lock_is_one_trip),
        T(test_kazoos_lock_is_seen),
        T(test_kazoos_readers_are_seen),
        T(test_kazoos_path_stays),
        T(test_leading_parts_go_into_the_url),
    };

    return cmocka_run_group_tests_name("zookeeper: layout", tests, group_one,
                                       group_one_end);
}
