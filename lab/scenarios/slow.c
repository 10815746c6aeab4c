/*
 * Slow: the holder works for three times the TTL, without being stopped (case 2
 * of the documents, which are the tutorials of lab/README.md).
 *
 * By hand, with a fixed lease and no watchdog, B gets the lock while A works.
 * A's plain DEL then deletes B's lock, so that C gets it, too. The documents'
 * own watchdog (class RedisDistributedLock) schedules its next renewal only if
 * the last one failed, so it renews once. Holdfast's watchdog keeps the lock.
 * If holdfast's lease is fixed, the holder knows when its hold ends.
 */
#include "../../cli/shared/exit_code.h"
#include "../../cli/shared/values.h"
#include "../actors/actor_locks.h"
#include "../actors/stage.h"
#include "../actors/workers.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/places.h"
#include "../servers/redis.h"

#include <errno.h>
#include <holdfast.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

struct play {
    const char *strategy, *variant;
    const struct cast *cast;
    int64_t ttl_ms, lease_ms;
    struct contest contest;
};

struct cast {
    void (*a)(void *);               /* its arg: a struct play */
    void (*b)(void *), (*c)(void *); /* their arg: the contest */
};

/* What A reports; actor_locks.h has the reports of B and C. A_TOOK and A_ENDED
 * are times of CLOCK_BOOTTIME in ns. */
enum {
    A_TOOK,     /* when it got the lock */
    A_ENDED,    /* when it stopped believing that it has the lock */
    A_RENEWALS, /* how often watchdog-once renewed the lock */
    A_LOST,     /* holdfast reported that the hold is lost */
    A_TTL_MS,   /* the TTL that the server granted */
};

enum { WORK_MS = 10, TRIES = 4 };

static int64_t slow_now(void)
{
    return cli_now_ns(CLOCK_BOOTTIME);
}

static void slow_work_by_hand(const struct play *play)
{
    int64_t until = slow_now() + 3 * play->ttl_ms * 1000000;

    while (slow_now() < until)
        lab_sleep_ms(WORK_MS);
    actor_step("worked");
}

static void slow_fixed_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->contest.place);

    hand_take(redis, play->contest.name, "A", play->ttl_ms);
    actor_report(A_TOOK, slow_now());
    actor_step("holds");
    slow_work_by_hand(play);
    actor_report(A_ENDED, slow_now());
    actor_lets_go();
    rd_number(redis, "DEL %s", play->contest.name);
    actor_step("released");
}

/* The scripts in this function and the next two are those of the documents,
 * with milliseconds instead of seconds. */
static bool slow_once_try_lock(redisContext *redis, const char *key,
                               const char *uuid, int64_t expire_ms)
{
    static const char script[] =
        "if redis.call('exists', KEYS[1]) == 0 or "
        "redis.call('hexists', KEYS[1], ARGV[1]) == 1 then "
        "redis.call('hincrby', KEYS[1], ARGV[1], 1) "
        "redis.call('pexpire', KEYS[1], ARGV[2]) "
        "return 1 else return 0 end";

    return rd_number(redis, "EVAL %s 1 %s %s %lld", script, key, uuid,
                     (long long)expire_ms);
}

static bool slow_once_renew(redisContext *redis, const char *key,
                            const char *uuid, int64_t expire_ms)
{
    static const char script[] =
        "if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then "
        "return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

    return rd_number(redis, "EVAL %s 1 %s %s %lld", script, key, uuid,
                     (long long)expire_ms);
}

/* Returns false if uuid does not have the lock; the documents then print "You
 * don't have this lock!". */
static bool slow_once_unlock(redisContext *redis, const char *key,
                             const char *uuid)
{
    static const char script[] =
        "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil "
        "elseif redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then "
        "return redis.call('del', KEYS[1]) else return 0 end";

    return rd_number(redis, "EVAL %s 1 %s %s", script, key, uuid) >= 0;
}

/* Renews as the documents do: schedules the next renewal only if the last one
 * has failed. */
