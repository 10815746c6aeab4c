/* How the holders of a lock are notified of hf_ask() and hf_break() if they
 * send no renewals, and which holders these calls do not affect. */
#include "side.h"

GROUP("ask");

#define LONG_MS 3600000 /* long enough that nothing is renewed */

static int ask(struct world *w, size_t i)
{
    return hf_ask(w->clients[i], "n", 1, &w->err);
}

/* Dispatches all clients, because events are delivered only by a dispatch. */
static void dispatch(struct world *w)
{
    for (size_t i = 0; i < w->len; i++)
        hf_client_dispatch(w->clients[i]);
}

static long long ears(struct world *w)
{
    dispatch(w);
    return redis_do(
        w, "EVAL %s 0",
        "return #redis.call('pubsub','channels','holdfast:wake:*')");
}

static hf_lock *holder(struct world *w, const struct side *s)
{
    hf_lock *a = lock_of(w, w->redis->url, LONG_MS, 5000, s->kind);

    if (take(a, s, 0, &w->err))
        fail_msg("%s", w->err.text);
    return a;
}

/* Returns how often clients have checked that their two connections lead to the
 * same server. */
static long long proofs(struct world *w)
{
    dispatch(w);
    return redis_calls(w, "pubsub|numsub");
}

/* If a client calls hf_ask() while the holder has no connection, the holder is
 * notified after it reconnects. */
CASE(test_asked_while_cut_off)
{
    hf_lock *a = world_far(w, LONG_MS, 5000);

    world_near(w);
    OK(hf_lock_acquire(a, NULL, &w->err));
    COMES(ears(w) == 1);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    COMES(ears(w) == 0);
    assert_int_equal(ask(w, 1), 0);
    assert_false(world_heard_wish(w, 0));
    world_heal(w);
    COMES(world_heard_wish(w, 0));
    OK(hf_lock_release(a, &w->err));
}

/* The holder subscribes again after its connections were cut. */
CASE(test_asked_after_a_cut)
{
    hf_lock *a = world_far(w, LONG_MS, 5000);

    world_near(w);
    OK(hf_lock_acquire(a, NULL, &w->err));
    COMES(proofs(w) == 1);
    proxy_cut(w->proxy);
    COMES(proofs(w) > 1);
    assert_int_equal(ask(w, 1), 0);
    COMES(world_heard_wish(w, 0));
    OK(hf_lock_release(a, &w->err));
}

/* The holder is not notified of an hf_ask() that was about its earlier hold of
 * the same lock. */
CASE(test_wish_for_an_earlier_hold)
{
    hf_lock *a = world_far(w, LONG_MS, 5000);

    world_near(w);
    OK(hf_lock_acquire(a, NULL, &w->err));
    COMES(ears(w) == 1);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    COMES(ears(w) == 0);
    assert_int_equal(ask(w, 1), 0);
    OK(hf_break(w->clients[1], "n", 1, &w->err));
    world_heal(w);
    FAILS(hf_lock_release(a, NULL));
    OK(hf_lock_acquire(a, NULL, &w->err));
    COMES(ears(w) == 1);
    OK(hf_lock_renew(a, 0, &w->err));
    assert_false(world_heard_wish(w, 0));
    assert_int_equal(ask(w, 1), 0);
    COMES(world_heard_wish(w, 0));
    OK(hf_lock_release(a, &w->err));
}

