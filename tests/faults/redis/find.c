/* A master becomes a replica. The host name leads to the new master, or still
 * to the old one. */
#include "../any/any_faults.h"
#include "redis_faults.h"

GROUP("find");

static void leads_to(const struct redis_server *s)
{
    resolver_finds(0, 1, s->port);
    resolver_finds(1, 0, 0);
}

static hf_lock *by_name(struct world *w, int64_t ttl_ms)
{
    return world_lock(w, "redis://" ANY_NAME, ttl_ms, 2000, HF_FAIR_DEFAULT);
}

/* Waits until the connection is more than 2 s old. A refusal on a younger
 * connection does not make the client reconnect. */
static void grow_old(void)
{
    int64_t began = wait_now();

    COMES(wait_ms_since(began) > 2100);
}

/* The server has become a replica but does not close its connections. The
 * holder is notified of its loss; a waiter and a client that acquires find the
 * new master without an error. */
CASE(test_demoted_master_is_left)
{
    struct redis_server old = {0};
    hf_lock *a, *b;
    struct taker *t;

    OK(redis_server_start(&old));
    leads_to(&old);
    a = by_name(w, 3000);
    b = by_name(w, 30000);
    OK(hf_lock_acquire(a, NULL, NULL));
    t = taker_start(w, b, 20000);
    COMES(redis_has(&old, WAITERS));
    grow_old();
    leads_to(w->redis);
    redis_server_do(&old, "REPLICAOF 127.0.0.1 1");
    COMES_MS(hf_lock_check(a) == HF_ELOST, 3000);
    taker_has_it(t, 3000);
    assert_int_equal(redis_do(w, "EXISTS n"), 1);
    taker_gives(t);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_free_for_all(w, a);
    redis_server_end(&old);
}

/* The host name leads to no other server: requests fail with the server's
 * reason, and succeed again as soon as the server is a master. */
CASE(test_replica_is_asked_again)
{
    hf_lock *a;
    uint32_t lines;

    leads_to(w->redis);
    a = by_name(w, 30000);
    world_free_for_all(w, a);
    grow_old();
    redis_do(w, "REPLICAOF 127.0.0.1 1");
    lines = world_lines(w, 0);
    EXPECT(HF_EBACKEND, hf_lock_try(a, &w->err));
    expect_words(w->err.text, "READONLY");
    for (int i = 0; i < 50; i++)
        FAILS(hf_lock_timed(a, 10, NULL));
    assert_true(world_lines(w, 0) <= lines + 4);
    redis_do(w, "REPLICAOF NO ONE");
    world_free_for_all(w, a);
}
