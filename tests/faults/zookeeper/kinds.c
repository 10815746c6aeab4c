/*
 * What is special about ZooKeeper: the creation of new names; latches; requests
 * to holders, downgrades and guarded writes, as nodes at the server; and lost
 * replies.
 */
#include "zk_faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

GROUP("kinds");

#define UUID "00000000-0000-4000-8000-000000000001"
#define FOREIGN NODE "/_c_" UUID "-lock-"

static void is_there(struct world *w, const char *path, const char *data)
{
    char text[512] = "";

    OK(zk_hand_get(hand(w), path, text, sizeof(text)));
    assert_string_equal(text, data);
}

/* The client's first request about a name is lost. If `parents` is set, its
 * second request, which creates the parents, is lost instead. */
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
        COMES(proxy_sent(w->proxy) > before);
        proxy_hoard(w->proxy);
    }
    COMES(proxy_hoarded(w->proxy) > 0);
    world_heal(w);
    taker_gets_it(t, 4000);
    taker_gives(t);
}

CASE_IS(test_mutex_first_request_lost, requests_lost(w, HF_MUTEX, false))
CASE_IS(test_mutex_parents_lost, requests_lost(w, HF_MUTEX, true))
CASE_IS(test_semaphore_first_request_lost,
        requests_lost(w, HF_SEMAPHORE, false))
CASE_IS(test_semaphore_parents_lost, requests_lost(w, HF_SEMAPHORE, true))

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
    return zk_hand_get(hand(w), "/l/latch", text, sizeof(text)) == 0 &&
           strncmp(text, want, strlen(want)) == 0;
}

/* At the server only the two nodes of the latch remain: the latch itself and
 * its round. No mark remains: a client deletes the node that marks its request
 * as carried out when it gets the reply. */
CASE(test_latch_leaves_no_marks)
{
    hf_latch *l;

    world_near(w);
    l = world_latch(w, w->clients[0], "l");
    OK(hf_latch_set(l, 2, &w->err));
    OK(hf_latch_down(l, NULL, &w->err));
    assert_true(counts(w, 1));
    COMES(zk_server_children(w->zk, "/l") == 1);
    assert_int_equal(zk_server_children(w->zk, "/l/latch"), 1);
    OK(hf_latch_down(l, NULL, &w->err));
}

/* The server has counted down, but its reply is lost: the retry must not count
 * again. */
CASE(test_latch_answer_swallowed_counts_once)
{
    struct downer d = {0};

    world_far(w, 30000, 8000);
    d.latch = world_latch(w, w->clients[0], "l");
    OK(hf_latch_set(d.latch, 5, &w->err));
    proxy_set(w->proxy, PROXY_DELAY, 200);
    OK(pthread_create(&d.thread, NULL, down, &d));
    COMES(counts(w, 4));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    world_heal(w);
    pthread_join(d.thread, NULL);
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.left, 4);
    assert_true(counts(w, 4));
    for (int i = 0; i < 4; i++)
        OK(hf_latch_down(d.latch, NULL, &w->err));
}

static bool is_zero(struct world *w)
{
    char text[128];

    return zk_hand_get(hand(w), "/l/latch", text, sizeof(text)) == ZNONODE;
}

/* The reply to the last count is lost. The retry finds no latch: the call
 * succeeds, and the client's mark is removed too. */
CASE(test_latch_last_answer_swallowed_leaves_no_mark)
{
    struct downer d = {0};

    world_far(w, 30000, 8000);
    d.latch = world_latch(w, w->clients[0], "l");
    OK(hf_latch_set(d.latch, 1, &w->err));
    proxy_set(w->proxy, PROXY_DELAY, 200);
    OK(pthread_create(&d.thread, NULL, down, &d));
    COMES(is_zero(w));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    world_heal(w);
    pthread_join(d.thread, NULL);
    assert_int_equal(d.rc, 0);
    COMES(zk_server_children(w->zk, "/l") <= 0);
}

/* The last count has been answered, and the connection is lost while no request
 * is in flight. The client reconnects anyway and removes its mark. */
CASE(test_latch_idle_after_last_leaves_no_mark)
{
    hf_latch *l;

    world_far(w, 30000, 8000);
    l = world_latch(w, w->clients[0], "l");
    for (int i = 0; i < 5; i++) {
        OK(hf_latch_set(l, 1, &w->err));
        OK(hf_latch_down(l, NULL, &w->err));
        proxy_set(w->proxy, PROXY_DEAF, 0);
        world_heal(w);
        COMES(zk_server_children(w->zk, "/l") <= 0);
    }
}

