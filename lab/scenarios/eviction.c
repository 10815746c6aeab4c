/*
 * Eviction: Redis is full and evicts the key of a lock that is held.
 *
 * One of the documents (tutorials; see lab/README.md) names this as a way to
 * lose a lock in addition to expiry ("or evicted by Redis"). A holds the lock
 * and has read a stock of 10. Other keys fill the memory until the key of the
 * lock is evicted. B takes the lock and writes 7, then A writes 9. With
 * holdfast A notices the loss at its next renewal, and the token protects the
 * store until then. With maxmemory-policy noeviction Redis refuses to write
 * instead: A keeps its lock, and no other client gets it.
 */
#include "../../cli/shared/exit_code.h"
#include "../actors/actor_locks.h"
#include "../actors/stage.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/redis.h"
#include "../servers/servers.h"
#include "fence.h"
#include "late.h"

#include <holdfast.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    VALUE = 16384,     /* size of a value that fills the memory */
    NEAR = 16 * VALUE, /* how close to the limit counts as full */
    VALUES = 500000,
    RENEWED = 3, /* A's TTL as a multiple of --ttl, so that no delay in the lab
                    ends A's hold */
    TRIES = 4,
};

struct play {
    struct lab *lab;
    const char *strategy;
    bool by_hand;
    bool evicts; /* true: allkeys-lru; false: noeviction */
    int64_t ttl_ms;
    struct lab_server *server;
    char name[96];
    int written; /* values that fill the memory */
};

static const char *eviction_policy_of(const struct play *play)
{
    return play->evicts ? "allkeys-lru" : "noeviction";
}

/* Returns a number from the INFO of Redis, or -1. */
static long long eviction_info(redisContext *redis, const char *section,
                               const char *field)
{
    redisReply *reply = rd_send(redis, "INFO %s", section);
    const char *at = strstr(reply->str, field);
    long long number = -1;

    if (at)
        number = strtoll(at + strlen(field), NULL, 10);
    freeReplyObject(reply);
    return number;
}

/* Returns false if Redis refuses to write because its memory is full. */
static bool eviction_put(redisContext *redis, int n)
{
    static char value[VALUE];
    redisReply *reply;
    bool refused;

    memset(value, 'x', sizeof value);
    reply = redisCommand(redis, "SET fill-%d %b", n, value, sizeof value);
    if (!reply)
        lab_die(CLI_UNAVAILABLE, "Redis does not answer SET: %s",
                redis->errstr);
    refused = reply->type == REDIS_REPLY_ERROR;
    if (refused && strncmp(reply->str, "OOM", 3) != 0)
        lab_die(CLI_FAILED, "Redis refused SET: %s", reply->str);
    freeReplyObject(reply);
    return !refused;
}

/* With noeviction, and near the limit, writes a value that is larger than the
 * free memory, so that Redis stays full when connections are opened and closed.
 * Redis checks the limit only before it executes a command, so one command can
 * exceed the limit. A script creates the value, because a request that
 * contained the value would itself need memory. */
static void eviction_overfill(const struct play *play, redisContext *redis)
{
    static const char script[] =
        "redis.call('set', KEYS[1], string.rep('x', ARGV[1])) return 1";
    long long left = eviction_info(redis, "memory", "\nmaxmemory:") -
                     eviction_info(redis, "memory", "\nused_memory:");

    if (!play->evicts && left > 0 && left < NEAR)
        rd_number(redis, "EVAL %s 1 fill-last %d", script, 4 * NEAR);
}

/* Writes values until the key of the lock is removed, or Redis refuses to
 * write. Returns whether Redis refused. */
static bool eviction_fill(struct play *play, redisContext *redis)
{
    for (int n = 1; n < VALUES; n++) {
        lab_tick(play->lab);
        if (rd_number(redis, "EXISTS %s", play->name) == 0)
            return false;
        eviction_overfill(play, redis);
        if (!eviction_put(redis, n))
            return true;
        play->written = n;
    }
    lab_die(CLI_FAILED, "Redis neither evicts the lock nor refuses writes");
}

