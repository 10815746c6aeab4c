/* Two of five servers are killed, cut off or stopped, and then three. */
#include "redlock_faults.h"

GROUP("majority");

/* A TTL that is long enough for a machine that stalls. */
#define TTL_MS 5000

static void stop(int i)
{
    OK(redis_server_stop(SERVER(i)));
}

static void go_on(int i)
{
    OK(redis_server_continue(SERVER(i)));
}

CASE(test_any_two_cut_off)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT);
    uint64_t last = 0;

    for (int i = 0; i < SERVERS; i++)
        for (int j = 0; j < i; j++) {
            cut(i);
            cut(j);
            for (int k = 0; k < 3; k++) {
                world_takes(w, a, 2000);
                assert_true(token_of(a) > last);
                last = token_of(a);
                gives(w, a);
            }
            heal(i);
            heal(j);
        }
}

/* The first acquire after two servers were stopped waits at most server_timeout
 * for them. Later acquires do not wait for them, because the client knows that
 * they are silent. */
CASE(test_two_stopped_delay_nobody)
{
    enum { TIMES = 60 };
    hf_lock *a = far(w, 30000, 15000, "");
    int64_t began;

    world_free_for_all(w, a);
    stop(1);
    stop(3);
    world_takes(w, a, 50 + 1000);
    gives(w, a);
    pass(60);
    began = wait_fair();
    for (int i = 0; i < TIMES; i++) {
        world_takes(w, a, 1000);
        gives(w, a);
    }
    assert_true(wait_within(began, TIMES * 50 / 2));
    go_on(1);
    go_on(3);
}

/* Two servers are down: a renewed hold outlasts two TTLs. When the servers
 * return, each gets the key again, even the server that has lost its data. */
CASE(test_two_gone_hold_goes_on)
{
    hf_lock *a = far(w, TTL_MS, 2000, PATIENT), *b = near(w);
    uint64_t token;

    takes(w, a);
    token = token_of(a);
    redis_server_kill(SERVER(0));
    cut(1);
    for (int64_t began = wait_now(); wait_ms_since(began) < 2 * TTL_MS;)
        world_renews(a);
    is_busy(w, b);
    OK(redis_server_again(SERVER(0)));
    heal(1);
    COMES(keys() == SERVERS && keys_as(0) == SERVERS);
    OK(hf_lock_check(a));
    assert_true(token_of(a) == token);
    gives(w, a);
    world_takes(w, b, 1000);
    assert_true(token_of(b) > token);
    gives(w, b);
}

static void names(const char *text, int i, bool wanted)
{
    const char *where = text_of("127.0.0.1:%d", proxy_port(way[i]));

    if (!strstr(text, where) == wanted)
        fail_msg("\"%s\": %s", text, where);
}

/* Three servers are down: the acquire fails in time, and its error names
 * exactly those three. A waiter gets the lock when they return. */
CASE(test_three_gone_acquire_fails_and_says_why)
{
    hf_lock *a = far(w, 30000, 15000, "server_timeout=1s");
    struct taker *t;

    world_free_for_all(w, a);
    cut(0);
    stop(2);
    redis_server_kill(SERVER(4));
    hf_lock_timed(a, 1500, NULL); /* a learns that server 2 is silent */
    for (int i = 0; i < 2; i++) {
        WITHIN(500 + 1000,
               EXPECT(HF_ETIMEDOUT, hf_lock_timed(a, 500, &w->err)));
        for (int j = 0; j < SERVERS; j++)
            names(w->err.text, j, j % 2 == 0);
        says(w->err.text, "no answer");
    }
    t = taker_start(w, a, 60000);
    assert_true(NEVER_MS(taker_back(t), 300));
    heal(0);
    go_on(2);
    OK(redis_server_again(SERVER(4)));
    taker_gets_it(t, 4000);
}

/* Three servers are cut off. The holder's claim ends before another client gets
 * the lock, and every call on the hold reports the loss. */
CASE(test_three_cut_hold_ends_in_time)
{
    hf_lock *a = far(w, TTL_MS, OP_MS, PATIENT), *b = near(w);
    int64_t deadline;
    uint64_t token;

    takes(w, a);
    token = token_of(a);
    for (int i = 1; i < 4; i++)
        cut(i);
    deadline = deadline_of(a);
    world_takes(w, b, TTL_MS * 2 + 1000);
    EXPECT(HF_ELOST, hf_lock_check(a));
    assert_true(wait_now() > deadline);
    assert_true(token_of(b) > token);
    world_loses(w, 0, "could not be used since");
    heal_all();
    gives(w, b);
    world_free_for_all(w, a);
}

