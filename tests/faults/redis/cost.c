/* How many commands and connections an operation costs, as the server's own
 * statistics show. */
#include "side.h"

GROUP("cost");

static const struct side one = {HF_SEMAPHORE, HF_WRITE, HF_WRITE, 1, 1};

static hf_lock *only_permit(struct world *w)
{
    lock_of(w, w->redis->url, 30000, 5000, HF_SEMAPHORE);
    return world_change(w, w->len - 1, HF_SEMAPHORE, 1);
}

/* Adds entries of unfair waiters that a release may notify or hand the lock
 * to. */
static void crowd_waits(struct world *w, int many)
{
    redis_do(w, "EVAL %s 2 " LINE " " PARTY " %d " GHOST,
             "for i=1,ARGV[1] do "
             "  redis.call('rpush',KEYS[1],ARGV[2]..':'..i) "
             "  redis.call('hset',KEYS[2],ARGV[2]..':'..i,"
             "    '9999999999999 0 1 0 1 30000 1 0 x') "
             "end",
             many);
}

/* A release hands the permit to one waiter and does not read the entries of the
 * waiters after it. */
CASE(test_release_does_not_walk_the_line)
{
    hf_lock *a = only_permit(w);
    long long before;

    redis_listens(w, "holdfast:wake:{}:" GHOST);
    OK(take(a, &one, 0, NULL));
    crowd_waits(w, 1000);
    before = redis_calls(w, "hmget");
    OK(hf_lock_release(a, NULL));
    assert_int_equal(redis_calls(w, "hmget"), before + 1);
    assert_int_equal(redis_do(w, "LLEN " LINE), 999);
    redis_do(w, "FLUSHDB");
}

/* A waiter that gives up while the permit is held does not read the other
 * waiters' entries. */
CASE(test_leaving_does_not_walk_the_line)
{
    hf_lock *a = only_permit(w), *b = only_permit(w);

    redis_listens(w, "holdfast:wake:{}:" GHOST);
    OK(take(a, &one, 0, NULL));
    crowd_waits(w, 1000);
    EXPECT(HF_ETIMEDOUT, take(b, &one, 100, NULL));
    COMES(redis_do(w, "LLEN " LINE) == 1000);
    assert_int_equal(redis_calls(w, "hmget"), 0);
    redis_do(w, "DEL " LINE " " PARTY);
    OK(hf_lock_release(a, NULL));
}

/* A waiter gives up while all permits are free and no waiter has been notified
 * of that. Only as many waiters are notified as can acquire. */
CASE(test_leaving_tells_as_many_as_may_come)
{
    hf_lock *a = only_permit(w), *b = only_permit(w);
    struct taker *t;

    redis_listens(w, "holdfast:wake:{}:" GHOST);
    OK(take(a, &one, 0, NULL));
    t = taker_start_as(w, b, HF_WRITE, 1, 1000);
    world_has_waiter(w, LINE);
    crowd_waits(w, 1000);
    redis_do(w, "DEL n {n}:timeout");
    COMES(taker_back(t));
    taker_end(t);
    assert_true(redis_do(w, "LLEN " LINE) >= 998);
    redis_do(w, "FLUSHDB");
    (void)hf_lock_release(a, NULL);
}

CASE(test_acquire_and_release_are_one_call_each)
{
    enum { ROUNDS = 50 };
    hf_lock *a = world_near(w);

    world_free_for_all(w, a);
    redis_do(w, "CONFIG RESETSTAT");
    for (int i = 0; i < ROUNDS; i++)
        world_free_for_all(w, a);
    assert_int_equal(redis_calls(w, "evalsha"), 2 * ROUNDS);
}

struct sleeper {
    pthread_t thread;
    hf_lock *held, *wanted;
    int rc;
};

static void *sleep_on_it(void *arg)
{
    struct sleeper *s = arg;

    s->rc = hf_lock_acquire(s->wanted, NULL, NULL);
    if (!s->rc)
        s->rc = hf_lock_release(s->wanted, NULL);
    return NULL;
}

static void sleeper_start(struct world *w, struct sleeper *s, int i)
{
    char name[16];
    size_t len = (size_t)snprintf(name, sizeof(name), "n%d", i);

    OK(hf_lock_new(w->clients[0], name, len, NULL, &s->held, NULL));
    OK(hf_lock_new(w->clients[1], name, len, NULL, &s->wanted, NULL));
    OK(hf_lock_acquire(s->held, NULL, NULL));
    OK(pthread_create(&s->thread, NULL, sleep_on_it, s));
    COMES(redis_do(w, "EXISTS holdfast:waiters:{n%d}", i));
}

static void sleeper_end(struct sleeper *s)
{
    OK(hf_lock_release(s->held, NULL));
    pthread_join(s->thread, NULL);
    assert_int_equal(s->rc, 0);
    hf_lock_free(s->held);
    hf_lock_free(s->wanted);
}

/* A client sends commands on one connection. It opens a second one for messages
 * if it waits, or if it holds something and has an event callback. */
CASE(test_a_client_is_two_connections)
{
    enum { MANY = 24 };
    struct sleeper all[MANY];
    long long others = redis_connections(w);

    world_near(w);
    world_near(w);
    for (int i = 0; i < MANY; i++)
        sleeper_start(w, &all[i], i);
    COMES(redis_connections(w) - others == 4);
    for (int i = 0; i < MANY; i++)
        sleeper_end(&all[i]);
    assert_int_equal(redis_connections(w) - others, 4);
}
