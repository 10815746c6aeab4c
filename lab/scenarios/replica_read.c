/*
 * Replica-read: sales that read from a replica and write to the master.
 *
 * With read/write splitting, selects go to replicas, which lag. The tutorial on
 * MySQL's locks (lab/README.md) leaves open, as a TODO, whether `for update'
 * has an effect then, and says that optimistic locking becomes unreliable,
 * because the version that is read may be old. Here the replica certainly lags:
 * its SQL thread is stopped, so that the replica receives the master's changes
 * but does not apply them.
 *
 * The result: a row that is locked at the replica is not locked at the master.
 * The version is checked by the update, at the master. This check lets no wrong
 * sale through, but it refuses every sale that has read an old version, until
 * the replica has caught up.
 */
#include "../../cli/shared/exit_code.h"
#include "../actors/stage.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/servers.h"
#include "../servers/sql.h"
#include "goods.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ROW = 1,
    CATCH_UP_S = 40,
    REST_MS = 30, /* so that a wait is visible in the timeline */
};

/* What actors report, in addition to the values of goods.h. */
enum { READ = GOODS_VALUES };

struct play;

struct scene {
    const char *strategy, *variant;
    enum lab_outcome expected;
    void (*lead)(struct lab *lab, struct play *play, struct lab_row *row);
    bool at_replica; /* the actor reads at the replica, not at the master */
    bool follows;    /* each retry first waits for the replica */
};

struct play {
    const struct scene *scene;
    const struct lab_place *master, *replica;
    char table[96];
    struct lab_server *servers[2];
    struct sql *to_master, *to_replica; /* connections of the runner */
};

/* Waits until the replica has applied everything that the master has done so
 * far. Dies after CATCH_UP_S. */
static void replica_read_catch_up(struct sql *to_master, struct sql *to_replica)
{
    char position[256], reached[256];

    sql_text(to_master, position, sizeof position,
             "SELECT @@GLOBAL.gtid_binlog_pos");
    if (sql_number(to_replica, "SELECT MASTER_GTID_WAIT('%s', %d)", position,
                   CATCH_UP_S) == 0)
        return;
    sql_text(to_replica, reached, sizeof reached,
             "SELECT @@GLOBAL.gtid_slave_pos");
    lab_die(CLI_FAILED, "the replica is at \"%s\" after %d s, not at \"%s\"",
            reached, CATCH_UP_S, position);
}

static void replicate(struct lab *lab, struct play *play)
{
    static const char *const args[] = {"--log-bin", NULL};
    int port;

    play->servers[0] = lab_server_start(lab, LAB_MARIADB, args);
    play->servers[1] = lab_server_start(lab, LAB_MARIADB, NULL);
    lab_progress(lab, "starting to replicate");
    port = play->servers[0]->port;
    play->master = &play->servers[0]->place;
    play->replica = &play->servers[1]->place;
    play->to_master = goods_session(play->master, NULL);
    play->to_replica = goods_session(play->replica, NULL);
    goods_make(play->to_master, play->table);
    sql_do(play->to_replica,
           "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, "
           "MASTER_USER = 'replica', MASTER_USE_GTID = slave_pos, "
           "MASTER_CONNECT_RETRY = 1",
           port);
    sql_do(play->to_replica, "START SLAVE");
}

/* Resets the table on both servers. The replica lags from then on. */
static void replica_read_begin_lag(const struct play *play)
{
    sql_do(play->to_replica, "START SLAVE SQL_THREAD");
    goods_reset(play->to_master, play->table);
    replica_read_catch_up(play->to_master, play->to_replica);
    sql_do(play->to_replica, "STOP SLAVE SQL_THREAD");
}

static struct sql *reader(const struct play *play)
{
    return goods_session(play->scene->at_replica ? play->replica : play->master,
                         NULL);
}

/* Sets the fields sold, left and oversold of the row. Returns how many sales
 * were not subtracted from the stock. */
static long long replica_read_tell_left(const struct play *play,
                                        struct lab_row *row, int sold)
{
    int64_t left = goods_read(play->to_master, play->table, ROW).count;
    int64_t oversold = sold - (GOODS_COUNT - left);

    lab_row_number(row, "sold", sold);
    lab_row_number(row, "left", (double)left);
    lab_row_number(row, "oversold", (double)oversold);
    return oversold;
}

