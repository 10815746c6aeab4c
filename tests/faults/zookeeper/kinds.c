/*
 * What only ZooKeeper shows: fresh names, latches, holders that are asked,
 * downgrades and guarded writes, as they are at the server; and their answers
 * lost.
 */
#include "zk_faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define UUID "00000000-0000-4000-8000-000000000001"
#define FOREIGN NODE "/_c_" UUID "-lock-"

static void is_there(struct world *w, const char *path, const char *data)
{
    char text[512] = "";

    assert_int_equal(zk_hand_get(hand(w), path, text, sizeof(text), false), 0);
    assert_string_equal(text, data);
}

/* ---- fresh names ----------------------------------------------------------
 */

/* The first question about a name never comes to the server, or it does and
 * what makes the parents then does not. */
static void requests_lost(struct world *w, enum hf_kind kind, bool parents)
{
    struct taker *t;
    uint64_t before;
    hf_lock *a;

    world_far(w, 30000, 5000);
    a = world_change(w, 0, kind, kind == HF_SEMAPHORE ? 2 : 0);
    if (parents)
        proxy_set(w->proxy, PROXY_DELAY, 300);
    else
        proxy_hoard(w->proxy);
    before = proxy_sent(w->proxy);
    t = taker_start(w, a, 10000);
    if (parents) {
        assert_true(WAIT_FOR(proxy_sent(w->proxy) > before));
        proxy_hoard(w->proxy);
    }
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    world_heal(w);
    taker_gets_it(t, 4000);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

static void test_mutex_first_request_lost(void **state)
{
    requests_lost(*state, HF_MUTEX, false);
}

static void test_mutex_parents_lost(void **state)
{
    requests_lost(*state, HF_MUTEX, true);
}

static void test_semaphore_first_request_lost(void **state)
{
    requests_lost(*state, HF_SEMAPHORE, false);
}

static void test_semaphore_parents_lost(void **state)
{
    requests_lost(*state, HF_SEMAPHORE, true);
}

/* ---- latch -----------------------------------------------------------------
 */

static hf_latch *latch_of(struct world *w, size_t client)
{
    hf_latch *latch = NULL;

    if (hf_latch_new(w->clients[client], "l", 1, &latch, &w->err))
        fail_msg("hf_latch_new: %s", w->err.text);
    return latch;
}

struct downer {
    pthread_t thread;
    hf_latch *latch;
    uint64_t left;
    int rc;
};

static void *down(void *arg)
{
    struct downer *d = arg;

    d->rc = hf_latch_down(d->latch, &d->left, NULL);
    return NULL;
}

static bool counts(struct world *w, unsigned count)
{
    char text[128] = "", want[64];

    snprintf(want, sizeof(want), "holdfast latch %u ", count);
    return zk_hand_get(hand(w), "/l/latch", text, sizeof(text), false) == 0 &&
           strncmp(text, want, strlen(want)) == 0;
}

/* Nothing but the latch and its round: no mark is left. */
static void test_latch_leaves_no_marks(void **state)
{
    struct world *w = *state;
    hf_latch *l;

    world_near(w);
    l = latch_of(w, 0);
    assert_int_equal(hf_latch_set(l, 2, &w->err), 0);
    assert_int_equal(hf_latch_down(l, NULL, &w->err), 0);
    assert_true(counts(w, 1));
    assert_true(WAIT_FOR(zk_server_children(w->zk, "/l") == 1));
    assert_int_equal(zk_server_children(w->zk, "/l/latch"), 1);
    assert_int_equal(hf_latch_down(l, NULL, &w->err), 0);
    assert_int_equal(hf_latch_free(l), 0);
    world_is_clean(w);
}

/* The server has counted, and we do not know: asked again, it counts once. */
static void test_latch_answer_swallowed_counts_once(void **state)
{
    struct world *w = *state;
    struct downer d = {0};

    world_far(w, 30000, 8000);
    d.latch = latch_of(w, 0);
    assert_int_equal(hf_latch_set(d.latch, 5, &w->err), 0);
    proxy_set(w->proxy, PROXY_DELAY, 200);
    assert_int_equal(pthread_create(&d.thread, NULL, down, &d), 0);
    assert_true(WAIT_FOR(counts(w, 4)));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    world_heal(w);
    pthread_join(d.thread, NULL);
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.left, 4);
    assert_true(counts(w, 4));
    for (int i = 0; i < 4; i++)
        assert_int_equal(hf_latch_down(d.latch, NULL, &w->err), 0);
    assert_int_equal(hf_latch_free(d.latch), 0);
    world_is_clean(w);
}

