/* The server is killed or stopped, loses its data or scripts, or is changed by
 * an administrator. Redisson clients use it alongside ours. */
#include "../any/any_faults.h"
#include "redis_faults.h"

GROUP("server");

#define CHANNEL "redisson_lock__channel:{n}"

CASE(test_restart_holder_learns_its_loss)
{
    hf_lock *a = world_lock(w, w->redis->url, 6000, 1000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    uint64_t before;

    OK(hf_lock_acquire(a, NULL, NULL));
    before = token_of(a);
    redis_server_kill(w->redis);
    OK(redis_server_again(w->redis));
    OK(hf_lock_timed(b, 5000, &w->err));
    assert_true(token_of(b) > before);
    COMES_MS(hf_lock_check(a) == HF_ELOST, 3000);
    world_loses(w, 0, "the server restarted empty");
    assert_int_equal(redis_do(w, "EXISTS n"), 1);
    OK(hf_lock_release(b, NULL));
}

static void waiter_survives_restart(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, fair);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 5000, fair);
    struct taker *t = taker_behind(w, a, b, 30000);

    redis_server_kill(w->redis);
    OK(redis_server_again(w->redis));
    /* The server has forgotten the hold, so the waiter gets the lock. */
    taker_gets_it(t, 20000);
    hf_lock_release(a, NULL);
}

CASE_IS(test_restart_waiter_goes_on, waiter_survives_restart(w, HF_UNFAIR))
CASE_IS(test_restart_fair_waiter_goes_on, waiter_survives_restart(w, HF_FAIR))

static void names_server(struct world *w)
{
    expect_words(w->err.text,
                 text_of("127.0.0.1:%d: Connection refused", w->port));
}

CASE(test_dead_server_is_named)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR_DEFAULT);
    hf_info *info = NULL;

    OK(hf_lock_acquire(a, NULL, NULL));
    redis_server_kill(w->redis);
    EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err));
    names_server(w);
    EXPECT(HF_EUNKNOWN, hf_inspect(w->clients[0], "n", 1, &info, &w->err));
    names_server(w);
    EXPECT(HF_EBACKEND, hf_lock_timed(a, 5000, &w->err));
    names_server(w);
    COMES(hf_lock_timed(a, 150, &w->err) == HF_ETIMEDOUT);
    names_server(w);
    OK(redis_server_again(w->redis));
    world_free_for_all(w, a);
}

CASE_IS(test_outage_is_two_lines, any_outage_is_two_lines(w))

CASE(test_restart_with_persistence_hold_survives)
{
    hf_lock *a;

    redis_server_end(w->redis);
    *w->redis = (struct redis_server){.persist = true};
    OK(redis_server_start(w->redis));
    a = world_lock(w, w->redis->url, 6000, 500, HF_FAIR_DEFAULT);
    OK(hf_lock_acquire(a, NULL, NULL));
    redis_server_kill(w->redis);
    OK(redis_server_again(w->redis));
    world_renews(a); /* uses a new connection */
    OK(hf_lock_release(a, NULL));
}

static bool says_loading(hf_lock *lock, hf_error *err)
{
    return hf_lock_try(lock, err) == HF_EBACKEND &&
           strstr(err->text, "LOADING") && err->may_pass;
}

/* While the server loads its data, it refuses every command, so no connection
 * can be established. The client reports this at once, and acquires as soon as
 * the data is loaded. */
CASE(test_restart_loading_is_told_at_once)
{
    static const int64_t waits[] = {0, 3000, HF_FOREVER};
    hf_lock *a;

    loading_prepare(w);
    a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR_DEFAULT);
    world_free_for_all(w, a);
    assert_int_equal(redis_do(w, "SAVE"), 0);
    redis_server_kill(w->redis);
    w->redis->args[4] = "--key-load-delay";
    w->redis->args[5] = "2000";
    w->redis->may_load = true;
    OK(redis_server_again(w->redis));
    COMES(says_loading(a, &w->err));
    for (int i = 0; i < 12; i++) {
        int64_t began = wait_fair();

        EXPECT(HF_EBACKEND, hf_lock_timed(a, waits[i % 3], &w->err));
        expect_words(w->err.text, "LOADING");
        assert_true(wait_within(began, 700));
    }
    loading_end(w);
    COMES(hf_lock_try(a, &w->err) == 0);
    OK(hf_lock_release(a, NULL));
    loading_tidy(w);
}

/* The server has lost the script for releases but not the script for acquires.
 * The client acquires right after its release: the server must still execute
 * the release first. */