/* Tries once, as B and by hand, to take the lock, which must fail. Returns the
 * result as a code of holdfast. */
static int eviction_try_by_hand(const struct play *play)
{
    redisContext *redis = rd_open(&play->server->place);
    redisReply *reply = redisCommand(redis, "SET %s B NX PX %d", play->name,
                                     ACTOR_LOCK_LONG_MS);

    if (!reply)
        lab_die(CLI_UNAVAILABLE, "Redis does not answer SET: %s",
                redis->errstr);
    if (reply->type == REDIS_REPLY_STATUS)
        return HF_OK;
    if (reply->type != REDIS_REPLY_ERROR)
        return HF_EBUSY;
    actor_mark(false, "%.50s", reply->str);
    return strncmp(reply->str, "OOM", 3) == 0 ? HF_EBACKEND : HF_EPROTO;
}

static int eviction_try_lock(const struct play *play)
{
    struct hold hold = hold_open(&play->server->place, play->name, 0);
    int rc = hf_lock_try(hold.lock, NULL);

    actor_mark(false, "%s", rc ? hf_error_name(rc) : "HF_OK");
    return rc;
}

static void eviction_play_try(void *arg)
{
    const struct play *play = arg;
    int rc =
        play->by_hand ? eviction_try_by_hand(play) : eviction_try_lock(play);

    actor_report(0, rc);
    if (rc == HF_OK)
        actor_holds("");
    actor_step("tried");
}

struct kept {
    bool full;  /* Redis refused to write */
    int told;   /* the code that B got */
    bool there; /* A's key still existed after B had tried */
    struct late_result a;
};

/* Returns whether A lost the lock although no other client took it. */
static bool eviction_is_lost(const struct kept *kept)
{
    return kept->told != HF_OK && (!kept->there || kept->a.a_checked != HF_OK);
}

static void eviction_judge_kept(const struct play *play, struct lab_row *row,
                                const struct kept *kept)
{
    /* With holdfast B gets HF_EBUSY, because holdfast's script reads the lock
     * before it writes anything. By hand B gets OOM, because Redis refuses SET
     * before executing it. */
    int expected = play->by_hand ? HF_EBACKEND : HF_EBUSY;
    const char *told = play->by_hand ? "OOM" : hf_error_name(kept->told);

    lab_row_number(row, "holders", 1 + (kept->told == HF_OK));
    lab_row_number(row, "left", (double)kept->a.left);
    if (kept->told == HF_OK)
        lab_row_done(play->lab, row, LAB_FAILS,
                     "B came in while A held the lock");
    else if (eviction_is_lost(kept))
        lab_row_done(play->lab, row, LAB_FAILS, "A lost its lock");
    else if (kept->a.left != LATE_STOCK - LATE_BY_A)
        lab_row_done(play->lab, row, LAB_FAILS,
                     "A kept its lock, but the stock is %d", (int)kept->a.left);
    else if (!kept->full || kept->told != expected)
        lab_row_done(play->lab, row, LAB_FAILS,
                     "Redis was %sfull, and B got %s", kept->full ? "" : "not ",
                     hf_error_name(kept->told));
    else
        lab_row_done(play->lab, row, LAB_OK,
                     "Redis was full: A kept its lock, B got %s", told);
}

/* Plays the row with noeviction. Returns false if A lost the lock although B
 * did not get it: the machine may have stalled, so the row is repeated with a
 * longer TTL. The last try returns true in any case. */
static bool eviction_lead_kept(struct play *play, struct late *by_a,
                               struct lab_row *row, bool last)
{
    redisContext *redis = rd_open(&play->server->place);
    struct stage *stage = stage_new(play->lab);
    struct actor *a, *b;
    struct kept kept;
    int64_t full_at;

