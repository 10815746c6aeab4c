/* A master that becomes a replica, and the name that leads to the next one. */
#include "../any/any_faults.h"
#include "redis_faults.h"

static void leads_to(const struct redis_server *s)
{
    resolver_finds(0, 1, s->port);
    resolver_finds(1, 0, 0);
}

static hf_lock *by_name(struct world *w, int64_t ttl_ms)
{
    return world_lock(w, "redis://" ANY_NAME, ttl_ms, 2000, HF_FAIR_DEFAULT);
}

/* The connection is old enough not to be given the benefit of the doubt. */
static void grow_old(void)
{
    int64_t began = wait_now();

    assert_true(WAIT_FOR(wait_ms_since(began) > 2100));
}

/* It has become a replica, and closes no connection. Who holds learns of the
 * loss; who waits, and who asks, finds the new master without an error. */
static void test_demoted_master_is_left(void **state)
{
    struct world *w = *state;
    struct redis_server old = {0};
    hf_lock *a, *b;
    struct taker *t;

    assert_int_equal(redis_server_start(&old), 0);
    leads_to(&old);
    a = by_name(w, 3000);
    b = by_name(w, 30000);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 20000);
    assert_true(WAIT_FOR(
        redis_server_do(&old, "EXISTS %s", "holdfast:waiters:{n}") == 1));
    grow_old();
    leads_to(w->redis);
    redis_server_do(&old, "REPLICAOF 127.0.0.1 1");
    assert_true(WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST, 3000));
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    world_free_for_all(w, a);
    redis_server_end(&old);
    world_is_clean(w);
}

/* The name leads nowhere else: refused, with the reason, and used again as soon
 * as that is over. */
static void test_replica_is_asked_again(void **state)
{
    struct world *w = *state;
    hf_lock *a;
    uint32_t lines;

    leads_to(w->redis);
    a = by_name(w, 30000);
    world_free_for_all(w, a);
    grow_old();
    redis_server_do(w->redis, "REPLICAOF 127.0.0.1 1");
    lines = world_lines(w, 0);
    assert_int_equal(hf_lock_try(a, &w->err), HF_EBACKEND);
    assert_non_null(strstr(w->err.text, "READONLY"));
    for (int i = 0; i < 50; i++)
        assert_int_not_equal(hf_lock_timed(a, 10, NULL), 0);
    assert_true(world_lines(w, 0) <= lines + 4);
    redis_server_do(w->redis, "REPLICAOF NO ONE");
    world_free_for_all(w, a);
    world_is_clean(w);
}

int run_find_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_demoted_master_is_left),
        T(test_replica_is_asked_again),
    };

    return cmocka_run_group_tests_name("redis: finding it", tests, NULL, NULL);
}
