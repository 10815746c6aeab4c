/* An ensemble of three loses its leader, a follower, all of itself. */
#include "../../lib/proc.h"
#include "../any/any_faults.h"
#include "zk_faults.h"

/* A follower that is cut off: the first one; the others are a quorum. */

static const char *majority_url(void)
{
    static char url[96];

    snprintf(url, sizeof(url), "zk://127.0.0.1:%d,127.0.0.1:%d",
             zk_three.server[1].port, zk_three.server[2].port);
    return url;
}

/* The follower does not know that it is cut off, and the leader forgets our
 * session. Our claim has to end before another's begins. */
static void test_cut_off_follower_claim_ends_before_the_next(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 2000, 1000);
    hf_lock *b = world_lock(w, majority_url(), 30000, 5000, HF_FAIR_DEFAULT);
    struct taker *t;
    uint64_t token;
    int64_t until = 0;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    token = token_of(a);
    t = taker_start(w, b, 20000);
    world_has_entries(w, 2);
    zk_ensemble_cut(&zk_three);
    /* It keeps the last deadline that there was. */
    assert_true(WAIT_FOR_MS(hf_lock_deadline(a, &until) == HF_ELOST, 2500));
    assert_true(zk_server_serves(w->zk)); /* as far as it knows */
    assert_true(WAIT_FOR_MS(taker_back(t), 2000 + ZK_TICK_MS + 1000));
    assert_int_equal(t->rc, 0);
    assert_true(until && t->returned > until);
    assert_true(t->token > token);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    assert_int_equal(zk_ensemble_heal(&zk_three), 0);
    taker_end(t);
    assert_int_equal(t->release_rc, 0);
    assert_true(WAIT_FOR(hf_lock_timed(a, 3000, &w->err) == 0));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* On the wrong side nobody gets anything, and every call returns. */
static void test_cut_off_follower_grants_nothing(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_far(w, 30000, 700);
    int64_t began;

    world_free_for_all(w, a);
    zk_ensemble_cut(&zk_three);
    began = wait_fair();
    assert_int_not_equal(hf_lock_timed(a, 500, &w->err), 0);
    assert_true(wait_within(began, 1500));
    began = wait_fair();
    assert_int_not_equal(hf_lock_try(a, &w->err), 0);
    assert_true(wait_within(began, 1700));
    assert_int_equal(zk_ensemble_heal(&zk_three), 0);
    world_heal(w);
    assert_true(WAIT_FOR_MS(hf_lock_timed(a, 3000, &w->err) == 0, 10000));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_is_clean(w);
}

/* In a process of its own, at the first server alone: waits for the lock. */
static void start_waiter(struct world *w, struct proc *p)
{
    struct proc_cmd cmd = {.op = PROC_OPEN, .ttl_ms = 2000};
    struct proc_reply reply;

    assert_int_equal(proc_start(p), 0);
    snprintf(cmd.text, sizeof(cmd.text), "%s", w->zk->url);
    assert_int_equal(proc_do(p, &cmd, &reply), 0);
    assert_int_equal(reply.rc, 0);
    cmd = (struct proc_cmd){.op = PROC_NEW, .name = "n", .name_len = 1};
    assert_int_equal(proc_do(p, &cmd, &reply), 0);
    assert_int_equal(reply.rc, 0);
    cmd = (struct proc_cmd){.op = PROC_TAKE, .wait_ms = 60000};
    assert_int_equal(proc_send(p, &cmd), 0);
}

static void ends_with_it(struct proc *p)
{
    struct proc_cmd give = {.op = PROC_GIVE};
    struct proc_reply reply;

    assert_int_equal(proc_recv(p, &reply, WAIT_LONG_MS), 0);
    assert_int_equal(reply.rc, 0);
    assert_int_equal(proc_do(p, &give, &reply), 0);
    assert_int_equal(reply.rc, 0);
    proc_end(p);
}

/* It was the next one's turn when the follower was cut off, and it slept until
 * its session had ended. What the follower denies by itself, because it knows
 * the rights, is no sign of life. */
