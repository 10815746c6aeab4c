/*
 * What only ZooKeeper shows: semaphores, latches, holders that are asked,
 * guarded writes and users, as they are at the server; and their answers lost.
 */
#include "zk_faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define UUID "00000000-0000-4000-8000-000000000001"
#define FOREIGN NODE "/_c_" UUID "-lock-"

static struct zk_hand *hand(struct world *w)
{
    return zk_server_hand(w->zk);
}

static void is_there(struct world *w, const char *path, const char *data)
{
    char text[512] = "";

    assert_int_equal(zk_hand_get(hand(w), path, text, sizeof(text), false), 0);
    assert_string_equal(text, data);
}

/* ---- semaphore ------------------------------------------------------------
 */

static void test_semaphore_has_curators_layout(void **state)
{
    struct world *w = *state;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 3);
    opt.permits = 2;
    assert_int_equal(hf_lock_acquire(a, &opt, &w->err), 0);
    assert_int_equal(zk_server_children(w->zk, NODE "/leases"), 2);
    assert_true(WAIT_FOR(!zk_server_children(w->zk, NODE "/locks")));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(zk_server_children(w->zk, NODE "/leases"), 0);
    world_is_clean(w);
}

/* One of Curator's is one more that is out, and one that waits is before us. */
static void test_semaphore_beside_curators_leases(void **state)
{
    struct world *w = *state;
    struct zk_hand *h = hand(w);
    char lease[256], turn[256];
    struct taker *t;
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 1);
    assert_int_equal(hf_lock_try(a, NULL), 0); /* makes the nodes */
    assert_int_equal(hf_lock_release(a, NULL), 0);
    zk_hand_create(h, NODE, "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(h, NODE "/leases", "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(h, NODE "/locks", "", ZOO_CONTAINER, NULL, 0, NULL);
    assert_int_equal(zk_hand_create(h, NODE "/leases/_c_" UUID "-lease-", "",
                                    ZOO_EPHEMERAL_SEQUENTIAL, lease,
                                    sizeof(lease), NULL),
                     0);
    assert_int_equal(hf_lock_try(a, NULL), HF_EBUSY);
    assert_int_equal(zk_hand_create(h, NODE "/locks/_c_" UUID "-lock-", "",
                                    ZOO_EPHEMERAL_SEQUENTIAL, turn,
                                    sizeof(turn), NULL),
                     0);
    t = taker_start(w, a, 20000);
    assert_true(WAIT_FOR(zk_server_children(w->zk, NODE "/locks") == 2));
    assert_int_equal(zk_hand_delete(h, lease), 0);
    assert_false(taker_back(t)); /* it is not our turn */
    assert_int_equal(zk_hand_delete(h, turn), 0);
    taker_gets_it(t, 4000);
    world_is_clean(w);
}

static void test_semaphore_answer_swallowed(void **state)
{
    struct world *w = *state;
    struct taker *t;
    hf_lock *a;

    world_far(w, 30000, 5000);
    a = world_change(w, 0, HF_SEMAPHORE, 2);
    /* No container, so that it stays. */
    zk_hand_create(hand(w), NODE, "", ZOO_CONTAINER, NULL, 0, NULL);
    assert_int_equal(
        zk_hand_create(hand(w), NODE "/locks", "", 0, NULL, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, a, 10000);
    assert_true(WAIT_FOR(zk_server_children(w->zk, NODE "/locks") == 1));
    world_heal(w);
    assert_true(WAIT_FOR_MS(taker_back(t), 4000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(zk_server_children(w->zk, NODE "/leases"), 1);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE "/locks")));
    world_is_clean(w);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void delete_lease(struct world *w, int permits, int which)
{
    struct String_vector names = {0};
    char path[256];

    assert_int_equal(zk_hand_children(hand(w), NODE "/leases", &names), 0);
    assert_int_equal(names.count, permits);
    qsort(names.data, (size_t)permits, sizeof(*names.data), by_name);
    snprintf(path, sizeof(path), NODE "/leases/%s", names.data[which]);
    deallocate_String_vector(&names);
    assert_int_equal(zk_hand_delete(hand(w), path), 0);
}

static bool is_lost(struct world *w, hf_lock *lock)
{
    hf_client_dispatch(w->clients[0]);
    return hf_lock_check(lock) == HF_ELOST;
}

/* Whichever is taken away: the hold is lost, and nothing of it stays out. */
static void loses_any_lease(struct world *w, hf_lock *a, int permits,
                            int64_t within_ms)
{
    const int which[] = {0, permits / 2, permits - 1};
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;

    opt.permits = (uint32_t)permits;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_lock_acquire(a, &opt, &w->err), 0);
        delete_lease(w, permits, which[i]);
        if (!WAIT_FOR_MS(is_lost(w, a), within_ms))
            fail_msg("lease %d of %d is not missed", which[i], permits);
        assert_true(
            WAIT_FOR_MS(!zk_server_children(w->zk, NODE "/leases"), 10000));
        assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    }
    world_is_clean(w);
}

