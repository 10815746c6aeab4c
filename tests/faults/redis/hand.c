/* Handing over read-write locks and semaphores: a release makes the next waiter
 * the holder before that waiter learns of it. */
#include "side.h"

GROUP("hand");

#define HAND_TTL_MS 6000 /* holds with a shorter lease are not handed over */

/* Adds a waiter whose last poll was a second ago and whose next poll follows
 * again_ms after the last one. */
static void ghost_waits(struct world *w, const struct side *s, int again_ms)
{
    long long seen = redis_now_ms(w) - 1000;
    bool is_rw = s->kind == HF_RWLOCK;

    redis_do(w, "RPUSH " LINE " " GHOST ":1");
    redis_do(w, "HSET " PARTY " " GHOST ":1 %s",
             text_of("%lld %lld 1 0 %s 30000 %d 0 1", seen + again_ms, seen,
                     !is_rw               ? text_of("%u", s->permits)
                     : s->mode == HF_READ ? "r"
                                          : "w",
                     is_rw ? 0 : SIZE));
}

/* Returns the token in the next message, or 0 if the message only notifies the
 * waiter, which must then poll. */
static long long token_told(redisContext *ear)
{
    return atoll(redis_next(ear) + strlen("r1 "));
}

static bool is_held(struct world *w, const struct side *s)
{
    return s->kind == HF_SEMAPHORE
               ? redis_do(w, "ZCARD {n}:timeout") == s->permits
               : redis_do(w, "HLEN n") == 2;
}

static long long left_ms(struct world *w, const struct side *s)
{
    redisReply *due;
    long long ms;

    if (s->kind == HF_RWLOCK)
        return redis_do(w, "PTTL n");
    due = redis_ask(w, "ZSCORE {n}:timeout " GHOST ":1:1");
    ms = atoll(due->str) - redis_now_ms(w);
    freeReplyObject(due);
    return ms;
}

static void forget_ghost(struct world *w)
{
    redis_do(w, "DEL n {n}:timeout holdfast:kind:{n} "
                "holdfast:holds:{n} "
                "{n}:" GHOST ":1:rwlock_timeout:1");
    world_is_clean(w);
}

static void handed(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    redisContext *ear = redis_listens(w, "holdfast:wake:{}:" GHOST);

    OK(take_other(a, s, 0, NULL));
    ghost_waits(w, s, 3000);
    OK(hf_lock_release(a, NULL));
    assert_true(token_told(ear) > 0);
    assert_true(is_held(w, s));
    assert_true(left_ms(w, s) <= 29000); /* since the waiter's last poll */
    assert_int_equal(redis_do(w, "EXISTS " LINE), 0);
    EXPECT(HF_EBUSY, take_other(a, s, 0, NULL));
    forget_ghost(w);
}

static void told_to_ask(struct world *w, const struct side *s, int again_ms)
{
    hf_lock *a = near_of(w, s);
    redisContext *ear = redis_listens(w, "holdfast:wake:{}:" GHOST);

    OK(take_other(a, s, 0, NULL));
    ghost_waits(w, s, again_ms);
    OK(hf_lock_release(a, NULL));
    assert_int_equal(token_told(ear), 0);
    assert_false(is_held(w, s));
    forget_ghost(w);
}

/* If Redisson clients wait too, the lock is not handed over: all waiters are
 * notified, and the fastest one acquires. */
static void told_beside_redisson(struct world *w, const struct side *s)
{
    redis_listens(w, s->kind == HF_SEMAPHORE ? "redisson_sc:{n}"
                                             : "redisson_rwlock:{n}");
    told_to_ask(w, s, 3000);
}

/* The lock is not handed to a waiter that polls rarely: if the message were
 * lost, the waiter would not learn for a long time that it holds the lock. */
static void told_if_rarely_seen(struct world *w, const struct side *s)
{
    told_to_ask(w, s, 20000);
}

/* Returns whether the waiter has polled since it subscribed. The lock is handed
 * to it only then. */
static bool is_waiting(struct world *w)
{
    redisReply *reply = redis_ask(w, "HVALS " PARTY);
    int listens = 0;

    if (reply->elements)
        (void)sscanf(reply->element[0]->str, "%*s %*s %d", &listens);
    freeReplyObject(reply);
    return listens;
}

/* Returns whether the waiter acquires by the message only, while the proxy
 * holds back the waiter's requests. */
