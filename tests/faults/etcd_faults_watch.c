/* Changes that etcd tells of. */
#include "etcd_faults.h"

#include "any_watch.h"

#include <string.h>
#include <time.h>

static void test_watch_outlives_its_lease(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    unsigned calls;
    struct seen s;
    char key[300];

    calls = watch_taken(w, &s, a);
    assert_true(entry(0, key, sizeof(key)));
    ctl("lease revoke %s", strchr(key, '/') + 1);
    assert_true(WAIT_FOR(is_seen(&s, calls)));
    assert_true(WAIT_FOR(world_heard_loss(w, 0)));
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    hears_and_ends(w, &s, b);
    world_is_clean(w);
}

static void test_watch_again_and_again(void **state)
{
    watch_again_and_again(*state, HF_WATCH_PREFIX);
}

/* Transactions that the server was asked for. */
static double asked(void)
{
    static const char name[] = "grpc_server_started_total{grpc_method=\"Txn\","
                               "grpc_service=\"etcdserverpb.KV\","
                               "grpc_type=\"unary\"}";
    double n = -1;

    assert_true(WAIT_FOR((n = etcd_server_metric(&etcd_one, name)) >= 0));
    return n;
}

/* A waiter looks every 5 s, with two or three requests, and sends nothing
 * else. */
static void waits_at_no_cost(struct world *w, hf_lock *a, hf_lock *b)
{
    struct timespec nap = {1, 0};
    double before, seconds;
    int64_t began;
    struct taker *t;

    world_takes(w, a, 3000);
    t = taker_start(w, b, 10 * WAIT_LONG_MS);
    has_entries(2);
    nanosleep(&nap, NULL); /* it looks a few times at once */
    began = wait_now();
    before = asked();
    assert_true(before > 0);
    for (int i = 0; i < 60 && asked() < before + 2; i++)
        nanosleep(&nap, NULL);
    assert_true(asked() >= before + 2);
    nanosleep(&nap, NULL);
    seconds = (double)(wait_now() - began) / 1e9;
    assert_true(asked() <= before + 10 + 2 * seconds);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, WAIT_LONG_MS);
}

static void test_waiting_costs_nothing(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);

    waits_at_no_cost(w, a, b);
    world_is_clean(w);
}

/* Nothing of which a transaction could tell whether it is as it was. */
static void test_waiting_for_a_permit_costs_nothing(void **state)
{
    struct world *w = *state;

    world_near(w);
    world_near(w);
    waits_at_no_cost(w, world_change(w, 0, HF_SEMAPHORE, 1),
                     world_change(w, 1, HF_SEMAPHORE, 1));
    world_is_clean(w);
}

int run_watch_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, etcd_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_watch_hears_after_a_cut),
        T(test_watch_hears_of_an_outage),
        T(test_watch_is_freed_while_cut),
        T(test_watch_outlives_its_lease),
        T(test_watch_again_and_again),
        T(test_waiting_costs_nothing),
        T(test_waiting_for_a_permit_costs_nothing),
    };

    return cmocka_run_group_tests_name("etcd: watches", tests, etcd_group,
                                       etcd_group_end);
}
