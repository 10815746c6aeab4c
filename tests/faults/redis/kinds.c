/* Read-write locks, semaphores and latches whose clients are killed, stopped or
 * cut off, or lose a reply. */
#include "side.h"

GROUP("kinds");

/* The holder is killed: a waiter gets the lock at most a second after the lease
 * ends. */
static void killed(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    struct proc p;

    puppet_takes(w, &p, s);
    EXPECT(HF_EBUSY, take_other(a, s, 0, NULL));
    proc_kill(&p);
    WITHIN(TTL_MS + 1000, OK(take_other(a, s, 5000, &w->err)));
    OK(hf_lock_release(a, NULL));
    all_of_it_is_free(w, s, a);
}

CASE_IS(test_reader_killed, killed(w, &reads))
CASE_IS(test_writer_killed, killed(w, &writes))
CASE_IS(test_permit_holder_killed, killed(w, &permits))

/* Kills a client that holds permits, and waits until they have expired. No
 * client sends a request in the meantime, so the expired permits are still
 * stored: `out` is the number of all stored permits. */
static void permits_are_due(struct world *w, long long out)
{
    struct proc p;
    int64_t began;

    puppet_takes(w, &p, &permits);
    proc_kill(&p);
    began = wait_now();
    COMES(wait_ms_since(began) > TTL_MS + 50);
    assert_int_equal(redis_do(w, "ZCARD {n}:timeout"), out);
}

CASE(test_last_release_takes_back_what_is_due)
{
    hf_lock *a = near_of(w, &permits);

    OK(take_as(a, HF_WRITE, 1, 0, NULL));
    permits_are_due(w, 3);
    OK(hf_lock_release(a, NULL));
}

/* hf_inspect() leaves expired permits at the server, but does not report their
 * holder. */
CASE(test_inspect_counts_what_is_due_as_back)
{
    hf_info *info;
    hf_lock *a = near_of(w, &permits);

    permits_are_due(w, 2);
    info = world_inspect(w, w->clients[0]);
    assert_int_equal(info->kind, 0);
    assert_int_equal(info->holders_len, 0);
    assert_int_equal(redis_do(w, "ZCARD {n}:timeout"), 2);
    all_of_it_is_free(w, &permits, a);
}

/* The holder is stopped until its lease has ended: when it continues it learns
 * of its loss and does not disturb the new holder. */
static void stopped(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    struct proc_cmd check = {.op = PROC_CHECK}, give = {.op = PROC_GIVE};
    struct proc p;

    puppet_takes(w, &p, s);
    OK(proc_stop(&p));
    OK(take_other(a, s, 5000, &w->err));
    OK(proc_continue(&p));
    EXPECT(HF_ELOST, puppet_do(&p, &check));
    EXPECT(HF_ELOST, puppet_do(&p, &give));
    OK(hf_lock_renew(a, 0, NULL));
    OK(hf_lock_release(a, NULL));
    OK(proc_end(&p));
    all_of_it_is_free(w, s, a);
}

CASE_IS(test_reader_stopped_past_its_lease, stopped(w, &reads))
CASE_IS(test_writer_stopped_past_its_lease, stopped(w, &writes))
CASE_IS(test_permit_holder_stopped_past_its_lease, stopped(w, &permits))

/* A reader with a short lease is killed, and then a reader with a longer lease
 * releases. The waiter must learn that the lock becomes free earlier than it
 * had expected. */
CASE(test_dead_reader_behind_a_longer_lease)
{
    hf_lock *a = near_of(w, &reads), *b = near_of(w, &reads);
    struct taker *t;
    struct proc p;

    OK(take(a, &reads, 0, NULL));
    puppet_takes(w, &p, &reads);
    t = taker_start(w, b, 10000);
    world_has_waiter(w, LINE);
    proc_kill(&p);
    OK(hf_lock_release(a, NULL));
    taker_has_it(t, TTL_MS + 1000);
    taker_end(t);
}

/* Adds a client, and creates a latch as its only handle. */
static hf_latch *latch_of(struct world *w, const char *url)
{
    lock_of(w, url, 30000, 3000, HF_MUTEX);
    hf_lock_free(w->locks[w->len - 1]);
    w->locks[w->len - 1] = NULL;
    return world_latch(w, w->clients[w->len - 1], "n");
}

CASE(test_latch_setter_killed)
{
    struct proc_cmd set = {.op = PROC_SET, .times = 1};
    hf_latch *latch = latch_of(w, w->redis->url);
    uint64_t left = 0;
    struct proc p;

    w->may_leave = true; /* results of latch requests stay for a while */
    puppet_opens(w, &p, HF_LATCH, TTL_MS);
    OK(puppet_do(&p, &set));
    proc_kill(&p);
    EXPECT(HF_ETIMEDOUT, hf_latch_wait(latch, 2 * TTL_MS, NULL, NULL));
    OK(hf_latch_down(latch, &left, &w->err));
    assert_int_equal(left, 0);
    OK(hf_latch_wait(latch, 0, NULL, NULL));
    assert_int_equal(redis_do(w, "EXISTS n holdfast:kind:{n}"), 0);
}