    a = stage_enter(stage, "A", late_play, by_a);
    actor_until(a, "read");
    kept.full = eviction_fill(play, redis);
    full_at = lab_now();
    /* Waits until every renewal that was made before Redis was full has
     * expired. */
    stage_rest(play->lab, play->ttl_ms * 3 / 2);
    b = stage_enter(stage, "B", eviction_play_try, play);
    actor_until(b, "tried");
    kept.told = (int)actor_value(b, 0);
    kept.full = kept.full && !eviction_put(redis, VALUES); /* still full */
    kept.there = rd_number(redis, "EXISTS %s", play->name) > 0;
    redisFree(redis);
    actor_go(a);
    actor_until(a, "done");
    actor_end(a);
    late_read(&kept.a, a, b);
    if (!last && eviction_is_lost(&kept)) {
        stage_close(stage, NULL);
        return false;
    }
    stage_mark_at(row, "Redis", "is full", full_at);
    stage_close(stage, row);
    kept.a.left = fence_value(play->lab, NULL);
    lab_row_number(row, "written", play->written);
    eviction_judge_kept(play, row, &kept);
    return true;
}

static void eviction_judge(struct lab *lab, struct lab_row *row,
                           const struct late_result *result, double knows_ms)
{
    bool two = result->came_in && result->a_checked == HF_OK;

    lab_row_number(row, "holders", 1 + two);
    lab_row_number(row, "left", (double)result->left);
    if (knows_ms > 0)
        lab_row_number(row, "knows_ms", knows_ms);
    if (late_is_lost(result))
        lab_row_done(lab, row, LAB_FAILS,
                     "the lock was evicted, B came in: 1 stale write, %d over "
                     "%d",
                     (int)result->left, LATE_STOCK - LATE_BY_B);
    else
        lab_row_done(lab, row, result->a_refused ? LAB_OK : LAB_FAILS,
                     "%d stale write refused; A knew after %.0f ms",
                     result->a_refused, knows_ms);
}

/* Fills the memory until the key of the lock is removed. Returns whether the
 * key was evicted; if the machine stalls, the key may have expired instead. */
static bool eviction_evict(struct play *play)
{
    redisContext *redis = rd_open(&play->server->place);
    bool refused = eviction_fill(play, redis), evicted;

    if (refused)
        lab_die(CLI_FAILED, "Redis refused a write although its policy is %s",
                eviction_policy_of(play));
    evicted = eviction_info(redis, "stats", "\nevicted_keys:") > 0 &&
              eviction_info(redis, "stats", "\nexpired_keys:") == 0;
    redisFree(redis);
    return evicted;
}

/* Lets B sell, and then A. Returns how many ms after the eviction A noticed the
 * loss, or 0 if A does not wait for that. */
static double eviction_sell(struct play *play, const struct late *by_a,
                            struct stage *stage, struct actor *a,
                            struct late_result *result)
{
    struct late by_b = *by_a;
    int64_t evicted = lab_now();
    struct actor *b;

    by_b.who = "B";
    by_b.amount = LATE_BY_B;
    by_b.learns = false;
    by_b.ttl_ms = 0;
    b = stage_enter(stage, "B", late_play, &by_b);
    actor_until(b, "read");
    result->came_in = true;
    actor_go(b);
    actor_until(b, "done");
    actor_go(a);
    actor_until(a, "done");
    late_read(result, a, b);
    if (!by_a->learns) {
        stage_rest(play->lab, lab_settings(play->lab)->ttl_ms / 4);
        return 0;
    }
    actor_go(a);
    actor_until(a, "knows");
    return (double)(actor_value(a, LATE_KNOWS_AT) - evicted) / 1e6;
}

/* Plays the row with an eviction. Returns false if the lock expired before
 * Redis evicted it, so that the row must be repeated. Dies if this was the last
 * try. */
static bool eviction_lead_evicted(struct play *play, struct late *by_a,
                                  struct lab_row *row, bool last)
{
    struct late_result result = {0};
    struct stage *stage = stage_new(play->lab);
    struct actor *a = stage_enter(stage, "A", late_play, by_a);
    double knows_ms;

    actor_until(a, "read");
    if (!eviction_evict(play)) {
        if (last)
            lab_die(CLI_FAILED, "the lock expired before Redis evicted it: the "
                                "machine is too busy; give a longer --ttl");
        stage_close(stage, NULL);
        return false;
    }
    stage_mark(row, "Redis", "has evicted the lock");
    knows_ms = eviction_sell(play, by_a, stage, a, &result);
    actor_end(a);
    stage_close(stage, row); /* kills B, and does not let it release: the key of
                                B's lock may have been evicted, too */
    result.left = fence_value(play->lab, NULL);
    lab_row_number(row, "written", play->written);
    eviction_judge(play->lab, row, &result, knows_ms);
    return true;
}