static void reads_and_writes(void *arg)
{
    const struct play *play = arg;
    struct sql *from = reader(play), *to = goods_session(play->master, NULL);
    int64_t count;

    actor_holds("");
    count = goods_read(from, play->table, ROW).count;
    actor_report(READ, count);
    actor_mark(false, "reads %lld", (long long)count);
    goods_write(to, play->table, ROW, count - 1);
    actor_mark(false, "writes %lld", (long long)count - 1);
    actor_lets_go();
    sql_close(from);
    sql_close(to);
}

/* B begins only when A has ended, as if a lock guarded both sales. At a replica
 * that lags, B still reads the old count. */
static void replica_read_lead_plain(struct lab *lab, struct play *play,
                                    struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *b;
    long long oversold, count;

    actor_end(stage_enter(stage, "A", reads_and_writes, play));
    b = stage_enter(stage, "B", reads_and_writes, play);
    actor_end(b);
    count = actor_value(b, READ);
    stage_close(stage, row);
    oversold = replica_read_tell_left(play, row, 2);
    if (oversold)
        lab_row_done(lab, row, LAB_FAILS,
                     "oversold by %lld: A was done, B still read %lld",
                     oversold, count);
    else
        lab_row_done(lab, row, LAB_OK, "sold exactly 2: B read %lld", count);
}

static void replica_read_sells_for_update(void *arg)
{
    const struct play *play = arg;
    struct sql *from = reader(play);
    struct sql *to = from;
    int64_t count;

    if (play->scene->at_replica)
        to = goods_session(play->master, NULL);
    sql_do(from, "START TRANSACTION");
    count = goods_await(from, play->table, ROW, actor_holds,
                        play->scene->at_replica ? "row at the replica"
                                                : "row at the master")
                .count;
    actor_step("has locked");
    actor_report(READ, count);
    goods_write(to, play->table, ROW, count - 1);
    actor_mark(false, "writes %lld", (long long)count - 1);
    goods_commit(from);
    if (to != from)
        sql_close(to);
    sql_close(from);
}

static void replica_read_lead_for_update(struct lab *lab, struct play *play,
                                         struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *a = stage_enter(stage, "A", replica_read_sells_for_update,
                                  play),
                 *b;
    long long oversold, count;
    bool locked;

    actor_until(a, "has tried");
    actor_go(a);
    actor_until(a, "has locked");
    locked = !goods_try(play->to_master, play->table, ROW);
    b = stage_enter(stage, "B", replica_read_sells_for_update, play);
    actor_until(b, "has tried");
    if (!actor_value(b, GOODS_BLOCKED))
        lab_die(CLI_FAILED, "a defect: B does not have to wait for A's row");
    actor_go(b);
    stage_rest(lab, REST_MS);
    actor_end(a);
    actor_until(b, "has locked");
    actor_end(b);
    count = actor_value(b, READ);
    stage_close(stage, row);
    oversold = replica_read_tell_left(play, row, 2);
    if (oversold)
        lab_row_done(lab, row, LAB_FAILS,
                     "oversold by %lld: %s at the master, B read %lld",
                     oversold, locked ? "locked" : "not locked", count);
    else
        lab_row_done(lab, row, LAB_OK,
                     "sold exactly 2: %s at the master, B read %lld",
                     locked ? "locked" : "not locked", count);
}

struct pair {
    struct sql *master, *replica;
};

static void wait_for_replica(void *arg)
{
    const struct pair *pair = arg;

    replica_read_catch_up(pair->master, pair->replica);
}

static void replica_read_sells_by_version(void *arg)
{
    const struct play *play = arg;
    struct sql *from = reader(play), *to = goods_session(play->master, NULL);
    struct pair pair = {to, from};

    goods_sell_by_version(from, to, play->table, ROW,
                          play->scene->follows ? wait_for_replica : NULL,
                          &pair);
    sql_close(from);
    sql_close(to);
}

static void replica_read_sells_one(void *arg)
{
    const struct play *play = arg;
    struct sql *to = goods_session(play->master, NULL);

    goods_sell(to, play->table, ROW);
    actor_mark(false, "sells one");
    sql_close(to);
}