static void lost_attempt(struct world *w, const struct side *s,
                         enum proxy_mode mode)
{
    hf_lock *a = far_of(w, s, 30000, OP_MS), *b = near_of(w, s);

    OK(take(a, s, 0, NULL));
    OK(hf_lock_release(a, NULL));
    proxy_set(w->proxy, mode, 0);
    WITHIN(1300, FAILS(take(a, s, 300, &w->err)));
    world_heal(w);
    all_of_it_is_free(w, s, b);
    all_of_it_is_free(w, s, a);
}

static void lost_release(struct world *w, const struct side *s)
{
    hf_lock *a = far_of(w, s, 30000, OP_MS), *b = near_of(w, s);

    OK(take(a, s, 0, NULL));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err));
    /* The release was executed, so another client can acquire. The retried
     * release must not end that client's hold. */
    OK(take_other(b, s, 5000, &w->err));
    world_heal(w);
    FAILS(take(a, s, 300, &w->err));
    OK(hf_lock_renew(b, 0, NULL));
    OK(hf_lock_release(b, NULL));
    proxy_set(w->proxy, PROXY_PASS, 0);
    OK(take(a, s, 5000, &w->err));
    proxy_set(w->proxy, PROXY_DEAF, 0);
    EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err));
    EXPECT(HF_EBUSY, take_other(b, s, 0, NULL));
    world_heal(w);
    all_of_it_is_free(w, s, b);
}

