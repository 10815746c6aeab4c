/*
 * Measures strategies of the scenario oversell with more and more workers: the
 * sales per second, the retries of optimistic sales, the CPU time of a sale,
 * and the duration that one sale in a hundred exceeds. The strategies that sell
 * more than the stock are left out. The documents (tutorials; see
 * lab/README.md) say that optimistic locking is very slow under high
 * concurrency, and that polling wastes performance. Unlike in oversell, no
 * worker pauses within a sale.
 */
#include "../actors/workers.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/place.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/places.h"
#include "sale.h"

#include <holdfast.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST = 64, /* the largest number of workers, unless --workers is given */
    GROWTH = 4,
    SIZES = 8,
    STOCK = 9999999, /* more than can be sold in the time; see stock.c */
    STARVED = 10,    /* if one worker sold more than so many times as much as
                        another, the verdict says so */
};

static const char *const names[] = {
    "sql-update",  "sql-for-update", "sql-version", "sql-timestamp",
    "redis-watch", "redis-spin",     "lock",        NULL};

/* The results of one strategy on one backend, with more and more workers. */
struct curve {
    unsigned len;
    double per_s[SIZES], cpu_us[SIZES], retries[SIZES];
};

/* The results that rows and claims compare with others. */
struct curves {
    struct curve update, version, spin, redis;
    struct curve fair; /* the fair lock of the current backend */
};

static double contention_per_sale(const struct workers_result *result,
                                  double all)
{
    return result->done ? all / (double)result->done : 0;
}

/* Writes the verdict. For an unfair lock, `times' is its sales per second
 * divided by those of the fair lock. In all other rows, and if the sales with
 * the fair lock are not known, `times' is 0. */
static void contention_judge(const struct race *race, struct lab_row *row,
                             const struct workers_result *result,
                             int64_t oversold, double times)
{
    char tail[80] = "";
    double retries = contention_per_sale(result, (double)result->retries);

    if (result->most > result->least * STARVED)
        snprintf(tail, sizeof tail, "; one worker sold %llu, another %llu",
                 (unsigned long long)result->most,
                 (unsigned long long)result->least);
    if (oversold > 0)
        lab_row_done(race->lab, row, LAB_FAILS, "oversold by %lld",
                     (long long)oversold);
    else if (oversold < 0)
        lab_row_done(race->lab, row, LAB_FAILS, "%lld vanished without a sale",
                     (long long)-oversold);
    else if (result->done == 0)
        lab_row_done(race->lab, row, LAB_FAILS, "nothing was sold");
    else if (strcmp(race->strategy->name, "redis-spin") == 0)
        lab_row_done(race->lab, row, LAB_OK, "exact; %.2f polls per sale%s",
                     retries, tail);
    else if (result->retries)
        lab_row_done(race->lab, row, LAB_OK, "exact; %.2f retries per sale%s",
                     retries, tail);
    else if (times > 0)
        lab_row_done(race->lab, row, LAB_OK,
                     "exact; %.1f times the fair lock%s", times, tail);
    else
        lab_row_done(race->lab, row, LAB_OK, "exact%s", tail);
}

static double contention_cpu_us(const struct workers_result *result)
{
    double server = result->server_cpu_ms > 0 ? result->server_cpu_ms : 0;

    return contention_per_sale(result, (result->cpu_ms + server) * 1000);
}

static void contention_sell_with(const struct race *race, unsigned workers,
                                 struct curve *curve, const struct curve *fair)
{
    struct sale_size size = {.workers = workers,
                             .stock = STOCK,
                             .run_ms = lab_settings(race->lab)->seconds_ms};
    struct workers_result *result = lab_alloc(sizeof *result);
    struct lab_row *row = lab_row(race->lab, LAB_OK);
    int64_t left = sale_run(race, &size, result, row);
    unsigned i = curve->len++;

    curve->per_s[i] = result->per_s;
    curve->cpu_us[i] = contention_cpu_us(result);
    curve->retries[i] = contention_per_sale(result, (double)result->retries);
    lab_row_number(row, "workers", workers);
    lab_row_number(row, "sold", (double)result->done);
    lab_row_number(row, "least", (double)result->least);
    lab_row_number(row, "most", (double)result->most);
    lab_row_number(row, "retries_per_sale", curve->retries[i]);
    lab_row_number(row, "cpu_us", curve->cpu_us[i]);
    contention_judge(race, row, result, (int64_t)result->done - (STOCK - left),
                     race->fairness == HF_UNFAIR && fair->len > i &&
                             fair->per_s[i] > 0
                         ? result->per_s / fair->per_s[i]
                         : 0);
    free(result);
}

static unsigned contention_largest(struct lab *lab)
{
    const struct lab_settings *settings = lab_settings(lab);

    return settings->workers_given ? (unsigned)settings->workers : LARGEST;
}