#define PATIENCE_MS 1000 /* an op_timeout that ends soon */
#define IN_TIME "server_timeout=200ms"
#define LATE_MS 400
#define GRANT "\r\n$1\r\ng\r\n" /* occurs only in a request for a vote */

static void stop_three(void)
{
    for (int i = 0; i < 3; i++)
        stop(i);
}

static void continue_three(void)
{
    for (int i = 0; i < 3; i++)
        go_on(i);
}

/* A try waits for the replies of stopped servers, as it does with a single
 * server. */
CASE(test_three_stopped_briefly_delay_a_try)
{
    hf_lock *a = far(w, 30000, 15000, "");
    struct taker *t;

    for (int as_all = 0; as_all < 2; as_all++) {
        world_free_for_all(w, a);
        stop_three();
        t = as_all ? taker_start_all(w, a, 0) : taker_start(w, a, 0);
        assert_true(NEVER_MS(taker_back(t), 300));
        continue_three();
        taker_gets_it(t, 2000);
        world_is_clean(w);
    }
}

/* Three servers are stopped: every acquire ends in time, names them in its
 * error, and gives its votes back. */
CASE(test_three_stopped_end_every_acquire)
{
    static const struct {
        int64_t wait_ms, least_ms, most_ms;
        int rc;
    } waits[] = {
        {0, PATIENCE_MS, PATIENCE_MS + 1000, HF_EBACKEND},
        {300, 300, 300 + 1000, HF_ETIMEDOUT},
        {60000, PATIENCE_MS, PATIENCE_MS + 1000, HF_EBACKEND},
        {HF_FOREVER, PATIENCE_MS, PATIENCE_MS + 1000, HF_EBACKEND},
    };
    hf_lock *a = far(w, 30000, PATIENCE_MS, IN_TIME);

    for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
        struct wait_mark began;

        takes(w, a); /* lets the client connect to all servers */
        gives(w, a);
        stop_three();
        began = wait_mark();
        assert_int_equal(hf_lock_timed(a, waits[i].wait_ms, &w->err),
                         waits[i].rc);
        assert_true(wait_took(began, waits[i].least_ms, waits[i].most_ms));
        for (int j = 0; j < 3; j++)
            names(w->err.text, j, true);
        says(w->err.text, "no answer");
        COMES(!has(3) && !has(4));
        continue_three();
        world_is_clean(w);
    }
}

/* Asserts that the taker's endless wait fails once no majority has answered for
 * op_timeout. */
static void is_failed(struct taker *t, struct wait_mark began)
{
    COMES(taker_back(t));
    assert_true(wait_took(began, PATIENCE_MS, PATIENCE_MS + 1000));
    taker_end(t);
    if (t->rc != HF_EBACKEND)
        fail_msg("%d: %s", t->rc, t->err.text);
    says(t->err.text, "127.0.0.1:");
}

static void are_paced(int i, uint64_t connections)
{
    connections = proxy_connections(way[i]) - connections;
    if (connections > 60)
        fail_msg("%llu connections", (unsigned long long)connections);
}

CASE(test_every_request_is_cut)
{
    hf_lock *a = far(w, 30000, PATIENCE_MS, IN_TIME);
    uint64_t before[SERVERS];
    struct wait_mark began;

    world_free_for_all(w, a);
    for (int i = 0; i < SERVERS; i++) {
        before[i] = proxy_connections(way[i]);
        proxy_cut_at(way[i], GRANT);
    }
    began = wait_mark();
    is_failed(taker_start(w, a, HF_FOREVER), began);
    for (int i = 0; i < SERVERS; i++) {
        are_paced(i, before[i]);
        proxy_cut_at(way[i], NULL);
    }
    world_free_for_all(w, a);
}

/* Delays the replies of the servers from `first` on; 0 ends the delay. */
static void answer_late(int first, long ms)
{
    for (int i = first; i < SERVERS; i++) {
        proxy_count(way[i], GRANT);
        proxy_set(way[i], ms ? PROXY_DELAY : PROXY_PASS, ms);
    }
}

