/*
 * Failover: the server that granted the lock dies (case 3 of the documents, the
 * tutorials of lab/README.md): the master of Redis, before it has replicated
 * the lock; two of the five servers of Redlock; the leader of an etcd cluster,
 * which replicated the lock before it answered.
 *
 * Redis. A takes the lock at the master, the master dies, its replica becomes
 * the master, and B takes the same lock there: two holders. Before the master
 * dies, A has read a stock of 10; A writes 9 after B has written 7. A's
 * deadline does not help, because it has not passed yet. The token helps:
 * holdfast takes the token from the server's clock if the clock is higher than
 * the counter, so B's token is higher than A's although the replica never
 * received A's grant. (Here both servers have one clock. On two machines the
 * replica's clock may be behind the master's clock, but by no more than the
 * time that the failover took.)
 *
 * Redlock. A takes the lock from five independent servers. Two of them die, and
 * two new servers without any data take their place. B tries all five: the two
 * new servers would grant the lock, but the other three know A's hold, so B is
 * refused.
 *
 * etcd. A takes the lock from a cluster of three, and its leader dies. B tries
 * the remaining members, and is refused, because they know A's hold.
 *
 * With Redlock and etcd, B sells after A has released the lock.
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
#include "../servers/places.h"
#include "../servers/redis.h"
#include "../servers/server_recipes.h"
#include "../servers/servers.h"
#include "fence.h"
#include "late.h"

#include <holdfast.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* NO_PORT is a port on which no server listens. A replica is cut off by making
 * this port the port of its master. (If the replica were stopped instead, what
 * the master sends would wait in the replica's socket, and would arrive
 * later.) */
enum {
    NO_PORT = 1,
    POLL_MS = 5,
    SYNC_MS = 60000,
    MEMBERS = 3,
    DEAD = LAB_REDLOCK_SERVERS / 2
};

struct pair {
    struct lab_server *master, *replica;
    redisContext *to_master, *to_replica;
};

/* Waits until the replica has everything that was written to the master. */
static void failover_await_replica(struct lab *lab, struct pair *pair)
{
    int64_t until = lab_now() + SYNC_MS * 1000000LL;
    long long last = rd_number(pair->to_master, "INCR replicated");

    while (rd_number(pair->to_replica, "GET replicated") != last) {
        if (lab_now() > until)
            lab_die(CLI_FAILED, "the replica did not catch up within a minute");
        lab_tick(lab);
        lab_sleep_ms(POLL_MS);
    }
}

static void failover_start(struct lab *lab, struct pair *pair)
{
    static const char *const at_once[] = {"--repl-diskless-sync-delay", "0",
                                          NULL};
    char port[16];
    const char *const args[] = {"--replicaof", "127.0.0.1", port, NULL};

    pair->master = lab_server_start(lab, LAB_REDIS, at_once);
    snprintf(port, sizeof port, "%d", pair->master->port);
    pair->replica = lab_server_start(lab, LAB_REDIS, args);
    pair->to_master = rd_open(&pair->master->place);
    pair->to_replica = rd_open(&pair->replica->place);
    failover_await_replica(lab, pair);
}

static void failover_fail_over(struct pair *pair, struct lab_row *row)
{
    redisFree(pair->to_master);
    stage_mark(row, "master", "dies");
    lab_server_kill(pair->master);
    rd_number(pair->to_replica, "REPLICAOF NO ONE");
    stage_mark(row, "replica", "is the master now");
}

static void failover_end(struct pair *pair)
{
    redisFree(pair->to_replica);
    lab_server_end(pair->replica);
    lab_server_end(pair->master);
}

/* A client takes and releases the lock before A, so that the replica has the
 * counter of the lock's tokens. */
static void failover_play_before(void *arg)
{
    const struct late *sale = arg;
    struct hold hold = hold_open(sale->place, sale->name, 0);

    hold_take(&hold, 0, "");
    hold_release(&hold);
    hold_close(&hold);
}

static void failover_act(struct pair *pair, struct late *by_a,
                         struct late *by_b, struct lab_row *row,
                         struct late_result *result)
{
    struct lab *lab = by_a->lab;
    struct stage *stage = stage_new(lab);
    struct actor *a, *b;

    fence_make(lab, NULL, LATE_STOCK);
    if (!by_a->by_hand)
        actor_end(stage_enter(stage, "before", failover_play_before, by_a));
    failover_await_replica(lab, pair);
    rd_number(pair->to_replica, "REPLICAOF 127.0.0.1 %d", NO_PORT);
    a = stage_enter(stage, "A", late_play, by_a);
    actor_until(a, "read");
    failover_fail_over(pair, row);
    b = stage_enter(stage, "B", late_play, by_b);
    actor_until(b, "read");
    result->came_in = true;
    actor_go(b);
    actor_until(b, "done");
    actor_go(a);
    actor_until(a, "done"); /* A does not release: its server is dead */
    stage_rest(lab, lab_settings(lab)->ttl_ms / 4);
    late_read(result, a, b);
    actor_end(b);
    stage_close(stage, row);
    result->left = fence_value(lab, NULL);
}

