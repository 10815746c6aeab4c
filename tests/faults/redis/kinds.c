/* Read-write locks, semaphores and latches: killed, stopped, cut off, answers
 * lost at every request. */
#include "side.h"

/* ---- processes ---------------------------------------------------------- */

/* Free within its lease and a second; whoever waits gets it. */
static void killed(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    struct proc p;
    int64_t began;

    puppet_takes(w, &p, s);
    assert_int_equal(take_other(a, s, 0, NULL), HF_EBUSY);
    proc_kill(&p);
    began = wait_fair();
    assert_int_equal(take_other(a, s, 5000, &w->err), 0);
    assert_true(wait_within(began, TTL_MS + 1000));
    assert_int_equal(hf_lock_release(a, NULL), 0);
    all_of_it_is_free(w, s, a);
}

static void test_reader_killed(void **state)
{
    killed(*state, &reads);
}

static void test_writer_killed(void **state)
{
    killed(*state, &writes);
}

static void test_permit_holder_killed(void **state)
{
    killed(*state, &permits);
}

/* The permits of one that was killed are due, and nobody has looked since. */
static void permits_are_due(struct world *w, long long out)
{
    struct proc p;
    int64_t began;

    puppet_takes(w, &p, &permits);
    proc_kill(&p);
    began = wait_now();
    assert_true(WAIT_FOR(wait_ms_since(began) > TTL_MS + 50));
    assert_int_equal(redis_server_do(w->redis, "ZCARD {n}:timeout"), out);
}

static void test_last_release_takes_back_what_is_due(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &permits);

    assert_int_equal(take_as(a, HF_WRITE, 1, 0, NULL), 0);
    permits_are_due(w, 3);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_is_clean(w);
}

/* Looking takes back nothing, and shows it as if it was back. */
static void test_inspect_counts_what_is_due_as_back(void **state)
{
    struct world *w = *state;
    hf_info *info = NULL;
    hf_lock *a = near_of(w, &permits);

    permits_are_due(w, 2);
    assert_int_equal(hf_inspect(w->clients[0], "n", 1, &info, &w->err), 0);
    assert_int_equal(info->kind, 0);
    assert_int_equal(info->holders_len, 0);
    hf_info_free(info);
    assert_int_equal(redis_server_do(w->redis, "ZCARD {n}:timeout"), 2);
    all_of_it_is_free(w, &permits, a);
}

/* It is continued after its lease: it knows, and takes nothing from others. */
static void stopped(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s);
    struct proc_cmd check = {.op = PROC_CHECK}, give = {.op = PROC_GIVE};
    struct proc p;

    puppet_takes(w, &p, s);
    assert_int_equal(proc_stop(&p), 0);
    assert_int_equal(take_other(a, s, 5000, &w->err), 0);
    assert_int_equal(proc_continue(&p), 0);
    assert_int_equal(puppet_do(&p, &check), HF_ELOST);
    assert_int_equal(puppet_do(&p, &give), HF_ELOST);
    assert_int_equal(hf_lock_renew(a, 0, NULL), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_int_equal(proc_end(&p), 0);
    all_of_it_is_free(w, s, a);
}

static void test_reader_stopped_past_its_lease(void **state)
{
    stopped(*state, &reads);
}

static void test_writer_stopped_past_its_lease(void **state)
{
    stopped(*state, &writes);
}

static void test_permit_holder_stopped_past_its_lease(void **state)
{
    stopped(*state, &permits);
}

/* A short lease ends although a longer one is let go beside it meanwhile: who
 * waits hears of the new end. */
static void test_dead_reader_behind_a_longer_lease(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &reads), *b = near_of(w, &reads);
    struct taker *t;
    struct proc p;

    assert_int_equal(take(a, &reads, 0, NULL), 0);
    puppet_takes(w, &p, &reads);
    t = taker_start(w, b, 10000);
    world_has_waiter(w, "holdfast:line:{n}");
    proc_kill(&p);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    assert_true(WAIT_FOR_MS(taker_back(t), TTL_MS + 1000));
    assert_int_equal(t->rc, 0);
    taker_end(t);
    world_is_clean(w);
}

/* By a client that has nothing else of that name. */
static hf_latch *latch_of(struct world *w, const char *url)
{
    hf_latch *latch = NULL;

    lock_of(w, url, 30000, 3000, HF_MUTEX);
    hf_lock_free(w->locks[w->len - 1]);
    w->locks[w->len - 1] = NULL;
    if (hf_latch_new(w->clients[w->len - 1], "n", 1, &latch, &w->err))
        fail_msg("hf_latch_new: %s", w->err.text);
    return latch;
}

