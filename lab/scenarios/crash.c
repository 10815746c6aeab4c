/*
 * Crash: the holder dies while it holds the lock (case 1 of the documents, the
 * tutorials of lab/README.md).
 *
 * A is killed by SIGKILL while B waits for the lock; the scenario measures how
 * long B waits. B waits forever if the key of the lock has no expiry (SETNX),
 * or if A dies between SETNX and EXPIRE. On Redis with an expiry, B waits until
 * the key has expired. One document says that ZooKeeper frees the lock at once,
 * because the node is ephemeral. That is true if the client closes its session.
 * If the client dies, the server cannot distinguish the dead client from a slow
 * client until the session's timeout has passed.
 */
#include "../../cli/shared/values.h"
#include "../actors/actor_locks.h"
#include "../actors/stage.h"
#include "../runner/lab.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/places.h"
#include "../servers/redis.h"

#include <holdfast.h>
#include <stdbool.h>
#include <time.h>

struct play {
    const char *strategy;
    const struct lab_place *place;
    void (*a)(void *), (*b)(void *);
    bool closes; /* A is not killed: its client closes the session */
    int64_t ttl_ms;
    char name[96];
};

enum {
    /* What actors report; times are ns of CLOCK_BOOTTIME. */
    A_TTL_MS = 0, /* the TTL that the server granted */
    A_DEADLINE,   /* B must not get the lock before this time; 0: not before A's
                     death */
    B_BUSY = 0,   /* B tried while A held the lock, and was refused */
    B_CAME_AT,

    WAITS_MS = 50, /* for the timeline: B waits while A holds the lock */
    /* A lock that is not free after this time counts as never free. The limit
     * is much longer than a TTL and a tick of ZooKeeper, because the machine
     * may stall. */
    NEVER_MS = 30000,
    AT_ONCE_MS = 100,
    STOOD_MS = 200, /* after a longer stall of the machine, the measured time is
                       worthless */
    TRIES = 4,
};

static int64_t crash_now(void)
{
    return cli_now_ns(CLOCK_BOOTTIME);
}

static void crash_setnx_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->place);

    rd_number(redis, "SETNX %s A", play->name);
    actor_holds("");
    actor_step("holds"); /* A is killed here, and never deletes the key */
}

static void crash_setnx_expire_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->place);

    rd_number(redis, "SETNX %s A", play->name);
    actor_holds("");
    actor_step("holds"); /* A is killed here, between the two commands */
    rd_number(redis, "PEXPIRE %s %lld", play->name, (long long)play->ttl_ms);
}

/* Returns the earliest time at which the key may expire by the clock of this
 * process. The clock of Redis may run faster, so one percent of the TTL is
 * subtracted. */
static int64_t crash_hand_deadline(redisContext *redis, const struct play *play)
{
    int64_t at = crash_now();
    int64_t left_ms = rd_number(redis, "PTTL %s", play->name);

    return at + (left_ms - play->ttl_ms / 100) * 1000000;
}

static void crash_set_nx_ex_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->place);

    hand_take(redis, play->name, "A", play->ttl_ms);
    actor_report(A_DEADLINE, crash_hand_deadline(redis, play));
    actor_step("holds");
}

static void crash_lock_a(void *arg)
{
    const struct play *play = arg;
    struct hold hold = hold_open(play->place, play->name, play->ttl_ms);
    struct grant grant = hold_take(&hold, 0, "");

    actor_report(A_TTL_MS, grant_ttl_ms(&grant, play->ttl_ms));
    if (grant.deadline != HF_NO_DEADLINE)
        actor_report(A_DEADLINE, grant.deadline);
    actor_step("holds");
    actor_lets_go();
    hf_close(hold.client); /* without a release; only if A was not killed */
}

static void crash_asking_hand_b(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->place);

    actor_report(B_BUSY, hand_is_busy(redis, play->name, "B"));
    actor_report(B_CAME_AT, crash_now());
    actor_step("asked");
    hand_take(redis, play->name, "B", ACTOR_LOCK_LONG_MS);
    actor_report(B_CAME_AT, crash_now());
    actor_step("in");
    rd_unlock(redis, play->name, "B");
}