/* Plays the row on a server of its own. Returns false if the row must be
 * repeated. */
static bool eviction_try_row(struct play *play, struct late *by_a,
                             struct lab_row *row, bool last)
{
    const char *const args[] = {"--maxmemory", "4mb", "--maxmemory-policy",
                                eviction_policy_of(play), NULL};
    bool done;

    play->server = lab_server_start(play->lab, LAB_REDIS, args);
    lab_progress(play->lab, "%s", play->strategy);
    by_a->place = &play->server->place;
    actor_lock_name(play->lab, "eviction", play->name);
    fence_make(play->lab, NULL, LATE_STOCK);
    done = play->evicts ? eviction_lead_evicted(play, by_a, row, last)
                        : eviction_lead_kept(play, by_a, row, last);
    lab_server_end(play->server);
    return done;
}

static void eviction_lead(struct lab *lab, const char *strategy, bool by_hand,
                          bool evicts, enum lab_outcome expected)
{
    struct play play = {.lab = lab,
                        .strategy = strategy,
                        .by_hand = by_hand,
                        .evicts = evicts,
                        .ttl_ms = lab_settings(lab)->ttl_ms};
    struct lab_row *row = lab_row(lab, expected);
    struct late by_a = {.lab = lab,
                        .name = play.name,
                        .who = "A",
                        .amount = LATE_BY_A,
                        .by_hand = by_hand,
                        .token = strcmp(strategy, "token") == 0};
    bool done = false;

    by_a.learns = by_a.token;
    lab_row_text(row, "strategy", "%s", strategy);
    lab_row_text(row, "backend", "redis");
    lab_row_text(row, "variant", "%s", by_hand ? "by hand" : "holdfast");
    for (int tries = 1; !done; tries++) {
        /* By hand A never renews. With holdfast, an A that does not wait until
         * it notices the loss needs no renewal. */
        if (by_hand || (evicts && !by_a.learns))
            by_a.ttl_ms = ACTOR_LOCK_LONG_MS;
        else
            by_a.ttl_ms = evicts ? RENEWED * play.ttl_ms : play.ttl_ms;
        done = eviction_try_row(&play, &by_a, row, tries == TRIES);
        play.ttl_ms *= 2;
    }
}

static void eviction_run(struct lab *lab)
{
    if (lab_wants(lab, "no-token")) {
        eviction_lead(lab, "no-token", true, true, LAB_FAILS);
        eviction_lead(lab, "no-token", false, true, LAB_FAILS);
    }
    if (lab_wants(lab, "token"))
        eviction_lead(lab, "token", false, true, LAB_OK);
    if (lab_wants(lab, "noeviction")) {
        eviction_lead(lab, "noeviction", true, false, LAB_OK);
        eviction_lead(lab, "noeviction", false, false, LAB_OK);
    }
}

static const char *const strategies[] = {"no-token", "token", "noeviction",
                                         NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 10, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"variant", "by", 8, LAB_LEFT},
    {"written", "16 KB values", 12, 0},
    {"knows_ms", "A knew ms", 9, 0},
    {"holders", "holders", 7, 0},
    {"left", "left", 5, 0},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_eviction = {
    .name = "eviction",
    .summary = "a full Redis evicts the key of a lock that is held",
    .text =
        "A holds the lock and has read a stock of 10. Other keys fill the\n"
        "memory of Redis. With maxmemory-policy allkeys-lru the key of the\n"
        "lock is evicted, B takes the lock and sells three, and A writes 9.\n"
        "no-token: the store accepts every write. token: it refuses the lower\n"
        "token. noeviction: with that policy, B tries when Redis is full.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_TTL,
    .needs = LAB_NEEDS_SERVERS,
    .strategies = strategies,
    .run = eviction_run,
};
