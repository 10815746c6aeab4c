/* The server dies, stops, forgets, is meddled with. */
#include "redis_faults.h"

#define WAITERS "holdfast:waiters:{n}"
#define CHANNEL "redisson_lock__channel:{n}"
#define SEEN "holdfast:seen:{n}"

/* ---- killed and started again, without persistence ---------------------- */

static void test_restart_holder_learns_its_loss(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 6000, 1000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    uint64_t before;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    before = token_of(a);
    redis_server_kill(w->redis);
    assert_int_equal(redis_server_again(w->redis), 0);
    assert_int_equal(hf_lock_timed(b, 5000, &w->err), 0);
    assert_true(token_of(b) > before);
    assert_true(WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST, 3000));
    world_loses(w, 0, "the server lost its data");
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    world_is_clean(w);
}

static void waiter_survives_restart(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, fair);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, fair);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 30000);
    world_has_waiter(w, fair == HF_FAIR ? SEEN : WAITERS);
    redis_server_kill(w->redis);
    assert_int_equal(redis_server_again(w->redis), 0);
    /* The hold is forgotten: the waiter gets it. */
    assert_true(WAIT_FOR_MS(taker_back(t), 20000));
    assert_int_equal(t->rc, 0);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    hf_lock_release(a, NULL);
    world_is_clean(w);
}

static void test_restart_waiter_goes_on(void **state)
{
    waiter_survives_restart(*state, HF_UNFAIR);
}

static void test_restart_fair_waiter_goes_on(void **state)
{
    waiter_survives_restart(*state, HF_FAIR);
}

static void names_server(struct world *w)
{
    char where[64];

    snprintf(where, sizeof(where), "127.0.0.1:%d: Connection refused", w->port);
    if (!strstr(w->err.text, where))
        fail_msg("\"%s\" does not name %s", w->err.text, where);
}

static void test_dead_server_is_named(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR_DEFAULT);
    hf_info *info = NULL;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_kill(w->redis);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    names_server(w);
    assert_int_equal(hf_inspect(w->clients[0], "n", 1, &info, &w->err),
                     HF_EUNKNOWN);
    names_server(w);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), HF_EBACKEND);
    names_server(w);
    assert_true(WAIT_FOR(hf_lock_timed(a, 150, &w->err) == HF_ETIMEDOUT));
    names_server(w);
    assert_int_equal(redis_server_again(w->redis), 0);
    world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_outage_is_two_lines(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR_DEFAULT);

    world_free_for_all(w, a);
    assert_int_equal(world_lines(w, 0), 0);
    redis_server_kill(w->redis);
    for (int i = 0; i < 3; i++) /* attempts to connect, each of them */
        assert_int_equal(hf_lock_timed(a, 5000, &w->err), HF_EBACKEND);
    assert_int_equal(world_lines(w, 0), 1);
    assert_int_equal(redis_server_again(w->redis), 0);
    assert_true(WAIT_FOR(hf_lock_timed(a, 1000, NULL) == 0));
    assert_int_equal(world_lines(w, 0), 2);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

static void test_restart_with_persistence_hold_survives(void **state)
{
    struct world *w = *state;
    hf_lock *a;

    redis_server_end(w->redis);
    *w->redis = (struct redis_server){.persist = true};
    assert_int_equal(redis_server_start(w->redis), 0);
    a = world_lock(w, w->redis->url, 6000, 500, HF_FAIR_DEFAULT);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_kill(w->redis);
    assert_int_equal(redis_server_again(w->redis), 0);
    world_renews(a); /* over the new connection */
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

static bool says_loading(hf_lock *lock, hf_error *err)
{
    return hf_lock_try(lock, err) == HF_EBACKEND &&
           strstr(err->text, "LOADING") && err->may_pass;
}

/* A connection that is made anew is refused: that is told at once, too, and the
 * lock is there as soon as the server has loaded. */
static void test_restart_loading_is_told_at_once(void **state)
{
    struct world *w = *state;
    static const int64_t waits[] = {0, 3000, HF_FOREVER};
    hf_lock *a;

    loading_prepare(w);
    a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR_DEFAULT);
    world_free_for_all(w, a);
    assert_int_equal(redis_server_do(w->redis, "SAVE"), 0);
    redis_server_kill(w->redis);
    w->redis->args[4] = "--key-load-delay";
    w->redis->args[5] = "2000";
    w->redis->may_load = true;
    assert_int_equal(redis_server_again(w->redis), 0);
    assert_true(WAIT_FOR(says_loading(a, &w->err)));
    for (int i = 0; i < 12; i++) {
        int64_t began = wait_fair();

        assert_int_equal(hf_lock_timed(a, waits[i % 3], &w->err), HF_EBACKEND);
        assert_non_null(strstr(w->err.text, "LOADING"));
        assert_true(wait_within(began, 700));
    }
    loading_end(w);
    assert_true(WAIT_FOR(hf_lock_try(a, &w->err) == 0));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    loading_tidy(w);
    world_is_clean(w);
}

