/*
 * The oversell race, with which the documents (tutorials; see lab/README.md)
 * begin: several workers sell one stock, and each way of guarding it that the
 * documents describe is tried on the same stock with the same buyers. A sale
 * reads the stock, and writes one less. In its first sale each worker pauses
 * between these two steps until another worker has read, too (worker_meet), or
 * for a limited time if the strategy must keep the other workers out. Therefore
 * a strategy that does not keep them out oversells in every run. redis-setnx
 * does keep other workers out, but its release is wrong. Its pause is therefore
 * before the release (sale.c).
 */
#include "../../cli/shared/exit_code.h"
#include "../actors/workers.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/place.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/places.h"
#include "sale.h"

#include <holdfast.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* redis-setnx needs a first sale, and then two buyers who read the same
 * remaining stock. */
enum { LEAST_STOCK = 2, LEAST_BUYERS = 3 };

static void oversell_judge(struct lab *lab, struct lab_row *row, int64_t sold,
                           int64_t left)
{
    const struct lab_settings *settings = lab_settings(lab);
    int64_t stock = (int64_t)settings->stock;
    int64_t buyers = (int64_t)settings->buyers;
    int64_t oversold = sold - (stock - left);

    lab_row_number(row, "sold", (double)sold);
    lab_row_number(row, "left", (double)left);
    lab_row_number(row, "oversold", (double)(oversold > 0 ? oversold : 0));
    if (oversold > 0)
        lab_row_done(lab, row, LAB_FAILS, "oversold by %lld",
                     (long long)oversold);
    else if (oversold < 0)
        lab_row_done(lab, row, LAB_FAILS, "%lld vanished without a sale",
                     (long long)-oversold);
    else if (sold < buyers && left > 0)
        lab_row_done(lab, row, LAB_FAILS,
                     "%lld left, but buyers were sent away", (long long)left);
    else
        lab_row_done(lab, row, LAB_OK, "sold exactly %lld", (long long)sold);
}

static struct lab_row *oversell_sell_all(const struct race *race)
{
    const struct lab_settings *settings = lab_settings(race->lab);
    struct sale_size size = {.workers = (unsigned)settings->workers,
                             .stock = settings->stock,
                             .attempts = settings->buyers};
    struct lab_row *row = lab_row(race->lab, race->expected);
    struct workers_result *result = lab_alloc(sizeof *result);
    int64_t left = sale_run(race, &size, result, row);

    oversell_judge(race->lab, row, (int64_t)result->done, left);
    free(result);
    return row;
}

/* The results that the claims compare. */
struct seen {
    const struct lab_row *update, *for_update, *version, *spin;
    const struct lab_row *redis, *zookeeper, *etcd; /* fair locks, stock in a
                                                       file */
    const struct lab_row *redis_on_redis;           /* the unfair lock, stock in
                                                       Redis */
};

static void oversell_remember(struct seen *seen, const struct race *race,
                              const struct lab_row *row)
{
    const char *name = race->strategy->name;
    bool is_fair = race->backend && race->fairness == HF_FAIR;
    bool is_unfair = race->backend && race->fairness == HF_UNFAIR;

    if (strcmp(name, "sql-update") == 0)
        seen->update = row;
    else if (strcmp(name, "sql-for-update") == 0)
        seen->for_update = row;
    else if (strcmp(name, "sql-version") == 0)
        seen->version = row;
    else if (strcmp(name, "redis-spin") == 0)
        seen->spin = row;
    else if (is_fair && race->backend->engine == LAB_REDIS &&
             race->store->engine == LAB_FILE)
        seen->redis = row;
    else if (is_unfair && race->backend->engine == LAB_REDIS &&
             race->store->engine == LAB_REDIS)
        seen->redis_on_redis = row;
    else if (is_fair && race->backend->engine == LAB_ZOOKEEPER &&
             race->store->engine == LAB_FILE)
        seen->zookeeper = row;
    else if (is_fair && race->backend->engine == LAB_ETCD &&
             race->store->engine == LAB_FILE)
        seen->etcd = row;
}

