/*
 * Semaphores, as they are at the server: beside Curator's, their answers lost,
 * their leases deleted by somebody.
 */
#include "zk_faults.h"

#include <stdio.h>

#define UUID "00000000-0000-4000-8000-000000000001"
#define LEASES NODE "/leases"
#define LOCKS NODE "/locks"

/* ---- its nodes ----------------------------------------------------------- */

static void test_semaphore_has_curators_layout(void **state)
{
    struct world *w = *state;
    hf_acquire_options opt = HF_ACQUIRE_OPTIONS_INIT;
    hf_lock *a;

    world_near(w);
    a = world_change(w, 0, HF_SEMAPHORE, 3);
    opt.permits = 2;
    assert_int_equal(hf_lock_acquire(a, &opt, &w->err), 0);
    assert_int_equal(zk_server_children(w->zk, LEASES), 2);
    assert_true(WAIT_FOR(!zk_server_children(w->zk, LOCKS)));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(zk_server_children(w->zk, LEASES), 0);
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
    zk_hand_create(h, LEASES, "", ZOO_CONTAINER, NULL, 0, NULL);
    zk_hand_create(h, LOCKS, "", ZOO_CONTAINER, NULL, 0, NULL);
    assert_int_equal(zk_hand_create(h, LEASES "/_c_" UUID "-lease-", "",
                                    ZOO_EPHEMERAL_SEQUENTIAL, lease,
                                    sizeof(lease), NULL),
                     0);
    assert_int_equal(hf_lock_try(a, NULL), HF_EBUSY);
    assert_int_equal(zk_hand_create(h, LOCKS "/_c_" UUID "-lock-", "",
                                    ZOO_EPHEMERAL_SEQUENTIAL, turn,
                                    sizeof(turn), NULL),
                     0);
    t = taker_start(w, a, 20000);
    assert_true(WAIT_FOR(zk_server_children(w->zk, LOCKS) == 2));
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
    assert_int_equal(zk_hand_create(hand(w), LOCKS, "", 0, NULL, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    t = taker_start(w, a, 10000);
    assert_true(WAIT_FOR(zk_server_children(w->zk, LOCKS) == 1));
    world_heal(w);
    assert_true(WAIT_FOR_MS(taker_back(t), 4000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(zk_server_children(w->zk, LEASES), 1);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_true(WAIT_FOR(!zk_hand_delete(hand(w), LOCKS)));
    world_is_clean(w);
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

/* ---- leases that are deleted --------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void delete_lease(struct world *w, int permits, int which)
{
    struct String_vector names = {0};
    char path[256];

    assert_int_equal(zk_hand_children(hand(w), LEASES, &names), 0);
    assert_int_equal(names.count, permits);
    qsort(names.data, (size_t)permits, sizeof(*names.data), by_name);
    snprintf(path, sizeof(path), LEASES "/%s", names.data[which]);
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
        assert_true(WAIT_FOR_MS(!zk_server_children(w->zk, LEASES), 10000));
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

int run_semaphore_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_semaphore_has_curators_layout),
        T(test_semaphore_beside_curators_leases),
        T(test_semaphore_answer_swallowed),
        T(test_kazoo_has_no_semaphore),
        T(test_semaphore_one_of_its_leases_is_deleted),
        T(test_semaphore_one_of_many_leases_is_deleted),
        T(test_semaphore_deleted_lease_is_heard_of),
    };

    return cmocka_run_group_tests_name("zookeeper: semaphores", tests,
                                       group_one, group_one_end);
}