static void requests_are_paced(int first)
{
    for (int i = first; i < SERVERS; i++)
        if (proxy_counted(way[i]) > 60)
            fail_msg("%llu answers", (unsigned long long)proxy_counted(way[i]));
}

CASE(test_every_answer_is_late)
{
    hf_lock *a = far(w, 30000, PATIENCE_MS, IN_TIME);
    struct wait_mark began;

    world_free_for_all(w, a);
    answer_late(0, LATE_MS);
    /* Any error code is right, because the wait may end between two requests or
     * during one. */
    FAILS(hf_lock_timed(a, PATIENCE_MS - 100, &w->err));
    began = wait_mark();
    is_failed(taker_start(w, a, HF_FOREVER), began);
    requests_are_paced(0);
    answer_late(0, 0);
    world_free_for_all(w, a);
}

/* Two servers reply in time that the lock is held. Two are no majority, so the
 * wait fails as if no server had replied. */
CASE(test_answers_of_three_are_late_for_a_waiter)
{
    hf_lock *a = far(w, 30000, PATIENCE_MS, IN_TIME);
    hf_lock *b = near(w);
    struct taker *t;

    world_free_for_all(w, a);
    takes(w, b);
    t = taker_start(w, a, HF_FOREVER);
    assert_true(NEVER_MS(taker_back(t), 500));
    answer_late(2, LATE_MS);
    /* A waiter sends only every fourth poll to more than one server, so it may
     * notice late that no majority answers. */
    if (!WAIT_FOR_MS(taker_back(t), PATIENCE_MS + 3000))
        fail_msg("it still waits");
    taker_end(t);
    assert_int_equal(t->rc, HF_EBACKEND);
    requests_are_paced(2);
    answer_late(2, 0);
    gives(w, b);
    world_free_for_all(w, a);
}

CASE(test_keys_deleted_at_two_are_set_again)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT), *b = near(w);

    takes(w, a);
    for (int i = 0; i < SERVERS; i++) { /* any of them, repeatedly */
        delete_key(i);
        delete_key((i + 1) % SERVERS);
        renews(w, a);
        COMES(keys() == SERVERS);
    }
    OK(hf_lock_check(a));
    is_busy(w, b);
    gives(w, a);
}

CASE(test_keys_deleted_at_three_end_the_hold)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT), *b = near(w);

    takes(w, a);
    for (int i = 0; i < 3; i++)
        delete_key(i);
    EXPECT(HF_ELOST, hf_lock_renew(a, 0, &w->err));
    world_loses(w, 0, "deleted");
    world_free_for_all(w, b);
}

/* A renewal sets a missing key again. The new key does not count, because
 * another client may have held the lock in the meantime. The two servers that
 * kept their keys are no majority, so the hold is lost. */
CASE(test_key_that_was_set_again_does_not_count)
{
    hf_lock *a = far(w, 2000, OP_MS, PATIENT);

    takes(w, a);
    cut(0);
    cut(1);
    delete_key(2);
    hf_lock_renew(a, 0, NULL);
    COMES_MS(hf_lock_check(a) == HF_ELOST, 2 * 2000 + 1000);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    heal_all();
    world_free_for_all(w, a);
}

/* Two servers have lost the key, and a renewal sets it again there. Their
 * replies arrive after the renewal has succeeded at the other three servers.
 * From then on the two new keys count. */
CASE(test_key_that_was_set_again_counts_later)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT);

    takes(w, a);
    for (int i = 0; i < 2; i++) {
        delete_key(i);
        proxy_set(way[i], PROXY_DELAY, 100);
    }
    renews(w, a);
    pass(150);
    for (int i = 0; i < 2; i++)
        proxy_set(way[i], PROXY_PASS, 0);
    cut(2);
    cut(3);
    renews(w, a);
    OK(hf_lock_check(a));
    gives(w, a);
    heal_all();
}

/* When a stopped server continues, it executes what it was sent: the grant, and
 * then its undo or release. If op_ms is shorter than the stop, the client gives
 * up the connection first. */
static void stopped_while_taken(struct world *w, int64_t op_ms, int64_t for_ms)
{
    hf_lock *a = far(w, 30000, op_ms, "");

    world_free_for_all(w, a);
    stop(0);
    world_takes(w, a, 2000);
    gives(w, a);
    stop(1);
    stop(2);
    FAILS(hf_lock_timed(a, 200, &w->err));
    pass(for_ms);
    for (int i = 0; i < 3; i++)
        go_on(i);
    world_is_clean(w); /* long before the lease ends */
    world_free_for_all(w, a);
}

