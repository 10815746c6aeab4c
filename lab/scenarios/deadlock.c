/*
 * Two ways in which processes wait for each other or for themselves.
 *
 * In the first, two processes take two locks in opposite order. Each process
 * acquires its first lock and then requests the other lock. Both wait until
 * their time limit, because each of them holds the lock that the other process
 * wants. If they use hf_lock_acquire_all(), both processes take the locks in
 * the same order, and both get through.
 *
 * The second is from the documents (tutorials; see lab/README.md): methodA
 * holds a lock and calls methodB, which takes the same lock. By hand (SET NX)
 * methodB waits for methodA, its own caller. A lock that is not reentrant
 * refuses methodB. A reentrant lock lets methodB in, and counts both acquires.
 */
#include "../../cli/shared/exit_code.h"
#include "../actors/stage.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/client.h"
#include "../servers/places.h"
#include "../servers/redis.h"

#include <holdfast.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum {
    WAIT_MS = 300,   /* time limit for a lock that is not granted */
    LONG_MS = 30000, /* time limit for a lock that is granted */
    ROUNDS = 20,
    SETNX_TTL_MS = 60000,
    SETNX_RETRY_MS = 20,
};

struct plan {
    const struct lab_place *place;
    char names[2][96];
    unsigned flags; /* of the lock that is taken twice */
    int first;      /* which of the two locks the actor takes first */
    _Atomic int *asking, *inside; /* for actors that take both locks at once */
};

static struct lab_row *deadlock_begin_row(struct lab *lab,
                                          enum lab_outcome expected,
                                          const char *strategy,
                                          const struct lab_place *place)
{
    struct lab_row *row = lab_row(lab, expected);

    lab_progress(lab, "%s on %s", strategy, place->name);
    lab_row_text(row, "strategy", "%s", strategy);
    return row;
}

struct two {
    hf_client *client;
    hf_lock *first, *second;
};

static struct two deadlock_two_open(const struct plan *plan)
{
    struct two two = {.client = lab_open(plan->place, 0)};

    two.first = lab_lock(two.client, plan->names[plan->first], NULL);
    two.second = lab_lock(two.client, plan->names[!plan->first], NULL);
    return two;
}

static void deadlock_two_close(struct two *two)
{
    hf_lock_free(two->first);
    hf_lock_free(two->second);
    hf_close(two->client);
}

/* Takes the two locks one by one. Reports whether it got both locks, the result
 * code, and how many ms it waited for the second lock. */
static void deadlock_one_by_one(void *arg)
{
    const struct plan *plan = arg;
    struct two two = deadlock_two_open(plan);
    hf_error err = HF_ERROR_INIT;
    int64_t began;
    int rc;

    lab_check(hf_lock_acquire(two.first, NULL, &err), "acquire", &err);
    /* Not actor_holds(): the page would draw an overlap, although each actor
     * holds a different lock. */
    actor_shares(plan->first ? "holds lock 2" : "holds lock 1");
    actor_step("has one");
    actor_waits(plan->first ? "wants lock 1" : "wants lock 2");
    began = lab_now();
    rc = hf_lock_timed(two.second, WAIT_MS, &err);
    if (rc != HF_ETIMEDOUT)
        lab_check(rc, "acquire", &err);
    actor_report(0, rc == HF_OK);
    actor_report(1, rc);
    actor_report(2, (lab_now() - began) / 1000000);
    actor_lets_go();
    if (rc != HF_OK)
        actor_mark(true, "timed out");
    actor_step("has waited"); /* still holding the first lock */
    if (rc == HF_OK)
        lab_check(hf_lock_release(two.second, &err), "release", &err);
    lab_check(hf_lock_release(two.first, &err), "release", &err);
    actor_lets_go();
    deadlock_two_close(&two);
}

/* Takes both locks at once, ROUNDS times. Reports how often it had both locks,
 * the last result code, and how often another actor was inside at the same
 * time. */