/* The server has forgotten how to let go, and knows how to take: what is let go
 * has to be free for the question right behind it. */
static void test_restart_release_is_not_overtaken(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR_DEFAULT);

    world_free_for_all(w, a);
    redis_server_kill(w->redis);
    assert_int_equal(redis_server_again(w->redis), 0);
    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    assert_int_equal(hf_lock_release_nowait(a, NULL), 0);
    assert_int_equal(hf_lock_try(a, &w->err), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

/* ---- stopped ------------------------------------------------------------ */

/* Long enough for the connection to be given up. */
static void test_stopped_for_long_leaves_nothing(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 300, HF_FAIR_DEFAULT);

    world_free_for_all(w, a);
    assert_int_equal(redis_server_stop(w->redis), 0);
    for (int64_t began = wait_now(); wait_ms_since(began) < 2500; wait_tick())
        assert_int_not_equal(hf_lock_timed(a, 100, &w->err), 0);
    assert_int_equal(redis_server_continue(w->redis), 0);
    assert_true(WAIT_FOR_MS(hf_lock_timed(a, 1000, &w->err) == 0, 5000));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

static void test_stopped_answer_after_its_lease_is_no_grant(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR_DEFAULT);
    struct taker *t;
    int64_t deadline, began = wait_now();

    assert_int_equal(redis_server_stop(w->redis), 0);
    t = taker_start_lease(w, a, 10000, 400);
    while (wait_ms_since(began) < 800)
        wait_tick();
    assert_int_equal(redis_server_continue(w->redis), 0);
    assert_true(WAIT_FOR(taker_back(t)));
    assert_int_equal(t->rc, 0);
    /* The one that counts was sent after the first had come too late. */
    if (hf_lock_deadline(a, &deadline) == 0)
        assert_true(deadline > began + 800 * 1000000LL);
    taker_end(t);
    world_is_clean(w);
}

/* ---- meddling ----------------------------------------------------------- */

static void meddle(struct world *w, const char *command)
{
    hf_lock *a = world_lock(w, w->redis->url, 6000, 1000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_do(w->redis, command);
    world_takes(w, b, 3000);
    assert_true(WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST, 3000));
    world_loses(w, 0, "it was taken away: its key was deleted");
    assert_int_equal(hf_lock_check(b), 0);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    world_is_clean(w);
}

static void test_deleted_key_is_learned(void **state)
{
    meddle(*state, "DEL n");
}

static void test_flushed_database_is_learned(void **state)
{
    meddle(*state, "FLUSHALL");
}

/* Before the holder knows: its release must free nobody else. */
static void test_deleted_key_release_frees_nobody(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_do(w->redis, "DEL n");
    world_takes(w, b, 3000);
    assert_int_equal(hf_lock_release(a, &w->err), HF_ELOST);
    assert_int_equal(redis_server_do(w->redis, "HLEN n"), 1);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    world_is_clean(w);
}