CASE_IS(test_stopped_while_it_is_taken, stopped_while_taken(w, 15000, 0))
CASE_IS(test_stopped_for_long_while_it_is_taken,
        stopped_while_taken(w, OP_MS, OP_MS + 500))

/* The stopped servers receive the release of the first hold late, and must not
 * release the second one. */
static void stopped_while_released(struct world *w, int64_t op_ms,
                                   int64_t for_ms)
{
    hf_lock *a = far(w, 30000, op_ms, PATIENT);
    hf_lock *b = far(w, 30000, 5000, "");

    takes(w, a);
    stop(0);
    stop(1);
    gives(w, a);
    world_takes(w, b, 2000);
    pass(for_ms);
    go_on(0);
    go_on(1);
    COMES_MS(hf_lock_renew(b, 0, &w->err) || keys_as(4) == SERVERS, 5000);
    OK(hf_lock_check(b));
    assert_int_equal(keys_as(4), SERVERS);
    gives(w, b);
}

CASE_IS(test_stopped_while_it_is_released, stopped_while_released(w, 15000, 0))
CASE_IS(test_stopped_for_long_while_it_is_released,
        stopped_while_released(w, OP_MS, OP_MS + 500))

static void stopped_while_renewed(struct world *w, int64_t op_ms,
                                  int64_t for_ms)
{
    hf_lock *a = far(w, 30000, op_ms, PATIENT);

    takes(w, a);
    stop(0);
    stop(4);
    for (int i = 0; i < 3; i++)
        renews(w, a);
    gives(w, a);
    pass(for_ms);
    go_on(0);
    go_on(4);
}

CASE_IS(test_stopped_while_it_is_renewed, stopped_while_renewed(w, 15000, 0))
CASE_IS(test_stopped_for_long_while_it_is_renewed,
        stopped_while_renewed(w, OP_MS, OP_MS + 500))

static void tell(struct proc *p, const struct proc_cmd *cmd)
{
    struct proc_reply reply;

    OK(proc_do(p, cmd, &reply));
    if (reply.rc)
        fail_msg("%s", reply.err.text);
}

/* A client is killed when it has the votes of two servers, and a third server
 * cannot be reached: the two votes end with that client's lease. */
CASE(test_minority_of_the_dead_ends_with_its_lease)
{
    struct proc_cmd cmd = {.op = PROC_OPEN, .ttl_ms = 3000};
    struct proc p = {0};
    hf_lock *b;

    w->may_leave = true; /* not all servers run */
    b = near(w);
    OK(proc_start(&p));
    snprintf(cmd.text, sizeof(cmd.text), "%s", far_url("server_timeout=20s"));
    tell(&p, &cmd);
    tell(&p, &(struct proc_cmd){.op = PROC_NEW, .name = "n", .name_len = 1});
    for (int i = 0; i < 3; i++)
        proxy_hoard(way[i]);
    OK(proc_send(&p, &(struct proc_cmd){.op = PROC_TAKE, .wait_ms = 60000}));
    COMES(has(3) && has(4));
    proc_kill(&p);
    redis_server_kill(SERVER(0));
    world_takes(w, b, 3000 + 1000);
    gives(w, b);
}

/* Two servers execute the release, two refuse it, and one cannot be reached.
 * The client cannot find out whether the lock is free, so the release may
 * return either HF_OK or HF_EUNKNOWN. */
CASE(test_release_without_a_majority_either_way)
{
    hf_lock *a = far(w, 30000, 1000, PATIENT);
    int rc;

    for (int i = 3; i < SERVERS; i++)
        do_at(i, "SET n stranger");
    world_takes(w, a, 2000);
    cut(0);
    rc = hf_lock_release(a, &w->err);
    assert_true(rc == HF_OK || rc == HF_EUNKNOWN);
    assert_true(!has(1) && !has(2));
    for (int i = 3; i < SERVERS; i++)
        delete_key(i);
    world_takes(w, a, 5000); /* long before the lease ends */
    gives(w, a);
    heal(0);
    COMES_MS(keys() == 0, 5000);
}
