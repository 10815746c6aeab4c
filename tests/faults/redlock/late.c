/* Requests that are executed or answered late, or never: they must grant
 * nothing and leave nothing at the servers. */
#include "redlock_faults.h"

GROUP("late");

/* One server answers later than the lease lasts. Two others are down, so the
 * vote of the slow server is needed, but so late a vote must not grant the
 * lock. */
CASE(test_answers_later_than_the_lease)
{
    hf_lock *a = far(w, 1000, 5000, "");

    world_free_for_all(w, a);
    proxy_set(way[0], PROXY_DELAY, 1500);
    for (int i = 0; i < 3; i++)
        world_free_for_all(w, a);
    cut(1);
    cut(2);
    FAILS(hf_lock_timed(a, 5000, &w->err));
    FAILS(hf_lock_check(a));
    heal(1);
    heal(2);
    world_free_for_all(w, a);
    proxy_set(way[0], PROXY_PASS, 0);
}

/* The replies to a renewal arrive after the claim has ended, and do not renew
 * it. */
CASE(test_renewal_answered_after_the_deadline)
{
    hf_lock *a = far(w, 1500, 5000, PATIENT), *b = near(w);
    int64_t deadline;

    takes(w, a);
    for (int i = 0; i < 3; i++)
        proxy_set(way[i], PROXY_DELAY, 3000);
    deadline = deadline_of(a);
    /* A renewal whose reply is on its way may extend the lease once more. */
    COMES_MS(hf_lock_check(a) == HF_ELOST,
             (deadline - wait_now()) / 1000000 + 1500 + 300);
    assert_true(NEVER_MS(hf_lock_check(a) != HF_ELOST, 3500));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    heal_all();
    world_free_for_all(w, b);
}

/* Delivers the requests that the proxies have held back since hoard_all(),
 * later than op_timeout and after everything that the client has sent on new
 * connections. */
static void deliver_all(void)
{
    for (int i = 0; i < SERVERS; i++)
        proxy_deliver(way[i]);
}

static void hoard_all(void)
{
    for (int i = 0; i < SERVERS; i++)
        proxy_hoard(way[i]);
}

static bool is_hoarded(void)
{
    for (int i = 0; i < SERVERS; i++)
        if (!proxy_hoarded(way[i]))
            return false;
    return true;
}

static bool is_somewhere(void)
{
    return keys() > 0;
}

CASE(test_late_grants_grant_nothing)
{
    hf_lock *a = far(w, 30000, OP_MS, PATIENT), *b = near(w);
    struct taker *t;

    world_free_for_all(w, a);
    hoard_all();
    t = taker_start(w, a, 60000);
    COMES(is_hoarded());
    /* The client gets the lock on new connections, or op_timeout ends first and
     * the error says that no server answers. */
    COMES_MS(taker_back(t), OP_MS + 3000);
    taker_end(t);
    if (t->rc) {
        assert_int_equal(t->rc, HF_EBACKEND);
        says(t->err.text, "no answer");
        COMES(hf_lock_timed(a, 3000, &w->err) == 0);
        t->release_rc = hf_lock_release(a, NULL);
    }
    assert_int_equal(t->release_rc, 0);
    pass(OP_MS + 100);
    deliver_all();
    assert_true(NEVER_MS(is_somewhere(), 300));
    world_free_for_all(w, b);
}

CASE(test_late_renewals_set_no_key)
{
    hf_lock *a = far(w, 30000, OP_MS, PATIENT), *b = near(w);

    takes(w, a);
    hoard_all();
    FAILS(hf_lock_renew(a, 0, &w->err));
    assert_true(is_hoarded());
    COMES(hf_lock_renew(a, 0, &w->err) == 0);
    gives(w, a);
    world_is_clean(w);
    pass(OP_MS + 100);
    deliver_all();
    assert_true(NEVER_MS(is_somewhere(), 300));
    world_free_for_all(w, b);
}

CASE(test_late_releases_end_nothing_else)
{
    hf_lock *a = far(w, 30000, OP_MS, PATIENT), *b = near(w);

    takes(w, a);
    hoard_all();
    EXPECT(HF_EUNKNOWN, hf_lock_release(a, &w->err));
    takes(w, b); /* the release was sent again */
    deliver_all();
    assert_true(NEVER_MS(keys_as(0) != SERVERS, 300));
    renews(w, b);
    gives(w, b);
}

/* Two servers cannot be reached when the lock is released: their keys are
 * deleted as soon as the servers can be reached, long before the lease ends. */
static void owed(struct world *w, enum proxy_mode mode, bool is_cut)
{
    hf_lock *a = far(w, 30000, OP_MS, PATIENT), *b = near(w);

    takes(w, a);
    for (int i = 0; i < 2; i++) {
        proxy_set(way[i], mode, 0);
        if (is_cut)
            proxy_cut(way[i]);
    }
    gives(w, a);
    world_takes(w, b, 1000);
    assert_true(has(0) && has(1));
    gives(w, b);
    assert_int_equal(keys(), 2);
    pass(200);
    proxy_set(way[0], PROXY_PASS, 0);
    proxy_set(way[1], PROXY_PASS, 0);
    COMES_MS(keys() == 0, 5000);
}

