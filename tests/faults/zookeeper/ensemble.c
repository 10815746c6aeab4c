/* An ensemble of three loses its leader, a follower, or all servers. */
#include "../../lib/proc.h"
#include "../any/any_faults.h"
#include "zk_faults.h"

GROUP("ensemble", .start = zk_start_three, .stop = zk_end_three);

/* Returns the URL of the two servers that are a quorum when the first server, a
 * follower, is cut off. */
static const char *majority_url(void)
{
    static char url[96];

    snprintf(url, sizeof(url), "zk://127.0.0.1:%d,127.0.0.1:%d",
             zk_three.server[1].port, zk_three.server[2].port);
    return url;
}

/* A follower is cut off but does not notice it, and the leader ends the session
 * of the follower's client. The claim of that client must end before the claim
 * of the next client begins. */
CASE(test_cut_off_follower_claim_ends_before_the_next)
{
    hf_lock *a = world_far(w, 2000, 1000);
    hf_lock *b = world_lock(w, majority_url(), 30000, 5000, HF_FAIR_DEFAULT);
    int64_t until = 0;
    struct taker *t = taker_behind(w, a, b, 20000);
    uint64_t token = token_of(a);

    zk_ensemble_cut(&zk_three);
    /* The last deadline stays readable after the loss. */
    COMES_MS(hf_lock_deadline(a, &until) == HF_ELOST, 2500);
    assert_true(zk_server_serves(w->zk)); /* the follower has not noticed */
    taker_has_it(t, 2000 + ZK_TICK_MS + 1000);
    assert_true(until && t->returned > until);
    assert_true(t->token > token);
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    OK(zk_ensemble_heal(&zk_three));
    taker_gives(t);
    COMES(hf_lock_timed(a, 3000, &w->err) == 0);
    OK(hf_lock_release(a, &w->err));
}

/* While the client's follower is cut off, the client is granted nothing, and
 * every call returns. */
CASE(test_cut_off_follower_grants_nothing)
{
    hf_lock *a = world_far(w, 30000, 700);

    world_free_for_all(w, a);
    zk_ensemble_cut(&zk_three);
    WITHIN(1500, FAILS(hf_lock_timed(a, 500, &w->err)));
    WITHIN(1700, FAILS(hf_lock_try(a, &w->err)));
    OK(zk_ensemble_heal(&zk_three));
    world_heal(w);
    COMES_MS(hf_lock_timed(a, 3000, &w->err) == 0, 10000);
    OK(hf_lock_release(a, &w->err));
}

/* Starts a process that waits for the lock and uses the first server only. */
static void start_waiter(struct world *w, struct proc *p)
{
    struct proc_cmd cmd = {.op = PROC_OPEN, .ttl_ms = 2000};
    struct proc_reply reply;

    OK(proc_start(p));
    snprintf(cmd.text, sizeof(cmd.text), "%s", w->zk->url);
    OK(proc_do(p, &cmd, &reply));
    assert_int_equal(reply.rc, 0);
    cmd = (struct proc_cmd){.op = PROC_NEW, .name = "n", .name_len = 1};
    OK(proc_do(p, &cmd, &reply));
    assert_int_equal(reply.rc, 0);
    cmd = (struct proc_cmd){.op = PROC_TAKE, .wait_ms = 60000};
    OK(proc_send(p, &cmd));
}

static void ends_with_it(struct proc *p)
{
    struct proc_cmd give = {.op = PROC_GIVE};
    struct proc_reply reply;

    OK(proc_recv(p, &reply, WAIT_LONG_MS));
    assert_int_equal(reply.rc, 0);
    OK(proc_do(p, &give, &reply));
    assert_int_equal(reply.rc, 0);
    proc_end(p);
}

/* A waiter's process is stopped. The waiter becomes the first in the queue, its
 * session ends, and another client acquires the lock. The waiter's follower is
 * cut off and learns nothing of all this. A follower checks rights early, so it
 * may refuse a request without asking the leader. When the waiter continues, it
 * must not take such a refusal as proof that its session is alive. */