static bool is_zero(struct world *w)
{
    char text[128];

    return zk_hand_get(hand(w), "/l/latch", text, sizeof(text), false) ==
           ZNONODE;
}

/* It was the last: asked again, it finds no latch. Its mark goes too. */
static void test_latch_last_answer_swallowed_leaves_no_mark(void **state)
{
    struct world *w = *state;
    struct downer d = {0};

    world_far(w, 30000, 8000);
    d.latch = latch_of(w, 0);
    assert_int_equal(hf_latch_set(d.latch, 1, &w->err), 0);
    proxy_set(w->proxy, PROXY_DELAY, 200);
    assert_int_equal(pthread_create(&d.thread, NULL, down, &d), 0);
    assert_true(WAIT_FOR(is_zero(w)));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    world_heal(w);
    pthread_join(d.thread, NULL);
    assert_int_equal(d.rc, 0);
    assert_true(WAIT_FOR(zk_server_children(w->zk, "/l") <= 0));
    assert_int_equal(hf_latch_free(d.latch), 0);
    world_is_clean(w);
}

/* Nothing is asked any more when the connection is lost: the client connects
 * again all the same, and removes its mark. */
static void test_latch_idle_after_last_leaves_no_mark(void **state)
{
    struct world *w = *state;
    hf_latch *l;

    world_far(w, 30000, 8000);
    l = latch_of(w, 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(hf_latch_set(l, 1, &w->err), 0);
        assert_int_equal(hf_latch_down(l, NULL, &w->err), 0);
        proxy_set(w->proxy, PROXY_DEAF, 0);
        world_heal(w);
        assert_true(WAIT_FOR(zk_server_children(w->zk, "/l") <= 0));
    }
    assert_int_equal(hf_latch_free(l), 0);
    world_is_clean(w);
}

/* With the session the mark is gone: nobody can tell, and nothing counts
 * twice. */
static void test_latch_session_lost_is_unknown(void **state)
{
    struct world *w = *state;
    struct downer d = {0};
    uint64_t left = 0;

    world_far(w, 3000, 12000);
    d.latch = latch_of(w, 0);
    assert_int_equal(hf_latch_set(d.latch, 5, &w->err), 0);
    proxy_set(w->proxy, PROXY_DELAY, 700);
    assert_int_equal(pthread_create(&d.thread, NULL, down, &d), 0);
    assert_true(WAIT_FOR(counts(w, 4)));
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    assert_true(WAIT_FOR(zk_server_children(w->zk, "/l") == 1));
    world_heal(w);
    pthread_join(d.thread, NULL);
    assert_int_equal(d.rc, HF_EUNKNOWN);
    assert_true(counts(w, 4));
    assert_int_equal(hf_latch_down(d.latch, &left, &w->err), 0);
    assert_int_equal(left, 3); /* the next one is another matter */
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_latch_down(d.latch, NULL, &w->err), 0);
    assert_int_equal(hf_latch_free(d.latch), 0);
    world_is_clean(w);
}

/* ---- asked ------------------------------------------------------------------
 */

/* Curator's holder looks for the word and nothing else. */
static void test_ask_reaches_curators_holder(void **state)
{
    struct world *w = *state;
    char path[256];

    world_near(w);
    assert_int_equal(hf_ask(w->clients[0], "n", 1, &w->err), HF_ENOTOWNER);
    zk_hand_create(hand(w), NODE, "", ZOO_CONTAINER, NULL, 0, NULL);
    assert_int_equal(zk_hand_create(hand(w), FOREIGN, "10.0.0.1",
                                    ZOO_EPHEMERAL_SEQUENTIAL, path,
                                    sizeof(path), NULL),
                     0);
    assert_int_equal(hf_ask(w->clients[0], "n", 1, &w->err), 0);
    is_there(w, path, "__REVOKE__");
    assert_int_equal(zk_hand_delete(hand(w), path), 0);
    world_is_clean(w);
}

struct wanted_events {
    unsigned wanted;
    uint64_t token;
};

static void hear(void *arg, const hf_event *e)
{
    struct wanted_events *events = arg;

    if (e->type == HF_EVENT_WANTED) {
        events->wanted++;
        events->token = e->token;
    }
}