CASE(test_restart_release_is_not_overtaken)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR_DEFAULT);

    world_free_for_all(w, a);
    redis_server_kill(w->redis);
    OK(redis_server_again(w->redis));
    OK(hf_lock_timed(a, 5000, &w->err));
    OK(hf_lock_release_nowait(a, NULL));
    OK(hf_lock_try(a, &w->err));
    OK(hf_lock_release(a, NULL));
}

/* The server is stopped until the client gives up the connection. */
CASE(test_stopped_for_long_leaves_nothing)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 300, HF_FAIR_DEFAULT);

    world_free_for_all(w, a);
    OK(redis_server_stop(w->redis));
    for (int64_t began = wait_now(); wait_ms_since(began) < 2500; wait_tick())
        FAILS(hf_lock_timed(a, 100, &w->err));
    OK(redis_server_continue(w->redis));
    COMES_MS(hf_lock_timed(a, 1000, &w->err) == 0, 5000);
    OK(hf_lock_release(a, NULL));
}

CASE(test_stopped_answer_after_its_lease_is_no_grant)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR_DEFAULT);
    struct taker *t;
    int64_t deadline, began = wait_now();

    OK(redis_server_stop(w->redis));
    t = taker_start_lease(w, a, 10000, 400);
    while (wait_ms_since(began) < 800)
        wait_tick();
    OK(redis_server_continue(w->redis));
    taker_has_it(t, WAIT_LONG_MS);
    /* The first request was granted too late, when its lease was over. So the
     * hold must come from a request that was sent later. */
    if (hf_lock_deadline(a, &deadline) == 0)
        assert_true(deadline > began + 800 * 1000000LL);
    taker_end(t);
}

static void meddle(struct world *w, const char *command)
{
    hf_lock *a = world_lock(w, w->redis->url, 6000, 1000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);

    OK(hf_lock_acquire(a, NULL, NULL));
    redis_do(w, command);
    world_takes(w, b, 3000);
    COMES_MS(hf_lock_check(a) == HF_ELOST, 3000);
    world_loses(w, 0,
                "it is no longer on the server (broken, deleted, evicted, "
                "or the server restarted empty)");
    OK(hf_lock_check(b));
    assert_int_equal(redis_do(w, "EXISTS n"), 1);
    OK(hf_lock_release(b, NULL));
}

CASE_IS(test_deleted_key_is_learned, meddle(w, "DEL n"))
CASE_IS(test_flushed_database_is_learned, meddle(w, "FLUSHALL"))

/* Another client acquires the lock before the old holder learns of its loss:
 * the old holder's release must not end the new hold. */
CASE(test_deleted_key_release_frees_nobody)
{
    hf_lock *a = world_near(w), *b = world_near(w);

    OK(hf_lock_acquire(a, NULL, NULL));
    redis_do(w, "DEL n");
    world_takes(w, b, 3000);
    EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    assert_int_equal(redis_do(w, "HLEN n"), 1);
    OK(hf_lock_release(b, NULL));
}

CASE(test_scripts_flushed_at_every_step)
{
    hf_lock *a = world_lock(w, w->redis->url, 5000, 2000, HF_FAIR_DEFAULT);
    hf_lock *b = world_near(w);
    struct taker *t;

    redis_do(w, "SCRIPT FLUSH");
    OK(hf_lock_acquire(a, NULL, NULL));
    redis_do(w, "SCRIPT FLUSH");
    t = taker_start(w, b, 10000);
    world_has_waiter(w, WAITERS);
    redis_do(w, "SCRIPT FLUSH");
    world_renews(a);
    redis_do(w, "SCRIPT FLUSH");
    OK(hf_lock_release(a, NULL));
    COMES_MS(taker_back(t), 2000);
    redis_do(w, "SCRIPT FLUSH");
    taker_end(t);
    assert_int_equal(t->rc, 0);
    assert_int_equal(t->release_rc, 0);
}

static void clients_killed(struct world *w, enum hf_fairness fair)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, fair);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 1000, fair);
    struct taker *t = taker_behind(w, a, b, 20000);

    COMES(redis_do(w, "CLIENT KILL TYPE pubsub") > 0);
    assert_true(redis_do(w, "CLIENT KILL TYPE normal") > 0);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, 3000);
    taker_end(t);
}

CASE_IS(test_connections_killed_waiter_is_woken, clients_killed(w, HF_UNFAIR))
CASE_IS(test_connections_killed_fair_waiter_is_woken,
        clients_killed(w, HF_FAIR))