static void test_scripts_flushed_at_every_step(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 5000, 2000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    struct taker *t;

    redis_server_do(w->redis, "SCRIPT FLUSH");
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_do(w->redis, "SCRIPT FLUSH");
    t = taker_start(w, b, 10000);
    world_has_waiter(w, WAITERS);
    redis_server_do(w->redis, "SCRIPT FLUSH");
    world_renews(a);
    redis_server_do(w->redis, "SCRIPT FLUSH");
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 2000));
    redis_server_do(w->redis, "SCRIPT FLUSH");
    taker_end(t);
    assert_int_equal(t->rc, 0);
    assert_int_equal(t->release_rc, 0);
    world_is_clean(w);
}

static void clients_killed(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, fair);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 1000, fair);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 20000);
    world_has_waiter(w, fair == HF_FAIR ? SEEN : WAITERS);
    assert_true(
        WAIT_FOR(redis_server_do(w->redis, "CLIENT KILL TYPE pubsub") > 0));
    assert_true(redis_server_do(w->redis, "CLIENT KILL TYPE normal") > 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    taker_end(t);
    assert_int_equal(t->rc, 0);
    world_is_clean(w);
}

static void test_connections_killed_waiter_is_woken(void **state)
{
    clients_killed(*state, HF_UNFAIR);
}

static void test_connections_killed_fair_waiter_is_woken(void **state)
{
    clients_killed(*state, HF_FAIR);
}

static void test_idle_connection_closed_by_server(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);

    world_free_for_all(w, a);
    for (int64_t began = wait_now(); wait_ms_since(began) < 600;)
        wait_tick();
    redis_server_do(w->redis, "CLIENT KILL TYPE normal SKIPME yes");
    world_free_for_all(w, a);
    world_is_clean(w);
}

static void test_wrong_types_are_mismatches(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);

    redis_server_do(w->redis, "SET n 1");
    assert_int_equal(hf_lock_try(a, &w->err), HF_EMISMATCH);
    assert_int_equal(hf_lock_timed(b, 1000, &w->err), HF_EMISMATCH);
    redis_server_do(w->redis, "DEL n");
    redis_server_do(w->redis, "HSET n mode read x:1 1");
    assert_int_equal(hf_lock_try(a, &w->err), HF_EMISMATCH);
    assert_int_equal(hf_lock_timed(b, 1000, &w->err), HF_EMISMATCH);
    redis_server_do(w->redis, "DEL n");
    world_free_for_all(w, a);
    world_is_clean(w);
}

static bool is_listened_to(struct world *w)
{
    redisReply *reply = redis_server_ask(w->redis, "PUBSUB NUMSUB " CHANNEL);
    bool yes;

    assert_int_equal(reply->elements, 2);
    yes = reply->element[1]->integer > 0;
    freeReplyObject(reply);
    return yes;
}

/* Who waited in the queue, and is refused then, does not listen for ever. */
static void test_wrong_type_ends_the_wait(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 20000);
    world_has_waiter(w, WAITERS);
    assert_true(WAIT_FOR(is_listened_to(w)));
    redis_server_do(w->redis, "SET n 1");
    assert_true(WAIT_FOR(taker_back(t)));
    taker_end(t);
    assert_int_equal(t->rc, HF_EMISMATCH);
    assert_true(WAIT_FOR(!is_listened_to(w)));
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    redis_server_do(w->redis, "FLUSHDB");
    world_free_for_all(w, b);
    world_is_clean(w);
}

static void test_refusals_have_a_text(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_do(w->redis, "CONFIG SET maxmemory 1");
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(hf_lock_try(b, &w->err), HF_EBACKEND);
    assert_non_null(strstr(w->err.text, "OOM"));
    redis_server_do(w->redis, "CONFIG SET maxmemory 0");
    redis_server_do(w->redis, "REPLICAOF 127.0.0.1 1");
    assert_int_equal(hf_lock_try(b, &w->err), HF_EBACKEND);
    assert_non_null(strstr(w->err.text, "READONLY"));
    redis_server_do(w->redis, "REPLICAOF NO ONE");
    world_free_for_all(w, b);
    world_is_clean(w);
}

static void test_killed_server_is_the_reason_of_the_loss(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 5000, 1000, HF_FAIR_DEFAULT);

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_kill(w->redis);
    world_loses(w, 0, "Connection refused");
    assert_non_null(strstr(w->ears[0].reason, "could not be used since "));
    assert_int_equal(redis_server_again(w->redis), 0);
    world_is_clean(w);
}