static void oversell_race_lock(const struct race *race, void *arg)
{
    oversell_remember(arg, race, oversell_sell_all(race));
}

static void oversell_race_on(struct race *race, struct seen *seen)
{
    const struct strategy *strategy = race->strategy;
    const char *const *variant = strategy->variants;

    lab_name(race->lab, "oversell", race->lock_name);
    race->expected = strategy->expected;
    if (sale_is_lock(strategy)) {
        sale_each_lock(race, "oversell", oversell_race_lock, seen);
        return;
    }
    if (!variant) {
        oversell_remember(seen, race, oversell_sell_all(race));
        return;
    }
    for (int i = 0; variant[i]; i++) {
        race->variant = variant[i];
        race->expected = strategy->expected_of[i];
        oversell_remember(seen, race, oversell_sell_all(race));
    }
}

static void oversell_race_strategy(struct lab *lab,
                                   const struct strategy *strategy,
                                   struct seen *seen)
{
    static const enum lab_engine engines[] = {LAB_FILE, LAB_REDIS, LAB_MARIADB};
    bool found = false;

    for (size_t i = 0; i < 3; i++) {
        struct race race = {.lab = lab, .strategy = strategy, .pauses = true};

        if (!(strategy->stores & 1U << engines[i]))
            continue;
        race.store = lab_store(lab, engines[i]);
        if (!race.store)
            continue;
        found = true;
        oversell_race_on(&race, seen);
    }
    if (!found)
        sale_lacks_store(lab, strategy);
}

static double oversell_per_s(const struct lab_row *row)
{
    return lab_row_get(row, "per_s");
}

/* Returns the CPU time of workers and servers for one sale, in microseconds. */
static double oversell_cpu_us(const struct lab_row *row)
{
    return (lab_row_get(row, "cpu_ms") + lab_row_get(row, "server_cpu_ms")) *
           1000 / lab_row_get(row, "sold");
}

static void oversell_claim(struct lab *lab, const struct seen *seen)
{
    if (seen->update && seen->for_update && seen->version)
        lab_claim(
            lab,
            oversell_per_s(seen->update) > oversell_per_s(seen->for_update) &&
                oversell_per_s(seen->for_update) >
                    oversell_per_s(seen->version),
            "one statement > for update > optimistic",
            "%.0f, %.0f and %.0f sales per second",
            oversell_per_s(seen->update), oversell_per_s(seen->for_update),
            oversell_per_s(seen->version));
    if (seen->redis && seen->zookeeper) {
        double redis = oversell_per_s(seen->redis),
               zookeeper = oversell_per_s(seen->zookeeper);

        lab_claim(lab, redis > zookeeper, "Redis is faster than ZooKeeper",
                  "%.0f and %.0f sales per second, both by a fair lock", redis,
                  zookeeper);
        lab_claim(lab, zookeeper > redis, "ZooKeeper is faster than Redis",
                  "%.0f and %.0f sales per second, both by a fair lock",
                  zookeeper, redis);
    }
    if (seen->redis && seen->etcd)
        lab_claim(lab, oversell_per_s(seen->redis) > oversell_per_s(seen->etcd),
                  "Redis is faster than etcd",
                  "%.0f and %.0f sales per second, both by a fair lock",
                  oversell_per_s(seen->redis), oversell_per_s(seen->etcd));
    if (seen->spin && seen->redis_on_redis)
        lab_claim(
            lab,
            oversell_cpu_us(seen->redis_on_redis) < oversell_cpu_us(seen->spin),
            "waiting for an event is cheaper than polling",
            "%.0f and %.0f us of CPU per sale",
            oversell_cpu_us(seen->redis_on_redis), oversell_cpu_us(seen->spin));
}

