/*
 * Stall: the holder is stopped past its TTL, goes on, and writes.
 *
 * A reads a stock of 10 under the lock and is stopped before it writes 9. Its
 * hold ends, B takes the lock and sells three: 7. Then A goes on. Without a
 * token its late write puts 9 over 7. With the token the store refuses it
 * (docs/fencing.md). With the deadline A asks before it writes, and knows
 * without asking the network that the hold is lost. In shared memory a stopped
 * process keeps its lock, unless it has a fixed lease.
 */
#include "../cast.h"
#include "../fence.h"

#include <string.h>

enum { STOCK = 10, A_SELLS = 1, B_SELLS = 3 };

struct play {
    struct lab *lab;
    const char *strategy, *variant;
    const struct lab_place *place;
    const struct lab_place *store;
    void (*a)(void *), (*b)(void *);
    bool token;    /* the store checks it */
    bool deadline; /* the holder asks before it writes */
    int64_t ttl_ms, lease_ms;
    char name[96];
};

/* What A reports. */
enum { WROTE, REFUSED, CHECKED };

/* ---- by hand ------------------------------------------------------------- */

static void sell(struct fence *fence, uint64_t token, int64_t value)
{
    if (fence_write(fence, token, value)) {
        actor_report(WROTE, 1);
        actor_mark(false, "writes %d", (int)value);
    } else {
        actor_report(REFUSED, 1);
        actor_mark(false, "%d: refused", (int)value);
    }
}

static void hand_a(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->place);
    struct fence *fence = fence_open(play->lab, play->store);
    int64_t stock = 0;

    hand_take(redis, play->name, "A", play->ttl_ms);
    fence_read(fence, 0, &stock);
    actor_mark(false, "reads %d", (int)stock);
    actor_step("read");
    sell(fence, 0, stock - A_SELLS);
    actor_step("done");
    rd_unlock(redis, play->name, "A");
    actor_lets_go();
}

static void hand_b(void *arg)
{
    const struct play *play = arg;
    redisContext *redis = rd_open(play->place);
    struct fence *fence = fence_open(play->lab, play->store);
    int64_t stock = 0;

    hand_take(redis, play->name, "B", CAST_LONG_MS);
    actor_step("in");
    fence_read(fence, 0, &stock);
    sell(fence, 0, stock - B_SELLS);
    actor_step("done");
    rd_unlock(redis, play->name, "B");
    actor_lets_go();
}

/* ---- holdfast ------------------------------------------------------------ */

static void lock_a(void *arg)
{
    const struct play *play = arg;
    struct hold hold = hold_open(play->place, play->name, play->ttl_ms);
    struct fence *fence = fence_open(play->lab, play->store);
    struct grant grant = hold_take(&hold, play->lease_ms, "");
    uint64_t token = play->token ? grant.token : 0;
    int64_t stock = 0;
    int rc = HF_OK;

    fence_read(fence, token, &stock);
    actor_mark(false, "reads %d", (int)stock);
    actor_step("read");
    if (play->deadline)
        rc = hf_lock_check(hold.lock);
    actor_report(CHECKED, rc);
    if (rc == HF_OK)
        sell(fence, token, stock - A_SELLS);
    else
        actor_mark(false, "knows: %s", hf_error_name(rc));
    actor_step("done");
    hold_release(&hold);
    hold_close(&hold);
}

static void lock_b(void *arg)
{
    const struct play *play = arg;
    struct hold hold = hold_open(play->place, play->name, 0);
    struct fence *fence = fence_open(play->lab, play->store);
    struct grant grant = hold_take(&hold, 0, "");
    uint64_t token = play->token ? grant.token : 0;
    int64_t stock = 0;

    actor_step("in");
    fence_read(fence, token, &stock);
    sell(fence, token, stock - B_SELLS);
    actor_step("done");
    hold_release(&hold);
    hold_close(&hold);
}

/* ---- a row --------------------------------------------------------------- */

struct found {
    bool came_in; /* B, while A was stopped */
    bool wrote, refused;
    int checked;
    int64_t left;
};

/* Of a process in shared memory, without a lease: nobody comes in. */
static bool is_kept(const struct play *play)
{
    return play->place->engine == LAB_SHM && play->lease_ms == 0;
}

static void play_row(struct play *play, struct lab_row *row,
                     struct found *found)
{
    struct stage *stage = stage_new(play->lab);
    struct actor *a, *b;

