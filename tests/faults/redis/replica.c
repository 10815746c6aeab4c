/*
 * replicas=n: a grant or a renewal counts only once n replicas have it. A proxy
 * delays what the master sends to its replica, so the replica lacks everything
 * for which the client did not wait.
 */
#include "side.h"

GROUP("replica");

#define LAG_MS 60
#define TTL 200000
#define OP 60000
/* The replica_timeout is longer than any stall of the machine, so that a stall
 * does not cause too few confirmations. */
#define CONFIRMED "?replicas=1&replica_timeout=10s"
#define QUICKLY "?replicas=1&replica_timeout=200ms"
#define TOO_FEW "0 of 1 replicas confirmed it within 200 ms"

struct pair {
    struct redis_server replica;
    struct proxy *way; /* leads from the replica to the master */
};

static int end_pair(void *pair)
{
    struct pair *p = pair;

    redis_server_end(&p->replica);
    proxy_end(p->way);
    free(p);
    return 0;
}

/* Starts a replica of the world's server. The replica ends with the case. */
static struct pair *pair_of(struct world *w, long lag_ms)
{
    struct pair *p = calloc(1, sizeof(*p));

    assert_non_null(p);
    world_own(w, p, end_pair);
    OK(redis_server_start(&p->replica));
    p->way = proxy_start(w->redis->port);
    assert_non_null(p->way);
    OK(redis_server_follow(&p->replica, proxy_port(p->way)));
    /* The master counts the replica only after the replica's first message,
     * which may arrive up to a second after the replica has connected. */
    COMES(redis_do(w, "WAIT 1 100") == 1);
    if (lag_ms)
        proxy_set(p->way, PROXY_DELAY, lag_ms);
    return p;
}

static hf_lock *careful(struct world *w, const char *url, const char *options,
                        int64_t ttl_ms, const struct side *side)
{
    return lock_of(w, text_of("%s%s", url, options), ttl_ms, OP, side->kind);
}

/* Retries, because a replica that gets no CPU time may confirm too late. */
static void takes(struct world *w, hf_lock *lock, const struct side *side)
{
    if (!WAIT_FOR(take(lock, side, 0, &w->err) == 0))
        fail_msg("%s", w->err.text);
}

static uint64_t token_at(struct redis_server *s)
{
    redisReply *reply = redis_server_ask(s, "GET redisson_lock_token:{n}");
    uint64_t token = reply->str ? strtoull(reply->str, NULL, 10) : 0;

    freeReplyObject(reply);
    return token;
}

/* Makes the replica a master with what it has received so far, kills the old
 * master, and leads the proxy to the new one. */
static void promote(struct world *w, struct pair *p)
{
    redis_server_do(&p->replica, "REPLICAOF NO ONE");
    redis_server_kill(w->redis);
    proxy_lead_to(w->proxy, p->replica.port);
}

static void survives(struct world *w, const struct side *side, bool forgets)
{
    struct pair *p = pair_of(w, LAG_MS);
    hf_lock *a;
    uint64_t token;

    a = careful(w, w->far_url, CONFIRMED, TTL, side);
    if (forgets) /* the first script then fails with NOSCRIPT, and a WAIT after
                    that confirms nothing */
        redis_do(w, "SCRIPT FLUSH");
    takes(w, a, side);
    promote(w, p);
    assert_true(redis_has(&p->replica, "n"));
    token = token_of(a);
    /* The old master returns as a replica, because the renewal needs a replica
     * that confirms it. */
    OK(redis_server_again(w->redis));
    OK(redis_server_follow(w->redis, p->replica.port));
    if (!WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0))
        fail_msg("%s", w->err.text);
    assert_int_equal(token_of(a), token);
    OK(hf_lock_release(a, &w->err));
    COMES(!redis_has(&p->replica, "n"));
    world_is_clean(w);
    redis_do(w, "REPLICAOF NO ONE");
}

CASE_IS(test_grant_survives_failover, survives(w, &mutex, false))
CASE_IS(test_read_survives_failover, survives(w, &reads, false))
CASE_IS(test_write_survives_failover, survives(w, &writes, false))
CASE_IS(test_permits_survive_failover, survives(w, &permits, false))
CASE_IS(test_grant_after_noscript_survives_failover, survives(w, &mutex, true))