static void oversell_run(struct lab *lab)
{
    const struct lab_settings *settings = lab_settings(lab);
    struct seen seen = {0};

    if (settings->stock < LEAST_STOCK)
        lab_die(CLI_USAGE, "--stock is %llu; oversell needs at least %d",
                (unsigned long long)settings->stock, LEAST_STOCK);
    if (settings->buyers < LEAST_BUYERS)
        lab_die(CLI_USAGE, "--buyers is %llu; oversell needs at least %d",
                (unsigned long long)settings->buyers, LEAST_BUYERS);
    for (size_t i = 0; i < SALE_STRATEGIES; i++)
        if (lab_wants(lab, sale_strategies[i].name))
            oversell_race_strategy(lab, &sale_strategies[i], &seen);
    oversell_claim(lab, &seen);
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 16, LAB_LEFT},
    {"variant", "variant", 16, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT},
    {"sold", "sold", 5, 0},
    {"left", "left", 5, 0},
    {"oversold", "oversold", 8, 0},
    {"attempts", "attempts", 8, LAB_WIDE},
    {"retries", "retries", 7, LAB_WIDE},
    {"per_s", "sales/s", 7, LAB_BAR},
    {"p50_us", "p50 us", 8, LAB_WIDE},
    {"p99_us", "p99 us", 8, LAB_WIDE},
    {"cpu_ms", "CPU ms", 8, LAB_WIDE},
    {"server_cpu_ms", "server CPU ms", 8, LAB_WIDE},
    {NULL, NULL, 0, 0},
};

static const struct lab_note notes[] = {
    {"none", "fast, because no worker waits; two read 500 and both write 499: "
             "one oversold"},
    {"local-mutex", "excludes threads of one process; workers are processes"},
    {"local-mutex-each", "one mutex per object: each worker locks its own"},
    {"local-mutex-tx", "released before the commit: the next reads old data"},
    {"sql-update", "the database reads and writes in one step"},
    {"sql-for-update", "the row is locked from the read to the commit"},
    {"sql-version", "a write is refused and repeated if the version changed"},
    {"sql-timestamp", "the same with the time of the last write"},
    {"redis-watch", "EXEC is refused and repeated if the count changed"},
    {"redis-setnx", "DEL may free the lock of another worker; check the owner"},
    {"redis-spin", "exact; each waiter asks again every 50 ms"},
    {"lock", "holdfast: one worker at a time, so fewer sales per second, all "
             "exact"},
    {NULL, NULL},
};
_Static_assert(sizeof notes / sizeof *notes == SALE_STRATEGIES + 1,
               "a note for each strategy");

const struct lab_scenario lab_oversell = {
    .name = "oversell",
    .summary = "workers sell one stock, guarded in every way there is",
    .text =
        "Workers sell a stock to buyers. A sale reads the stock and writes "
        "one\n"
        "less. A sale for which nothing has left the stock is oversold.\n"
        "\n"
        "  none              nothing guards the two steps\n"
        "  local-mutex       a mutex in each process\n"
        "  local-mutex-each  a mutex in each object, in threads of one "
        "process\n"
        "  local-mutex-tx    a mutex that is released before the commit, at "
        "each isolation level\n"
        "  sql-update        one statement: SET count = count - 1\n"
        "  sql-for-update    SELECT ... FOR UPDATE\n"
        "  sql-version       a version is checked when the count is written\n"
        "  sql-timestamp     the same with a time instead of a version\n"
        "  redis-watch       WATCH, MULTI, EXEC\n"
        "  redis-setnx       SET NX with a lease; DEL, with or without owner "
        "check\n"
        "  redis-spin        SET NX, tried every 50 ms; release by a script\n"
        "  lock              holdfast's, on each backend\n"
        "\n"
        "In its first sale each worker pauses between the two steps until\n"
        "another one has read too, so a strategy that does not keep others\n"
        "out oversells in every run. redis-setnx pauses before its release,\n"
        "until its lease has ended and another worker has the lock.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_STOCK | LAB_BUYERS,
    .needs = LAB_HAS_REDLOCK | LAB_HAS_MARIADB,
    .strategies = sale_names,
    .notes = notes,
    .run = oversell_run,
};