static hf_lock *deaf_semaphore(struct world *w, int64_t ttl_ms, uint32_t size)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;

    opt.ttl_ms = ttl_ms;
    assert_int_equal(hf_open(w->zk->url, &opt, &w->clients[0], &w->err), 0);
    w->len = 1;
    return world_change(w, 0, HF_SEMAPHORE, size);
}

static void test_semaphore_one_of_its_leases_is_deleted(void **state)
{
    struct world *w = *state;

    loses_any_lease(w, deaf_semaphore(w, 1500, 3), 2, 5000);
}

/* More than one transaction has room for. */
static void test_semaphore_one_of_many_leases_is_deleted(void **state)
{
    struct world *w = *state;

    loses_any_lease(w, deaf_semaphore(w, 3000, 700), 600, 8000);
}

/* Who listens hears of it long before its renewal. */
static void test_semaphore_deleted_lease_is_heard_of(void **state)
{
    struct world *w = *state;

    world_lock(w, w->zk->url, 60000, 5000, HF_FAIR);
    loses_any_lease(w, world_change(w, 0, HF_SEMAPHORE, 4), 3, 4000);
}

/* kazoo's semaphore has other nodes: beside ours, both would count to n. */
static void test_kazoo_has_no_semaphore(void **state)
{
    struct world *w = *state;
    hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
    hf_lock *lock = NULL;
    hf_client *c;
    char url[128];

    snprintf(url, sizeof(url), "%s?dialect=kazoo", w->zk->url);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), 0);
    assert_int_equal(hf_client_caps(c, HF_SEMAPHORE), 0);
    opt.kind = HF_SEMAPHORE;
    opt.permits = 2;
    assert_int_equal(hf_lock_new(c, "n", 1, &opt, &lock, &w->err), HF_ENOTSUP);
    opt = (hf_lock_options)HF_LOCK_OPTIONS_INIT;
    assert_int_equal(hf_lock_new(c, "n", 1, &opt, &lock, &w->err), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
}

/* ---- unfair ---------------------------------------------------------------
 */

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

/* With the session the mark is gone: nobody can tell, and nothing counts
 * twice. */