static void *slow_once_watch(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->contest.place);
    int renewals = 0;
    bool renewed;

    do {
        lab_sleep_ms(play->ttl_ms / 3);
        renewed = slow_once_renew(redis, play->contest.name, "A", play->ttl_ms);
        renewals += renewed;
        actor_report(A_RENEWALS, renewals);
    } while (!renewed);
    return NULL;
}

static void slow_once_take(redisContext *redis, const char *key,
                           const char *uuid, int64_t expire_ms)
{
    actor_waits("");
    while (!slow_once_try_lock(redis, key, uuid, expire_ms))
        lab_sleep_ms(50);
    actor_lets_go();
    actor_holds("");
}

static void slow_once_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->contest.place);
    pthread_t thread;
    int error;

    slow_once_take(redis, play->contest.name, "A", play->ttl_ms);
    actor_report(A_TOOK, slow_now());
    error = pthread_create(&thread, NULL, slow_once_watch, arg);
    if (error)
        lab_die(CLI_OSERR, "cannot create a thread: %s", strerror(error));
    actor_step("holds");
    slow_work_by_hand(play);
    actor_report(A_ENDED, slow_now());
    actor_lets_go();
    if (!slow_once_unlock(redis, play->contest.name, "A"))
        actor_mark(true, "You don't have this lock!");
    actor_step("released");
}

static void slow_once_b(void *arg)
{
    const struct contest *contest = arg;
    redisContext *redis = rd_open(contest->place);

    slow_once_take(redis, contest->name, "B", ACTOR_LOCK_LONG_MS);
    actor_report(B_IN_AT, slow_now());
    actor_step("in");
    actor_report(B_KEPT, slow_once_unlock(redis, contest->name, "B"));
}

static void slow_once_c(void *arg)
{
    const struct contest *contest = arg;
    redisContext *redis = rd_open(contest->place);

    actor_report(C_IN, slow_once_try_lock(redis, contest->name, "C",
                                          ACTOR_LOCK_LONG_MS));
    actor_step("tried");
    slow_once_unlock(redis, contest->name, "C");
}

/* Returns whether A still has the lock. If not, reports that the hold ended at
 * *deadline, the last deadline that was known. */
static bool slow_has(const struct hold *hold, int64_t *deadline)
{
    int rc;

    hf_lock_deadline(hold->lock, deadline); /* unchanged if the hold is lost */
    rc = hf_lock_check(hold->lock);
    if (rc == HF_OK)
        return true;
    actor_report(A_LOST, 1);
    actor_report(A_ENDED, *deadline);
    actor_mark(false, "knows: %s", hf_error_name(rc));
    hold_ended(*deadline);
    return false;
}

/* Works for three TTLs. Returns true, or false as soon as the hold has
 * ended. */
static bool slow_work(const struct hold *hold, int64_t ttl_ms,
                      int64_t *deadline)
{
    int64_t until = slow_now() + 3 * ttl_ms * 1000000;

    while (slow_now() < until) {
        lab_sleep_ms(WORK_MS);
        if (!slow_has(hold, deadline))
            return false;
    }
    return true;
}

static void slow_lock_a(void *arg)
{
    const struct play *play = arg;
    struct hold hold =
        hold_open(play->contest.place, play->contest.name, play->ttl_ms);
    struct grant grant = hold_take(&hold, play->lease_ms, "");
    int64_t ttl_ms = grant_ttl_ms(&grant, play->ttl_ms);
    bool mine;

    actor_report(A_TOOK, slow_now());
    actor_report(A_TTL_MS, ttl_ms);
    actor_step("holds");
    mine = slow_work(&hold, ttl_ms, &grant.deadline);
    actor_step("worked");
    /* The hold may have been lost during the pause in actor_step(). */
    mine = mine && slow_has(&hold, &grant.deadline);
    if (mine)
        actor_report(A_ENDED, slow_now());
    /* HF_OK means that the server knew A's hold until now, so no other client
     * had the lock. */
    if (hold_release(&hold) != HF_OK && mine)
        actor_report(A_LOST, 1);
    actor_step("released");
    hold_close(&hold);
}