static void lost_renewal(struct world *w, const struct side *s)
{
    hf_lock *a = far_of(w, s, 5000, OP_MS), *b = near_of(w, s);
    uint64_t before;

    OK(take(a, s, 0, NULL));
    before = proxy_sent(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    COMES(proxy_sent(w->proxy) > before);
    world_heal(w);
    world_renews(a);
    EXPECT(HF_EBUSY, take_other(b, s, 0, NULL));
    OK(hf_lock_release(a, NULL));
    all_of_it_is_free(w, s, b);
}

static void lost_abandon(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = far_of(w, s, 30000, OP_MS);
    struct taker *t;

    OK(take_other(a, s, 0, NULL));
    t = taker_start_as(w, b, s->mode, s->permits, 2000);
    COMES(redis_do(w, "EXISTS holdfast:line:{n}") == 1 || taker_back(t));
    proxy_set(w->proxy, PROXY_DEAF, 0);
    COMES_MS(taker_back(t), 2000 + 1000);
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
    OK(hf_lock_release(a, NULL));
    world_heal(w);
    all_of_it_is_free(w, s, a);
    all_of_it_is_free(w, s, b);
}

/* The reply to each request about a hold is cut after n bytes. */
static void cut_answers(struct world *w, const struct side *s)
{
    hf_lock *a = far_of(w, s, 30000, 3000), *b = near_of(w, s);
    int rc;

    all_of_it_is_free(w, s, a);
    for (long n = 0; n < 48; n += 5) {
        proxy_set(w->proxy, PROXY_RESET, n);
        if (take(a, s, 5000, &w->err))
            fail_msg("after %ld bytes: %s", n, w->err.text);
        proxy_set(w->proxy, PROXY_RESET, n);
        rc = hf_lock_renew(a, 0, &w->err); /* renewals are not retried */
        assert_true(rc == 0 || rc == HF_EUNKNOWN);
        OK(hf_lock_check(a));
        EXPECT(HF_EBUSY, take_other(b, s, 0, NULL));
        proxy_set(w->proxy, PROXY_RESET, n);
        OK(hf_lock_release(a, &w->err));
        all_of_it_is_free(w, s, b);
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
}

static void partition(struct world *w, const struct side *s)
{
    hf_lock *a = far_of(w, s, 1000, OP_MS), *b = near_of(w, s);

    OK(take(a, s, 0, NULL));
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    OK(take_other(b, s, 5000, &w->err));
    EXPECT(HF_ELOST, hf_lock_check(a));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    world_heal(w);
    OK(hf_lock_release(b, NULL));
    all_of_it_is_free(w, s, b);
}

#define EACH(name, call, ...)                                                  \
    CASE_IS(test_reader_##name, call(w, &reads, ##__VA_ARGS__))                \
    CASE_IS(test_writer_##name, call(w, &writes, ##__VA_ARGS__))               \
    CASE_IS(test_permits_##name, call(w, &permits, ##__VA_ARGS__))

EACH(attempt_answer_swallowed, lost_attempt, PROXY_SWALLOW)
EACH(attempt_swallowed, lost_attempt, PROXY_DEAF)
EACH(release_lost, lost_release)
EACH(renewal_lost, lost_renewal)
EACH(abandon_lost, lost_abandon)
EACH(answers_cut, cut_answers)
EACH(claim_ends_in_a_partition, partition)

/* The downgrade request is lost; the next renewal downgrades the hold. */
CASE(test_downgrade_lost_is_made_good)
{
    hf_lock *a = far_of(w, &writes, 5000, OP_MS), *b = near_of(w, &reads);
    struct taker *t;

    OK(take(a, &writes, 0, NULL));
    t = taker_start_as(w, b, HF_READ, 0, 10000);
    world_has_waiter(w, LINE);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    EXPECT(HF_EUNKNOWN, hf_lock_downgrade(a, &w->err));
    assert_false(taker_back(t));
    world_heal(w);
    taker_has_it(t, 1500);
    OK(hf_lock_check(a));
    EXPECT(HF_EBUSY, take_as(b, HF_WRITE, 0, 0, NULL));
    taker_gives(t);
    OK(hf_lock_release(a, &w->err));
    all_of_it_is_free(w, &reads, b);
}

/* The downgrade is executed, but its reply is lost. Then the hold is released
 * at once. */
CASE(test_downgrade_answer_lost)
{
    hf_lock *a = far_of(w, &writes, 5000, OP_MS), *b = near_of(w, &reads);

    OK(take(a, &writes, 0, NULL));
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    EXPECT(HF_EUNKNOWN, hf_lock_downgrade(a, &w->err));
    OK(take(b, &reads, 5000, &w->err));
    world_heal(w);
    OK(hf_lock_release(a, &w->err));
    OK(hf_lock_renew(b, 0, NULL));
    OK(hf_lock_release(b, NULL));
    all_of_it_is_free(w, &reads, b);
}

/* The downgrade request is lost. The hold is released as a read hold before any
 * renewal could repeat the downgrade. */
CASE(test_downgrade_lost_then_released)
{
    hf_lock *a = far_of(w, &writes, 30000, OP_MS), *b = near_of(w, &reads);

    OK(take(a, &writes, 0, NULL));
    proxy_set(w->proxy, PROXY_DEAF, 0);
    EXPECT(HF_EUNKNOWN, hf_lock_downgrade(a, &w->err));
    EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err));
    world_heal(w);
    all_of_it_is_free(w, &reads, b);
}

CASE(test_downgrade_keeps_the_end)
{
    hf_lock *a = near_of(w, &writes);
    long long before;

    OK(take_lease(a, 0, 20000, NULL));
    COMES(redis_do(w, "PTTL n") < 20000 - 200);
    before = redis_do(w, "PTTL n");
    OK(hf_lock_downgrade(a, &w->err));
    assert_true(redis_do(w, "PTTL n") <= before);
    OK(hf_lock_release(a, NULL));
    all_of_it_is_free(w, &reads, a);
}

static uint64_t left_of(hf_latch *latch)
{
    uint64_t left = 0;

    OK(hf_latch_get(latch, &left, NULL));
    return left;
}

/* Calls that set a latch or count it down are retried after a lost reply, but
 * take effect once. */
CASE(test_latch_answers_cut)
{
    hf_latch *far = latch_of(w, w->far_url);
    hf_latch *near = latch_of(w, w->redis->url);
    uint64_t left;

    for (long n = 0; n < 40; n += 3) {
        proxy_set(w->proxy, PROXY_RESET, n);
        OK(hf_latch_set(far, 2, &w->err));
        assert_int_equal(left_of(near), 2);
        proxy_set(w->proxy, PROXY_RESET, n);
        OK(hf_latch_down(far, &left, &w->err));
        assert_int_equal(left, 1);
        assert_int_equal(left_of(near), 1);
        proxy_set(w->proxy, PROXY_RESET, n);
        assert_int_equal(left_of(far), 1);
        proxy_set(w->proxy, PROXY_RESET, n);
        EXPECT(HF_ETIMEDOUT, hf_latch_wait(far, 50, NULL, NULL));
        OK(hf_latch_down(near, NULL, NULL));
        proxy_set(w->proxy, PROXY_RESET, n);
        OK(hf_latch_wait(far, 10000, NULL, &w->err));
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
}

static long long ears(struct world *w)
{
    redisReply *reply =
        redis_ask(w, "PUBSUB NUMSUB redisson_countdownlatch__channel__{n}");
    long long n = reply->element[1]->integer;

    freeReplyObject(reply);
    return n;
}

static void *wait_for_latch(void *arg)
{
    return (void *)(intptr_t)hf_latch_wait(arg, 20000, NULL, NULL);
}

/* A waiter's connection is lost, and with it the message that the count is 0.
 * The waiter must learn the count when it reconnects. */
CASE(test_latch_waiter_cut_off)
{
    hf_latch *far = latch_of(w, w->far_url);
    hf_latch *near = latch_of(w, w->redis->url);
    pthread_t thread;
    int64_t began;
    void *rc;

    OK(hf_latch_set(near, 1, NULL));
    OK(pthread_create(&thread, NULL, wait_for_latch, far));
    COMES(ears(w) == 1);
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    OK(hf_latch_down(near, NULL, NULL));
    began = wait_fair();
    proxy_set(w->proxy, PROXY_PASS, 0);
    OK(pthread_join(thread, &rc));
    assert_null(rc);
    assert_true(wait_within(began, 2500));
}