/* As long as it is held. */
static bool is_refused(hf_lock *a)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_explain(a, &err);

    if (!strstr(err.text, "NOREPLICAS"))
        fail_msg("\"%s\" does not say why", err.text);
    return !rc;
}

/* Renewals are refused; the text is the server's. So it is also when such a
 * refusal makes the client connect anew, in search of the master. */
static void test_refused_renewals_are_the_reason_of_the_loss(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 5000, 1000, HF_FAIR_DEFAULT);
    hf_error err = HF_ERROR_INIT;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_do(w->redis, "CONFIG SET min-replicas-to-write 1");
    assert_true(WAIT_FOR(hf_lock_explain(a, &err) != 0 || err.text[0]));
    assert_true(WAIT_FOR(!is_refused(a)));
    world_loses(w, 0, "the server refused to renew it: NOREPLICAS");
    redis_server_do(w->redis, "CONFIG SET min-replicas-to-write 0");
    world_free_for_all(w, a);
    world_is_clean(w);
}

/* Nobody has the lock any more, and it is let go all the same. */
static void test_refused_release_of_a_freed_handle(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *other;

    assert_int_equal(
        hf_lock_new(w->clients[0], "m", HF_CSTRING, NULL, &other, NULL), 0);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_do(w->redis, "REPLICAOF 127.0.0.1 1");
    assert_int_equal(hf_lock_release_nowait(a, NULL), 0);
    assert_int_equal(hf_lock_free(a), 0);
    w->locks[0] = NULL;
    /* Its answer comes after that to the release. */
    assert_int_equal(hf_lock_try(other, NULL), HF_EBACKEND);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n"), 1);
    redis_server_do(w->redis, "REPLICAOF NO ONE");
    assert_true(WAIT_FOR_MS(redis_server_do(w->redis, "EXISTS n") == 0, 2000));
    assert_int_equal(hf_lock_free(other), 0);
    world_is_clean(w);
}

/* The server runs out of connections for the one that listens. */
static void test_waiter_without_subscription_looks(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    redis_server_do(w->redis, "CONFIG SET maxclients 3");
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 20000);
    world_has_waiter(w, WAITERS);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 2500));
    taker_end(t);
    assert_int_equal(t->rc, 0);
    redis_server_do(w->redis, "CONFIG SET maxclients 100");
    world_is_clean(w);
}

/* ---- beside a Redisson client ------------------------------------------- */

#define STRANGER "11111111-2222-3333-4444-555555555555:7"

/* Listens, as its waiters do. */
static redisContext *listen_to(struct world *w, const char *channel)
{
    redisContext *c = redisConnectUnix(w->redis->socket);

    assert_non_null(c);
    redisSetTimeout(c, (struct timeval){10, 0});
    freeReplyObject(redisCommand(c, "SUBSCRIBE %s", channel));
    return c;
}

static void expect_message(redisContext *c, const char *text)
{
    redisReply *reply = NULL;

    assert_int_equal(redisGetReply(c, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->element[2]->str, text);
    freeReplyObject(reply);
}

static void stranger_takes(struct world *w)
{
    redis_server_do(w->redis, "HSET n " STRANGER " 1");
    redis_server_do(w->redis, "PEXPIRE n 30000");
}

static void test_stranger_lets_go_and_is_heard(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w);
    struct taker *t;

    stranger_takes(w);
    assert_int_equal(hf_lock_try(a, &w->err), HF_EBUSY);
    t = taker_start(w, a, 10000);
    assert_true(
        WAIT_FOR(redis_server_do(w->redis, "PUBLISH " CHANNEL " x") == 1));
    redis_server_do(w->redis, "DEL n");
    redis_server_do(w->redis, "PUBLISH " CHANNEL " 0");
    assert_true(WAIT_FOR_MS(taker_back(t), 1400));
    taker_end(t);
    assert_int_equal(t->rc, 0);
    world_is_clean(w);
}