static void test_latch_setter_killed(void **state)
{
    struct world *w = *state;
    struct proc_cmd set = {.op = PROC_SET, .times = 1};
    hf_latch *latch = latch_of(w, w->redis->url);
    uint64_t left = 0;
    struct proc p;

    puppet_opens(w, &p, HF_LATCH, TTL_MS);
    assert_int_equal(puppet_do(&p, &set), 0);
    proc_kill(&p);
    assert_int_equal(hf_latch_wait(latch, 2 * TTL_MS, NULL, NULL),
                     HF_ETIMEDOUT);
    assert_int_equal(hf_latch_down(latch, &left, &w->err), 0);
    assert_int_equal(left, 0);
    assert_int_equal(hf_latch_wait(latch, 0, NULL, NULL), 0);
    assert_int_equal(hf_latch_free(latch), 0);
    assert_int_equal(redis_server_do(w->redis, "EXISTS n holdfast:kind:{n}"),
                     0);
}

/* ---- the answer goes nowhere --------------------------------------------- */

static void lost_attempt(struct world *w, const struct side *s,
                         enum proxy_mode mode)
{
    hf_lock *a = far_of(w, s, 30000, OP_MS), *b = near_of(w, s);
    int64_t began;

    assert_int_equal(take(a, s, 0, NULL), 0);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    proxy_set(w->proxy, mode, 0);
    began = wait_fair();
    assert_int_not_equal(take(a, s, 300, &w->err), 0);
    assert_true(wait_within(began, 1300));
    world_heal(w);
    all_of_it_is_free(w, s, b);
    all_of_it_is_free(w, s, a);
}