    cast_name(play->lab, "stall", play->name);
    fence_make(play->lab, play->store, STOCK);
    a = stage_enter(stage, "A", play->a, play);
    actor_until(a, "read");
    actor_stop(a);
    b = stage_enter(stage, "B", play->b, play);
    found->came_in =
        actor_comes(b, "in", is_kept(play) ? 2 * play->ttl_ms : CAST_LONG_MS);
    if (found->came_in) {
        actor_go(b);
        actor_until(b, "done");
    }
    actor_continue(a);
    actor_go(a);
    actor_until(a, "done");
    found->wrote = actor_value(a, WROTE);
    found->refused = actor_value(a, REFUSED);
    found->checked = (int)actor_value(a, CHECKED);
    cast_rest(play->lab, play->ttl_ms / 8);
    actor_end(a);
    if (!found->came_in) {
        actor_until(b, "in");
        actor_go(b);
        actor_until(b, "done");
    }
    actor_end(b);
    stage_close(stage, row);
    found->left = fence_value(play->lab, play->store);
}

static void judge(struct lab *lab, struct lab_row *row,
                  const struct found *found)
{
    int both = STOCK - A_SELLS - B_SELLS, b_only = STOCK - B_SELLS;

    lab_row_number(row, "left", (double)found->left);
    if (!found->came_in && found->wrote && found->left == both)
        lab_row_done(lab, row, LAB_OK,
                     "nobody came in: shared memory waits for the process");
    else if (found->wrote)
        lab_row_done(lab, row, LAB_FAILS, "1 stale write: A put %d over B's %d",
                     (int)found->left, b_only);
    else if (found->left != b_only)
        lab_row_done(lab, row, LAB_FAILS, "the stock is %d instead of %d",
                     (int)found->left, b_only);
    else if (found->refused)
        lab_row_done(lab, row, LAB_OK, "1 stale write refused by the store");
    else
        lab_row_done(lab, row, LAB_OK, "A knew (%s) and did not write",
                     hf_error_name(found->checked));
}

static void lead(struct play play, enum lab_outcome expected)
{
    struct lab_row *row = lab_row(play.lab, expected);
    struct found found = {0};

    lab_progress(play.lab, "%s on %s", play.strategy, play.place->name);
    play.token = strcmp(play.strategy, "token") == 0;
    play.deadline = strcmp(play.strategy, "deadline") == 0;
    play_row(&play, row, &found);
    lab_row_text(row, "strategy", "%s", play.strategy);
    lab_row_text(row, "backend", "%s", play.place->name);
    lab_row_text(row, "variant", "%s", play.variant);
    lab_row_text(row, "store", "%s", play.store ? play.store->name : "file");
    judge(play.lab, row, &found);
}

/* ---- which rows ---------------------------------------------------------- */

static void lead_by_hand(struct play play)
{
    play.strategy = "no-token";
    play.variant = "by hand";
    play.place = cast_redis(play.lab, play.strategy);
    play.a = hand_a;
    play.b = hand_b;
    if (play.place)
        lead(play, LAB_FAILS);
}

/* The other stores refuse as well. */
static void lead_stores(struct play play)
{
    static const enum lab_engine engines[] = {LAB_REDIS, LAB_MARIADB};

    play.strategy = "token";
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        play.store = lab_store(play.lab, engines[i]);
        if (play.store)
            lead(play, LAB_OK);
    }
}

static void lead_lock(struct play play)
{
    static const char *const ways[] = {"no-token", "token", "deadline"};
    bool is_shm = play.place->engine == LAB_SHM;

    play.a = lock_a;
    play.b = lock_b;
    play.variant = "watchdog";
    play.strategy = "no-token";
    if (is_shm && lab_wants(play.lab, play.strategy))
        lead(play, LAB_OK);
    if (is_shm) {
        play.variant = "fixed lease";
        play.lease_ms = play.ttl_ms;
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        play.strategy = ways[i];
        if (lab_wants(play.lab, play.strategy))
            lead(play, i == 0 ? LAB_FAILS : LAB_OK);
    }
    if (play.place->engine == LAB_REDIS && lab_wants(play.lab, "token"))
        lead_stores(play);
}

static void run(struct lab *lab)
{
    struct play play = {.lab = lab, .ttl_ms = lab_settings(lab)->ttl_ms};

    if (lab_wants(lab, "no-token"))
        lead_by_hand(play);
    for (size_t i = 0; (play.place = lab_backend(lab, i)); i++)
        lead_lock(play);
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
        "A has read a stock of 10 and is stopped before it writes 9. B gets "
        "the\n"
        "lock and sells three. Then A goes on. no-token: A writes. token: the "
        "store\n"
        "compares A's token with the highest one it has seen. deadline: A "
        "asks\n"
        "hf_lock_check() before it writes.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_TTL,
    .strategies = strategies,
    .run = run,
};