static void crash_asking_hold_b(void *arg)
{
    const struct play *play = arg;
    struct hold hold = hold_open(play->place, play->name, 0);

    actor_report(B_BUSY, hold_is_busy(&hold));
    actor_report(B_CAME_AT, crash_now());
    actor_step("asked");
    hold_take(&hold, 0, "");
    actor_report(B_CAME_AT, crash_now());
    actor_step("in");
    hold_release(&hold);
    hold_close(&hold);
}

struct found {
    bool in;        /* B has got the lock */
    bool early;     /* B got the lock before A's hold had ended */
    bool lost;      /* A's hold ended before A died */
    long long pttl; /* PTTL if B does not get the lock; -1: no expiry */
    double wait_ms; /* from A's death until B got the lock */
    int64_t ttl_ms;
    int64_t stood_ms;
};

/* Waits until B has the lock, for at most three TTLs. If B does not have the
 * lock then, waits for at most NEVER_MS more, unless the key has no expiry.
 * Does not wait if A lost the lock, because then B has had the lock already. */
static void crash_await_b(const struct play *play, struct actor *b,
                          struct found *found)
{
    found->in = found->lost || actor_comes(b, "in", 3 * play->ttl_ms);
    if (!found->in && play->b == crash_asking_hand_b) {
        redisContext *redis = rd_open(play->place);

        found->pttl = rd_number(redis, "PTTL %s", play->name);
        redisFree(redis);
    }
    if (!found->in && found->pttl != -1)
        found->in = actor_comes(b, "in", NEVER_MS);
}

/* Returns whether B, which tries while A holds the lock, is refused and then
 * waits. */
static bool crash_is_kept_out(struct actor *b)
{
    bool busy;

    actor_until(b, "asked");
    busy = actor_value(b, B_BUSY);
    if (!busy)
        return false; /* B stays at this step, and has reported when it got the
                         lock */
    actor_go(b);
    return !actor_comes(b, "in", WAITS_MS);
}

static void crash_read_actors(const struct play *play, const struct actor *a,
                              const struct actor *b, int64_t died,
                              struct found *found)
{
    int64_t in_at = actor_value(b, B_CAME_AT);
    int64_t deadline = actor_value(a, A_DEADLINE);

    if (deadline == 0 || (play->closes && died < deadline))
        deadline = died;
    found->early = found->in && in_at < deadline;
    found->wait_ms = (double)(in_at - died) / 1e6;
    found->ttl_ms = actor_value(a, A_TTL_MS);
    if (found->ttl_ms == 0)
        found->ttl_ms = play->ttl_ms; /* by hand, A reports no TTL */
}

static struct stage *crash_play_once(struct lab *lab, struct play *play,
                                     struct found *found)
{
    struct stage *stage = stage_new(lab);
    struct actor *a, *b;
    int64_t died;

    *found = (struct found){0};
    actor_lock_name(lab, "crash", play->name);
    a = stage_enter(stage, "A", play->a, play);
    actor_until(a, "holds");
    b = stage_enter(stage, "B", play->b, play);
    found->lost = !crash_is_kept_out(b);
    died = crash_now();
    if (play->closes)
        actor_end(a);
    else
        actor_kill(a);
    crash_await_b(play, b, found);
    crash_read_actors(play, a, b, died, found);
    found->stood_ms = stage_stood_ms(stage);
    if (found->in && !found->lost)
        actor_end(b);
    return stage;
}

static void crash_judge(struct lab *lab, struct lab_row *row,
                        const struct found *found)
{
    if (found->in)
        lab_row_number(row, "wait_ms", found->wait_ms);
    if (!found->in && found->pttl == -1)
        lab_row_done(lab, row, LAB_FAILS,
                     "never free: the key has no expiry, B waits forever");
    else if (!found->in)
        lab_row_done(lab, row, LAB_FAILS, "not free after %d ms", NEVER_MS);
    else if (found->early)
        lab_row_done(lab, row, LAB_FAILS, "B came in while A held the lock");
    else if (found->lost)
        lab_row_done(lab, row, LAB_FAILS, "A lost the lock before it died");
    else
        lab_row_done(lab, row, LAB_OK, "free after %.*f ms",
                     found->wait_ms < 10, found->wait_ms);
}

static struct found crash_lead(struct lab *lab, struct play play,
                               enum lab_outcome expected)
{
    struct lab_row *row = lab_row(lab, expected);
    struct stage *stage;
    struct found found;
    int tries = 0;

