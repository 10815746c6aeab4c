/*
 * A master is lost and its replica takes over, at the same address. Redis
 * replicates after it answers, so the new master may lack a lock that is held.
 * Then two clients claim it for a while, and the token at the resource keeps
 * them apart; the old holder hears of its loss.
 */
#include "side.h"

#define TTL 6000
#define OP 2000       /* of one whom nobody answers */
#define PATIENT 10000 /* a busy machine is no server that is silent */

static const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};

static hf_lock *party(struct world *w, const char *url, const struct side *side,
                      int64_t ttl_ms)
{
    return lock_of(w, url, ttl_ms, PATIENT, side->kind);
}

static bool has(struct redis_server *s, const char *key)
{
    return redis_server_do(s, "EXISTS %s", key) == 1;
}

static void begin(struct world *w, struct redis_server *other)
{
    *other = (struct redis_server){0};
    assert_int_equal(redis_server_start(other), 0);
    assert_int_equal(redis_server_follow(other, w->redis->port), 0);
}

/* What the replica does not have by now is lost. */
static void detach(struct redis_server *other)
{
    redis_server_do(other, "REPLICAOF NO ONE");
}

static void fail_over(struct world *w, struct redis_server *other)
{
    detach(other);
    proxy_lead_to(w->proxy, other->port);
    redis_server_kill(w->redis);
}

/* The old master comes back, empty, as a replica. */
static void end(struct world *w, struct redis_server *other)
{
    assert_int_equal(redis_server_again(w->redis), 0);
    assert_int_equal(redis_server_follow(w->redis, other->port), 0);
    world_is_clean(w);
    redis_server_end(other);
}

/* Of two holders, of which one shares, the later token may be the same. */
static bool is_later(const struct side *side, uint64_t token, uint64_t before)
{
    return side->kind == HF_MUTEX ? token > before : token >= before;
}

/* ---- holders ------------------------------------------------------------ */