static void contention_remember(struct curves *curves, const struct race *race,
                                const struct curve *curve)
{
    const char *name = race->strategy->name;

    if (strcmp(name, "sql-update") == 0)
        curves->update = *curve;
    else if (strcmp(name, "sql-version") == 0)
        curves->version = *curve;
    else if (strcmp(name, "redis-spin") == 0)
        curves->spin = *curve;
    else if (race->fairness == HF_FAIR)
        curves->fair = *curve;
    else if (race->fairness == HF_UNFAIR && race->backend->engine == LAB_REDIS)
        curves->redis = *curve;
}

/* Sells with 1, 4, 16, ... workers, and then with the largest number. */
static void contention_sweep(const struct race *race, void *arg)
{
    unsigned most = contention_largest(race->lab), workers = 1;
    struct curves *curves = arg;
    struct curve curve = {0};

    if (race->fairness == HF_FAIR)
        curves->fair.len = 0; /* the old curve belongs to another backend */
    while (workers < most && curve.len < SIZES - 1) {
        contention_sell_with(race, workers, &curve, &curves->fair);
        workers *= GROWTH;
    }
    contention_sell_with(race, most, &curve, &curves->fair);
    contention_remember(curves, race, &curve);
}

static const struct lab_place *
contention_store_of(struct lab *lab, const struct strategy *strategy)
{
    enum lab_engine engine = strategy->stores & ON_FILE    ? LAB_FILE
                             : strategy->stores & ON_REDIS ? LAB_REDIS
                                                           : LAB_MARIADB;

    return lab_store(lab, engine);
}

static bool contention_is_ours(const struct lab *lab, const char *name)
{
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return lab_wants(lab, name);
    return false;
}

static void contention_claim(struct lab *lab, const struct curves *curves)
{
    unsigned last = curves->version.len - 1;
    unsigned workers = contention_largest(lab);

    if (curves->version.len && curves->update.len)
        lab_claim(lab,
                  curves->version.per_s[last] * 2 < curves->update.per_s[last],
                  "optimistic locking is very slow under high concurrency",
                  "%u workers: %.0f sales per second, %.1f retries per sale; "
                  "one statement %.0f",
                  workers, curves->version.per_s[last],
                  curves->version.retries[last], curves->update.per_s[last]);
    last = curves->spin.len - 1;
    if (curves->spin.len && curves->redis.len)
        lab_claim(lab, curves->spin.cpu_us[last] > curves->redis.cpu_us[last],
                  "polling for a lock wastes CPU",
                  "%u workers: %.0f us of CPU per sale; by events %.0f",
                  workers, curves->spin.cpu_us[last],
                  curves->redis.cpu_us[last]);
}

static void contention_run(struct lab *lab)
{
    struct curves curves = {0};

    for (size_t i = 0; i < SALE_STRATEGIES; i++) {
        const struct strategy *strategy = &sale_strategies[i];
        struct race race = {.lab = lab, .strategy = strategy};

        if (!contention_is_ours(lab, strategy->name))
            continue;
        race.store = contention_store_of(lab, strategy);
        lab_name(lab, "contention", race.lock_name);
        if (!race.store)
            sale_lacks_store(lab, strategy);
        else if (sale_is_lock(strategy))
            sale_each_lock(&race, "contention", contention_sweep, &curves);
        else
            contention_sweep(&race, &curves);
    }
    contention_claim(lab, &curves);
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 14, LAB_LEFT},
    {"variant", "variant", 7, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT},
    {"workers", "workers", 7, 0},
    {"sold", "sold", 6, LAB_JSON_ONLY},
    {"least", "least by one", 6, LAB_JSON_ONLY},
    {"most", "most by one", 6, LAB_JSON_ONLY},
    {"attempts", "attempts", 8, LAB_JSON_ONLY},
    {"retries", "retries", 7, LAB_JSON_ONLY},
    {"retries_per_sale", "retries per sale", 7, LAB_WIDE},
    {"per_s", "sales/s", 7, LAB_BAR},
    {"p50_us", "p50 us", 8, LAB_WIDE},
    {"p99_us", "p99 us", 8, 0},
    {"cpu_us", "CPU us/sale", 11, 0},
    {"cpu_ms", "CPU ms", 8, LAB_JSON_ONLY},
    {"server_cpu_ms", "server CPU ms", 8, LAB_JSON_ONLY},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_contention = {
    .name = "contention",
    .summary = "1 to 64 workers sell one stock, in every way that is exact",
    .text =
        "1, 4, 16 and 64 workers (--workers sets the largest number) sell one\n"
        "stock for a while (--seconds), by each strategy that sells exactly.\n"
        "The CPU time of a sale is that of the workers and the servers. The\n"
        "results show where optimistic locking collapses (retries), what\n"
        "polling costs and how it starves workers (p99), and what fairness\n"
        "costs.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_SECONDS,
    .needs = LAB_HAS_MARIADB,
    .strategies = names,
    .run = contention_run,
};
