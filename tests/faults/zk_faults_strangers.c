/*
 * Children of no known form: which are waited for, which are ignored. And those
 * that are asked for: what becomes of that if they come and go meanwhile, or
 * the question is given up.
 */
#include "zk_faults.h"

#include <dlfcn.h>
#include <stdio.h>

/* A lease of kazoo's semaphore, whose name is the same each time. */
#define STRANGER NODE "/00000000000040008000000000000001"

/* ---- between two requests ------------------------------------------------ */

/* What happens before a request is sent: called by the thread that drives the
 * client, which nothing else may use the hand of the world beside. */
static struct {
    struct world *w; /* atomic; NULL: nothing happens */
    const zhandle_t *hand;
    void (*before_exists)(struct world *);
    void (*before_list)(struct world *);
    int times;
} meddler;

static void meddle(struct world *w, void (*before_exists)(struct world *),
                   void (*before_list)(struct world *))
{
    meddler.before_exists = before_exists;
    meddler.before_list = before_list;
    meddler.times = 0;
    meddler.hand = zk_hand_handle(hand(w));
    __atomic_store_n(&meddler.w, w, __ATOMIC_RELEASE);
}

static void leave_alone(void)
{
    __atomic_store_n(&meddler.w, NULL, __ATOMIC_RELEASE);
}

static struct world *meddled_with(const zhandle_t *zh)
{
    struct world *w = __atomic_load_n(&meddler.w, __ATOMIC_ACQUIRE);

    return w && zh != meddler.hand ? w : NULL;
}

typedef int exists_fn(zhandle_t *, const char *, int, stat_completion_t,
                      const void *);

__attribute__((visibility("default"))) int
zoo_aexists(zhandle_t *zh, const char *path, int watch, stat_completion_t done,
            const void *arg)
{
    exists_fn *real = (exists_fn *)dlsym(RTLD_NEXT, "zoo_aexists");
    struct world *w = meddled_with(zh);

    if (w && meddler.before_exists && strcmp(path, STRANGER) == 0)
        meddler.before_exists(w);
    return real(zh, path, watch, done, arg);
}

typedef int list_fn(zhandle_t *, const char *, int, strings_completion_t,
                    const void *);

__attribute__((visibility("default"))) int
zoo_aget_children(zhandle_t *zh, const char *path, int watch,
                  strings_completion_t done, const void *arg)
{
    list_fn *real = (list_fn *)dlsym(RTLD_NEXT, "zoo_aget_children");
    struct world *w = meddled_with(zh);

    if (w && meddler.before_list && strcmp(path, NODE) == 0)
        meddler.before_list(w);
    return real(zh, path, watch, done, arg);
}

/* ---- the question is given up -------------------------------------------- */

static void come(struct world *w)
{
    create_below(w, NODE, STRANGER, ZOO_EPHEMERAL, NULL, 0);
}

static void go(struct world *w)
{
    if (zk_hand_delete(hand(w), STRANGER))
        abort(); /* this may be another thread than the case's */
}

static void keep_back(struct world *w)
{
    proxy_hoard(w->proxy);
}

static uint64_t answered;

static void is_asked_for(struct world *w)
{
    meddler.times++;
    answered = proxy_answered(w->proxy);
}

/* When the answer is on its way. */
static void keep_back_list(struct world *w)
{
    if (meddler.times && WAIT_FOR(proxy_answered(w->proxy) > answered))
        proxy_hoard(w->proxy);
}

static void note(void *arg, hf_lock *lock, int result)
{
    (void)lock;
    *(int *)arg = result;
}

static bool is_over(hf_client *c, const int *result)
{
    hf_client_dispatch(c);
    return *result <= 0;
}

static hf_lock *far_handle(struct world *w, enum hf_fairness fairness)
{
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;

    world_far(w, 30000, 5000);
    assert_int_equal(hf_lock_free(w->locks[0]), 0);
    w->locks[0] = NULL;
    opt.fairness = fairness;
    opt.flags = HF_OWNER_HANDLE;
    assert_int_equal(
        hf_lock_new(w->clients[0], "n", 1, &opt, &w->locks[0], &w->err), 0);
    return w->locks[0];
}

/* What it has asked for the server hears of when nobody wants to know. */
static void gives_up(struct world *w, hf_lock *a)
{
    int result = 1;

    assert_int_equal(hf_lock_acquire_async(a, NULL, note, &result, &w->err), 0);
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    leave_alone();
    assert_int_equal(hf_lock_cancel(a), 0);
    assert_true(WAIT_FOR(is_over(w->clients[0], &result)));
    assert_int_equal(result, HF_ECANCELED);
    proxy_deliver(w->proxy);
}

static void is_refused(struct world *w, hf_lock *a)
{
    assert_int_equal(hf_lock_timed(a, WAIT_LONG_MS, &w->err), HF_EMISMATCH);
    assert_non_null(strstr(w->err.text, STRANGER + strlen(NODE) + 1));
}