/* Alone it gets the usual 0; beside one of ours both may try. */
static void test_stranger_waits_and_is_told(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_near(w);
    redisContext *ear = listen_to(w, CHANNEL);
    struct taker *t;

    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    expect_message(ear, "0");
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    t = taker_start(w, b, 10000);
    world_has_waiter(w, WAITERS);
    assert_true(WAIT_FOR(
        redis_server_do(w->redis, "PUBLISH holdfast:mark:{n} x") == 1));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    expect_message(ear, "00");
    assert_true(WAIT_FOR_MS(taker_back(t), 1400));
    taker_end(t);
    assert_int_equal(t->rc, 0);
    redisFree(ear);
    world_is_clean(w);
}

/* It stands before us in the fair queue: it is told, alone, and when it is gone
 * without a word, by its deadline, we go. */
static void test_stranger_before_us_in_the_fair_queue(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);
    redisContext *ear = listen_to(w, CHANNEL ":" STRANGER);
    struct taker *t;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    assert_int_equal(hf_lock_acquire(a, NULL, NULL), 0);
    redis_server_do(w->redis, "RPUSH redisson_lock_queue:{n} " STRANGER);
    redis_server_do(w->redis, "ZADD redisson_lock_timeout:{n} %lld " STRANGER,
                    (long long)now.tv_sec * 1000 + 3000);
    t = taker_start(w, b, 20000);
    world_has_waiter(w, SEEN);
    assert_int_equal(hf_lock_try(a, &w->err), 0); /* reentry */
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    expect_message(ear, "0");
    assert_false(taker_back(t));
    assert_true(WAIT_FOR_MS(taker_back(t), 6500));
    taker_end(t);
    assert_int_equal(t->rc, 0);
    redisFree(ear);
    world_is_clean(w);
}

/* It holds, we are first in the queue, and it tells us as it tells its own. */
static void test_stranger_hands_the_fair_lock_to_us(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);
    char command[256] = "";
    redisReply *reply;
    struct taker *t;

    stranger_takes(w);
    t = taker_start(w, a, 20000);
    world_has_waiter(w, "redisson_lock_queue:{n}");
    reply = redis_server_ask(w->redis, "LINDEX redisson_lock_queue:{n} 0");
    snprintf(command, sizeof(command), "PUBLISH " CHANNEL ":%s 0", reply->str);
    freeReplyObject(reply);
    assert_true(WAIT_FOR(redis_server_do(w->redis, command) == 1));
    redis_server_do(w->redis, "DEL n");
    redis_server_do(w->redis, command);
    assert_true(WAIT_FOR_MS(taker_back(t), 1400));
    taker_end(t);
    assert_int_equal(t->rc, 0);
    world_is_clean(w);
}

int run_server_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_restart_holder_learns_its_loss),
        T(test_restart_waiter_goes_on),
        T(test_restart_fair_waiter_goes_on),
        T(test_dead_server_is_named),
        T(test_outage_is_two_lines),
        T(test_restart_with_persistence_hold_survives),
        T(test_restart_loading_is_told_at_once),
        T(test_restart_release_is_not_overtaken),
        T(test_stopped_for_long_leaves_nothing),
        T(test_stopped_answer_after_its_lease_is_no_grant),
        T(test_deleted_key_is_learned),
        T(test_flushed_database_is_learned),
        T(test_deleted_key_release_frees_nobody),
        T(test_scripts_flushed_at_every_step),
        T(test_connections_killed_waiter_is_woken),
        T(test_connections_killed_fair_waiter_is_woken),
        T(test_idle_connection_closed_by_server),
        T(test_wrong_types_are_mismatches),
        T(test_wrong_type_ends_the_wait),
        T(test_refusals_have_a_text),
        T(test_killed_server_is_the_reason_of_the_loss),
        T(test_refused_renewals_are_the_reason_of_the_loss),
        T(test_refused_release_of_a_freed_handle),
        T(test_waiter_without_subscription_looks),
        T(test_stranger_lets_go_and_is_heard),
        T(test_stranger_waits_and_is_told),
        T(test_stranger_before_us_in_the_fair_queue),
        T(test_stranger_hands_the_fair_lock_to_us),
    };

    return cmocka_run_group_tests_name("redis: the server", tests, NULL, NULL);
}