static void test_latch_session_lost_is_unknown(void **state)
{
    struct world *w = *state;
    struct downer d = {0};
    uint64_t left = 0;

    world_far(w, 500, 8000);
    d.latch = latch_of(w, 0);
    assert_int_equal(hf_latch_set(d.latch, 5, &w->err), 0);
    proxy_set(w->proxy, PROXY_DELAY, 100);
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

struct ears {
    unsigned wanted;
    uint64_t token;
};

static void hear(void *arg, const hf_event *e)
{
    struct ears *ears = arg;

    if (e->type == HF_EVENT_WANTED) {
        ears->wanted++;
        ears->token = e->token;
    }
}

static bool heard(hf_client *c, const struct ears *ears)
{
    hf_client_dispatch(c);
    return ears->wanted;
}

/* And ours hears Curator's Revoker. */
static void test_curators_revoker_is_heard(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    struct ears ears = {0};
    char path[256];
    hf_client *c;
    hf_lock *lock;

    opt.on_event = hear;
    opt.event_arg = &ears;
    assert_int_equal(hf_open(w->zk->url, &opt, &c, &w->err), 0);
    assert_int_equal(hf_lock_new(c, "n", 1, NULL, &lock, &w->err), 0);
    assert_int_equal(hf_lock_acquire(lock, NULL, &w->err), 0);
    world_first_entry(w, path, sizeof(path));
    assert_int_equal(zk_hand_set(hand(w), path, "__REVOKE__"), 0);
    assert_true(WAIT_FOR(heard(c, &ears)));
    assert_true(ears.token == token_of(lock));
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(c), 0);
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
        {"n/lock", 6, "x", "key: a part of it"},
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
    static const struct {
        enum hf_kind kind;
        enum hf_fairness fairness;
        enum hf_mode mode;
    } each[] = {{HF_MUTEX, HF_UNFAIR, HF_WRITE},
                {HF_RWLOCK, HF_FAIR, HF_WRITE},
                {HF_RWLOCK, HF_FAIR, HF_READ},
                {HF_SEMAPHORE, HF_FAIR, HF_WRITE}};
    struct world *w = *state;

    world_near(w);
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        hf_lock_options opt = HF_LOCK_OPTIONS_INIT;
        hf_acquire_options how = HF_ACQUIRE_OPTIONS_INIT;
        hf_lock *lock;

        opt.kind = each[i].kind;
        opt.fairness = each[i].fairness;
        opt.permits = each[i].kind == HF_SEMAPHORE ? 2 : 0;
        how.mode = each[i].mode;
        assert_int_equal(
            hf_lock_new(w->clients[0], "m", 1, &opt, &lock, &w->err), 0);
        if (hf_lock_acquire(lock, &how, &w->err))
            fail_msg("%s", w->err.text);
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

/* ---- users
 * ---------------------------------------------------------------------- */

static hf_client *open_at(struct world *w, const char *user, const char *path)
{
    hf_client *c = NULL;
    char url[128];

    snprintf(url, sizeof(url), "zk://%s@127.0.0.1:%d%s", user, w->zk->port,
             path);
    if (hf_open(url, NULL, &c, &w->err))
        fail_msg("%s", w->err.text);
    return c;
}

static hf_client *open_as(struct world *w, const char *user)
{
    return open_at(w, user, "");
}

static int try_as(struct world *w, hf_client *c, const char *name)
{
    hf_lock *lock;
    int rc;

    assert_int_equal(hf_lock_new(c, name, HF_CSTRING, NULL, &lock, &w->err), 0);
    w->err.text[0] = '\0';
    rc = hf_lock_try(lock, &w->err);
    if (!rc)
        rc = hf_lock_release(lock, &w->err);
    assert_int_equal(hf_lock_free(lock), 0);
    return rc;
}

static void says(const struct world *w, const char *text)
{
    if (!strstr(w->err.text, text))
        fail_msg("\"%s\" says nothing of \"%s\"", w->err.text, text);
}

static void test_users_have_their_own(void **state)
{
    struct world *w = *state;
    hf_client *ann = open_as(w, "ann:Geheimnis-1"),
              *bob = open_as(w, "bob:Geheimnis-2"), *none;
    hf_lock *lock;

    assert_int_equal(hf_open(w->zk->url, NULL, &none, &w->err), 0);
    assert_int_equal(hf_lock_new(ann, "t/n", 3, NULL, &lock, &w->err), 0);
    assert_int_equal(hf_lock_acquire(lock, NULL, &w->err), 0);
    assert_int_equal(try_as(w, bob, "t/n"), HF_EAUTH);
    assert_null(strstr(w->err.text, "Geheimnis"));
    says(w, "CREATE below /t/n as user bob");
    assert_int_equal(try_as(w, none, "t/n"), HF_EAUTH);
    says(w, "CREATE below /t/n without a user");
    assert_int_equal(try_as(w, bob, "t/m"), HF_EAUTH); /* below ann's */
    says(w, "CREATE above /t/m as user bob");
    assert_int_equal(try_as(w, bob, "u"), 0);
    assert_int_equal(hf_break(bob, "t/n", 3, &w->err), HF_EAUTH);
    says(w, "READ /t/n as user bob");
    assert_int_equal(hf_inspect(bob, "t/n", 3, &(hf_info *){NULL}, &w->err),
                     HF_EAUTH);
    assert_int_equal(hf_lock_check(lock), 0);
    assert_int_equal(hf_lock_release(lock, NULL), 0);
    assert_int_equal(try_as(w, ann, "t/m"), 0);
    assert_int_equal(hf_lock_free(lock), 0);
    assert_int_equal(hf_close(ann), 0);
    assert_int_equal(hf_close(bob), 0);
    assert_int_equal(hf_close(none), 0);
    world_is_clean(w);
}

static bool is_quiet(struct world *w)
{
    uint64_t before = proxy_sent(w->proxy);

    return NEVER_MS(proxy_sent(w->proxy) != before, 300);
}

/* The name's node is everybody's, the holder's entry is not: who waits does not
 * ask without end, and is told. */
static void waits_behind_another_user(struct world *w,
                                      enum hf_fairness fairness)
{
    char ann[128], bob[128];
    hf_lock *a, *b;
    struct taker *t;

    snprintf(ann, sizeof(ann), "zk://ann:x@127.0.0.1:%d", w->zk->port);
    snprintf(bob, sizeof(bob), "zk://bob:y@127.0.0.1:%d", proxy_port(w->proxy));
    assert_int_equal(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL), 0);
    a = world_lock(w, ann, 30000, 5000, fairness);
    b = world_lock(w, bob, 30000, 5000, fairness);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    t = taker_start(w, b, 20000);
    assert_true(WAIT_FOR(proxy_sent(w->proxy) > 200));
    assert_true(WAIT_FOR_MS(is_quiet(w), 3000));
    assert_false(taker_back(t));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 4000);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), NODE)));
    world_is_clean(w);
}

