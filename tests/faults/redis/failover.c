/*
 * A master is lost, and its replica takes over at the same address. Redis
 * replicates after it replies, so the new master may lack a lock that is held.
 * Then two clients claim the lock for a while. The protected resource can tell
 * their requests apart by the tokens, and the old holder learns of its loss.
 */
#include "side.h"

GROUP("failover");

#define TTL 6000
#define OP 2000 /* op_timeout of a client whose server will not reply */
/* An op_timeout with which a slow machine does not look like a silent
 * server. */
#define PATIENT 10000

static hf_lock *party(struct world *w, const char *url, const struct side *side,
                      int64_t ttl_ms)
{
    return lock_of(w, url, ttl_ms, PATIENT, side->kind);
}

/* Promotes the replica. Whatever it has not received by now is lost. */
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

/* Restarts the old master without its data, as a replica of the new master. */
static void end(struct world *w, struct redis_server *other)
{
    OK(redis_server_again(w->redis));
    OK(redis_server_follow(w->redis, other->port));
    world_is_clean(w);
}

/* Returns whether the token may belong to a later hold. Two successive holders
 * may have equal tokens if one of them is a reader or has permits. */
static bool is_later(const struct side *side, uint64_t token, uint64_t before)
{
    return side->kind == HF_MUTEX ? token > before : token >= before;
}

static void replicated(struct world *w, const struct side *side)
{
    struct redis_server *other = redis_replica(w);
    uint64_t token;
    hf_lock *a = party(w, w->far_url, side, TTL);
    hf_lock *b = party(w, other->url, side, TTL);

    OK(take(a, side, 0, &w->err));
    token = token_of(a);
    COMES(redis_has(other, "n"));
    fail_over(w, other);
    EXPECT(HF_EBUSY, take_other(b, side, 0, &w->err));
    world_renews(a); /* the request goes to the new master */
    assert_int_equal(token_of(a), token);
    assert_false(world_heard_loss(w, 0));
    OK(hf_lock_release(a, &w->err));
    OK(take_other(b, side, 5000, &w->err));
    assert_true(is_later(side, token_of(b), token));
    OK(hf_lock_release(b, &w->err));
    end(w, other);
}

/* The protected resource, which compares tokens. */
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
    struct redis_server *other = redis_replica(w);
    struct resource resource = {0};
    int64_t deadline;
    hf_lock *a, *b;

    a = party(w, w->far_url, side, 15000); /* renewed after 5 s */
    b = party(w, other->url, side, 15000);
    detach(other);
    OK(take(a, side, 0, &w->err));
    deadline = deadline_of(a);
    assert_true(write_to(&resource, a));
    fail_over(w, other);
    OK(take(b, side, 0, &w->err));
    OK(hf_lock_check(a)); /* both clients believe that they hold the lock */
    assert_true(token_of(b) > token_of(a));
    assert_true(write_to(&resource, b));
    assert_false(write_to(&resource, a)); /* the resource refuses a */
    COMES(world_heard_loss(w, 0));
    assert_true(wait_now() < deadline);
    world_loses(w, 0, "the server restarted empty");
    OK(hf_lock_check(b));
    assert_true(redis_has(other, "n"));
    OK(hf_lock_renew(b, 0, &w->err));
    OK(hf_lock_release(b, &w->err));
    end(w, other);
}

/* No server answers at the address any longer: the hold ends at its
 * deadline. */
CASE(test_nobody_takes_over)
{
    struct redis_server *other = redis_replica(w);
    int64_t deadline;
    hf_lock *a = party(w, w->far_url, &mutex, TTL);

    OK(hf_lock_acquire(a, NULL, NULL));
    deadline = deadline_of(a);
    redis_server_kill(other);
    fail_over(w, w->redis);
    COMES(hf_lock_check(a) == HF_ELOST);
    assert_true(wait_now() >= deadline);
    COMES_MS(world_heard_loss(w, 0), 1000);
    world_loses(w, 0, "could not be used since");
    OK(redis_server_again(w->redis));
    world_free_for_all(w, a);
}

/* The replica that takes over knows the holder and the waiters. */
static void queue_moves(struct world *w, const struct side *side,
                        const char *waiters)
{
    struct redis_server *other = redis_replica(w);
    struct taker *t;
    uint64_t token;
    hf_lock *a = party(w, w->far_url, side, TTL);
    hf_lock *b = party(w, w->far_url, side, TTL);

    OK(take_other(a, side, 0, &w->err));
    token = token_of(a);
    t = taker_start_as(w, b, side->mode, side->permits, 20000);
    COMES(redis_has(other, waiters));
    fail_over(w, other);
    world_renews(a);
    if (taker_back(t))
        fail_msg("%d: %s", t->rc, t->err.text);
    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, 3000);
    assert_true(is_later(side, t->token, token));
    assert_true(redis_has(other, "n"));
    taker_gives(t);
    end(w, other);
}