static void test_cut_off_follower_denies_and_proves_nothing(void **state)
{
    struct world *w = *state;
    hf_lock *a = world_lock(w, majority_url(), 30000, 5000, HF_FAIR_DEFAULT);
    hf_lock *c = world_lock(w, majority_url(), 30000, 5000, HF_FAIR_DEFAULT);
    struct proc b;
    bool granted;

    assert_int_equal(hf_lock_timed(a, 5000, &w->err), 0);
    start_waiter(w, &b);
    world_has_entries(w, 2);
    assert_true(WAIT_FOR(zk_server_number(w->zk, "zk_watch_count") >= 1));
    set_rights(w, "/", ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
    assert_int_equal(proc_stop(&b), 0);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    world_has_entries(w, 1);
    zk_ensemble_cut(&zk_three);
    assert_int_equal(hf_lock_timed(c, 10000, &w->err), 0);
    assert_true(zk_server_serves(w->zk)); /* as far as it knows */
    assert_int_equal(proc_continue(&b), 0);
    granted = proc_ready(&b, 2000);
    assert_int_equal(zk_ensemble_heal(&zk_three), 0);
    zk_server_leave(w->zk);
    set_rights(w, "/", ZOO_PERM_ALL);
    assert_false(granted);
    assert_int_equal(hf_lock_release(c, &w->err), 0);
    ends_with_it(&b);
    world_is_clean(w);
}

/* The two others are stopped: no quorum, wherever one asks. What was
 * acknowledged before that keeps the session for its timeout and no longer. */
static void test_no_quorum_claim_ends_by_itself(void **state)
{
    enum { TTL_MS = 4000 };
    struct world *w = *state;
    hf_lock *a = world_far(w, TTL_MS, 1000);

    /* A busy machine may not answer in time. */
    assert_true(WAIT_FOR(hf_lock_timed(a, 5000, &w->err) == 0));
    for (int i = 1; i < ZK_ENSEMBLE; i++)
        assert_int_equal(zk_server_stop(&zk_three.server[i]), 0);
    assert_true(WAIT_FOR_MS(hf_lock_check(a) == HF_ELOST, TTL_MS + 1000));
    for (int i = 1; i < ZK_ENSEMBLE; i++)
        assert_int_equal(zk_server_continue(&zk_three.server[i]), 0);
    assert_int_equal(hf_lock_release(a, NULL), HF_ELOST);
    assert_int_equal(zk_ensemble_serves(&zk_three), 0);
    world_is_clean(w);
}

/* ---- the leader dies ------------------------------------------------------
 */

/* How long three servers need to start or to elect is not the library's doing:
 * nothing ends before that by its own time. */
#define PATIENT_MS 300000

static hf_lock *patient_lock(struct world *w)
{
    return world_lock(w, zk_three.url, PATIENT_MS, PATIENT_MS, HF_FAIR_DEFAULT);
}

/* True: another one leads, and that one is back. */
static bool kill_leader(void)
{
    struct zk_server *leader = NULL;

    if (!WAIT_FOR_MS((leader = zk_ensemble_leader(&zk_three)) != NULL,
                     PATIENT_MS / 5))
        return false;
    zk_server_kill(leader);
    return WAIT_FOR_MS(zk_ensemble_leader(&zk_three) != NULL, PATIENT_MS / 5) &&
           zk_server_again(leader) == 0;
}

static void test_leader_killed_hold_and_waiter_survive(void **state)
{
    struct world *w = *state;
    hf_lock *a = patient_lock(w), *b = patient_lock(w);
    struct taker *t;
    uint64_t token;

    assert_int_equal(hf_lock_timed(a, PATIENT_MS, &w->err), 0);
    token = token_of(a);
    t = taker_start(w, b, PATIENT_MS);
    world_has_entries(w, 2);
    for (int i = 0; i < 2; i++) {
        assert_true(kill_leader());
        assert_int_equal(hf_lock_check(a), 0);
        assert_false(taker_back(t));
    }
    assert_true(token_of(a) == token);
    world_has_entries(w, 2);
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 5000);
    world_is_clean(w);
}

static void test_leader_killed_under_load(void **state)
{
    const char *url = zk_three.url;

    any_load(*state, (const char *[]){url, url, url}, kill_leader);
}

/* ---- all of it ------------------------------------------------------------
 */

static void test_ensemble_restarted_hold_survives(void **state)
{
    struct world *w = *state;
    hf_lock *a = patient_lock(w), *b = patient_lock(w);
    struct taker *t;
    uint64_t token;

    assert_int_equal(hf_lock_timed(a, PATIENT_MS, &w->err), 0);
    token = token_of(a);
    t = taker_start(w, b, PATIENT_MS);
    world_has_entries(w, 2);
    assert_int_equal(zk_ensemble_restart(&zk_three), 0);
    assert_true(WAIT_FOR(hf_lock_renew(a, 0, &w->err) == 0));
    assert_true(token_of(a) == token);
    assert_false(taker_back(t));
    assert_int_equal(hf_lock_release(a, &w->err), 0);
    taker_gets_it(t, 5000);
    world_is_clean(w);
}

int run_ensemble_faults(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_end)
    const struct CMUnitTest tests[] = {
        T(test_diagnose_counts_the_servers),
        T(test_cut_off_follower_claim_ends_before_the_next),
        T(test_cut_off_follower_grants_nothing),
        T(test_cut_off_follower_denies_and_proves_nothing),
        T(test_no_quorum_claim_ends_by_itself),
        T(test_leader_killed_hold_and_waiter_survive),
        T(test_leader_killed_under_load),
        T(test_ensemble_restarted_hold_survives),
    };

    return cmocka_run_group_tests_name("zookeeper: an ensemble", tests,
                                       group_three, group_three_end);
}
