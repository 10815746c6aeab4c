/*
 * Stall: the holder is stopped past its TTL, continues, and writes.
 *
 * A reads a stock of 10 under the lock and is stopped before it writes 9. Its
 * hold ends, B takes the lock and sells three: 7. Then A continues. Without a
 * token A's late write replaces 7 by 9. With the token the store refuses that
 * write (docs/fencing.md). With the deadline A checks before it writes, and
 * knows without a request to the server that the hold is lost. In shared memory
 * a stopped process keeps its lock, unless it has a fixed lease.
 */
#include "../actors/actor_locks.h"
#include "../actors/stage.h"
#include "../runner/lab.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/places.h"
#include "fence.h"
#include "late.h"

#include <holdfast.h>
#include <stdbool.h>
#include <string.h>

enum { WAITS_MS = 100 }; /* how long the timeline shows B waiting, if it must */

struct play {
    struct lab *lab;
    const char *strategy, *variant;
    const struct lab_place *place, *store;
    bool by_hand;
    int64_t ttl_ms, lease_ms;
};

/* Returns whether a stopped holder keeps the lock: in shared memory, without a
 * fixed lease. */
static bool stall_is_kept(const struct play *play)
{
    return play->place->engine == LAB_SHM && play->lease_ms == 0;
}

static void stall_finish(struct actor *b)
{
    actor_go(b);
    actor_until(b, "done");
}

/* Returns whether B gets the lock while A is stopped. If the lock must keep B
 * out (`tries'), B has tried once before. That try proves that the lock keeps B
 * out, and that B is not merely late. */
static bool stall_is_in(struct actor *b, bool tries)
{
    bool busy;

    if (!tries)
        return actor_comes(b, "read", ACTOR_LOCK_LONG_MS);
    actor_until(b, "asked");
    busy = actor_value(b, LATE_BUSY);
    actor_go(b);
    return actor_comes(b, "read", busy ? WAITS_MS : ACTOR_LOCK_LONG_MS);
}

static void stall_act(const struct play *play, struct late *by_a,
                      struct late *by_b, struct lab_row *row,
                      struct late_result *result)
{
    struct stage *stage = stage_new(play->lab);
    struct actor *a, *b;

    fence_make(play->lab, play->store, LATE_STOCK);
    a = stage_enter(stage, "A", late_play, by_a);
    actor_until(a, "read");
    actor_stop(a);
    by_b->tries = stall_is_kept(play);
    if (by_b->tries)
        stage_rest(play->lab, 2 * play->ttl_ms);
    b = stage_enter(stage, "B", late_play, by_b);
    result->came_in = stall_is_in(b, by_b->tries);
    if (result->came_in)
        stall_finish(b);
    actor_continue(a);
    stall_finish(a);
    stage_rest(play->lab, play->ttl_ms / 8);
    actor_end(a);
    if (!result->came_in) {
        actor_until(b, "read");
        stall_finish(b);
    }
    actor_end(b);
    late_read(result, a, b);
    stage_close(stage, row);
    result->left = fence_value(play->lab, play->store);
}

static void stall_judge(struct lab *lab, struct lab_row *row,
                        const struct late_result *result)
{
    int both = LATE_STOCK - LATE_BY_A - LATE_BY_B;

    lab_row_number(row, "left", (double)result->left);
    if (!result->came_in && result->left == both)
        lab_row_done(
            lab, row, LAB_OK,
            "no other client got in: shared memory waits for the process");
    else if (!result->came_in)
        lab_row_done(lab, row, LAB_FAILS,
                     "no other client got in, but the stock is %d",
                     (int)result->left);
    else if (late_is_lost(result))
        lab_row_done(lab, row, LAB_FAILS, "1 stale write: A put %d over B's %d",
                     (int)result->left, LATE_STOCK - LATE_BY_B);
    else if (result->a_refused)
        lab_row_done(lab, row, LAB_OK, "1 stale write refused by the store");
    else
        lab_row_done(lab, row, LAB_OK, "A knew (%s) and did not write",
                     hf_error_name(result->a_checked));
}

static void stall_lead(struct play play, enum lab_outcome expected)
{
    struct lab_row *row = lab_row(play.lab, expected);
    struct late_result result = {0};
    char name[96];
    struct late by_a = {.lab = play.lab,
                        .place = play.place,
                        .store = play.store,
                        .name = name,
                        .who = "A",
                        .amount = LATE_BY_A,
                        .by_hand = play.by_hand,
                        .token = strcmp(play.strategy, "token") == 0,
                        .deadline = strcmp(play.strategy, "deadline") == 0,
                        .ttl_ms = play.ttl_ms,
                        .lease_ms = play.lease_ms};
    struct late by_b = by_a;

    by_b.who = "B";
    by_b.amount = LATE_BY_B;
    by_b.ttl_ms = by_b.lease_ms = 0;
    actor_lock_name(play.lab, "stall", name);
    lab_progress(play.lab, "%s on %s", play.strategy, play.place->name);
    stall_act(&play, &by_a, &by_b, row, &result);
    lab_row_text(row, "strategy", "%s", play.strategy);
    lab_row_text(row, "backend", "%s", play.place->name);
    lab_row_text(row, "variant", "%s", play.variant);
    lab_row_text(row, "store", "%s", play.store ? play.store->name : "file");
    stall_judge(play.lab, row, &result);
}

static void stall_lead_by_hand(struct play play)
{
    play.strategy = "no-token";
    play.variant = "by hand";
    play.place = actor_lock_redis(play.lab, play.strategy);
    play.by_hand = true;
    if (play.place)
        stall_lead(play, LAB_FAILS);
}

/* Shows that the other stores refuse A's late write, too. */
static void stall_lead_stores(struct play play)
{
    static const enum lab_engine engines[] = {LAB_REDIS, LAB_MARIADB};

    play.strategy = "token";
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        play.store = lab_store(play.lab, engines[i]);
        if (play.store)
            stall_lead(play, LAB_OK);
    }
}

static void stall_lead_lock(struct play play)
{
    static const char *const ways[] = {"no-token", "token", "deadline"};
    bool is_shm = play.place->engine == LAB_SHM;

    play.variant = "watchdog";
    play.strategy = "no-token";
    if (is_shm && lab_wants(play.lab, play.strategy))
        stall_lead(play, LAB_OK);
    if (is_shm) {
        play.variant = "fixed lease";
        play.lease_ms = play.ttl_ms;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        play.strategy = ways[i];
        if (lab_wants(play.lab, play.strategy))
            stall_lead(play, i == 0 ? LAB_FAILS : LAB_OK);
    }
    if (play.place->engine == LAB_REDIS && lab_wants(play.lab, "token"))
        stall_lead_stores(play);
}

static void stall_run(struct lab *lab)
{
    struct play play = {.lab = lab, .ttl_ms = lab_settings(lab)->ttl_ms};

    if (lab_wants(lab, "no-token"))
        stall_lead_by_hand(play);
    for (size_t i = 0; (play.place = lab_backend(lab, i)); i++)
        stall_lead_lock(play);
}

static const char *const strategies[] = {"no-token", "token", "deadline", NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 8, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"variant", "variant", 11, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT},
    {"left", "left", 5, 0},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_stall = {
    .name = "stall",
    .summary = "the holder is stopped past its TTL, then writes",
    .text =
        "A has read a stock of 10 and is stopped before it writes 9. B gets\n"
        "the lock and sells three. Then A continues. no-token: A writes.\n"
        "token: the store compares A's token with the highest one it has\n"
        "seen. deadline: A calls hf_lock_check() before it writes.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_TTL,
    .strategies = strategies,
    .run = stall_run,
};