static void replicated(struct world *w, const struct side *side)
{
    struct redis_server other;
    hf_lock *a, *b;
    uint64_t token;

    begin(w, &other);
    a = party(w, w->far_url, side, TTL);
    b = party(w, other.url, side, TTL);
    assert_int_equal(take(a, side, 0, &w->err), 0);
    token = token_of(a);
    assert_true(WAIT_FOR(has(&other, "n")));
    fail_over(w, &other);
    assert_int_equal(take_other(b, side, 0, &w->err), HF_EBUSY);
    world_renews(a); /* at the new master */
    assert_int_equal(token_of(a), token);
    assert_false(world_heard_loss(w, 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_int_equal(take_other(b, side, 5000, &w->err), 0);
    assert_true(is_later(side, token_of(b), token));
    assert_int_equal(hf_lock_release(b, &w->err), 0);
    end(w, &other);
}

/* What the lock protects, and compares tokens. */
struct resource {
    uint64_t highest;
};

static bool write_to(struct resource *r, hf_lock *lock)
{
    uint64_t token = token_of(lock);

    if (token < r->highest)
        return false;
    r->highest = token;
    return true;
}

static void two_claims(struct world *w, const struct side *side)
{
    struct redis_server other;
    struct resource resource = {0};
    int64_t deadline;
    hf_lock *a, *b;

    begin(w, &other);
    a = party(w, w->far_url, side, 15000); /* renewed after 5 s */
    b = party(w, other.url, side, 15000);
    detach(&other);
    assert_int_equal(take(a, side, 0, &w->err), 0);
    deadline = deadline_of(a);
    assert_true(write_to(&resource, a));
    fail_over(w, &other);
    assert_int_equal(take(b, side, 0, &w->err), 0);
    assert_int_equal(hf_lock_check(a), 0); /* two claims */
    assert_true(token_of(b) > token_of(a));
    assert_true(write_to(&resource, b));
    assert_false(write_to(&resource, a)); /* and one writer */
    assert_true(WAIT_FOR(world_heard_loss(w, 0)));
    assert_true(wait_now() < deadline);
    world_loses(w, 0, "the server lost its data");
    assert_int_equal(hf_lock_check(b), 0);
    assert_true(has(&other, "n"));
    assert_int_equal(hf_lock_renew(b, 0, &w->err), 0);
    assert_int_equal(hf_lock_release(b, &w->err), 0);
    end(w, &other);
}

/* No server answers at the address: the claim ends by itself. */
static void test_nobody_takes_over(void **state)
{
    struct world *w = *state;
    struct redis_server other;
    hf_lock *a;
    int64_t deadline;

    begin(w, &other);
    a = party(w, w->far_url, &mutex, TTL);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    deadline = deadline_of(a);
    redis_server_kill(&other);
    fail_over(w, w->redis);
    assert_true(WAIT_FOR(hf_lock_check(a) == HF_ELOST));
    assert_true(wait_now() >= deadline);
    assert_true(WAIT_FOR_MS(world_heard_loss(w, 0), 1000));
    world_loses(w, 0, "could not be used since");
    assert_int_equal(redis_server_again(w->redis), 0);
    world_free_for_all(w, a);
    world_is_clean(w);
    redis_server_end(&other);
}

/* ---- waiters ------------------------------------------------------------ */

/* The new master knows the holder and the waiters. */
static void queue_moves(struct world *w, const struct side *side,
                        const char *waiters)
{
    struct redis_server other;
    struct taker *t;
    uint64_t token;
    hf_lock *a, *b;

    begin(w, &other);
    a = party(w, w->far_url, side, TTL);
    b = party(w, w->far_url, side, TTL);
    assert_int_equal(take_other(a, side, 0, &w->err), 0);
    token = token_of(a);
    t = taker_start_as(w, b, side->mode, side->permits, 20000);
    assert_true(WAIT_FOR(has(&other, waiters)));
    fail_over(w, &other);
    world_renews(a);
    if (taker_back(t))
        fail_msg("%d: %s", t->rc, t->err.text);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_int_equal(t->rc, 0);
    assert_true(is_later(side, t->token, token));
    assert_true(has(&other, "n"));
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    end(w, &other);
}

/* The new master knows nothing: the waiter gets it there, and the old holder
 * loses it. */
static void queue_is_lost(struct world *w, const struct side *side,
                          const char *waiters)
{
    struct redis_server other;
    struct taker *t;
    uint64_t token;
    hf_lock *a, *b;

    begin(w, &other);
    detach(&other);
    a = party(w, w->far_url, side, TTL);
    b = party(w, w->far_url, side, TTL);
    assert_int_equal(take_other(a, side, 0, &w->err), 0);
    token = token_of(a);
    t = taker_start_as(w, b, side->mode, side->permits, 20000);
    world_has_waiter(w, waiters);
    fail_over(w, &other);
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_int_equal(t->rc, 0);
    assert_true(t->token > token);
    assert_true(has(&other, "n"));
    world_loses(w, 0, "the server lost its data");
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    end(w, &other);
}

/* Nobody answers any more. */
static void gives_up(struct world *w, int64_t wait_ms, int code, int64_t most)
{
    struct redis_server other;
    int64_t began;
    struct taker *t;
    hf_lock *a, *b;

    begin(w, &other);
    a = world_near(w);
    b = lock_of(w, w->far_url, TTL, OP, HF_MUTEX);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, wait_ms);
    world_has_waiter(w, "holdfast:waiters:{n}");
    began = wait_fair();
    redis_server_kill(&other);
    fail_over(w, w->redis);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_true(wait_within(began, most));
    taker_end(t);
    assert_int_equal(t->rc, code);
    assert_int_equal(redis_server_again(w->redis), 0);
    assert_true(WAIT_FOR(hf_lock_timed(b, 1000, &w->err) == 0));
    assert_int_equal(hf_lock_release(b, NULL), 0);
    hf_lock_release(a, NULL);
    world_is_clean(w);
    redis_server_end(&other);
}

static void test_waiter_times_out(void **state)
{
    gives_up(*state, 1000, HF_ETIMEDOUT, 1000 + 1000);
}

static void test_waiter_that_waits_for_ever_fails(void **state)
{
    gives_up(*state, HF_FOREVER, HF_EBACKEND, OP + 1900 + 1000);
}

/* ---- the old master still answers --------------------------------------- */

/* It refuses, and closes no connection: it is left, and the new one asked. */
static void refuses(struct world *w, const char *first, const char *second)
{
    struct redis_server other;
    int64_t began;
    hf_lock *a;
    uint64_t token;

    begin(w, &other);
    a = party(w, w->far_url, &mutex, TTL);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    token = token_of(a);
    assert_true(WAIT_FOR(has(&other, "n")));
    began = wait_now(); /* a young connection is not left for a refusal */
    assert_true(WAIT_FOR(wait_ms_since(began) > 2100));
    detach(&other);
    proxy_lead_to(w->proxy, other.port);
    redis_server_do(w->redis, first);
    redis_server_do(w->redis, second);
    redis_server_do(w->redis, "PEXPIRE n 1");
    assert_true(WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0));
    assert_int_equal(token_of(a), token);
    assert_true(redis_server_do(&other, "PTTL n") > TTL / 2);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_false(has(&other, "n"));
    redis_server_kill(w->redis);
    end(w, &other);
}