static bool heard(hf_client *c, const struct wanted_events *events)
{
    hf_client_dispatch(c);
    return events->wanted;
}

/* And ours hears Curator's Revoker. */
static void test_curators_revoker_is_heard(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    struct wanted_events events = {0};
    char path[256];
    hf_client *c;
    hf_lock *lock;

    opt.on_event = hear;
    opt.event_arg = &events;
    assert_int_equal(hf_open(w->zk->url, &opt, &c, &w->err), 0);
    assert_int_equal(hf_lock_new(c, "n", 1, NULL, &lock, &w->err), 0);
    assert_int_equal(hf_lock_acquire(lock, NULL, &w->err), 0);
    world_first_entry(w, path, sizeof(path));
    assert_int_equal(zk_hand_set(hand(w), path, "__REVOKE__"), 0);
    assert_true(WAIT_FOR(heard(c, &events)));
    assert_true(events.token == token_of(lock));
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
    world_is_clean(w);
}

/* ---- downgrade --------------------------------------------------------------
 */

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

static bool has_reader(struct world *w)
{
    char path[256];

    world_first_entry(w, path, sizeof(path));
    return strstr(path, "__READ__") != NULL;
}

/* It never came to the server, nor did what its holder listens by: the hold is
 * there under its old name, and is not missed under the new one. */