/* The URL of the waiter's client contains replicas=, that of the holder's
 * client does not. The holder's release hands the lock to the waiter. */
static void hand_over(struct world *w, enum hf_fairness fair)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a, *b;
    const char *who = fair == HF_FAIR ? SEEN : "holdfast:crowd:{n}";
    const char *url;
    struct taker *t;
    long long looked_at;

    a = world_lock(w, w->redis->url, TTL, OP, fair);
    url = text_of("%s" CONFIRMED, w->far_url);
    b = world_lock(w, url, TTL, OP, fair);
    t = taker_behind(w, a, b, 20000);
    /* Waits until the waiter has proved that it receives messages, and has
     * polled since then. */
    COMES(redis_calls(w, "publish") > 0);
    looked_at = redis_looked_at(w, who);
    COMES(redis_looked_at(w, who) > looked_at);
    proxy_set(p->way, PROXY_DELAY, LAG_MS);
    OK(hf_lock_release(a, NULL));
    COMES(taker_back(t));
    promote(w, p);
    assert_int_equal(t->rc, 0);
    assert_int_equal(token_at(&p->replica), t->token);
    assert_true(redis_has(&p->replica, "n"));
    OK(redis_server_again(w->redis));
    taker_end(t);
}

/* The waiter is not notified: it acquires by a poll, and the client sends a
 * WAIT after that grant. */
CASE(test_look_is_confirmed)
{
    struct pair *p = pair_of(w, LAG_MS);
    struct taker *t;
    hf_lock *a;

    redis_do(w, "HSET n " STRANGER " 1");
    redis_do(w, "PEXPIRE n 60000");
    a = careful(w, w->far_url, CONFIRMED, TTL, &mutex);
    t = taker_start(w, a, 20000);
    world_has_waiter(w, WAITERS);
    redis_do(w, "DEL n");
    COMES(taker_back(t));
    promote(w, p);
    assert_int_equal(t->rc, 0);
    assert_int_equal(token_at(&p->replica), t->token);
    OK(redis_server_again(w->redis));
    taker_end(t);
}

CASE_IS(test_hand_over_is_confirmed, hand_over(w, HF_UNFAIR))
CASE_IS(test_fair_hand_over_is_confirmed, hand_over(w, HF_FAIR))

static void says(const hf_error *err, const char *word)
{
    expect_words(err->text, word);
}

/* The replica is stopped or detached: no grant is confirmed. */
static void refused(struct world *w, const struct side *side, bool gone)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a;
    static const int64_t waits[] = {0, HF_FOREVER};

    a = careful(w, w->redis->url, QUICKLY, TTL, side);
    takes(w, a, side);
    OK(hf_lock_release(a, &w->err));
    if (gone)
        redis_server_do(&p->replica, "REPLICAOF NO ONE");
    else
        OK(redis_server_stop(&p->replica));
    for (int i = 0; i < 2; i++) {
        struct wait_mark began = wait_mark();

        EXPECT(HF_EBACKEND, take(a, side, waits[i], &w->err));
        assert_true(wait_took(began, 195, 900));
        says(&w->err, TOO_FEW);
        assert_int_equal(w->err.may_pass, 1);
        EXPECT(HF_ENOTOWNER, hf_lock_check(a));
    }
    world_is_clean(w); /* the grant was rolled back */
    if (gone)
        OK(redis_server_follow(&p->replica, w->redis->port));
    else
        OK(redis_server_continue(&p->replica));
    takes(w, a, side);
    OK(hf_lock_release(a, &w->err));
}

CASE_IS(test_replica_stopped_mutex_is_refused, refused(w, &mutex, false))
CASE_IS(test_replica_gone_mutex_is_refused, refused(w, &mutex, true))
CASE_IS(test_replica_gone_read_is_refused, refused(w, &reads, true))
CASE_IS(test_replica_gone_permits_are_refused, refused(w, &permits, true))