static void replica_read_judge_version(struct lab *lab, struct lab_row *row,
                                       bool sold, long long retries,
                                       long long version)
{
    long long oversold = (long long)lab_row_get(row, "oversold");

    lab_row_number(row, "retries", (double)retries);
    if (oversold)
        lab_row_done(lab, row, LAB_FAILS, "oversold by %lld", oversold);
    else if (sold)
        lab_row_done(lab, row, LAB_OK, "sold by retry %lld, with version %lld",
                     retries, version);
    else
        lab_row_done(lab, row, LAB_FAILS,
                     "%lld retries, all refused, not oversold: still reads "
                     "version %lld",
                     retries, version);
}

static void replica_read_lead_version(struct lab *lab, struct play *play,
                                      struct lab_row *row)
{
    struct stage *stage = stage_new(lab);
    struct actor *a =
        stage_enter(stage, "A", replica_read_sells_by_version, play);
    long long oversold, retries, version;
    bool sold;

    actor_until(a, "has read");
    actor_end(stage_enter(stage, "B", replica_read_sells_one, play));
    if (play->scene->follows)
        sql_do(play->to_replica, "START SLAVE SQL_THREAD");
    actor_end(a);
    sold = actor_value(a, GOODS_SOLD);
    retries = actor_value(a, GOODS_RETRIED);
    version = actor_value(a, GOODS_VERSION);
    stage_close(stage, row);
    oversold = replica_read_tell_left(play, row, 1 + sold);
    replica_read_judge_version(lab, row, sold, retries, version);
    if (!play->scene->at_replica || play->scene->follows)
        return;
    lab_claim(lab, !sold,
              "a version that is read from a replica is old while it lags",
              "%lld retries, all refused", retries);
    lab_claim(lab, oversold > 0,
              "read/write splitting makes optimistic locking oversell",
              "oversold by %lld: the master checks the version", oversold);
}

static const struct scene scenes[] = {
    {"plain", "replica", LAB_FAILS, replica_read_lead_plain, true, false},
    {"plain", "master", LAB_OK, replica_read_lead_plain, false, false},
    {"for-update", "replica", LAB_FAILS, replica_read_lead_for_update, true,
     false},
    {"for-update", "master", LAB_OK, replica_read_lead_for_update, false,
     false},
    {"version", "replica", LAB_FAILS, replica_read_lead_version, true, false},
    {"version", "replica caught up", LAB_OK, replica_read_lead_version, true,
     true},
    {"version", "master", LAB_OK, replica_read_lead_version, false, false},
};

static void replica_read_run(struct lab *lab)
{
    struct play play = {.scene = NULL};

    lab_table(lab, "goods", play.table);
    replicate(lab, &play);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        const struct scene *scene = play.scene = &scenes[i];
        struct lab_row *row;

        if (!lab_wants(lab, scene->strategy))
            continue;
        row = goods_row(lab, play.master, scene->strategy, scene->variant,
                        scene->expected);
        replica_read_begin_lag(&play);
        scene->lead(lab, &play, row);
    }
    sql_close(play.to_master);
    sql_close(play.to_replica);
    for (int i = 2; i-- > 0;)
        lab_server_end(play.servers[i]);
}

static const char *const strategies[] = {"plain", "for-update", "version",
                                         NULL};

static const struct lab_column columns[] = {
    {"strategy", "strategy", 10, LAB_LEFT},
    {"variant", "read at", 17, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT},
    {"retries", "retries", 7, 0},
    {"sold", "sold", 4, 0},
    {"left", "left", 4, 0},
    {"oversold", "oversold", 8, 0},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_replica_read = {
    .name = "replica-read",
    .summary = "sales that read the stock at a replica that lags",
    .text =
        "A and B sell from a stock of 10. They write to the master, and read\n"
        "at the master or at a replica that lags: its SQL thread is stopped.\n"
        "plain: B begins after A has ended, as if a lock guarded both.\n"
        "for-update: both lock the row where they read it. version: B sells\n"
        "after A has read; A is refused, and tries again.\n",
    .columns = columns,
    .options = LAB_STRATEGY,
    .needs = LAB_NEEDS_SERVERS | LAB_NEEDS_MARIADB,
    .strategies = strategies,
    .run = replica_read_run,
};
