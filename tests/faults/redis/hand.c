/* Read-write locks and semaphores that are handed over: what is let go is the
 * next one's before it knows. */
#include "side.h"

#define GHOST "11111111-2222-3333-4444-555555555555"
#define LINE "holdfast:line:{n}"
#define PARTY "holdfast:party:{n}"
#define HAND_TTL_MS 6000 /* nothing is handed over with less */

static redisContext *listen_to(struct world *w, const char *channel)
{
    redisContext *ear = redisConnectUnix(w->redis->socket);

    assert_non_null(ear);
    redisSetTimeout(ear, (struct timeval){10, 0});
    freeReplyObject(redisCommand(ear, "SUBSCRIBE %s", channel));
    return ear;
}

static long long server_ms(struct world *w)
{
    redisReply *reply = redis_server_ask(w->redis, "TIME");
    long long ms = atoll(reply->element[0]->str) * 1000 +
                   atoll(reply->element[1]->str) / 1000;

    freeReplyObject(reply);
    return ms;
}

/* One of ours that waits for it, has looked a second ago, and looks again so
 * long after that. */
static void ghost_waits(struct world *w, const struct side *s, int again_ms)
{
    long long seen = server_ms(w) - 1000;
    bool is_rw = s->kind == HF_RWLOCK;
    char about[96], want[16];

    snprintf(want, sizeof(want), "%u", s->permits);
    snprintf(about, sizeof(about), "%lld %lld 1 0 %s 30000 %d 0 1",
             seen + again_ms, seen,
             !is_rw               ? want
             : s->mode == HF_READ ? "r"
                                  : "w",
             is_rw ? 0 : SIZE);
    redis_server_do(w->redis, "RPUSH " LINE " " GHOST ":1");
    redis_server_do(w->redis, "HSET " PARTY " " GHOST ":1 %s", about);
}

/* The token that it is told, 0: to ask. */
static long long token_told(redisContext *ear)
{
    redisReply *reply = NULL;
    long long token;

    assert_int_equal(redisGetReply(ear, (void **)&reply), REDIS_OK);
    token = atoll(reply->element[2]->str + strlen("r1 "));
    freeReplyObject(reply);
    return token;
}

static bool is_held(struct world *w, const struct side *s)
{
    return s->kind == HF_SEMAPHORE
               ? redis_server_do(w->redis, "ZCARD {n}:timeout") == s->permits
               : redis_server_do(w->redis, "HLEN n") == 2;
}

/* How long, if nobody renews it. */
static long long left_ms(struct world *w, const struct side *s)
{
    redisReply *due;
    long long ms;

    if (s->kind == HF_RWLOCK)
        return redis_server_do(w->redis, "PTTL n");
    due = redis_server_ask(w->redis, "ZSCORE {n}:timeout " GHOST ":1:1");
    ms = atoll(due->str) - server_ms(w);
    freeReplyObject(due);
    return ms;
}

static void forget_ghost(struct world *w)
{
    redis_server_do(w->redis, "DEL n {n}:timeout holdfast:kind:{n} "
                              "holdfast:holds:{n} "
                              "{n}:" GHOST ":1:rwlock_timeout:1");
    world_is_clean(w);
}

static void handed(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    redisContext *ear = listen_to(w, "holdfast:wake:{}:" GHOST);

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    ghost_waits(w, s, 3000);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(token_told(ear) > 0);
    assert_true(is_held(w, s));
    assert_true(left_ms(w, s) <= 29000); /* from its look */
    assert_int_equal(redis_server_do(w->redis, "EXISTS " LINE), 0);
    assert_int_equal(take_other(a, s, 0, NULL), HF_EBUSY);
    redisFree(ear);
    forget_ghost(w);
}

/* Who of Redisson's waits may be as fast: all are told. */
static void told_beside_redisson(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    redisContext *ear = listen_to(w, "holdfast:wake:{}:" GHOST);
    redisContext *redisson = listen_to(
        w, s->kind == HF_SEMAPHORE ? "redisson_sc:{n}" : "redisson_rwlock:{n}");

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    ghost_waits(w, s, 3000);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(token_told(ear), 0);
    assert_false(is_held(w, s));
    redisFree(redisson);
    redisFree(ear);
    forget_ghost(w);
}

/* One that looks rarely would not know what it has, if the message was lost. */
static void told_if_rarely_seen(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    redisContext *ear = listen_to(w, "holdfast:wake:{}:" GHOST);

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    ghost_waits(w, s, 20000);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(token_told(ear), 0);
    assert_false(is_held(w, s));
    redisFree(ear);
    forget_ghost(w);
}

/* The one who waits has looked since it listens: it would be handed to it. */
static bool is_waiting(struct world *w)
{
    redisReply *reply = redis_server_ask(w->redis, "HVALS " PARTY);
    int listens = 0;

    if (reply->elements)
        (void)sscanf(reply->element[0]->str, "%*s %*s %d", &listens);
    freeReplyObject(reply);
    return listens;
}

/* The waiter; and the holder, whose program hears of events. */
static bool both_listen(struct world *w)
{
    redisReply *reply =
        redis_server_ask(w->redis, "PUBSUB CHANNELS holdfast:wake:*");
    bool are_two = reply->elements == 2;

    freeReplyObject(reply);
    hf_client_dispatch(w->clients[0]);
    return are_two;
}

