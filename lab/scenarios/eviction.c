/*
 * Eviction: Redis is full and evicts the key of a lock that is held.
 *
 * A document names it beside expiry as a way to lose a lock ("or evicted by
 * Redis"). A holds the lock and has read a stock of 10; other keys fill the
 * memory until the key of the lock is gone. B takes the lock and writes 7, then
 * A writes 9. With holdfast A learns of it at its next renewal, and the token
 * protects the store until then. With maxmemory-policy noeviction Redis refuses
 * to write instead, and nobody comes in.
 */
#include "../late.h"
#include "../servers.h"

#include <string.h>

enum {
    VALUE = 16384, /* bytes of what fills the memory */
    VALUES = 500000,
    RENEWED = 3, /* TTLs: A must not lose the lock because of the lab */
};

struct play {
    struct lab *lab;
    const char *strategy;
    bool by_hand;
    bool evicts; /* allkeys-lru, else noeviction */
    struct lab_server *server;
    char name[96];
};

/* ---- memory -------------------------------------------------------------- */

static const char *policy_of(const struct play *play)
{
    return play->evicts ? "allkeys-lru" : "noeviction";
}

/* Writes until the key is gone, or until Redis refuses. How many of them. */
static int fill(struct play *play)
{
    redisContext *redis = rd_open(&play->server->place);
    static char value[VALUE];
    redisReply *reply;
    bool refused = false;
    int n = 0;

    memset(value, 'x', sizeof value);
    while (!refused && rd_number(redis, "EXISTS %s", play->name) > 0) {
        if (++n == VALUES)
            lab_die(CLI_FAILED, "Redis evicts nothing and refuses nothing");
        lab_tick(play->lab);
        reply = redisCommand(redis, "SET fill-%d %b", n, value, sizeof value);
        if (!reply)
            lab_die(CLI_UNAVAILABLE, "Redis does not answer SET: %s",
                    redis->errstr);
        refused = reply->type == REDIS_REPLY_ERROR;
        if (refused && strncmp(reply->str, "OOM", 3) != 0)
            lab_die(CLI_FAILED, "Redis refused SET: %s", reply->str);
        freeReplyObject(reply);
    }
    redisFree(redis);
    return n;
}

/* ---- a row --------------------------------------------------------------- */