static void lost_release(struct world *w, const struct side *s)
{
    hf_lock *a = far_of(w, s, 30000, OP_MS), *b = near_of(w, s);

    assert_int_equal(take(a, s, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    /* It was executed. Somebody else is in; the retry must not free that. */
    assert_int_equal(take_other(b, s, 5000, &w->err), 0);
    world_heal(w);
    assert_int_not_equal(take(a, s, 300, &w->err), 0);
    assert_int_equal(hf_lock_renew(b, 0, NULL), 0);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_int_equal(take(a, s, 5000, &w->err), 0);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    assert_int_equal(take_other(b, s, 0, NULL), HF_EBUSY);
    world_heal(w);
    all_of_it_is_free(w, s, b);
}

static void lost_renewal(struct world *w, const struct side *s)
{
    hf_lock *a = far_of(w, s, 5000, OP_MS), *b = near_of(w, s);
    uint64_t before;

    assert_int_equal(take(a, s, 0, NULL), 0);
    before = proxy_sent(w->proxy);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_true(WAIT_FOR(proxy_sent(w->proxy) > before));
    world_heal(w);
    world_renews(a);
    assert_int_equal(take_other(b, s, 0, NULL), HF_EBUSY);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    all_of_it_is_free(w, s, b);
}

static void lost_abandon(struct world *w, const struct side *s)
{
    hf_lock *a = near_of(w, s), *b = far_of(w, s, 30000, OP_MS);
    struct taker *t;

    assert_int_equal(take_other(a, s, 0, NULL), 0);
    t = taker_start_as(w, b, s->mode, s->permits, 2000);
    assert_true(
        WAIT_FOR(redis_server_do(w->redis, "EXISTS holdfast:line:{n}") == 1 ||
                 taker_back(t)));
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_true(WAIT_FOR_MS(taker_back(t), 2000 + 1000));
    assert_int_not_equal(t->rc, 0);
    taker_end(t);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    world_heal(w);
    all_of_it_is_free(w, s, a);
    all_of_it_is_free(w, s, b);
}

/* The reply of each request of a hold is cut after so many bytes. */
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
        rc = hf_lock_renew(a, 0, &w->err); /* which is not repeated */
        assert_true(rc == 0 || rc == HF_EUNKNOWN);
        assert_int_equal(hf_lock_check(a), 0);
        assert_int_equal(take_other(b, s, 0, NULL), HF_EBUSY);
        proxy_set(w->proxy, PROXY_RESET, n);
        assert_int_equal(hf_lock_release(a, &w->err), 0);
        all_of_it_is_free(w, s, b);
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
}

static void partition(struct world *w, const struct side *s)
{
    hf_lock *a = far_of(w, s, 1000, OP_MS), *b = near_of(w, s);

    assert_int_equal(take(a, s, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_BLACK_HOLE, 0);
    assert_int_equal(take_other(b, s, 5000, &w->err), 0);
    assert_int_equal(hf_lock_check(a), HF_ELOST);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    world_heal(w);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    all_of_it_is_free(w, s, b);
}

#define EACH(name, call)                                                       \
    static void test_reader_##name(void **state)                               \
    {                                                                          \
        const struct side *s = &reads;                                         \
        call;                                                                  \
    }                                                                          \
    static void test_writer_##name(void **state)                               \
    {                                                                          \
        const struct side *s = &writes;                                        \
        call;                                                                  \
    }                                                                          \
    static void test_permits_##name(void **state)                              \
    {                                                                          \
        const struct side *s = &permits;                                       \
        call;                                                                  \
    }

EACH(attempt_answer_swallowed, lost_attempt(*state, s, PROXY_SWALLOW))
EACH(attempt_swallowed, lost_attempt(*state, s, PROXY_DEAF))
EACH(release_lost, lost_release(*state, s))
EACH(renewal_lost, lost_renewal(*state, s))
EACH(abandon_lost, lost_abandon(*state, s))
EACH(answers_cut, cut_answers(*state, s))
EACH(claim_ends_in_a_partition, partition(*state, s))

/* ---- down ---------------------------------------------------------------- */

/* It did not get there: the next renewal tells the server. */
static void test_downgrade_lost_is_made_good(void **state)
{
    struct world *w = *state;
    hf_lock *a = far_of(w, &writes, 5000, OP_MS), *b = near_of(w, &reads);
    struct taker *t;

    assert_int_equal(take(a, &writes, 0, NULL), 0);
    t = taker_start_as(w, b, HF_READ, 0, 10000);
    world_has_waiter(w, "holdfast:line:{n}");
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_int_equal(hf_lock_downgrade(a, &w->err), HF_EUNKNOWN);
    assert_false(taker_back(t));
    world_heal(w);
    assert_true(WAIT_FOR_MS(taker_back(t), 1500));
    assert_int_equal(t->rc, 0);
    assert_int_equal(hf_lock_check(a), 0);
    assert_int_equal(take_as(b, HF_WRITE, 0, 0, NULL), HF_EBUSY);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    all_of_it_is_free(w, &reads, b);
}

/* It got there, and nobody heard: the same. Then it is let go at once. */
static void test_downgrade_answer_lost(void **state)
{
    struct world *w = *state;
    hf_lock *a = far_of(w, &writes, 5000, OP_MS), *b = near_of(w, &reads);

    assert_int_equal(take(a, &writes, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_SWALLOW, 0);
    assert_int_equal(hf_lock_downgrade(a, &w->err), HF_EUNKNOWN);
    assert_int_equal(take(b, &reads, 5000, &w->err), 0);
    world_heal(w);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    assert_int_equal(hf_lock_renew(b, 0, NULL), 0);
    assert_int_equal(hf_lock_release(b, NULL), 0);
    all_of_it_is_free(w, &reads, b);
}

/* It did not get there, and was released as a read hold before any renewal. */
static void test_downgrade_lost_then_released(void **state)
{
    struct world *w = *state;
    hf_lock *a = far_of(w, &writes, 30000, OP_MS), *b = near_of(w, &reads);

    assert_int_equal(take(a, &writes, 0, NULL), 0);
    proxy_set(w->proxy, PROXY_DEAF, 0);
    assert_int_equal(hf_lock_downgrade(a, &w->err), HF_EUNKNOWN);
    assert_int_equal(hf_lock_release(a, &w->err), HF_EUNKNOWN);
    world_heal(w);
    all_of_it_is_free(w, &reads, b);
}

/* A fixed lease ends when it was said to. */
static void test_downgrade_keeps_the_end(void **state)
{
    struct world *w = *state;
    hf_lock *a = near_of(w, &writes);
    long long before;

    assert_int_equal(take_lease(a, 0, 20000, NULL), 0);
    assert_true(WAIT_FOR(redis_server_do(w->redis, "PTTL n") < 20000 - 200));
    before = redis_server_do(w->redis, "PTTL n");
    assert_int_equal(hf_lock_downgrade(a, &w->err), 0);
    assert_true(redis_server_do(w->redis, "PTTL n") <= before);
    assert_int_equal(hf_lock_release(a, NULL), 0);
    all_of_it_is_free(w, &reads, a);
}

/* ---- the latch ----------------------------------------------------------- */

static uint64_t left_of(hf_latch *latch)
{
    uint64_t left = 0;

    assert_int_equal(hf_latch_get(latch, &left, NULL), 0);
    return left;
}

/* Asked again after a lost answer, set and down have counted once. */
static void test_latch_answers_cut(void **state)
{
    struct world *w = *state;
    hf_latch *far = latch_of(w, w->far_url);
    hf_latch *near = latch_of(w, w->redis->url);
    uint64_t left;

    for (long n = 0; n < 40; n += 3) {
        proxy_set(w->proxy, PROXY_RESET, n);
        assert_int_equal(hf_latch_set(far, 2, &w->err), 0);
        assert_int_equal(left_of(near), 2);
        proxy_set(w->proxy, PROXY_RESET, n);
        assert_int_equal(hf_latch_down(far, &left, &w->err), 0);
        assert_int_equal(left, 1);
        assert_int_equal(left_of(near), 1);
        proxy_set(w->proxy, PROXY_RESET, n);
        assert_int_equal(left_of(far), 1);
        proxy_set(w->proxy, PROXY_RESET, n);
        assert_int_equal(hf_latch_wait(far, 50, NULL, NULL), HF_ETIMEDOUT);
        assert_int_equal(hf_latch_down(near, NULL, NULL), 0);
        proxy_set(w->proxy, PROXY_RESET, n);
        assert_int_equal(hf_latch_wait(far, 10000, NULL, &w->err), 0);
    }
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_int_equal(hf_latch_free(far), 0);
    assert_int_equal(hf_latch_free(near), 0);
}

static long long ears(struct world *w)
{
    redisReply *reply = redis_server_ask(
        w->redis, "PUBSUB NUMSUB redisson_countdownlatch__channel__{n}");
    long long n = reply->element[1]->integer;

    freeReplyObject(reply);
    return n;
}

static void *wait_for_latch(void *arg)
{
    return (void *)(intptr_t)hf_latch_wait(arg, 20000, NULL, NULL);
}

/* The message that it is 0 was lost with the connection. */
static void test_latch_waiter_cut_off(void **state)
{
    struct world *w = *state;
    hf_latch *far = latch_of(w, w->far_url);
    hf_latch *near = latch_of(w, w->redis->url);
    pthread_t thread;
    int64_t began;
    void *rc;

    assert_int_equal(hf_latch_set(near, 1, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_latch, far), 0);
    assert_true(WAIT_FOR(ears(w) == 1));
    proxy_set(w->proxy, PROXY_REFUSE, 0);
    proxy_cut(w->proxy);
    assert_int_equal(hf_latch_down(near, NULL, NULL), 0);
    began = wait_fair();
    proxy_set(w->proxy, PROXY_PASS, 0);
    assert_int_equal(pthread_join(thread, &rc), 0);
    assert_null(rc);
    assert_true(wait_within(began, 2500));
    assert_int_equal(hf_latch_free(far), 0);
    assert_int_equal(hf_latch_free(near), 0);
}

#define FAULT(name)                                                            \
    cmocka_unit_test_setup_teardown(name, world_setup, world_end)
#define FAULTS(name)                                                           \
    FAULT(test_reader_##name), FAULT(test_writer_##name),                      \
        FAULT(test_permits_##name)

int run_kinds_faults(void)
{
    const struct CMUnitTest tests[] = {
        FAULT(test_reader_killed),
        FAULT(test_writer_killed),
        FAULT(test_permit_holder_killed),
        FAULT(test_last_release_takes_back_what_is_due),
        FAULT(test_inspect_counts_what_is_due_as_back),
        FAULT(test_reader_stopped_past_its_lease),
        FAULT(test_writer_stopped_past_its_lease),
        FAULT(test_permit_holder_stopped_past_its_lease),
        FAULT(test_dead_reader_behind_a_longer_lease),
        FAULT(test_latch_setter_killed),
        FAULTS(attempt_answer_swallowed),
        FAULTS(attempt_swallowed),
        FAULTS(release_lost),
        FAULTS(renewal_lost),
        FAULTS(abandon_lost),
        FAULTS(answers_cut),
        FAULTS(claim_ends_in_a_partition),
        FAULT(test_downgrade_lost_is_made_good),
        FAULT(test_downgrade_answer_lost),
        FAULT(test_downgrade_lost_then_released),
        FAULT(test_downgrade_keeps_the_end),
        FAULT(test_latch_answers_cut),
        FAULT(test_latch_waiter_cut_off),
    };

    return cmocka_run_group_tests_name("redis: kinds", tests, NULL, NULL);
}