static void failover_tell(struct lab_row *row, const char *strategy,
                          const char *backend, bool by_hand)
{
    lab_row_text(row, "strategy", "%s", strategy);
    lab_row_text(row, "backend", "%s", backend);
    lab_row_text(row, "variant", "%s", by_hand ? "by hand" : "holdfast");
}

static void failover_tell_result(struct lab_row *row,
                                 const struct late_result *result, int holders)
{
    lab_row_number(row, "holders", holders);
    lab_row_number(row, "left", (double)result->left);
    if (result->a_token) {
        /* The tokens are written as text, because a double does not hold every
         * digit. */
        lab_row_text(row, "a_token", "%" PRIu64, result->a_token);
        lab_row_text(row, "b_token", "%" PRIu64, result->b_token);
    }
}

static void failover_judge(struct lab *lab, struct lab_row *row,
                           const struct late_result *result)
{
    bool two = result->came_in && result->a_checked == HF_OK;

    failover_tell_result(row, result, 1 + two);
    if (late_is_lost(result))
        lab_row_done(lab, row, LAB_FAILS,
                     "%s; 1 stale write: A put %d over B's %d",
                     two ? "two holders" : "one holder", (int)result->left,
                     LATE_STOCK - LATE_BY_B);
    else if (result->a_refused && result->b_token > result->a_token)
        lab_row_done(lab, row, LAB_OK,
                     "%s; 1 stale write refused: B's token is higher",
                     two ? "two holders" : "one holder");
    else
        lab_row_done(lab, row, LAB_FAILS,
                     "A's write was not accepted, but B's token is not higher");
}

/* Servers of which a majority knows the lock, and how some of them die. */
struct cluster {
    struct lab_server *member[LAB_REDLOCK_SERVERS];
    struct lab_place place; /* all of them */
    struct lab_place after; /* the servers that exist after the failure */
    void (*hurt)(struct lab *lab, struct cluster *cluster, struct lab_row *row);
};

/* A takes the lock, some servers die, and B tries. B gets the lock after A's
 * release. */
static void failover_act_on_several(struct lab *lab, struct cluster *cluster,
                                    struct lab_row *row,
                                    struct late_result *result)
{
    char name[96];
    struct late by_a = {.lab = lab,
                        .place = &cluster->place,
                        .name = name,
                        .who = "A",
                        .amount = LATE_BY_A,
                        .ttl_ms = ACTOR_LOCK_LONG_MS};
    struct late by_b = by_a;
    struct stage *stage = stage_new(lab);
    struct actor *a, *b;
    bool came;

    by_b.place = &cluster->after;
    by_b.who = "B";
    by_b.amount = LATE_BY_B;
    by_b.tries = true;
    actor_lock_name(lab, "failover", name);
    fence_make(lab, NULL, LATE_STOCK);
    a = stage_enter(stage, "A", late_play, &by_a);
    actor_until(a, "read");
    cluster->hurt(lab, cluster, row);
    b = stage_enter(stage, "B", late_play, &by_b);
    actor_until(b, "asked");
    actor_go(b);
    came = actor_comes(b, "read", lab_settings(lab)->ttl_ms / 4);
    result->came_in = came || !actor_value(b, LATE_BUSY);
    actor_go(a);
    actor_until(a, "done");
    actor_end(a);
    if (!came)
        actor_until(b, "read");
    actor_go(b);
    actor_until(b, "done");
    late_read(result, a, b);
    actor_end(b);
    stage_close(stage, row);
    result->left = fence_value(lab, NULL);
}

static void failover_lead_on_several(struct lab *lab, struct cluster *cluster)
{
    struct lab_row *row = lab_row(lab, LAB_OK);
    struct late_result result = {0};
    bool fine;

    lab_progress(lab, "no-token on %s", cluster->place.name);
    failover_act_on_several(lab, cluster, row, &result);
    for (size_t i = 0; i < LAB_REDLOCK_SERVERS; i++)
        if (cluster->member[i])
            lab_server_end(cluster->member[i]);
    fine = !result.came_in && result.a_checked == HF_OK &&
           result.b_token > result.a_token &&
           result.left == LATE_STOCK - LATE_BY_A - LATE_BY_B;
    failover_tell(row, "no-token", cluster->place.name, false);
    failover_tell_result(row, &result, 1 + result.came_in);
    lab_row_done(
        lab, row, fine ? LAB_OK : LAB_FAILS,
        fine ? "one holder: the other servers knew the lock, so B had to wait"
             : "B came in, A lost its hold, or a sale is missing");
}

/* Replaces as many servers as Redlock tolerates: two of five. */
static void failover_replace_some(struct lab *lab, struct cluster *cluster,
                                  struct lab_row *row)
{
    for (size_t i = 0; i < DEAD; i++) {
        stage_mark(row, "servers", "one of five dies");
        lab_server_kill(cluster->member[i]);
        lab_server_end(cluster->member[i]);
        cluster->member[i] = NULL;
    }
    lab_redlock_start(lab, cluster->member, &cluster->after);
    stage_mark(row, "servers", "two empty servers replace them");
}