/* B tries once, where it must not come in. */
static bool try_by_hand(const struct play *play)
{
    redisContext *redis = rd_open(&play->server->place);
    redisReply *reply =
        redisCommand(redis, "SET %s B NX PX %d", play->name, CAST_LONG_MS);

    if (!reply)
        lab_die(CLI_UNAVAILABLE, "Redis does not answer SET: %s",
                redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        actor_mark(false, "%.50s", reply->str);
    return reply->type == REDIS_REPLY_STATUS;
}

static bool try_lock(const struct play *play)
{
    struct hold hold = hold_open(&play->server->place, play->name, 0);
    int rc = hf_lock_try(hold.lock, NULL);

    if (rc != HF_OK)
        actor_mark(false, "%s", hf_error_name(rc));
    return rc == HF_OK;
}

static void play_try(void *arg)
{
    const struct play *play = arg;
    bool is_in = play->by_hand ? try_by_hand(play) : try_lock(play);

    actor_report(0, is_in);
    if (is_in)
        actor_holds("");
    actor_step("tried");
}

static void lead_kept(struct play *play, struct late *by_a, struct lab_row *row)
{
    struct stage *stage = stage_new(play->lab);
    struct actor *a, *b;
    bool came_in;

    a = stage_enter(stage, "A", late_play, by_a);
    actor_until(a, "read");
    lab_row_number(row, "written", fill(play));
    cast_mark(row, "Redis", "is full");
    b = stage_enter(stage, "B", play_try, play);
    actor_until(b, "tried");
    came_in = actor_value(b, 0);
    cast_rest(play->lab, lab_settings(play->lab)->ttl_ms / 4);
    actor_go(a);
    actor_until(a, "done");
    actor_end(a);
    stage_close(stage, row);
    lab_row_number(row, "holders", 1 + came_in);
    lab_row_number(row, "left", (double)fence_value(play->lab, NULL));
    if (came_in)
        lab_row_done(play->lab, row, LAB_FAILS, "B came in beside A");
    else
        lab_row_done(play->lab, row, LAB_OK,
                     "a full Redis refuses to write, and nobody came in");
}

static void judge(struct lab *lab, struct lab_row *row,
                  const struct late_result *result)
{
    bool two = result->came_in && result->a_checked == HF_OK;
    double knows_ms = lab_row_get(row, "knows_ms");

    lab_row_number(row, "holders", 1 + two);
    lab_row_number(row, "left", (double)result->left);
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

static void lead_evicted(struct play *play, struct late *by_a,
                         struct lab_row *row)
{
    struct late by_b = *by_a;
    struct late_result result = {0};
    struct stage *stage = stage_new(play->lab);
    struct actor *a, *b;
    int64_t evicted;

    by_b.who = "B";
    by_b.amount = LATE_BY_B;
    by_b.learns = false;
    by_b.ttl_ms = 0;
    a = stage_enter(stage, "A", late_play, by_a);
    actor_until(a, "read");
    lab_row_number(row, "written", fill(play));
    evicted = lab_now();
    cast_mark(row, "Redis", "has evicted the lock");
    b = stage_enter(stage, "B", late_play, &by_b);
    actor_until(b, "read");
    result.came_in = true;
    actor_go(b);
    actor_until(b, "done");
    actor_go(a);
    actor_until(a, "done");
    if (by_a->learns) {
        actor_go(a);
        actor_until(a, "knows");
        lab_row_number(row, "knows_ms",
                       (double)(actor_value(a, LATE_KNOWS_AT) - evicted) / 1e6);
    } else {
        cast_rest(play->lab, lab_settings(play->lab)->ttl_ms / 4);
    }
    actor_end(a);
    late_read(&result, a, b);
    stage_close(stage, row); /* B may have been evicted as well */
    result.left = fence_value(play->lab, NULL);
    judge(play->lab, row, &result);
}

static void lead(struct lab *lab, const char *strategy, bool by_hand,
                 bool evicts, enum lab_outcome expected)
{
    struct play play = {
        .lab = lab, .strategy = strategy, .by_hand = by_hand, .evicts = evicts};
    const char *const args[] = {"--maxmemory", "4mb", "--maxmemory-policy",
                                policy_of(&play), NULL};
    struct lab_row *row = lab_row(lab, expected);
    struct late by_a = {.lab = lab,
                        .name = play.name,
                        .who = "A",
                        .amount = LATE_BY_A,
                        .by_hand = by_hand,
                        .token = strcmp(strategy, "token") == 0,
                        .learns = evicts && !by_hand};

    lab_row_text(row, "strategy", "%s", strategy);
    lab_row_text(row, "backend", "redis");
    lab_row_text(row, "variant", "%s", by_hand ? "by hand" : "holdfast");
    play.server = lab_server_start(lab, LAB_REDIS, args);
    lab_progress(lab, "%s", strategy);
    by_a.place = &play.server->place;
    if (!by_hand && evicts)
        by_a.ttl_ms = RENEWED * lab_settings(lab)->ttl_ms;
    cast_name(lab, "eviction", play.name);
    fence_make(lab, NULL, LATE_STOCK);
    if (evicts)
        lead_evicted(&play, &by_a, row);
    else
        lead_kept(&play, &by_a, row);
    lab_server_end(play.server);
}

static void run(struct lab *lab)
{
    if (lab_wants(lab, "no-token")) {
        lead(lab, "no-token", true, true, LAB_FAILS);
        lead(lab, "no-token", false, true, LAB_FAILS);
    }
    if (lab_wants(lab, "token"))
        lead(lab, "token", false, true, LAB_OK);
    if (lab_wants(lab, "noeviction")) {
        lead(lab, "noeviction", true, false, LAB_OK);
        lead(lab, "noeviction", false, false, LAB_OK);
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
        "A holds the lock and has read a stock of 10. Other keys fill the "
        "memory\n"
        "of Redis. With maxmemory-policy allkeys-lru the key of the lock is\n"
        "evicted, B takes the lock and sells three, and A writes 9. no-token: "
        "the\n"
        "store takes what comes. token: it refuses the lower token. "
        "noeviction:\n"
        "with that policy, B tries when Redis is full.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_TTL,
    .needs = LAB_NEEDS_SERVERS,
    .strategies = strategies,
    .run = run,
};