static void deadlock_all_at_once(void *arg)
{
    const struct plan *plan = arg;
    struct two two = deadlock_two_open(plan);
    hf_part parts[2] = {{two.first, HF_WRITE, 0}, {two.second, HF_WRITE, 0}};
    hf_acquire_options options = HF_ACQUIRE_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;
    int got = 0, met = 0, rc = HF_OK;

    options.wait_ms = LONG_MS;
    actor_step("begins");
    atomic_fetch_add(plan->asking, 1);
    while (got < ROUNDS) {
        rc = hf_lock_acquire_all(parts, 2, &options, &err);
        if (rc != HF_OK)
            break;
        actor_holds("both");
        got++;
        met += atomic_fetch_add(plan->inside, 1) != 0;
        lab_sleep_ms(2);
        atomic_fetch_sub(plan->inside, 1);
        actor_lets_go();
        lab_check(hf_lock_release_all(parts, 2, &err), "release", &err);
    }
    if (rc != HF_ETIMEDOUT)
        lab_check(rc, "acquire", &err);
    actor_report(0, got);
    actor_report(1, rc);
    actor_report(2, met);
    deadlock_two_close(&two);
}

/* Holds both locks until A and B have requested them, each in its own order. */
static void deadlock_gatekeeper(void *arg)
{
    const struct plan *plan = arg;
    struct two two = deadlock_two_open(plan);
    hf_error err = HF_ERROR_INIT;

    lab_check(hf_lock_acquire(two.first, NULL, &err), "acquire", &err);
    lab_check(hf_lock_acquire(two.second, NULL, &err), "acquire", &err);
    actor_holds("both");
    actor_step("has both");
    while (atomic_load(plan->asking) < 2)
        lab_sleep_ms(1);
    /* Gives the requests time to reach the server. */
    lab_sleep_ms(WAIT_MS / 3);
    actor_lets_go();
    lab_check(hf_lock_release(two.second, &err), "release", &err);
    lab_check(hf_lock_release(two.first, &err), "release", &err);
    deadlock_two_close(&two);
}

static void deadlock_opposite_order(struct lab *lab, struct plan *plan)
{
    struct lab_row *row =
        deadlock_begin_row(lab, LAB_FAILS, "one-by-one", plan->place);
    struct stage *stage = stage_new(lab);
    struct actor *actors[2];
    int64_t got = 0, waited = 0;

    for (plan->first = 0; plan->first < 2; plan->first++) {
        actors[plan->first] = stage_enter(stage, plan->first ? "B" : "A",
                                          deadlock_one_by_one, plan);
        actor_until(actors[plan->first], "has one");
    }
    for (int i = 0; i < 2; i++)
        actor_go(actors[i]);
    for (int i = 0; i < 2; i++)
        actor_until(actors[i], "has waited");
    for (int i = 0; i < 2; i++) {
        actor_end(actors[i]);
        got += actor_value(actors[i], 0);
        waited += actor_value(actors[i], 1) == HF_ETIMEDOUT;
    }
    lab_row_text(row, "backend", "%s", plan->place->name);
    lab_row_number(row, "got", (double)got);
    lab_row_number(row, "asked", 2);
    lab_row_number(row, "waited_ms", (double)actor_value(actors[0], 2));
    stage_close(stage, row);
    if (waited == 2)
        lab_row_done(lab, row, LAB_FAILS,
                     "deadlock: both waited for each other until the limit");
    else
        lab_row_done(lab, row, LAB_OK, "%lld of 2 got both locks",
                     (long long)got);
}

static void deadlock_judge_all(struct lab *lab, struct lab_row *row,
                               int64_t got, int64_t met)
{
    if (met)
        lab_row_done(lab, row, LAB_FAILS, "both were inside at once %lld times",
                     (long long)met);
    else if (got == 2LL * ROUNDS)
        lab_row_done(lab, row, LAB_OK,
                     "both got through, %d times each, one at a time", ROUNDS);
    else
        lab_row_done(lab, row, LAB_FAILS,
                     "only %lld of %d acquisitions succeeded", (long long)got,
                     2 * ROUNDS);
}