CASE_IS(test_release_at_servers_that_are_cut_off, owed(w, PROXY_REFUSE, true))
CASE_IS(test_release_at_servers_that_hear_nothing, owed(w, PROXY_DEAF, false))

/* Two servers are replicas for a while and refuse writes: the release is
 * retried on the same connection. */
CASE(test_release_that_is_refused_for_a_while)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT);

    takes(w, a);
    for (int i = 0; i < 2; i++)
        do_at(i, "REPLICAOF 127.0.0.1 1");
    gives(w, a);
    assert_int_equal(keys(), 2);
    for (int i = 0; i < 2; i++)
        do_at(i, "REPLICAOF NO ONE");
    COMES_MS(keys() == 0, 5000);
}

/* The key is at only three servers, and the reply of one of them to the release
 * is lost. The release is retried on a new connection before the call times
 * out. */
CASE(test_release_answer_of_one_of_three_is_lost)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT);

    for (int i = 3; i < SERVERS; i++)
        cut(i);
    for (int i = 0; i < 3; i++) {
        world_takes(w, a, 3000);
        proxy_set(way[i], PROXY_RESET, 0);
        gives(w, a);
        proxy_set(way[i], PROXY_PASS, 0);
        world_is_clean(w);
    }
}

/* Some servers cannot be reached when an attempt fails. They receive the undo
 * of that attempt later. */
CASE(test_undo_at_servers_that_are_cut_off)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT);
    struct taker *t;

    takes(w, a);
    gives(w, a);
    for (int i = 0; i < 3; i++)
        proxy_set(way[i], PROXY_SWALLOW, 0); /* they execute the attempt; their
                                                replies are lost */
    t = taker_start(w, a, 60000);
    COMES(keys() == SERVERS);
    for (int i = 0; i < 3; i++)
        cut(i);
    COMES(keys() == 3);
    assert_true(NEVER_MS(taker_back(t), 100));
    heal_all();
    taker_gets_it(t, 5000);
}

/* A server that keeps its keys when it is restarted still receives the
 * release. */
CASE(test_release_at_a_server_that_is_restarted)
{
    hf_lock *a = far(w, 30000, OP_MS, PATIENT);

    SERVER(0)->persist = true;
    restart(0);
    takes(w, a);
    COMES(has(0) || hf_lock_renew(a, 0, NULL));
    pass(1100); /* until the key is on disk */
    redis_server_kill(SERVER(0));
    gives(w, a);
    OK(redis_server_again(SERVER(0)));
    SERVER(0)->persist = false;
    COMES_MS(keys() == 0, 5000);
}

static void forget_script(void)
{
    for (int i = 0; i < SERVERS; i++)
        do_at(i, "SCRIPT FLUSH");
}

CASE(test_script_is_forgotten)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT);

    for (int i = 0; i < 5; i++) {
        world_takes(w, a, 1000);
        forget_script();
        renews(w, a);
        forget_script();
        gives(w, a);
        forget_script();
    }
}

/* NOSCRIPT replies arrive after the attempt or the release has ended. */
CASE(test_late_word_that_the_script_is_forgotten)
{
    hf_lock *a = far(w, 30000, 5000, PATIENT), *b = near(w);

    world_free_for_all(w, a);
    takes(w, b);
    for (int i = 0; i < 2; i++)
        proxy_set(way[i], PROXY_DELAY, 300);
    delete_key(0);
    delete_key(1);
    forget_script();
    is_busy(w, a);
    gives(w, b);
    assert_true(NEVER_MS(keys() == SERVERS, 500));
    world_is_clean(w);
    for (int i = 0; i < 2; i++)
        proxy_set(way[i], PROXY_PASS, 0);
    world_takes(w, a, 1000);
    for (int i = 0; i < 2; i++)
        proxy_set(way[i], PROXY_DELAY, 300);
    forget_script();
    gives(w, a);
}

struct player {
    hf_lock *lock;
    pthread_t thread;
    uint32_t stop; /* atomic */
    int failed;
};

static void *play(void *arg)
{
    struct player *p = arg;

    while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE))
        if (hf_lock_timed(p->lock, WAIT_LONG_MS, NULL) ||
            hf_lock_release(p->lock, NULL))
            p->failed++;
    return NULL;
}

CASE(test_script_is_forgotten_again_and_again)
{
    struct player player[2];

    for (int i = 0; i < 2; i++) {
        player[i] = (struct player){far(w, 30000, 5000, ""), 0, 0, 0};
        OK(pthread_create(&player[i].thread, NULL, play, &player[i]));
    }
    for (int i = 0; i < 150; i++) {
        proxy_set(way[i % SERVERS], i % 2 ? PROXY_DELAY : PROXY_PASS, 4);
        forget_script();
        pass(5);
    }
    for (int i = 0; i < SERVERS; i++)
        proxy_set(way[i], PROXY_PASS, 0);
    for (int i = 0; i < 2; i++) {
        __atomic_store_n(&player[i].stop, 1, __ATOMIC_RELEASE);
        pthread_join(player[i].thread, NULL);
        assert_int_equal(player[i].failed, 0);
    }
}
