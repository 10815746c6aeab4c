/*
 * A client uses a master and its replica: its connection for commands leads to
 * one of them, and its connection for messages to the other. A replica forwards
 * what is published at its master, so the client gets messages. But the master
 * does not count the replica's listeners, so the scripts at the master never
 * hand the lock over by a message.
 */
#include "side.h"

GROUP("same-server");

#define FAR_TTL_MS 30000
#define FAR_OP_MS 2000

/* A way to hold something; `fair` selects a fair mutex. */
struct way {
    const struct side *side;
    bool fair;
    const char *waiters; /* the key that lists the waiters */
};

static const struct way unfair = {&mutex, false, WAITERS};
static const struct way fair = {&mutex, true, SEEN};
static const struct way read_side = {&reads, false, LINE};
static const struct way write_side = {&writes, false, LINE};
static const struct way permit_side = {&permits, false, LINE};

static hf_lock *party(struct world *w, const char *url, const struct way *way)
{
    if (way->side->kind != HF_MUTEX)
        return lock_of(w, url, FAR_TTL_MS, FAR_OP_MS, way->side->kind);
    return world_lock(w, url, FAR_TTL_MS, FAR_OP_MS,
                      way->fair ? HF_FAIR : HF_UNFAIR);
}

static void follow(struct redis_server *s, struct redis_server *master)
{
    OK(redis_server_follow(s, master->port));
}

/* Promotes the other server and makes it the target of new connections. Cuts
 * the `lost` oldest connections. The remaining ones now lead to a replica. */
static void fail_over(struct world *w, struct redis_server *other,
                      unsigned lost)
{
    assert_int_equal(redis_do(w, "WAIT 1 20000"), 1);
    redis_server_do(other, "REPLICAOF NO ONE");
    proxy_lead_to(w->proxy, other->port);
    proxy_cut_oldest(w->proxy, lost);
    follow(w->redis, other);
}

/* The holder releases the lock. Asserts that the taker soon holds it, that the
 * former holder's next try fails, and that the lock is free after the
 * taker's release. */
static void passed_on(struct world *w, const struct way *way, hf_lock *a)
{
    struct taker *t = &w->taker;

    OK(hf_lock_release(a, &w->err));
    taker_has_it(t, 2000);
    EXPECT(HF_EBUSY, take_other(a, way->side, 0, &w->err));
    taker_gives(t);
    all_of_it_is_free(w, way->side, a);
}

static struct taker *waits(struct world *w, const struct way *way, hf_lock *a,
                           hf_lock *b)
{
    struct taker *t;

    OK(take_other(a, way->side, 0, &w->err));
    t = taker_start_as(w, b, way->side->mode, way->side->permits, 20000);
    world_has_waiter(w, way->waiters);
    return t;
}

/* From the start, messages come from the replica. */
static void messages_of_a_replica(struct world *w, const struct way *way)
{
    struct redis_server *other = redis_replica(w);
    hf_lock *a = party(w, w->redis->url, way), *b = party(w, w->far_url, way);

    proxy_lead_to(w->proxy, other->port);
    waits(w, way, a, b);
    COMES(redis_calls_of(other, "subscribe") > 0);
    passed_on(w, way, a);
}

/* Commands go to the new master, but messages still come from the old one. */
static void commands_move(struct world *w, const struct way *way)
{
    struct redis_server *other = redis_replica(w);
    hf_lock *a = party(w, w->far_url, way), *b = party(w, w->far_url, way);

    waits(w, way, a, b);
    COMES(redis_two_listen(w));
    fail_over(w, other, 2);
    passed_on(w, way, a);
}

/* The master becomes a replica, but some connections to it remain. */
static void master_is_demoted(struct world *w, const struct way *way)
{
    struct redis_server *other = redis_replica(w);
    hf_lock *a = party(w, w->far_url, way), *b = party(w, w->far_url, way);
    int64_t began;

    waits(w, way, a, b);
    COMES(redis_two_listen(w));
    /* Wait until the connection is more than 2 s old. READONLY on a younger
     * connection does not make the client reconnect. */
    began = wait_now();
    COMES(wait_ms_since(began) > 2100);
    fail_over(w, other, 1);
    passed_on(w, way, a);
}

/* The old master still serves clients that do not know of the new master. A
 * client whose commands go to the new master must ignore a grant by the old
 * one. */
static void old_master_goes_on(struct world *w, const struct way *way)
{
    struct redis_server *other = redis_replica(w);
    hf_lock *a = party(w, w->redis->url, way), *b = party(w, w->far_url, way);

    waits(w, way, a, b);
    COMES(redis_two_listen(w));
    assert_int_equal(redis_do(w, "WAIT 1 20000"), 1);
    redis_server_do(other, "REPLICAOF NO ONE");
    proxy_lead_to(w->proxy, other->port);
    proxy_cut_oldest(w->proxy, 1);
    COMES(redis_calls_of(other, "time") > 0); /* a client has connected */
    OK(hf_lock_release(a, &w->err));
    assert_true(NEVER_MS(taker_back(&w->taker), 2500));
    redis_server_do(other, "DEL n {n}:timeout");
    COMES_MS(taker_back(&w->taker), 2000);
    assert_int_equal(w->taker.rc, 0);
    taker_end(&w->taker);
    /* The old master may have handed the lock over: delete that hold. */
    redis_do(w, "FLUSHALL");
}

static bool is_busy(struct redis_server *s)
{
    redisReply *reply = redis_server_ask(s, "GET n");
    bool busy = reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "BUSY");

    freeReplyObject(reply);
    return busy;
}

/* The server for the messages is busy with a script and refuses the
 * subscription. Later connections lead to a server that accepts it. */
CASE(test_subscription_is_repeated)
{
    struct redis_server other = {0};
    redisContext *script;
    hf_lock *a, *b;

    OK(redis_server_start(&other));
    redis_server_do(&other, "CONFIG SET lua-time-limit 1");
    script = redisConnect("127.0.0.1", other.port);
    assert_true(script && !script->err);
    assert_int_equal(
        redisAppendCommand(script, "EVAL %s 0", "while true do end"), REDIS_OK);
    for (int done = 0; !done;)
        assert_int_equal(redisBufferWrite(script, &done), REDIS_OK);
    COMES(is_busy(&other));
    a = party(w, w->redis->url, &unfair);
    b = party(w, w->far_url, &unfair);
    proxy_lead_to(w->proxy, other.port);
    waits(w, &unfair, a, b);
    COMES(world_lines(w, 1) > 0); /* the log reports the refusal */
    proxy_lead_to(w->proxy, w->redis->port);
    COMES(redis_two_listen(w));
    passed_on(w, &unfair, a);
    redisFree(script);
    redis_server_end(&other);
}

#define EACH(name)                                                             \
    CASE_IS(test_unfair_##name, name(w, &unfair))                              \
    CASE_IS(test_fair_##name, name(w, &fair))                                  \
    CASE_IS(test_read_##name, name(w, &read_side))                             \
    CASE_IS(test_write_##name, name(w, &write_side))                           \
    CASE_IS(test_permits_##name, name(w, &permit_side))

EACH(messages_of_a_replica)
EACH(commands_move)
EACH(master_is_demoted)
EACH(old_master_goes_on)