/* By the message alone, while what it says itself is kept back? */
static bool gets_it_unasked(struct world *w, const struct side *s, hf_lock *a,
                            hf_lock *b, const char *waiters)
{
    struct taker *t;
    bool is_unasked;

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    t = taker_start_as(w, b, s->mode, s->permits, 20000);
    assert_true(WAIT_FOR(both_listen(w) &&
                         redis_server_do(w->redis, "HLEN %s", waiters) == 1));
    proxy_hoard(w->proxy);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR(taker_back(t) || proxy_hoarded(w->proxy)));
    is_unasked = !proxy_hoarded(w->proxy);
    proxy_deliver(w->proxy);
    taker_gets_it(t, 3000);
    return is_unasked;
}

/* It may look by itself just then, but not each time. */
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

static const struct side mutex = {HF_MUTEX, HF_WRITE, HF_WRITE, 0, 0};

static void test_unfair_handed_needs_no_question(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_near(w), *b = world_far(w, 30000, 5000);

    unasked(w, &mutex, a, b, "holdfast:crowd:{n}");
}

static void test_fair_handed_needs_no_question(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, w->redis->url, 30000, 5000, HF_FAIR);
    hf_lock *b = world_lock(w, w->far_url, 30000, 5000, HF_FAIR);

    unasked(w, &mutex, a, b, "holdfast:seen:{n}");
}

/* It finds what it has when it looks. */
static void message_lost(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = far_of(w, s, 30000, 3000);
    struct taker *t;

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    t = taker_start_as(w, b, s->mode, s->permits, 20000);
    assert_true(WAIT_FOR(is_waiting(w)));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(is_held(w, s));
    assert_int_equal(take_other(a, s, 0, NULL), HF_EBUSY);
    world_heal(w);
    assert_true(WAIT_FOR_MS(taker_back(t), 3000));
    assert_int_equal(t->rc, 0);
    assert_int_equal(take_other(a, s, 0, NULL), HF_EBUSY);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    all_of_it_is_free(w, s, a);
}

/* It does not want any more what it does not know that it has. */
static void given_up(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = far_of(w, s, 30000, OP_MS);
    struct taker *t;

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    t = taker_start_as(w, b, s->mode, s->permits, 3000);
    assert_true(WAIT_FOR(is_waiting(w)));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(is_held(w, s));
    assert_true(WAIT_FOR_MS(taker_back(t), 3000 + 1500));
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
    world_heal(w);
    all_of_it_is_free(w, s, a);
}

/* It was stopped when it got it, and never knows: its lease ends. */
static void died(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    struct proc_cmd cmd = {.op = PROC_TAKE,
                           .mode = s->mode,
                           .permits = s->permits,
                           .wait_ms = 30000};
    struct proc p;
    int64_t began;

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    puppet_opens(w, &p, s->kind, HAND_TTL_MS);
    assert_int_equal(proc_send(&p, &cmd), 0);
    assert_true(WAIT_FOR(is_waiting(w)));
    assert_int_equal(proc_stop(&p), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(is_held(w, s));
    proc_kill(&p);
    began = wait_fair();
    assert_int_equal(take_other(a, s, 10000, &w->err), 0);
    assert_true(wait_within(began, HAND_TTL_MS + 1000));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    all_of_it_is_free(w, s, a);
}

/* It is killed while it waits: nothing is handed to it. */
static void dead_are_passed_over(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    ghost_waits(w, s, 3000);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    all_of_it_is_free(w, s, a);
}

#define EACH(name, call)                                                       \
    static void test_read_##name(void **state)                                 \
    {                                                                          \
        call(*state, &reads);                                                  \
    }                                                                          \
    static void test_write_##name(void **state)                                \
    {                                                                          \
        call(*state, &writes);                                                 \
    }                                                                          \
    static void test_permits_##name(void **state)                              \
    {                                                                          \
        call(*state, &permits);                                                \
    }

EACH(handed_to_one_that_has_just_come, handed)
EACH(told_if_it_looks_rarely, told_if_rarely_seen)
EACH(told_beside_redisson, told_beside_redisson)
EACH(handed_needs_no_question, needs_no_question)
EACH(handed_and_the_message_lost, message_lost)
EACH(handed_and_given_up, given_up)
EACH(handed_to_one_that_dies, died)
EACH(not_handed_to_the_dead, dead_are_passed_over)

#define FAULT(name)                                                            \
    cmocka_unit_test_setup_teardown(name, world_setup, world_end)
#define FAULTS(name)                                                           \
    FAULT(test_read_##name), FAULT(test_write_##name),                         \
        FAULT(test_permits_##name)

int run_hand_faults(void)
{
    const struct CMUnitTest tests[] = {
        FAULTS(handed_to_one_that_has_just_come),
        FAULTS(told_if_it_looks_rarely),
        FAULTS(told_beside_redisson),
        FAULTS(handed_needs_no_question),
        FAULT(test_unfair_handed_needs_no_question),
        FAULT(test_fair_handed_needs_no_question),
        FAULTS(handed_and_the_message_lost),
        FAULTS(handed_and_given_up),
        FAULTS(handed_to_one_that_dies),
        FAULTS(not_handed_to_the_dead),
    };

    return cmocka_run_group_tests_name("redis: handed over", tests, NULL, NULL);
}