CASE(test_cut_off_follower_denies_and_proves_nothing)
{
    hf_lock *a = world_lock(w, majority_url(), 30000, 5000, HF_FAIR_DEFAULT);
    hf_lock *c = world_lock(w, majority_url(), 30000, 5000, HF_FAIR_DEFAULT);
    struct proc b;
    bool granted;

    OK(hf_lock_timed(a, 5000, &w->err));
    start_waiter(w, &b);
    world_has_entries(w, 2);
    COMES(zk_server_number(w->zk, "zk_watch_count") >= 1);
    set_rights(w, "/", ZOO_PERM_ALL & ~ZOO_PERM_DELETE);
    OK(proc_stop(&b));
    OK(hf_lock_release(a, &w->err));
    world_has_entries(w, 1);
    zk_ensemble_cut(&zk_three);
    OK(hf_lock_timed(c, 10000, &w->err));
    assert_true(zk_server_serves(w->zk)); /* the follower has not noticed */
    OK(proc_continue(&b));
    granted = proc_ready(&b, 2000);
    OK(zk_ensemble_heal(&zk_three));
    zk_server_leave(w->zk);
    set_rights(w, "/", ZOO_PERM_ALL);
    assert_false(granted);
    OK(hf_lock_release(c, &w->err));
    ends_with_it(&b);
}

/* Two of three servers are stopped, so there is no quorum. After the last
 * acknowledgement the claim lasts for the session's timeout and no longer. */
CASE(test_no_quorum_claim_ends_by_itself)
{
    enum { TTL_MS = 4000 };
    hf_lock *a = world_far(w, TTL_MS, 1000);

    /* Repeats the call: on a busy machine the servers may not answer in
     * time. */
    COMES(hf_lock_timed(a, 5000, &w->err) == 0);
    for (int i = 1; i < ZK_ENSEMBLE; i++)
        OK(zk_server_stop(&zk_three.server[i]));
    COMES_MS(hf_lock_check(a) == HF_ELOST, TTL_MS + 1000);
    for (int i = 1; i < ZK_ENSEMBLE; i++)
        OK(zk_server_continue(&zk_three.server[i]));
    EXPECT(HF_ELOST, hf_lock_release(a, NULL));
    OK(zk_ensemble_serves(&zk_three));
}

/* A timeout that is long enough for three servers to start or to elect a
 * leader, however slow the machine is. */
#define PATIENT_MS 300000

static hf_lock *patient_lock(struct world *w)
{
    return world_lock(w, zk_three.url, PATIENT_MS, PATIENT_MS, HF_FAIR_DEFAULT);
}

/* Kills the leader; returns whether there is a leader again and the killed
 * server has restarted. */
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

CASE(test_leader_killed_hold_and_waiter_survive)
{
    hf_lock *a = patient_lock(w), *b = patient_lock(w);
    struct taker *t = taker_behind(w, a, b, PATIENT_MS);
    uint64_t token = token_of(a);

    for (int i = 0; i < 2; i++) {
        assert_true(kill_leader());
        OK(hf_lock_check(a));
        assert_false(taker_back(t));
    }
    assert_true(token_of(a) == token);
    world_has_entries(w, 2);
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 5000);
}

CASE(test_leader_killed_under_load)
{
    const char *url = zk_three.url;

    any_load(w, (const char *[]){url, url, url}, kill_leader);
}

CASE(test_ensemble_restarted_hold_survives)
{
    hf_lock *a = patient_lock(w), *b = patient_lock(w);
    struct taker *t = taker_behind(w, a, b, PATIENT_MS);
    uint64_t token = token_of(a);

    OK(zk_ensemble_restart(&zk_three));
    COMES(hf_lock_renew(a, 0, &w->err) == 0);
    assert_true(token_of(a) == token);
    assert_false(taker_back(t));
    OK(hf_lock_release(a, &w->err));
    taker_gets_it(t, 5000);
}