/* The replica that takes over has no keys. The waiter gets the lock there, and
 * the old holder loses its hold. */
static void queue_is_lost(struct world *w, const struct side *side,
                          const char *waiters)
{
    struct redis_server *other = redis_replica(w);
    struct taker *t;
    uint64_t token;
    hf_lock *a, *b;

    detach(other);
    a = party(w, w->far_url, side, TTL);
    b = party(w, w->far_url, side, TTL);
    OK(take_other(a, side, 0, &w->err));
    token = token_of(a);
    t = taker_start_as(w, b, side->mode, side->permits, 20000);
    world_has_waiter(w, waiters);
    fail_over(w, other);
    taker_has_it(t, 3000);
    assert_true(t->token > token);
    assert_true(redis_has(other, "n"));
    world_loses(w, 0, "the server restarted empty");
    taker_gives(t);
    end(w, other);
}

static void gives_up(struct world *w, int64_t wait_ms, int code, int64_t most)
{
    struct redis_server *other = redis_replica(w);
    hf_lock *a = world_near(w), *b = lock_of(w, w->far_url, TTL, OP, HF_MUTEX);
    struct taker *t = taker_behind(w, a, b, wait_ms);
    int64_t began = wait_fair();

    redis_server_kill(other);
    fail_over(w, w->redis);
    COMES(taker_back(t));
    assert_true(wait_within(began, most));
    taker_end(t);
    assert_int_equal(t->rc, code);
    OK(redis_server_again(w->redis));
    COMES(hf_lock_timed(b, 1000, &w->err) == 0);
    OK(hf_lock_release(b, NULL));
    hf_lock_release(a, NULL);
    world_is_clean(w);
}

CASE_IS(test_waiter_times_out, gives_up(w, 1000, HF_ETIMEDOUT, 1000 + 1000))
CASE_IS(test_waiter_that_waits_for_ever_fails,
        gives_up(w, HF_FOREVER, HF_EBACKEND, OP + 1900 + 1000))

/* The old master refuses requests but does not close its connections: the
 * client reconnects and finds the new master. */
static void refuses(struct world *w, const char *first, const char *second)
{
    struct redis_server *other = redis_replica(w);
    int64_t began;
    uint64_t token;
    hf_lock *a = party(w, w->far_url, &mutex, TTL);

    OK(hf_lock_acquire(a, NULL, NULL));
    token = token_of(a);
    COMES(redis_has(other, "n"));
    /* Wait until the connection is more than 2 s old. A refusal on a younger
     * connection does not make the client reconnect. */
    began = wait_now();
    COMES(wait_ms_since(began) > 2100);
    detach(other);
    proxy_lead_to(w->proxy, other->port);
    redis_do(w, first);
    redis_do(w, second);
    redis_do(w, "PEXPIRE n 1");
    COMES(hf_lock_renew(a, 0, &w->err) == 0);
    assert_int_equal(token_of(a), token);
    assert_true(redis_server_do(other, "PTTL n") > TTL / 2);
    OK(hf_lock_release(a, &w->err));
    assert_false(redis_has(other, "n"));
    redis_server_kill(w->redis);
    end(w, other);
}

CASE_IS(test_old_master_is_read_only,
        refuses(w, "REPLICAOF 127.0.0.1 1", "PING"))
CASE_IS(test_old_master_has_no_master,
        refuses(w, "CONFIG SET replica-serve-stale-data no",
                "REPLICAOF 127.0.0.1 1"))
CASE_IS(test_old_master_has_no_replicas,
        refuses(w, "CONFIG SET min-replicas-max-lag 1",
                "CONFIG SET min-replicas-to-write 1"))

CASE_IS(test_replicated_mutex_goes_on, replicated(w, &mutex))
CASE_IS(test_replicated_read_goes_on, replicated(w, &reads))
CASE_IS(test_replicated_write_goes_on, replicated(w, &writes))
CASE_IS(test_replicated_permits_go_on, replicated(w, &permits))
CASE_IS(test_two_claims_one_writer, two_claims(w, &mutex))
CASE_IS(test_two_writes_one_writer, two_claims(w, &writes))
CASE_IS(test_mutex_queue_moves, queue_moves(w, &mutex, WAITERS))
CASE_IS(test_write_queue_moves, queue_moves(w, &writes, LINE))
CASE_IS(test_permit_queue_moves, queue_moves(w, &permits, LINE))
CASE_IS(test_mutex_queue_is_lost, queue_is_lost(w, &mutex, WAITERS))
CASE_IS(test_write_queue_is_lost, queue_is_lost(w, &writes, LINE))