static void failover_lead_on_redlock(struct lab *lab)
{
    struct cluster cluster = {.hurt = failover_replace_some};

    lab_redlock_start(lab, cluster.member, &cluster.place);
    failover_lead_on_several(lab, &cluster);
}

static void failover_start_cluster(struct lab *lab, struct cluster *cluster)
{
    int port[MEMBERS];

    lab_etcd_start(lab, cluster->member, MEMBERS);
    for (size_t i = 0; i < MEMBERS; i++)
        port[i] = cluster->member[i]->port;
    cluster->place = cluster->member[0]->place;
    cluster->place.name = "etcd";
    snprintf(cluster->place.url, sizeof cluster->place.url,
             "etcd://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", port[0], port[1],
             port[2]);
    cluster->after = cluster->place;
}

static bool failover_has_leader(struct cluster *cluster, size_t *which)
{
    for (*which = 0; *which < MEMBERS; ++*which)
        if (lab_etcd_leads(cluster->member[*which]))
            return true;
    return false;
}

static void failover_kill_leader(struct lab *lab, struct cluster *cluster,
                                 struct lab_row *row)
{
    int64_t until = lab_now() + SYNC_MS * 1000000LL;
    size_t which;

    while (!failover_has_leader(cluster, &which)) {
        if (lab_now() > until)
            lab_die(CLI_FAILED, "etcd has had no leader for a minute");
        lab_tick(lab);
        lab_sleep_ms(POLL_MS);
    }
    stage_mark(row, "leader", "dies");
    lab_server_kill(cluster->member[which]);
}

static void failover_lead_on_etcd(struct lab *lab)
{
    struct cluster cluster = {.hurt = failover_kill_leader};

    failover_start_cluster(lab, &cluster);
    failover_lead_on_several(lab, &cluster);
}

static void failover_lead(struct lab *lab, const char *strategy, bool by_hand,
                          enum lab_outcome expected)
{
    struct lab_row *row = lab_row(lab, expected);
    struct late_result result = {0};
    struct pair pair;
    char name[96];
    struct late by_a = {.lab = lab,
                        .name = name,
                        .who = "A",
                        .amount = LATE_BY_A,
                        .by_hand = by_hand,
                        .token = strcmp(strategy, "token") == 0,
                        .deadline = strcmp(strategy, "deadline") == 0};
    struct late by_b = by_a;

    failover_start(lab, &pair);
    lab_progress(lab, "%s", strategy);
    by_a.place = &pair.master->place;
    by_b.place = &pair.replica->place;
    by_b.who = "B";
    by_b.amount = LATE_BY_B;
    actor_lock_name(lab, "failover", name);
    failover_act(&pair, &by_a, &by_b, row, &result);
    failover_end(&pair);
    failover_tell(row, strategy, "redis", by_hand);
    failover_judge(lab, row, &result);
}

static void failover_run(struct lab *lab)
{
    if (lab_wants(lab, "no-token")) {
        failover_lead(lab, "no-token", true, LAB_FAILS);
        failover_lead(lab, "no-token", false, LAB_FAILS);
        if (lab_uses(lab, LAB_REDLOCK))
            failover_lead_on_redlock(lab);
        if (lab_uses(lab, LAB_ETCD))
            failover_lead_on_etcd(lab);
    }
    if (lab_wants(lab, "deadline"))
        failover_lead(lab, "deadline", false, LAB_FAILS);
    if (lab_wants(lab, "token"))
        failover_lead(lab, "token", false, LAB_OK);
}

static const char *const strategies[] = {"no-token", "deadline", "token", NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 8, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"variant", "by", 8, LAB_LEFT},
    {"holders", "holders", 7, 0},
    {"left", "left", 5, 0},
    {"a_token", "A's token", 16, LAB_WIDE},
    {"b_token", "B's token", 16, LAB_WIDE},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_failover = {
    .name = "failover",
    .summary = "the server that granted the lock dies, and another takes over",
    .text =
        "Redis: A takes the lock at the master and reads a stock of 10. The\n"
        "master dies, the replica, which lacks the lock, takes its place, and\n"
        "B takes the lock there and sells three. Then A writes 9. no-token:\n"
        "the store accepts every write. deadline: A calls hf_lock_check()\n"
        "first; its deadline has not passed. token: the store refuses the\n"
        "lower token.\n"
        "Redlock, five servers: two die, and two empty servers replace them;\n"
        "the other three have the lock, so there is one holder.\n"
        "etcd, a cluster of three: the leader dies; the others have the lock,\n"
        "so there is one holder.\n",
    .columns = columns,
    .options = LAB_STRATEGY,
    .needs = LAB_NEEDS_SERVERS,
    .strategies = strategies,
    .run = failover_run,
};