static const struct cast fixed = {slow_fixed_a, hand_b, hand_c},
                         once = {slow_once_a, slow_once_b, slow_once_c},
                         lock = {slow_lock_a, hold_b, hold_c};

struct found {
    bool overlap; /* B got the lock while A believed that A still had it */
    bool came;    /* B got the lock before A released it */
    bool lost;    /* A lost the lock, and noticed it */
    bool kept, c_in;
    bool spoiled; /* to be repeated, because the machine may have stalled */
    int64_t renewals;
    int64_t ttl_ms;
    double second_ms; /* from A's grant to B's */
    double known_ms;  /* from the end of A's belief to B's grant */
};

static bool slow_is_renewed(const struct play *play)
{
    return play->cast == &lock && play->lease_ms == 0;
}

/* Returns whether the row must be repeated with a longer TTL. If A, the server
 * or the machine stalls, a renewal is late, and no process can detect every
 * stall. Therefore a row with holdfast's watchdog is repeated if A lost the
 * lock. This hides no defect: a watchdog that does not renew loses the lock in
 * each repetition, and a row with two holders is not repeated. A row with the
 * documents' watchdog is repeated if there was no renewal. */
static bool slow_is_spoiled(const struct play *play, const struct found *found)
{
    if (play->cast == &once)
        return found->renewals == 0;
    return slow_is_renewed(play) && !found->overlap &&
           (found->lost || found->came);
}

static void slow_read_actors(const struct play *play, struct found *found,
                             const struct actor *a, const struct actor *b)
{
    int64_t in = actor_value(b, B_IN_AT), ended = actor_value(a, A_ENDED);

    if (ended == 0)
        lab_die(CLI_FAILED, "a defect: A does not report when its hold ended");
    found->overlap = in < ended;
    found->lost = actor_value(a, A_LOST);
    found->renewals = actor_value(a, A_RENEWALS);
    found->ttl_ms = actor_value(a, A_TTL_MS);
    if (found->ttl_ms == 0)
        found->ttl_ms = play->ttl_ms; /* A reports none by hand */
    found->second_ms = (double)(in - actor_value(a, A_TOOK)) / 1e6;
    found->known_ms = (double)(in - ended) / 1e6;
    found->kept = actor_value(b, B_KEPT);
    found->spoiled = slow_is_spoiled(play, found);
}

static struct stage *slow_play_once(struct lab *lab, struct play *play,
                                    struct found *found)
{
    struct stage *stage = stage_new(lab);
    struct actor *a, *b, *c;

    actor_lock_name(lab, "slow", play->contest.name);
    a = stage_enter(stage, "A", play->cast->a, play);
    actor_until(a, "holds");
    actor_go(a);
    b = stage_enter(stage, "B", play->cast->b, &play->contest);
    actor_until(a, "worked");
    /* If the lock is renewed, B must not get it. Otherwise B must get it before
     * A continues, however late B is. */
    found->came = actor_comes(
        b, "in", slow_is_renewed(play) ? play->ttl_ms / 4 : ACTOR_LOCK_LONG_MS);
    actor_go(a);
    actor_until(a, "released");
    if (!found->came)
        actor_until(b, "in");
    c = stage_enter(stage, "C", play->cast->c, &play->contest);
    actor_until(c, "tried");
    found->c_in = actor_value(c, C_IN);
    stage_rest(lab, play->ttl_ms / 4);
    actor_end(c);
    actor_end(b);
    actor_end(a);
    slow_read_actors(play, found, a, b);
    return stage;
}