static void deadlock_several_at_once(struct lab *lab, struct plan *plan)
{
    struct lab_row *row =
        deadlock_begin_row(lab, LAB_OK, "all-at-once", plan->place);
    struct stage *stage = stage_new(lab);
    _Atomic int *shared = lab_share(2 * sizeof *shared);
    struct actor *actors[2], *gate;
    int64_t got = 0, met = 0;

    plan->asking = &shared[0];
    plan->inside = &shared[1];
    plan->first = 0;
    gate = stage_enter(stage, "C", deadlock_gatekeeper, plan);
    actor_until(gate, "has both");
    for (plan->first = 0; plan->first < 2; plan->first++) {
        actors[plan->first] = stage_enter(stage, plan->first ? "B" : "A",
                                          deadlock_all_at_once, plan);
        actor_until(actors[plan->first], "begins");
    }
    actor_go(gate);
    for (int i = 0; i < 2; i++)
        actor_go(actors[i]);
    actor_end(gate);
    for (int i = 0; i < 2; i++) {
        actor_end(actors[i]);
        got += actor_value(actors[i], 0);
        met += actor_value(actors[i], 2);
    }
    stage_close(stage, row);
    lab_unshare(shared, 2 * sizeof *shared);
    lab_row_text(row, "backend", "%s", plan->place->name);
    lab_row_number(row, "got", (double)got);
    lab_row_number(row, "asked", 2 * ROUNDS);
    deadlock_judge_all(lab, row, got, met);
}

/* Returns whether the lock is refused to another client. */
static bool deadlock_is_held_for_others(const struct plan *plan)
{
    hf_client *client = lab_open(plan->place, 0);
    hf_lock *lock = lab_lock(client, plan->names[0], NULL);
    int rc = hf_lock_try(lock, NULL);

    hf_close(client);
    hf_lock_free(lock);
    return rc == HF_EBUSY;
}

/* methodA with a lock of holdfast. Reports the count of the lock in methodB,
 * the code of methodB's acquire, how long that acquire took in ms, and whether
 * methodA still has the lock after methodB has returned. */
static void deadlock_method_a(void *arg)
{
    const struct plan *plan = arg;
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    hf_client *client = lab_open(plan->place, 0);
    hf_error err = HF_ERROR_INIT;
    unsigned count = 0;
    int64_t began;
    hf_lock *lock;
    int rc;

    options.flags = plan->flags;
    lock = lab_lock(client, plan->names[0], &options);
    lab_check(hf_lock_acquire(lock, NULL, &err), "acquire", &err);
    actor_holds("methodA");
    began = lab_now();
    rc = hf_lock_timed(lock, LONG_MS, &err); /* this is methodB */
    actor_report(1, rc);
    actor_report(2, (lab_now() - began) / 1000000);
    if (rc == HF_OK) {
        actor_mark(false, "methodB runs");
        lab_check(hf_lock_count(lock, &count), "count", NULL);
        actor_report(0, count);
        lab_check(hf_lock_release(lock, &err), "release", &err);
    } else {
        actor_mark(true, "methodB: %s", hf_error_name(rc));
    }
    actor_report(3, deadlock_is_held_for_others(plan));
    lab_check(hf_lock_release(lock, &err), "release", &err);
    actor_lets_go();
    hf_lock_free(lock);
    hf_close(client);
}

static void deadlock_method_a_by_hand(void *arg)
{
    const struct plan *plan = arg;
    redisContext *redis = rd_open(plan->place);
    const char *key = plan->names[0];
    int64_t began;
    int got = 0;

    if (!rd_lock(redis, key, "methodA", SETNX_TTL_MS))
        lab_die(CLI_FAILED, "a key that was never used is already locked");
    actor_holds("methodA");
    actor_waits("methodB");
    began = lab_now();
    while (!got && lab_now() - began < WAIT_MS * 1000000LL) {
        got = rd_lock(redis, key, "methodB", SETNX_TTL_MS);
        if (!got)
            lab_sleep_ms(SETNX_RETRY_MS);
    }
    actor_report(0, got ? 2 : 1);
    actor_report(1, got ? HF_OK : HF_ETIMEDOUT);
    actor_report(2, (lab_now() - began) / 1000000);
    actor_lets_go();
    if (!got)
        actor_mark(true, "timed out");
    rd_unlock(redis, key, "methodA");
    actor_lets_go();
    redisFree(redis);
}