static bool gets_it_unasked(struct world *w, const struct side *s, hf_lock *a,
                            hf_lock *b, const char *waiters)
{
    struct taker *t;
    bool is_unasked;

    OK(take_other(a, s, 0, NULL));
    t = taker_start_as(w, b, s->mode, s->permits, 20000);
    COMES(redis_two_listen(w) && redis_do(w, "HLEN %s", waiters) == 1);
    proxy_hoard(w->proxy);
    OK(hf_lock_release(a, NULL));
    COMES(taker_back(t) || proxy_hoarded(w->proxy));
    is_unasked = !proxy_hoarded(w->proxy);
    proxy_deliver(w->proxy);
    taker_gets_it(t, 3000);
    return is_unasked;
}

/* The waiter may happen to poll just when the holder releases. Such a run
 * proves nothing, so it is repeated, at most nine times. */
static void unasked(struct world *w, const struct side *s, hf_lock *a,
                    hf_lock *b, const char *waiters)
{
    for (int tries = 1; !gets_it_unasked(w, s, a, b, waiters); tries++)
        assert_true(tries < 10);
    all_of_it_is_free(w, s, a);
}

static void needs_no_question(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = far_of(w, s, 30000, 5000);

    unasked(w, s, a, b, PARTY);
}

CASE(test_unfair_handed_needs_no_question)
{
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);

    unasked(w, &mutex, a, b, "holdfast:crowd:{n}");
}

CASE(test_fair_handed_needs_no_question)
{
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    hf_lock *b = world_lock(w, w->far_url, 30000, 5000, HF_FAIR);

    unasked(w, &mutex, a, b, SEEN);
}

/* The message is lost; the waiter learns that it is the holder when it
 * polls. */
static void message_lost(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = far_of(w, s, 30000, 3000);
    struct taker *t;

    OK(take_other(a, s, 0, NULL));
    t = taker_start_as(w, b, s->mode, s->permits, 20000);
    COMES(is_waiting(w));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    OK(hf_lock_release(a, NULL));
    assert_true(is_held(w, s));
    EXPECT(HF_EBUSY, take_other(a, s, 0, NULL));
    world_heal(w);
    taker_has_it(t, 3000);
    EXPECT(HF_EBUSY, take_other(a, s, 0, NULL));
    taker_gives(t);
    all_of_it_is_free(w, s, a);
}

/* The waiter gives up before it learns that it has the lock. */
static void given_up(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = far_of(w, s, 30000, OP_MS);
    struct taker *t;

    OK(take_other(a, s, 0, NULL));
    t = taker_start_as(w, b, s->mode, s->permits, 3000);
    COMES(is_waiting(w));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    OK(hf_lock_release(a, NULL));
    assert_true(is_held(w, s));
    COMES_MS(taker_back(t), 3000 + 1500);
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
    world_heal(w);
    all_of_it_is_free(w, s, a);
}

/* The waiter is stopped when the lock is handed to it, and is killed before it
 * learns that it is the holder. Another client gets the lock when the lease
 * ends. */
static void died(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    struct proc_cmd cmd = {.op = PROC_TAKE,
                           .mode = s->mode,
                           .permits = s->permits,
                           .wait_ms = 30000};
    struct proc p;

    OK(take_other(a, s, 0, NULL));
    puppet_opens(w, &p, s->kind, HAND_TTL_MS);
    OK(proc_send(&p, &cmd));
    COMES(is_waiting(w));
    OK(proc_stop(&p));
    OK(hf_lock_release(a, NULL));
    assert_true(is_held(w, s));
    proc_kill(&p);
    WITHIN(HAND_TTL_MS + 1000, OK(take_other(a, s, 10000, &w->err)));
    OK(hf_lock_release(a, NULL));
    all_of_it_is_free(w, s, a);
}

/* The waiter does not listen, as if it had been killed while it waited: the
 * lock is not handed to it. */
static void dead_are_passed_over(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    OK(take_other(a, s, 0, NULL));
    ghost_waits(w, s, 3000);
    OK(hf_lock_release(a, NULL));
    all_of_it_is_free(w, s, a);
}

#define EACH(name, call)                                                       \
    CASE_IS(test_read_##name, call(w, &reads))                                 \
    CASE_IS(test_write_##name, call(w, &writes))                               \
    CASE_IS(test_permits_##name, call(w, &permits))

EACH(handed_to_one_that_has_just_come, handed)
EACH(told_if_it_looks_rarely, told_if_rarely_seen)
EACH(told_beside_redisson, told_beside_redisson)
EACH(handed_needs_no_question, needs_no_question)
EACH(handed_and_the_message_lost, message_lost)
EACH(handed_and_given_up, given_up)
EACH(handed_to_one_that_dies, died)
EACH(not_handed_to_the_dead, dead_are_passed_over)