static void slow_judge(struct lab *lab, struct lab_row *row,
                       const struct play *play, const struct found *found)
{
    lab_row_number(row, "second_ms", found->second_ms);
    lab_row_number(row, "holders", 1 + (found->overlap || found->c_in));
    if (!found->kept || found->c_in)
        lab_row_done(lab, row, LAB_FAILS,
                     "B came in while A worked; A's release deleted B's lock, "
                     "and C came in");
    else if (found->overlap && play->cast == &once)
        lab_row_done(lab, row, LAB_FAILS, "%s: B came in while A worked",
                     found->renewals ? "renewed only once" : "never renewed");
    else if (found->overlap)
        lab_row_done(lab, row, LAB_FAILS, "B came in while A worked");
    else if (slow_is_renewed(play) && (found->lost || found->came))
        lab_row_done(lab, row, LAB_FAILS, "A lost the lock while it worked");
    else if (found->lost)
        lab_row_done(lab, row, LAB_OK,
                     "A's hold ended %.1f ms before B came in, and A knew; its "
                     "release freed no other lock",
                     found->known_ms);
    else if (play->lease_ms == 0)
        lab_row_done(lab, row, LAB_OK,
                     "held for three TTLs, no other client got in");
    else
        lab_row_done(lab, row, LAB_FAILS,
                     "A's lease should have ended, but lasted three TTLs");
}

static void slow_lead(struct lab *lab, struct play play,
                      enum lab_outcome expected)
{
    struct lab_row *row = lab_row(lab, expected);
    struct stage *stage;
    struct found found;

    lab_progress(lab, "%s on %s", play.strategy, play.contest.place->name);
    stage = slow_play_once(lab, &play, &found);
    for (int tries = 1; found.spoiled && tries < TRIES; tries++) {
        stage_close(stage, NULL);
        play.ttl_ms *= 2;
        stage = slow_play_once(lab, &play, &found);
    }
    stage_close(stage, row);
    lab_row_text(row, "strategy", "%s", play.strategy);
    lab_row_text(row, "backend", "%s", play.contest.place->name);
    lab_row_text(row, "variant", "%s", play.variant);
    lab_row_number(row, "ttl_ms", (double)found.ttl_ms);
    slow_judge(lab, row, &play, &found);
}

static void slow_lead_by_hand(struct lab *lab, const char *strategy,
                              const struct cast *cast)
{
    struct play play = {.strategy = strategy,
                        .variant = "by hand",
                        .cast = cast,
                        .ttl_ms = lab_settings(lab)->ttl_ms};

    play.contest.place = actor_lock_redis(lab, strategy);
    if (play.contest.place)
        slow_lead(lab, play, LAB_FAILS);
}

static void slow_lead_lock(struct lab *lab, const char *strategy,
                           int64_t lease_ms)
{
    struct play play = {.strategy = strategy,
                        .variant = "holdfast",
                        .cast = &lock,
                        .ttl_ms = lab_settings(lab)->ttl_ms,
                        .lease_ms = lease_ms};

    for (size_t i = 0; (play.contest.place = lab_backend(lab, i)); i++)
        slow_lead(lab, play, LAB_OK);
}

static void slow_run(struct lab *lab)
{
    if (lab_wants(lab, "fixed-lease")) {
        slow_lead_by_hand(lab, "fixed-lease", &fixed);
        slow_lead_lock(lab, "fixed-lease", lab_settings(lab)->ttl_ms);
    }
    if (lab_wants(lab, "watchdog-once"))
        slow_lead_by_hand(lab, "watchdog-once", &once);
    if (lab_wants(lab, "watchdog"))
        slow_lead_lock(lab, "watchdog", 0);
}

static const char *const strategies[] = {"fixed-lease", "watchdog-once",
                                         "watchdog", NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 13, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"variant", "by", 8, LAB_LEFT},
    {"ttl_ms", "TTL ms", 6, 0},
    {"second_ms", "B after ms", 10, 0},
    {"holders", "holders", 7, 0},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_slow = {
    .name = "slow",
    .summary = "the holder works for three times its TTL",
    .text =
        "A takes the lock and works for three times the TTL; B waits for the\n"
        "lock; when A has released, C tries while B is inside. fixed-lease:\n"
        "the lease is not renewed. watchdog-once: a timer from tutorials,\n"
        "which is meant to repeat but renews only once. watchdog: "
        "holdfast's.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_TTL,
    .needs = LAB_HAS_MARIADB,
    .strategies = strategies,
    .run = slow_run,
};