static void deadlock_call(struct lab *lab, struct lab_row *row,
                          struct plan *plan, void (*method)(void *arg))
{
    struct stage *stage = stage_new(lab);
    struct actor *actor = stage_enter(stage, "methodA", method, plan);
    int code, count;
    bool held;

    actor_end(actor);
    held = actor_value(actor, 3);
    count = (int)actor_value(actor, 0);
    code = (int)actor_value(actor, 1);
    lab_row_number(row, "got", code == HF_OK ? 2 : 1);
    lab_row_number(row, "asked", 2);
    lab_row_number(row, "waited_ms", (double)actor_value(actor, 2));
    stage_close(stage, row);
    if (code == HF_ETIMEDOUT)
        lab_row_done(lab, row, LAB_FAILS,
                     "methodB waited for its own caller until the limit");
    else if (code != HF_OK)
        lab_row_done(lab, row, LAB_FAILS, "methodB was refused at once: %s",
                     hf_error_name(code));
    else
        lab_row_done(lab, row, count == 2 && held ? LAB_OK : LAB_FAILS,
                     "methodB ran within methodA, the count was %d%s", count,
                     held ? "" : ", and methodA lost the lock by it");
}

static void deadlock_call_by_hand(struct lab *lab, struct plan *plan)
{
    struct lab_row *row =
        deadlock_begin_row(lab, LAB_FAILS, "redis-setnx", plan->place);

    lab_row_text(row, "store", "%s", plan->place->name);
    lab_name(lab, "deadlock-hand", plan->names[0]);
    deadlock_call(lab, row, plan, deadlock_method_a_by_hand);
}

static void deadlock_call_with_lock(struct lab *lab, struct plan *plan,
                                    bool reentrant)
{
    struct lab_row *row = deadlock_begin_row(
        lab, reentrant ? LAB_OK : LAB_FAILS,
        reentrant ? "reentrant" : "not-reentrant", plan->place);

    lab_row_text(row, "backend", "%s", plan->place->name);
    lab_name(lab, "deadlock-method", plan->names[0]);
    plan->flags = reentrant ? 0 : HF_NOT_REENTRANT;
    deadlock_call(lab, row, plan, deadlock_method_a);
}

static void deadlock_run(struct lab *lab)
{
    struct plan plan = {.place = NULL};

    for (size_t i = 0; (plan.place = lab_backend(lab, i)); i++) {
        lab_name(lab, "deadlock-1", plan.names[0]);
        lab_name(lab, "deadlock-2", plan.names[1]);
        deadlock_opposite_order(lab, &plan);
        deadlock_several_at_once(lab, &plan);
    }
    plan.place = lab_store(lab, LAB_REDIS);
    if (plan.place)
        deadlock_call_by_hand(lab, &plan);
    for (size_t i = 0; (plan.place = lab_backend(lab, i)); i++) {
        deadlock_call_with_lock(lab, &plan, false);
        deadlock_call_with_lock(lab, &plan, true);
    }
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 14, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT},
    {"asked", "asked", 5, 0},
    {"got", "got", 5, 0},
    {"waited_ms", "waited ms", 9, 0},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_deadlock = {
    .name = "deadlock",
    .summary = "two locks in opposite order; a lock taken twice",
    .text =
        "Two processes take two locks, one of them in the opposite order. One\n"
        "by one: each has its first lock when both ask for the second, and\n"
        "both wait until they time out. All at once (hf_lock_acquire_all):\n"
        "both get through, every time. Then methodA holds a lock and calls\n"
        "methodB, which takes the same lock: with SET NX by hand, with a lock\n"
        "that is not reentrant, and with a reentrant one.\n",
    .columns = columns,
    .run = deadlock_run,
};