static void test_downgrade_lost_with_its_ear(void **state)
{
    struct world *w = *state;
    int granted = 1, lowered = 1;
    hf_lock *a;

    world_far(w, 30000, 5000);
    assert_int_equal(hf_lock_free(w->locks[0]), 0);
    w->locks[0] = NULL;
    a = own_handle(w, 0, HF_RWLOCK);
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_DELAY, 300);
    assert_int_equal(hf_lock_acquire_async(a, NULL, note, &granted, NULL), 0);
    world_has_entries(w, 1);
    proxy_hoard(w->proxy);
    assert_true(WAIT_FOR(is_over(w->clients[0], &granted)));
    assert_int_equal(granted, 0);
    assert_int_equal(hf_lock_downgrade_async(a, note, &lowered, NULL), 0);
    assert_true(WAIT_FOR(proxy_hoarded(w->proxy) > 0));
    world_heal(w);
    assert_true(WAIT_FOR(is_over(w->clients[0], &lowered)));
    assert_true(WAIT_FOR(has_reader(w)));
    assert_false(world_heard_loss(w, 0));
    assert_int_equal(hf_lock_check(a), 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_int_equal(hf_lock_free(a), 0);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

static hf_lock *kazoo_lock(struct world *w)
{
    char url[128];

    snprintf(url, sizeof(url), "%s?dialect=kazoo", w->zk->url);
    return world_lock(w, url, 30000, 5000, HF_FAIR_DEFAULT);
}

/* In kazoo's form a writer looks like a mutex: one that waits behind it hears
 * that it has gone, but it goes on reading. */
static void test_mutex_behind_kazoos_writer_that_goes_on_reading(void **state)
{
    struct world *w = *state;
    hf_lock *a, *b[2];
    struct taker *t;

    kazoo_lock(w);
    a = world_change(w, 0, HF_RWLOCK, 0);
    b[0] = world_near(w);
    b[1] = kazoo_lock(w);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
        t = taker_start(w, b[i], WAIT_LONG_MS);
        world_has_entries(w, 2);
        /* One is of the holder, who listens. */
        assert_true(WAIT_FOR(zk_server_number(w->zk, "zk_watch_count") >= 2));
        assert_int_equal(hf_lock_downgrade(a, &w->err), 0);
        assert_true(WAIT_FOR(taker_back(t)));
        assert_int_equal(t->rc, HF_EMISMATCH);
        taker_end(t);
        assert_int_equal(hf_lock_release(a, &w->err), 0);
    }
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

/* ---- guarded writes
 * ------------------------------------------------------------ */

static void test_put_is_for_the_holder(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    char path[256];

    assert_int_equal(hf_lock_timed(a, 5000, NULL), 0);
    assert_int_equal(hf_lock_put(a, "v", 1, "one", 3, &w->err), 0);
    is_there(w, "/v", "one");
    assert_int_equal(hf_lock_put(a, "v", 1, "two", 3, &w->err), 0);
    is_there(w, "/v", "two");
    assert_int_equal(hf_lock_put(a, "w/v", 3, "x", 1, &w->err), HF_EINVAL);
    assert_int_equal(hf_lock_put(a, "n/lock", 6, "x", 1, &w->err), HF_EINVAL);
    assert_int_equal(hf_lock_put(b, "v", 1, "x", 1, &w->err), HF_ENOTOWNER);
    /* Taken away, and nobody has told it. */
    world_first_entry(w, path, sizeof(path));
    assert_int_equal(zk_hand_delete(hand(w), path), 0);
    assert_int_equal(hf_lock_timed(b, 5000, NULL), 0);
    assert_int_equal(hf_lock_put(b, "v", 1, "three", 5, &w->err), 0);
    assert_int_equal(hf_lock_put(a, "v", 1, "late", 4, &w->err), HF_ELOST);
    is_there(w, "/v", "three");
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    assert_int_equal(zk_hand_delete(hand(w), "/v"), 0);
    world_is_clean(w);
}

/* What is wrong with it is said of what the caller calls key and value. */
static void test_put_says_what_is_wrong(void **state)
{
    static const struct {
        const char *key;
        size_t key_len;
        const char *value;
        const char *text;
    } each[] = {
        {NULL, 1, "x", "key is NULL"},
        {"", 0, "x", "key has 0 bytes"},
        {"v", (size_t)1 << 20, "x", "key has 1048576 bytes"},
        {"a\0b", 3, "x", "key has a NUL"},
        {"/v", 2, "x", "key begins with a slash"},
        {"a//v", 4, "x", "key has an empty part"},
        {"v/", 2, "x", "key has an empty part"},
        {"n/lock", 6, "x", "the key has the part"},
        {"w/v", 3, "x", "key: the node above /w/v"},
        {"v", 1, NULL, "value is NULL"},
    };
    struct world *w = *state;
    hf_lock *a = world_near(w);

    assert_int_equal(hf_lock_timed(a, 5000, NULL), 0);
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        w->err.text[0] = '\0';
        assert_int_equal(hf_lock_put(a, each[i].key, each[i].key_len,
                                     each[i].value, 1, &w->err),
                         HF_EINVAL);
        if (!strstr(w->err.text, each[i].text))
            fail_msg("\"%s\" instead of \"%s\"", w->err.text, each[i].text);
    }
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

/* Any hold will do: the unfair one too, whose node is that of all. */
static void test_put_by_every_kind(void **state)
{
    static const struct manner each[] = {{HF_MUTEX, HF_UNFAIR, HF_WRITE},
                                         {HF_RWLOCK, HF_FAIR, HF_WRITE},
                                         {HF_RWLOCK, HF_FAIR, HF_READ},
                                         {HF_SEMAPHORE, HF_FAIR, HF_WRITE}};
    struct world *w = *state;

    world_near(w);
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        hf_lock *lock = held_as(w, "m", &each[i]);

        assert_int_equal(hf_lock_put(lock, "v", 1, "x", 1, &w->err), 0);
        is_there(w, "/v", "x");
        assert_int_equal(hf_break(w->clients[0], "m", 1, &w->err), 0);
        assert_int_equal(hf_lock_put(lock, "v", 1, "y", 1, &w->err), HF_ELOST);
        is_there(w, "/v", "x");
        assert_int_equal(hf_lock_release(lock, NULL), HF_ELOST);
        assert_int_equal(hf_lock_free(lock), 0);
    }
    assert_int_equal(zk_hand_delete(hand(w), "/v"), 0);
    world_is_clean(w);
}

int run_kinds_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_mutex_first_request_lost),
        T(test_mutex_parents_lost),
        T(test_semaphore_first_request_lost),
        T(test_semaphore_parents_lost),
        T(test_latch_leaves_no_marks),
        T(test_latch_answer_swallowed_counts_once),
        T(test_latch_last_answer_swallowed_leaves_no_mark),
        T(test_latch_idle_after_last_leaves_no_mark),
        T(test_latch_session_lost_is_unknown),
        T(test_ask_reaches_curators_holder),
        T(test_curators_revoker_is_heard),
        T(test_downgrade_lost_with_its_ear),
        T(test_mutex_behind_kazoos_writer_that_goes_on_reading),
        T(test_put_is_for_the_holder),
        T(test_put_says_what_is_wrong),
        T(test_put_by_every_kind),
    };

    return cmocka_run_group_tests_name("zk-kinds", tests, group_one,
                                       group_one_end);
}