static void test_old_master_is_read_only(void **state)
{
    refuses(*state, "REPLICAOF 127.0.0.1 1", "PING");
}

static void test_old_master_has_no_master(void **state)
{
    refuses(*state, "CONFIG SET replica-serve-stale-data no",
            "REPLICAOF 127.0.0.1 1");
}

static void test_old_master_has_no_replicas(void **state)
{
    refuses(*state, "CONFIG SET min-replicas-max-lag 1",
            "CONFIG SET min-replicas-to-write 1");
}

/* ---- of each kind ------------------------------------------------------- */

static void test_replicated_mutex_goes_on(void **state)
{
    replicated(*state, &mutex);
}

static void test_replicated_read_goes_on(void **state)
{
    replicated(*state, &reads);
}

static void test_replicated_write_goes_on(void **state)
{
    replicated(*state, &writes);
}

static void test_replicated_permits_go_on(void **state)
{
    replicated(*state, &permits);
}

static void test_two_claims_one_writer(void **state)
{
    two_claims(*state, &mutex);
}

static void test_two_writes_one_writer(void **state)
{
    two_claims(*state, &writes);
}

static void test_mutex_queue_moves(void **state)
{
    queue_moves(*state, &mutex, "holdfast:waiters:{n}");
}

static void test_write_queue_moves(void **state)
{
    queue_moves(*state, &writes, "holdfast:line:{n}");
}

static void test_permit_queue_moves(void **state)
{
    queue_moves(*state, &permits, "holdfast:line:{n}");
}

static void test_mutex_queue_is_lost(void **state)
{
    queue_is_lost(*state, &mutex, "holdfast:waiters:{n}");
}

static void test_write_queue_is_lost(void **state)
{
    queue_is_lost(*state, &writes, "holdfast:line:{n}");
}

int run_failover_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_replicated_mutex_goes_on),
        T(test_replicated_read_goes_on),
        T(test_replicated_write_goes_on),
        T(test_replicated_permits_go_on),
        T(test_two_claims_one_writer),
        T(test_two_writes_one_writer),
        T(test_nobody_takes_over),
        T(test_mutex_queue_moves),
        T(test_write_queue_moves),
        T(test_permit_queue_moves),
        T(test_mutex_queue_is_lost),
        T(test_write_queue_is_lost),
        T(test_waiter_times_out),
        T(test_waiter_that_waits_for_ever_fails),
        T(test_old_master_is_read_only),
        T(test_old_master_has_no_master),
        T(test_old_master_has_no_replicas),
    };

    return cmocka_run_group_tests_name("redis: failover", tests, NULL, NULL);
}