CASE(test_one_of_two)
{
    hf_lock *a;

    pair_of(w, 0);
    a = careful(w, w->redis->url, "?replicas=2", TTL, &mutex);
    COMES(hf_lock_try(a, &w->err) == HF_EBACKEND &&
          strstr(w->err.text, "1 of 2 replicas confirmed it within 100 ms"));
    world_is_clean(w);
}

/* When the waiter's turn comes, its grant is not confirmed: the wait fails, and
 * the waiter does not hold the lock. */
CASE(test_waiter_is_refused)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a, *b;
    struct taker *t;

    a = world_near(w);
    b = careful(w, w->redis->url, QUICKLY, TTL, &mutex);
    t = taker_behind(w, a, b, 20000);
    OK(redis_server_stop(&p->replica));
    OK(hf_lock_release(a, NULL));
    taker_fails(t, HF_EBACKEND, 3000);
    says(&t->err, TOO_FEW);
    world_is_clean(w);
    world_free_for_all(w, a);
}

CASE(test_claim_ends_without_replica)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a;
    int64_t deadline;

    a = careful(w, w->redis->url, QUICKLY, 3000, &mutex);
    takes(w, a, &mutex);
    deadline = deadline_of(a);
    OK(redis_server_stop(&p->replica));
    COMES(hf_lock_check(a) == HF_ELOST);
    assert_true(wait_now() >= deadline);
    world_loses(w, 0, "the server refused to renew it (" TOO_FEW);
    world_is_clean(w);
}

/* The old master's only replica, which has the lock, becomes a master itself,
 * and the old master does not learn of that. The claims of the clients at these
 * two servers must not overlap. */
CASE(test_claims_do_not_overlap)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a, *b;
    struct taker *t;
    int64_t deadline;

    a = careful(w, w->redis->url, QUICKLY, 3000, &mutex);
    b = world_lock(w, p->replica.url, 3000, OP, HF_FAIR_DEFAULT);
    takes(w, a, &mutex);
    redis_server_do(&p->replica, "REPLICAOF NO ONE");
    deadline = deadline_of(a);
    t = taker_start(w, b, 20000);
    taker_has_it(t, WAIT_LONG_MS);
    assert_true(t->returned >= deadline);
    EXPECT(HF_ELOST, hf_lock_check(a));
    world_loses(w, 0, TOO_FEW);
    taker_end(t);
}

static bool explains(hf_lock *lock, const char *word)
{
    hf_error err = HF_ERROR_INIT;

    hf_lock_explain(lock, &err);
    return strstr(err.text, word);
}

CASE(test_claim_goes_on_when_replica_returns)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a;
    uint64_t token;

    a = careful(w, w->redis->url, QUICKLY, 12000, &mutex);
    takes(w, a, &mutex);
    token = token_of(a);
    OK(redis_server_stop(&p->replica));
    COMES(explains(a, TOO_FEW));
    OK(redis_server_continue(&p->replica));
    world_renews(a);
    assert_int_equal(token_of(a), token);
    OK(hf_lock_release(a, &w->err));
}

/* The connection is lost before the client knows whether the replica has the
 * hold. The client repeats its request and is granted the lock. */
CASE(test_cut_in_doubt_is_asked_again)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a;
    struct taker *t;

    a = careful(w, w->far_url, CONFIRMED, TTL, &mutex);
    OK(redis_server_stop(&p->replica));
    t = taker_start(w, a, 20000);
    COMES(redis_has(w->redis, "n"));
    proxy_cut(w->proxy);
    OK(redis_server_continue(&p->replica));
    COMES(taker_back(t));
    if (t->rc)
        fail_msg("%s", t->err.text);
    assert_int_equal(t->token, token_at(&p->replica));
    taker_gives(t);
}

/* The caller gives up before a replica has confirmed the grant. The client then
 * releases the hold. */
CASE(test_given_up_in_doubt_leaves_nothing)
{
    struct pair *p = pair_of(w, 0);
    hf_lock *a;

    a = careful(w, w->redis->url, "?replicas=1&replica_timeout=1s", TTL,
                &mutex);
    OK(redis_server_stop(&p->replica));
    EXPECT(HF_ETIMEDOUT, hf_lock_timed(a, 100, &w->err));
    world_is_clean(w);
}