/* The session ends before the reply to a down arrives, and the node that shows
 * that the down was counted is removed with the session. The client then cannot
 * know whether the down was counted: hf_latch_down() returns HF_EUNKNOWN and
 * does not count again. */
CASE(test_latch_session_lost_is_unknown)
{
    struct downer d = {0};
    uint64_t left = 0;

    world_far(w, 3000, 12000);
    d.latch = world_latch(w, w->clients[0], "l");
    OK(hf_latch_set(d.latch, 5, &w->err));
    proxy_set(w->proxy, PROXY_DELAY, 700);
    OK(pthread_create(&d.thread, NULL, down, &d));
    COMES(counts(w, 4));
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    COMES(zk_server_children(w->zk, "/l") == 1);
    world_heal(w);
    pthread_join(d.thread, NULL);
    assert_int_equal(d.rc, HF_EUNKNOWN);
    assert_true(counts(w, 4));
    OK(hf_latch_down(d.latch, &left, &w->err));
    assert_int_equal(left, 3); /* the next count works normally */
    for (int i = 0; i < 3; i++)
        OK(hf_latch_down(d.latch, NULL, &w->err));
}

/* A Curator holder reacts only to the word __REVOKE__ in the data of its
 * node. */
CASE(test_ask_reaches_curators_holder)
{
    char path[256];

    world_near(w);
    EXPECT(HF_ENOTOWNER, hf_ask(w->clients[0], "n", 1, &w->err));
    zk_hand_create(hand(w), NODE, "", ZOO_CONTAINER, NULL, 0, NULL);
    OK(zk_hand_create(hand(w), FOREIGN, "10.0.0.1", ZOO_EPHEMERAL_SEQUENTIAL,
                      path, sizeof(path), NULL));
    OK(hf_ask(w->clients[0], "n", 1, &w->err));
    is_there(w, path, "__REVOKE__");
    OK(zk_hand_delete(hand(w), path));
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

CASE(test_curators_revoker_is_heard)
{
    struct wanted_events events = {0};
    char path[256];
    hf_client *c = world_open(w, w->zk->url,
                              CLIENT(.on_event = hear, .event_arg = &events));
    hf_lock *lock = world_handle(w, c, "n", NULL);

    OK(hf_lock_acquire(lock, NULL, &w->err));
    world_first_entry(w, path, sizeof(path));
    OK(zk_hand_set(hand(w), path, "__REVOKE__"));
    COMES(heard(c, &events));
    assert_true(events.token == token_of(lock));
    OK(hf_lock_release(lock, NULL));
}

static void note(void *arg, hf_lock *lock, int result)
{
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

/* Neither the downgrade nor the holder's request for a watch reaches the
 * server, so the entry still has its old name. When the client finds no entry
 * with the new name, it must not conclude that the hold is lost. */
CASE(test_downgrade_lost_with_its_ear)
{
    int granted = 1, lowered = 1;
    hf_lock *a;

    world_far(w, 30000, 5000);
    OK(hf_lock_free(w->locks[0]));
    w->locks[0] = NULL;
    a = own_handle(w, 0, HF_RWLOCK);
    OK(zk_hand_create(hand(w), NODE, "", 0, NULL, 0, NULL));
    proxy_set(w->proxy, PROXY_DELAY, 300);
    OK(hf_lock_acquire_async(a, NULL, note, &granted, NULL));
    world_has_entries(w, 1);
    proxy_hoard(w->proxy);
    COMES(is_over(w->clients[0], &granted));
    assert_int_equal(granted, 0);
    OK(hf_lock_downgrade_async(a, note, &lowered, NULL));
    COMES(proxy_hoarded(w->proxy) > 0);
    world_heal(w);
    COMES(is_over(w->clients[0], &lowered));
    COMES(has_reader(w));
    assert_false(world_heard_loss(w, 0));
    OK(hf_lock_check(a));
    OK(hf_lock_release(a, &w->err));
    OK(hf_lock_free(a));
    COMES(!zk_hand_delete(hand(w), NODE));
}

static hf_lock *kazoo_lock(struct world *w)
{
    return world_lock(w, text_of("%s?dialect=kazoo", w->zk->url), 30000, 5000,
                      HF_FAIR_DEFAULT);
}

/* In kazoo's layout a writer looks like a mutex. A client that waits for a
 * mutex behind the writer is notified when the writer's node is removed, but
 * the holder now reads: the wait fails with HF_EMISMATCH. */
CASE(test_mutex_behind_kazoos_writer_that_goes_on_reading)
{
    hf_lock *a, *b[2];
    struct taker *t;

    kazoo_lock(w);
    a = world_change(w, 0, HF_RWLOCK, 0);
    b[0] = world_near(w);
    b[1] = kazoo_lock(w);
    for (int i = 0; i < 2; i++) {
        OK(hf_lock_timed(a, 5000, &w->err));
        t = taker_start(w, b[i], WAIT_LONG_MS);
        world_has_entries(w, 2);
        /* Wait until the waiter watches, too: one watch belongs to the holder,
         * which has an event callback. */
        COMES(zk_server_number(w->zk, "zk_watch_count") >= 2);
        OK(hf_lock_downgrade(a, &w->err));
        taker_fails(t, HF_EMISMATCH, WAIT_LONG_MS);
        OK(hf_lock_release(a, &w->err));
    }
    COMES(!zk_hand_delete(hand(w), NODE));
}

CASE(test_put_is_for_the_holder)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    char path[256];

    OK(hf_lock_timed(a, 5000, NULL));
    OK(hf_lock_put(a, "v", 1, "one", 3, &w->err));
    is_there(w, "/v", "one");
    OK(hf_lock_put(a, "v", 1, "two", 3, &w->err));
    is_there(w, "/v", "two");
    EXPECT(HF_EINVAL, hf_lock_put(a, "w/v", 3, "x", 1, &w->err));
    EXPECT(HF_EINVAL, hf_lock_put(a, "n/lock", 6, "x", 1, &w->err));
    EXPECT(HF_ENOTOWNER, hf_lock_put(b, "v", 1, "x", 1, &w->err));
    /* Delete the hold's node; the holder is not notified. */
    world_first_entry(w, path, sizeof(path));
    OK(zk_hand_delete(hand(w), path));
    OK(hf_lock_timed(b, 5000, NULL));
    OK(hf_lock_put(b, "v", 1, "three", 5, &w->err));
    EXPECT(HF_ELOST, hf_lock_put(a, "v", 1, "late", 4, &w->err));
    is_there(w, "/v", "three");
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    OK(hf_lock_release(b, NULL));
    OK(zk_hand_delete(hand(w), "/v"));
}

/* The error messages use the caller's words, key and value. */
CASE(test_put_says_what_is_wrong)
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
    hf_lock *a = world_near(w);

    OK(hf_lock_timed(a, 5000, NULL));
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        w->err.text[0] = '\0';
        EXPECT(HF_EINVAL, hf_lock_put(a, each[i].key, each[i].key_len,
                                      each[i].value, 1, &w->err));
        if (!strstr(w->err.text, each[i].text))
            fail_msg("\"%s\" instead of \"%s\"", w->err.text, each[i].text);
    }
    OK(hf_lock_release(a, NULL));
}

/* Any hold suffices, including that of an unfair mutex, whose node has the same
 * name for every holder. */
CASE(test_put_by_every_kind)
{
    static const struct manner each[] = {{HF_MUTEX, HF_UNFAIR, HF_WRITE},
                                         {HF_RWLOCK, HF_FAIR, HF_WRITE},
                                         {HF_RWLOCK, HF_FAIR, HF_READ},
                                         {HF_SEMAPHORE, HF_FAIR, HF_WRITE}};
    world_near(w);
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
        hf_lock *lock = held_as(w, "m", &each[i]);

        OK(hf_lock_put(lock, "v", 1, "x", 1, &w->err));
        is_there(w, "/v", "x");
        OK(hf_break(w->clients[0], "m", 1, &w->err));
        EXPECT(HF_ELOST, hf_lock_put(lock, "v", 1, "y", 1, &w->err));
        is_there(w, "/v", "x");
        EXPECT(HF_ELOST, hf_lock_release(lock, NULL));
        OK(hf_lock_free(lock));
    }
    OK(zk_hand_delete(hand(w), "/v"));
}