CASE(test_idle_connection_closed_by_server)
{
    hf_lock *a = world_near(w);

    world_free_for_all(w, a);
    for (int64_t began = wait_now(); wait_ms_since(began) < 600;)
        wait_tick();
    redis_do(w, "CLIENT KILL TYPE normal SKIPME yes");
    world_free_for_all(w, a);
}

CASE(test_wrong_types_are_mismatches)
{
    hf_lock *a = world_near(w);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);

    redis_do(w, "SET n 1");
    EXPECT(HF_EMISMATCH, hf_lock_try(a, &w->err));
    EXPECT(HF_EMISMATCH, hf_lock_timed(b, 1000, &w->err));
    redis_do(w, "DEL n");
    redis_do(w, "HSET n mode read x:1 1");
    EXPECT(HF_EMISMATCH, hf_lock_try(a, &w->err));
    EXPECT(HF_EMISMATCH, hf_lock_timed(b, 1000, &w->err));
    redis_do(w, "DEL n");
    world_free_for_all(w, a);
}

static bool is_listened_to(struct world *w)
{
    redisReply *reply = redis_ask(w, "PUBSUB NUMSUB " CHANNEL);
    bool yes;

    assert_int_equal(reply->elements, 2);
    yes = reply->element[1]->integer > 0;
    freeReplyObject(reply);
    return yes;
}

/* A waiter whose wait fails with an error unsubscribes. */
CASE(test_wrong_type_ends_the_wait)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t = taker_behind(w, a, b, 20000);

    COMES(is_listened_to(w));
    redis_do(w, "SET n 1");
    taker_fails(t, HF_EMISMATCH, WAIT_LONG_MS);
    COMES(!is_listened_to(w));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    redis_do(w, "FLUSHDB");
    world_free_for_all(w, b);
}

CASE(test_refusals_have_a_text)
{
    hf_lock *a = world_near(w), *b = world_near(w);

    OK(hf_lock_acquire(a, NULL, NULL));
    redis_do(w, "CONFIG SET maxmemory 1");
    OK(hf_lock_release(a, NULL));
    EXPECT(HF_EBACKEND, hf_lock_try(b, &w->err));
    expect_words(w->err.text, "OOM");
    redis_do(w, "CONFIG SET maxmemory 0");
    redis_do(w, "REPLICAOF 127.0.0.1 1");
    EXPECT(HF_EBACKEND, hf_lock_try(b, &w->err));
    expect_words(w->err.text, "READONLY");
    redis_do(w, "REPLICAOF NO ONE");
    world_free_for_all(w, b);
}

CASE(test_killed_server_is_the_reason_of_the_loss)
{
    hf_lock *a = world_lock(w, w->redis->url, 5000, 1000, HF_FAIR_DEFAULT);

    OK(hf_lock_acquire(a, NULL, NULL));
    redis_server_kill(w->redis);
    world_loses(w, 0, "Connection refused");
    expect_words(w->ears[0].reason, "could not be used since ");
    OK(redis_server_again(w->redis));
}

static bool is_refused(hf_lock *a)
{
    hf_error err = HF_ERROR_INIT;
    int rc = hf_lock_explain(a, &err);

    if (!strstr(err.text, "NOREPLICAS"))
        fail_msg("\"%s\" does not say why", err.text);
    return !rc;
}

/* Renewals are refused: the reason for the loss is the server's error message,
 * even if the refusal makes the client reconnect to look for the master. */
CASE(test_refused_renewals_are_the_reason_of_the_loss)
{
    hf_lock *a = world_lock(w, w->redis->url, 5000, 1000, HF_FAIR_DEFAULT);
    hf_error err = HF_ERROR_INIT;

    OK(hf_lock_acquire(a, NULL, NULL));
    redis_do(w, "CONFIG SET min-replicas-to-write 1");
    COMES(hf_lock_explain(a, &err) != 0 || err.text[0]);
    COMES(!is_refused(a));
    world_loses(w, 0, "the server refused to renew it (NOREPLICAS");
    redis_do(w, "CONFIG SET min-replicas-to-write 0");
    world_free_for_all(w, a);
}

/* The server refuses a release whose handle has been freed: the release is
 * retried nevertheless. */