#define CROWD 6

struct crowd {
    hf_client *client;
    char name[8];
    pthread_t thread;
    const uint32_t *done;
};

static void *try_and_try(void *arg)
{
    struct crowd *c = arg;
    hf_lock *lock = NULL;

    if (hf_lock_new(c->client, c->name, HF_CSTRING, NULL, &lock, NULL))
        return NULL;
    while (!__atomic_load_n(c->done, __ATOMIC_ACQUIRE))
        hf_lock_try(lock, NULL);
    hf_lock_free(lock);
    return NULL;
}

/* However many acquires wait for a replica, another command of the same client
 * waits at most one replica_timeout. */
CASE(test_others_wait_once)
{
    struct pair *p = pair_of(w, 0);
    struct crowd crowd[CROWD] = {0};
    uint32_t done = 0;
    hf_names *names = NULL;

    careful(w, w->redis->url, QUICKLY, TTL, &mutex);
    OK(redis_server_stop(&p->replica));
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = (struct crowd){.client = w->clients[0], .done = &done};
        snprintf(crowd[i].name, sizeof(crowd[i].name), "m%d", i);
        OK(pthread_create(&crowd[i].thread, NULL, try_and_try, &crowd[i]));
    }
    COMES(redis_calls(w, "wait") > 1);
    for (int i = 0; i < 10; i++) {
        int64_t began = wait_fair();

        OK(hf_list(w->clients[0], "x", &names, &w->err));
        hf_names_free(names);
        assert_true(wait_within(began, 2 * 200 + 100));
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < CROWD; i++)
        pthread_join(crowd[i].thread, NULL);
    OK(redis_server_continue(&p->replica));
}

CASE(test_right_to_wait_is_missing)
{
    hf_lock *a;

    pair_of(w, 0);
    redis_do(w, "ACL SETUSER worker on >pw ~* &* +@all -wait");
    a = world_lock(
        w, text_of("redis://worker:pw@127.0.0.1:%d" CONFIRMED, w->redis->port),
        TTL, OP, HF_FAIR_DEFAULT);
    EXPECT(HF_EAUTH, hf_lock_try(a, &w->err));
    says(&w->err, "allow +wait");
    world_is_clean(w);
    redis_do(w, "ACL SETUSER worker +wait");
    world_free_for_all(w, a);
}

static void opens(struct world *w, const char *options, const char *word)
{
    hf_client_options opt = HF_CLIENT_OPTIONS_INIT;
    hf_client *c = NULL;
    int rc =
        hf_open(text_of("%s?%s", w->redis->url, options), &opt, &c, &w->err);

    if (rc != (word ? HF_EINVAL : 0))
        fail_msg("%s: %d, %s", options, rc, w->err.text);
    if (word)
        says(&w->err, word);
    hf_close(c);
}

CASE(test_options)
{
    static const char number[] = "must be a number from 0 to 99";

    opens(w, "replicas=0", NULL);
    opens(w, "replicas=99&replica_timeout=1", NULL);
    opens(w, "replicas=1&ttl=10ms&op_timeout=1ms", NULL);
    opens(w, "replicas=1&op_timeout=400ms&replica_timeout=100ms", NULL);
    opens(w, "replicas=", number);
    opens(w, "replicas=-1", number);
    opens(w, "replicas=2x", number);
    opens(w, "replicas=100", number);
    opens(w, "replica_timeout=100ms", "needs replicas=");
    opens(w, "replicas=0&replica_timeout=100ms", "needs replicas=");
    opens(w, "replicas=1&replica_timeout=0", "must be from 1 to 1250 ms");
    opens(w, "replicas=1&replica_timeout=soon", "must be from 1 to 1250 ms");
    opens(w, "replicas=1&replica_timeout=1251ms", "must be from 1 to 1250 ms");
    opens(w, "replicas=1&replica_timeout=2s&ttl=10s&op_timeout=20s",
          "must be from 1 to 1000 ms");
}