static void test_users_wait_behind_each_other(void **state)
{
    waits_behind_another_user(*state, HF_FAIR);
}

static void test_users_wait_behind_each_other_unfair(void **state)
{
    waits_behind_another_user(*state, HF_UNFAIR);
}

/* ---- rights that go
 * ------------------------------------------------------------- */

static void note_rc(int rc, const void *data)
{
    *(int *)(uintptr_t)data = rc;
}

static void set_rights(struct world *w, const char *path, int rights)
{
    struct ACL one = {rights, ZOO_ANYONE_ID_UNSAFE};
    struct ACL_vector acl = {1, &one};
    int rc = 1;

    assert_int_equal(
        zoo_aset_acl(zk_hand_handle(hand(w)), path, -1, &acl, note_rc, &rc), 0);
    assert_int_equal(zk_hand_sync(hand(w)), 0); /* answered after it */
    assert_int_equal(rc, 0);
}

static void count_refusals(void *count, const char *text)
{
    if (strstr(text, "cannot be deleted"))
        __atomic_add_fetch((int *)count, 1, __ATOMIC_RELAXED);
}

/* Nobody may delete it: that is said once, and tried seldom; and when it is
 * allowed again all goes on. */
static void test_rights_to_delete_are_taken_away(void **state)
{
    struct world *w = *state;
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    int refusals = 0;
    hf_hooks hooks = {.ctx = &refusals, .log = count_refusals};
    hf_lock *a;

    opt.hooks = &hooks;
    opt.op_timeout_ms = 500;
    assert_int_equal(hf_open(w->far_url, &opt, &w->clients[0], &w->err), 0);
    w->len = 1;
    a = world_change(w, 0, HF_MUTEX, 0);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    set_rights(w, NODE, ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    assert_true(WAIT_FOR_MS(is_quiet(w), 5000));
    assert_true(is_quiet(w));
    assert_int_equal(__atomic_load_n(&refusals, __ATOMIC_RELAXED), 1);
    set_rights(w, NODE, ZOO_PERM_ALL);
    assert_true(WAIT_FOR_MS(!zk_server_children(w->zk, NODE), 12000));
    assert_true(WAIT_FOR(hf_lock_timed(a, 1000, &w->err) == 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_int_equal(hf_close(w->clients[0]), 0); /* before its log goes */
    w->clients[0] = NULL;
    world_is_clean(w);
}

/* ---- the root
 * ------------------------------------------------------------- */

static bool is_gone(struct world *w, const char *path)
{
    return zk_hand_stat(hand(w), path, NULL) == ZNONODE;
}

/* What the URL names lasts, and is its user's, when no lock is in use below it.
 * Otherwise it would be whoever's who comes next. */
static void test_root_stays(void **state)
{
    struct world *w = *state;
    struct zk_hand *h = hand(w);
    hf_client *ann = open_at(w, "ann:x", "/teams/a"), *bob;

    assert_int_equal(try_as(w, ann, "d/n"), 0);
    assert_true(WAIT_FOR(is_gone(w, "/teams/a/d")));
    /* And whatever else could have been swept by then. */
    zk_hand_create(h, "/mark", "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(h, "/mark/x", "", 0, NULL, 0, NULL);
    zk_hand_delete(h, "/mark/x");
    assert_true(WAIT_FOR(is_gone(w, "/mark")));
    assert_false(is_gone(w, "/teams/a"));
    bob = open_at(w, "bob:y", "/teams/a");
    assert_int_equal(try_as(w, bob, "n"), HF_EAUTH);
    says(w, "CREATE above /teams/a/n as user bob");
    assert_int_equal(try_as(w, ann, "n"), 0);
    assert_int_equal(hf_close(ann), 0);
    assert_int_equal(hf_close(bob), 0);
    assert_int_equal(
        zoo_add_auth(zk_hand_handle(h), "digest", "ann:x", 5, NULL, NULL), 0);
    assert_true(WAIT_FOR(!zk_hand_delete(h, "/teams/a")));
    assert_int_equal(zk_hand_delete(h, "/teams"), 0);
    world_is_clean(w);
}

static void test_users_need_a_password(void **state)
{
    struct world *w = *state;
    hf_client *c = NULL;
    char url[128];

    snprintf(url, sizeof(url), "zk://ann@127.0.0.1:%d", w->zk->port);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), HF_EINVAL);
    snprintf(url, sizeof(url), "zk://:x@127.0.0.1:%d", w->zk->port);
    assert_int_equal(hf_open(url, NULL, &c, &w->err), HF_EINVAL);
}

int run_kinds_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_semaphore_has_curators_layout),
        T(test_semaphore_beside_curators_leases),
        T(test_semaphore_answer_swallowed),
        T(test_semaphore_one_of_its_leases_is_deleted),
        T(test_semaphore_one_of_many_leases_is_deleted),
        T(test_semaphore_deleted_lease_is_heard_of),
        T(test_kazoo_has_no_semaphore),
        T(test_unfair_holder_is_deleted_alone),
        T(test_latch_leaves_no_marks),
        T(test_latch_answer_swallowed_counts_once),
        T(test_latch_last_answer_swallowed_leaves_no_mark),
        T(test_latch_session_lost_is_unknown),
        T(test_ask_reaches_curators_holder),
        T(test_curators_revoker_is_heard),
        T(test_put_is_for_the_holder),
        T(test_put_says_what_is_wrong),
        T(test_put_by_every_kind),
        T(test_users_have_their_own),
        T(test_users_wait_behind_each_other),
        T(test_users_wait_behind_each_other_unfair),
        T(test_users_need_a_password),
        T(test_rights_to_delete_are_taken_away),
        T(test_root_stays),
    };

    return cmocka_run_group_tests_name("zk-kinds", tests, group_one,
                                       group_one_end);
}
