/*
 * Misdelete: a holder releases the lock of another holder.
 *
 * In the documents (tutorials; see lab/README.md), a holder compares the value
 * of the key with its own value, and then deletes the key: two steps. If the
 * key expires between these steps, and another client takes the lock, the
 * second step deletes the lock of that other client. The documents' remedy is a
 * script that compares and deletes. Here A pauses between the two steps until B
 * has the lock; then A deletes the key, and C tries to get the lock while B is
 * inside.
 */
#include "../actors/actor_locks.h"
#include "../actors/stage.h"
#include "../actors/workers.h"
#include "../runner/clock.h"
#include "../runner/lab.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/places.h"
#include "../servers/redis.h"

#include <holdfast.h>
#include <stdbool.h>

struct play {
    const char *strategy;
    int64_t ttl_ms;
    struct contest contest;
};

/* What A reports: by hand, how many keys its release has deleted; with
 * holdfast, the result code of its release. */
enum { RESULT };

/* A takes the lock, works, and is about to release it. */
static void misdelete_work(redisContext *redis, const struct play *play)
{
    hand_take(redis, play->contest.name, "A", play->ttl_ms);
    lab_sleep_ms(play->ttl_ms / 2);
    actor_lets_go();
}

static void misdelete_two_steps_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->contest.place);

    /* Repeats if the machine stalled and the key expired before the
     * comparison. */
    do
        misdelete_work(redis, play);
    while (!hand_owns(redis, play->contest.name, "A"));
    actor_mark(false, "compared: mine");
    actor_step("pauses");
    actor_mark(true, "DEL");
    actor_report(RESULT, rd_number(redis, "DEL %s", play->contest.name));
    actor_step("released");
}

static void misdelete_script_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->contest.place);

    misdelete_work(redis, play);
    actor_step("pauses");
    actor_mark(false, "script");
    actor_report(RESULT, rd_unlock(redis, play->contest.name, "A"));
    actor_step("released");
}

static void misdelete_lock_a(void *arg)
{
    const struct play *play = arg;
    struct hold hold = hold_open(play->contest.place, play->contest.name, 0);

    hold_take(&hold, play->ttl_ms, "fixed lease");
    lab_sleep_ms(play->ttl_ms / 2);
    actor_lets_go();
    actor_step("pauses");
    actor_mark(false, "release");
    actor_report(RESULT, hold_release(&hold));
    actor_step("released");
    hold_close(&hold);
}

static const struct cast {
    void (*a)(void *);               /* its arg: a struct play */
    void (*b)(void *), (*c)(void *); /* their arg: the contest */
} two_steps = {misdelete_two_steps_a, hand_b, hand_c},
  script = {misdelete_script_a, hand_b, hand_c},
  lock = {misdelete_lock_a, hold_b, hold_c};

static void misdelete_tell_release(struct lab_row *row, const struct cast *cast,
                                   int64_t result)
{
    if (cast == &lock)
        lab_row_text(row, "release", "%s",
                     result ? hf_error_name((int)result) : "HF_OK");
    else
        lab_row_text(row, "release", "deleted %d", (int)result);
}

static void misdelete_lead(struct lab *lab, struct play *play,
                           const struct cast *cast, enum lab_outcome expected)
{
    struct lab_row *row = lab_row(lab, expected);
    struct stage *stage = stage_new(lab);
    struct actor *a, *b, *c;
    bool came_in, kept;

    lab_progress(lab, "%s on %s", play->strategy, play->contest.place->name);
    actor_lock_name(lab, "misdelete", play->contest.name);
    a = stage_enter(stage, "A", cast->a, play);
    actor_until(a, "pauses");
    b = stage_enter(stage, "B", cast->b, &play->contest);
    actor_until(b, "in"); /* therefore A's lease has ended */
    actor_go(a);
    actor_until(a, "released");
    c = stage_enter(stage, "C", cast->c, &play->contest);
    actor_until(c, "tried");
    came_in = actor_value(c, C_IN);
    stage_rest(lab, play->ttl_ms / 4);
    actor_end(c);
    actor_end(b);
    kept = actor_value(b, B_KEPT);
    misdelete_tell_release(row, cast, actor_value(a, RESULT));
    actor_end(a);
    stage_close(stage, row);
    lab_row_text(row, "strategy", "%s", play->strategy);
    lab_row_text(row, "backend", "%s", play->contest.place->name);
    lab_row_number(row, "holders", 1 + came_in);
    if (kept && !came_in)
        lab_row_done(lab, row, LAB_OK,
                     "A's late release freed no other lock, C stayed out");
    else
        lab_row_done(lab, row, LAB_FAILS, "A deleted B's lock, C %s",
                     came_in ? "came in while B was inside" : "stayed out");
}

static void misdelete_lead_by_hand(struct lab *lab, const char *strategy,
                                   const struct cast *cast,
                                   enum lab_outcome expected)
{
    struct play play = {.strategy = strategy,
                        .ttl_ms = lab_settings(lab)->ttl_ms};

    if (!lab_wants(lab, strategy))
        return;
    play.contest.place = actor_lock_redis(lab, strategy);
    if (play.contest.place)
        misdelete_lead(lab, &play, cast, expected);
}

static void misdelete_run(struct lab *lab)
{
    struct play play = {.strategy = "lock",
                        .ttl_ms = lab_settings(lab)->ttl_ms};

    misdelete_lead_by_hand(lab, "two-steps", &two_steps, LAB_FAILS);
    misdelete_lead_by_hand(lab, "script", &script, LAB_OK);
    if (!lab_wants(lab, play.strategy))
        return;
    for (size_t i = 0; (play.contest.place = lab_backend(lab, i)); i++)
        misdelete_lead(lab, &play, &lock, LAB_OK);
}

static const char *const strategies[] = {"two-steps", "script", "lock", NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 12, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"release", "A's release", 12, LAB_LEFT},
    {"holders", "holders", 7, 0},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_misdelete = {
    .name = "misdelete",
    .summary = "a late release deletes the lock of the next holder",
    .text =
        "A's lock expires while A is about to release it, and B takes the\n"
        "lock. Then A releases, and C tries to come in while B is inside.\n"
        "two-steps: A compared the key's value earlier, and now deletes the\n"
        "key. script: one script compares and deletes. lock: holdfast's lock\n"
        "with a fixed lease.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_TTL,
    .strategies = strategies,
    .run = misdelete_run,
};