    lab_progress(lab, "%s on %s", play.strategy, play.place->name);
    stage = crash_play_once(lab, &play, &found);
    /* If the machine stalls, A's renewals and B may be late. The measured time
     * then says nothing about the lock, so the row is repeated. */
    while (!found.early && (found.lost || found.stood_ms > STOOD_MS) &&
           ++tries < TRIES) {
        stage_close(stage, NULL);
        if (found.lost)
            play.ttl_ms *= 2;
        stage = crash_play_once(lab, &play, &found);
    }
    stage_close(stage, row);
    lab_row_text(row, "strategy", "%s", play.strategy);
    lab_row_text(row, "backend", "%s", play.place->name);
    lab_row_text(row, "variant", "%s", play.closes ? "closes" : "killed");
    lab_row_number(row, "ttl_ms", (double)found.ttl_ms);
    crash_judge(lab, row, &found);
    return found;
}

static void crash_lead_by_hand(struct lab *lab)
{
    static const struct {
        const char *strategy;
        void (*a)(void *);
        enum lab_outcome expected;
    } ways[] = {{"setnx", crash_setnx_a, LAB_FAILS},
                {"setnx-expire", crash_setnx_expire_a, LAB_FAILS},
                {"set-nx-ex", crash_set_nx_ex_a, LAB_OK}};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct play play = {.strategy = ways[i].strategy,
                            .a = ways[i].a,
                            .b = crash_asking_hand_b,
                            .ttl_ms = lab_settings(lab)->ttl_ms};

        if (!lab_wants(lab, play.strategy))
            continue;
        play.place = actor_lock_redis(lab, play.strategy);
        if (play.place)
            crash_lead(lab, play, ways[i].expected);
    }
}

/* Added to a sentence about the lab's own ZooKeeper, whose tickTime is shorter
 * than that of the packaged configuration. A session lasts for two ticks or
 * more. */
#define SHORT_SESSIONS                                                         \
    "; with the packaged tickTime of 2000 a session lasts at least 4000 ms"

static void crash_lead_lock(struct lab *lab)
{
    struct play play = {.strategy = "lock",
                        .a = crash_lock_a,
                        .b = crash_asking_hold_b,
                        .ttl_ms = lab_settings(lab)->ttl_ms};

    for (size_t i = 0; (play.place = lab_backend(lab, i)); i++) {
        struct found killed, closed;

        play.closes = false;
        killed = crash_lead(lab, play, LAB_OK);
        if (play.place->engine != LAB_ZOOKEEPER &&
            play.place->engine != LAB_ETCD)
            continue;
        play.closes = true;
        closed = crash_lead(lab, play, LAB_OK);
        if (play.place->engine == LAB_ETCD)
            continue;
        lab_claim(lab, killed.wait_ms < AT_ONCE_MS,
                  "ZooKeeper frees the lock at once when the holder dies",
                  "%.0f ms after a kill, with a session of %lld ms; %.0f ms if "
                  "the client closes its session%s",
                  killed.wait_ms, (long long)killed.ttl_ms, closed.wait_ms,
                  play.place->given ? "" : SHORT_SESSIONS);
    }
}

static void crash_run(struct lab *lab)
{
    crash_lead_by_hand(lab);
    if (lab_wants(lab, "lock"))
        crash_lead_lock(lab);
}

static const char *const strategies[] = {"setnx", "setnx-expire", "set-nx-ex",
                                         "lock", NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 12, LAB_LEFT}, {"backend", "backend", 7, LAB_LEFT},
    {"variant", "A", 6, LAB_LEFT},          {"ttl_ms", "TTL ms", 6, 0},
    {"wait_ms", "wait ms", 7, LAB_BAR},     {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_crash = {
    .name = "crash",
    .summary = "the holder dies: how long the next client waits",
    .text =
        "A is killed while it holds the lock, and B waits for it. setnx: the\n"
        "key has no expiry. setnx-expire: A is killed between the two\n"
        "commands. set-nx-ex: one command sets key and expiry. lock:\n"
        "holdfast's lock on each backend; on ZooKeeper and etcd also with an\n"
        "A that closes its client.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_TTL,
    .needs = LAB_HAS_REDLOCK | LAB_HAS_MARIADB,
    .strategies = strategies,
    .run = crash_run,
};