CASE(test_refused_release_of_a_freed_handle)
{
    hf_lock *a = world_near(w), *other;

    other = world_handle(w, w->clients[0], "m", NULL);
    OK(hf_lock_acquire(a, NULL, NULL));
    redis_do(w, "REPLICAOF 127.0.0.1 1");
    OK(hf_lock_release_nowait(a, NULL));
    OK(hf_lock_free(a));
    w->locks[0] = NULL;
    /* When this try has been answered, the server has refused the release. */
    EXPECT(HF_EBACKEND, hf_lock_try(other, NULL));
    assert_int_equal(redis_do(w, "EXISTS n"), 1);
    redis_do(w, "REPLICAOF NO ONE");
    COMES_MS(redis_do(w, "EXISTS n") == 0, 2000);
}

CASE(test_database_that_does_not_exist)
{
    hf_client *c;

    EXPECT(HF_EBACKEND,
           hf_open(text_of("%s/99", w->redis->url), NULL, &c, &w->err));
    expect_words(w->err.text, "the server has no database 99");
    assert_int_equal(w->err.may_pass, 0);
}

/* The server accepts no connection for the subscription: the waiter polls. */
CASE(test_waiter_without_subscription_looks)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    struct taker *t;

    redis_do(w, "CONFIG SET maxclients 3");
    t = taker_behind(w, a, b, 20000);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, 2500);
    taker_end(t);
    redis_do(w, "CONFIG SET maxclients 100");
}

static void stranger_takes(struct world *w)
{
    redis_do(w, "HSET n " STRANGER " 1");
    redis_do(w, "PEXPIRE n 30000");
}

CASE(test_stranger_lets_go_and_is_heard)
{
    hf_lock *a = world_near(w);
    struct taker *t;

    stranger_takes(w);
    EXPECT(HF_EBUSY, hf_lock_try(a, &w->err));
    t = taker_start(w, a, 10000);
    COMES(redis_do(w, "PUBLISH " CHANNEL " x") == 1);
    redis_do(w, "DEL n");
    redis_do(w, "PUBLISH " CHANNEL " 0");
    taker_has_it(t, 1400);
    taker_end(t);
}

/* If no waiter of ours listens, the message for Redisson's waiters is the usual
 * "0". Otherwise it is "00", and both a waiter of ours and a Redisson waiter
 * may try to acquire. */
CASE(test_stranger_waits_and_is_told)
{
    hf_lock *a = world_near(w), *b = world_near(w);
    redisContext *ear = redis_listens(w, CHANNEL);
    struct taker *t;

    OK(hf_lock_acquire(a, NULL, NULL));
    OK(hf_lock_release(a, NULL));
    redis_hears(ear, "0");
    t = taker_behind(w, a, b, 10000);
    COMES(redis_do(w, "PUBLISH holdfast:mark:{n} x") == 1);
    OK(hf_lock_release(a, NULL));
    redis_hears(ear, "00");
    taker_has_it(t, 1400);
    taker_end(t);
}

/* A Redisson waiter is in front of ours in the fair queue. Only the Redisson
 * waiter is notified; when it does not acquire by its deadline, ours gets the
 * lock. */
CASE(test_stranger_before_us_in_the_fair_queue)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);
    hf_lock *b = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);
    redisContext *ear = redis_listens(w, CHANNEL ":" STRANGER);
    struct taker *t;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    OK(hf_lock_acquire(a, NULL, NULL));
    redis_do(w, "RPUSH redisson_lock_queue:{n} " STRANGER);
    redis_do(w, "ZADD redisson_lock_timeout:{n} %lld " STRANGER,
             (long long)now.tv_sec * 1000 + 3000);
    t = taker_start(w, b, 20000);
    world_has_waiter(w, SEEN);
    OK(hf_lock_try(a, &w->err)); /* the owner now has to release twice */
    OK(hf_lock_release(a, NULL));
    OK(hf_lock_release(a, NULL));
    redis_hears(ear, "0");
    assert_false(taker_back(t));
    taker_has_it(t, 6500);
    taker_end(t);
}

/* Redisson holds the lock and our waiter is first in the queue: Redisson
 * notifies our waiter in the same way as its own waiters. */
CASE(test_stranger_hands_the_fair_lock_to_us)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 1000, HF_FAIR);
    char command[256] = "";
    redisReply *reply;
    struct taker *t;

    stranger_takes(w);
    t = taker_start(w, a, 20000);
    world_has_waiter(w, QUEUE);
    reply = redis_ask(w, "LINDEX redisson_lock_queue:{n} 0");
    snprintf(command, sizeof(command), "PUBLISH " CHANNEL ":%s 0", reply->str);
    freeReplyObject(reply);
    COMES(redis_do(w, command) == 1);
    redis_do(w, "DEL n");
    redis_do(w, command);
    taker_has_it(t, 1400);
    taker_end(t);
}