/* A client ignores malformed messages. */
CASE(test_nonsense_is_not_heard)
{
    static const char *const texts[] = {"w",
                                        "w0",
                                        "w-1",
                                        "wx",
                                        "w99999999999999999999999",
                                        "b",
                                        "b0",
                                        "bx",
                                        "b-1",
                                        "",
                                        " ",
                                        "w1 ",
                                        "b18446744073709551615",
                                        "u1 1 1 n"};
    hf_lock *a = holder(w, &mutex);

    COMES(ears(w) == 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        redis_do(w, "EVAL %s 0 %s",
                 "for _,c in ipairs(redis.call('pubsub','channels',"
                 "'holdfast:wake:*')) do redis.call('publish',c,ARGV[1]) end",
                 texts[i]);
    OK(hf_lock_renew(a, 0, &w->err));
    OK(hf_lock_check(a));
    assert_int_equal(ask(w, 0), 0);
    COMES(world_heard_wish(w, 0));
    assert_false(world_heard_loss(w, 0));
    OK(hf_lock_release(a, &w->err));
}

static void stranger_is_spared(struct world *w, const char *dump)
{
    redisReply *before = redis_ask(w, "DUMP %s", dump), *after;

    assert_int_equal(before->type, REDIS_REPLY_STRING);
    assert_int_equal(ask(w, 0), HF_ENOTSUP);
    expect_words(w->err.text, "held by another program");
    after = redis_ask(w, "DUMP %s", dump);
    assert_int_equal(after->len, before->len);
    assert_memory_equal(after->str, before->str, before->len);
    freeReplyObject(before);
    freeReplyObject(after);
    redis_do(w, "DEL n {n}:timeout");
    world_is_clean(w);
}

CASE(test_redissons_mutex_is_spared)
{
    world_free_for_all(w, world_near(w));
    redis_do(w, "HSET n " STRANGER " 1");
    stranger_is_spared(w, "n");
}

CASE(test_redissons_permit_is_spared)
{
    near_of(w, &permits);
    redis_do(w, "SET n 1");
    redis_server_do(w->redis,
                    "ZADD {n}:timeout 9000000000000 0123456789abcdef");
    stranger_is_spared(w, "{n}:timeout");
}

CASE(test_stranger_with_a_string_is_spared)
{
    world_lock(w, text_of("%s?dialect=string", w->redis->url), LONG_MS, 5000,
               HF_FAIR_DEFAULT);
    redis_do(w, "SET n random");
    stranger_is_spared(w, "n");
}

/* One of our readers is notified of an hf_ask() although a Redisson reader
 * holds the lock too. */
CASE(test_ours_beside_redissons_is_asked)
{
    hf_lock *a = holder(w, &reads);

    redis_do(w, "HSET n " STRANGER " 1");
    assert_int_equal(ask(w, 0), 0);
    COMES(world_heard_wish(w, 0));
    redis_do(w, "HDEL n " STRANGER);
    OK(hf_lock_release(a, &w->err));
}

static void no_event(void *arg, const hf_event *e)
{
}

/* While the program holds the lock and makes no call, the helper thread opens
 * the connection for messages. */
CASE(test_the_ear_needs_no_dispatch)
{
    hf_client *c =
        world_open(w, w->redis->url,
                   CLIENT(.on_event = no_event, .connect_timeout_ms = 600000,
                          .op_timeout_ms = 60000, .ttl_ms = LONG_MS));
    hf_lock *lock = world_handle(w, c, "n", NULL);

    OK(hf_lock_acquire(lock, NULL, &w->err));
    COMES(redis_calls(w, "pubsub|numsub") > 0);
    OK(hf_lock_release(lock, &w->err));
}

/* Waits until the holder trusts the messages that it receives. For that, the
 * holder needs the reply to the check of its connections. The server has
 * executed the check before it receives the renewal, so the reply to the check
 * arrives before the reply to the renewal. */
static void until_told(struct world *w, hf_lock *a)
{
    COMES(proofs(w) > 0);
    OK(hf_lock_renew(a, 0, &w->err));
}

static void broken_is_heard(struct world *w, const struct side *s)
{
    hf_lock *a = holder(w, s);

    until_told(w, a);
    world_near(w);
    OK(hf_break(w->clients[1], "n", 1, &w->err));
    COMES(world_heard_loss(w, 0));
    /* world_loses() expects a try to fail, but a try of the semaphore would get
     * another permit. */
    if (s->kind == HF_SEMAPHORE)
        EXPECT(HF_ELOST, hf_lock_release(a, &w->err));
    else
        world_loses(w, 0, "(broken, deleted");
    OK(take(a, s, 0, &w->err));
    OK(hf_lock_check(a));
    OK(hf_lock_release(a, &w->err));
}

CASE_IS(test_broken_mutex_is_heard, broken_is_heard(w, &mutex))
CASE_IS(test_broken_write_is_heard, broken_is_heard(w, &writes))
CASE_IS(test_broken_read_is_heard, broken_is_heard(w, &reads))
CASE_IS(test_broken_permits_are_heard, broken_is_heard(w, &permits))

CASE(test_broken_string_is_heard)
{
    hf_lock *a = world_lock(w, text_of("%s?dialect=string", w->redis->url),
                            LONG_MS, 5000, HF_FAIR_DEFAULT);

    OK(hf_lock_acquire(a, NULL, &w->err));
    until_told(w, a);
    OK(hf_break(w->clients[0], "n", 1, &w->err));
    COMES(world_heard_loss(w, 0));
    world_loses(w, 0, "(broken, deleted");
}

/* The downgrade has moved the hold to another line of the client; the holder is
 * still notified of the break. */
CASE(test_broken_after_a_downgrade_is_heard)
{
    hf_lock *a = holder(w, &writes);

    until_told(w, a);
    OK(hf_lock_downgrade(a, &w->err));
    OK(hf_break(w->clients[0], "n", 1, &w->err));
    COMES(world_heard_loss(w, 0));
    world_loses(w, 0, "(broken, deleted");
}

static void say_broken(struct world *w, uint64_t token)
{
    redis_do(w, "EVAL %s 0 %llu",
             "local w=redis.call('hkeys','n')[1] "
             "redis.call('publish','holdfast:wake:{}:'.."
             "string.sub(w,1,36),'b'..string.sub(w,38)..' '..ARGV[1])",
             (unsigned long long)token);
}

/* A message about a break may arrive after the same hold id has been granted
 * again. The token in the message says which grant was broken. */
CASE(test_broken_of_an_earlier_grant)
{
    hf_lock *a = holder(w, &mutex);
    uint64_t token = 0;

    until_told(w, a);
    OK(hf_lock_token(a, &token));
    say_broken(w, token - 1);
    assert_int_equal(ask(w, 0), 0);
    COMES(world_heard_wish(w, 0)); /* published after the other message */
    assert_false(world_heard_loss(w, 0));
    OK(hf_lock_check(a));
    say_broken(w, token);
    COMES(world_heard_loss(w, 0));
    redis_do(w, "FLUSHALL");
}

/* The holder is notified of its loss, however many messages about hf_ask()
 * arrived before it dispatches. */
CASE(test_wishes_leave_room_for_the_loss)
{
    hf_lock *a = holder(w, &mutex);

    until_told(w, a);
    redis_do(w, "EVAL %s 0",
             "local w=redis.call('hkeys','n')[1] for i=1,3000 do "
             "redis.call('publish','holdfast:wake:{}:'.."
             "string.sub(w,1,36),'w'..string.sub(w,38)) end");
    OK(hf_lock_renew(a, 0, &w->err));
    OK(hf_break(w->clients[0], "n", 1, &w->err));
    COMES(hf_lock_check(a) == HF_ELOST);
    COMES(world_heard_loss(w, 0));
    world_loses(w, 0, "(broken, deleted");
}

/* The hold of one of two readers is broken; the other reader is not
 * notified. */
CASE(test_only_the_broken_one_hears)
{
    hf_lock *a = holder(w, &reads), *b = holder(w, &reads);
    hf_info *info;
    const char *owner;

    COMES(proofs(w) > 1);
    OK(hf_lock_renew(a, 0, &w->err));
    OK(hf_lock_renew(b, 0, &w->err));
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->holders_len, 2);
    owner = text_of("%s", info->holders[0].owner);
    OK(hf_break_hold(w->clients[0], "n", 1, 0, owner, &w->err));
    COMES(world_heard_loss(w, 0) || world_heard_loss(w, 1));
    assert_true(!world_heard_loss(w, 0) || !world_heard_loss(w, 1));
    OK(hf_lock_renew(world_heard_loss(w, 0) ? b : a, 0, &w->err));
    hf_lock_release(a, NULL);
    hf_lock_release(b, NULL);
}