static void minds_after_giving_up(struct world *w, enum hf_fairness fairness)
{
    hf_lock *a = far_handle(w, fairness);

    come(w);
    meddle(w, keep_back, NULL);
    gives_up(w, a);
    is_refused(w, a);
    is_refused(w, a);
    go(w);
    world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_stranger_asked_for_in_vain(void **state)
{
    minds_after_giving_up(*state, HF_FAIR);
}

static void test_unfair_stranger_asked_for_in_vain(void **state)
{
    minds_after_giving_up(*state, HF_UNFAIR);
}

/* It was told, and then it gave up: that is old news by the next time. */
static void test_stranger_of_an_earlier_question(void **state)
{
    struct world *w = *state;
    hf_lock *a = far_handle(w, HF_FAIR);

    come(w);
    meddle(w, is_asked_for, keep_back_list);
    gives_up(w, a);
    go(w);
    world_free_for_all(w, a);
    world_is_clean(w);
}

/* ---- they come and go ---------------------------------------------------- */

static void come_again(struct world *w)
{
    zk_hand_create(hand(w), STRANGER, "", ZOO_EPHEMERAL, NULL, 0, NULL);
}

/* It goes whenever it is asked for, and comes behind us: the lock is ours. Next
 * time it is before us, and not one of those that were found to be harmless. */
static void minds_its_return(struct world *w, hf_lock *a)
{
    come(w);
    meddle(w, go, come_again);
    if (hf_lock_timed(a, WAIT_LONG_MS, &w->err))
        fail_msg("%s", w->err.text);
    leave_alone();
    come_again(w);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    is_refused(w, a);
    is_refused(w, a);
    go(w);
    world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_stranger_is_back(void **state)
{
    minds_its_return(*state, world_near(*state));
}

static void test_unfair_stranger_is_back(void **state)
{
    struct world *w = *state;

    minds_its_return(w, world_lock(w, w->near_url, 30000, 5000, HF_UNFAIR));
}

static void test_semaphore_stranger_is_back(void **state)
{
    struct world *w = *state;

    world_near(w);
    minds_its_return(w, world_change(w, 0, HF_SEMAPHORE, 2));
}

static const char *lasting(int i, char path[64])
{
    snprintf(path, 64, NODE "/%032x", i);
    return path;
}

static void one_more(struct world *w)
{
    char path[64];

    if (zk_hand_create(hand(w), lasting(meddler.times++, path), "", 0, NULL, 0,
                       NULL))
        abort();
}

/* Other locks, whose names go on below this one, are made all the time. */
static void settles(struct world *w, hf_lock *a)
{
    char path[64];

    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    for (int i = 0; i < 2; i++) {
        meddle(w, NULL, one_more);
        if (hf_lock_timed(a, WAIT_LONG_MS, &w->err))
            fail_msg("%s", w->err.text);
        leave_alone();
        assert_int_equal(hf_lock_release(a, &w->err), 0);
        assert_true(meddler.times > 0);
        while (meddler.times)
            assert_int_equal(
                zk_hand_delete(hand(w), lasting(--meddler.times, path)), 0);
    }
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

static void test_strangers_all_the_time(void **state)
{
    struct world *w = *state;

    settles(w, world_lock(w, w->near_url, 30000, 5000, HF_FAIR));
}

static void test_unfair_strangers_all_the_time(void **state)
{
    struct world *w = *state;

    settles(w, world_lock(w, w->near_url, 30000, 5000, HF_UNFAIR));
}

/* ---- all shapes, beside all kinds ---------------------------------------- */

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

/* Neither Curator nor kazoo counts them. The log names each once. */
static void test_strays_are_ignored(void **state)
{
    static const char *const strays[] = {"aaa",
                                         "what-is-this",
                                         "lock-x",
                                         "Lock",
                                         "05",
                                         "locks-1",
                                         "a-" FIRST,
                                         "x-no-" FIRST,
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
    assert_true(WAIT_FOR(world_lines(w, 0) == LEN(strays)));
    takes_all_kinds(w);
    assert_int_equal(world_lines(w, 0), LEN(strays));
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
    assert_true(WAIT_FOR(world_lines(w, 0) == 1));
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

int run_stranger_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_strays_are_ignored),
        T(test_other_locks_are_no_strays),
        T(test_foreign_entries_are_waited_for),
        T(test_foreign_entries_of_another_kind),
        T(test_foreign_holder_is_seen),
        T(test_stray_with_a_long_name),
        T(test_stranger_asked_for_in_vain),
        T(test_unfair_stranger_asked_for_in_vain),
        T(test_stranger_of_an_earlier_question),
        T(test_stranger_is_back),
        T(test_unfair_stranger_is_back),
        T(test_semaphore_stranger_is_back),
        T(test_strangers_all_the_time),
        T(test_unfair_strangers_all_the_time),
    };

    return cmocka_run_group_tests_name("zookeeper: strangers", tests, group_one,
                                       group_one_end);
}
