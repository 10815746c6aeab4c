/*
 * The oversell race, with which the documents begin: several workers sell one
 * stock, and each way of guarding it that the documents describe is tried on
 * the same stock with the same buyers. A sale reads the stock, and writes one
 * less. In its first sale each worker pauses between the two until another
 * worker has read as well (worker_meet), so what does not keep the others out
 * oversells in every run.
 */
#include "../crew.h"
#include "../redis.h"
#include "../sql.h"
#include "../stock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    THINK_NS = 50000,  /* between reading a file and writing it */
    KEPT_OUT_MS = 300, /* a pause during which nobody else gets in */
    MEET_MS = 60000,   /* one that ends as soon as somebody does */
    RETRY_MS = 20,     /* of the optimistic ones, as in the documents */
    SPIN_MS = 50,      /* redis-spin, as in the documents */
    SPIN_TTL_MS = 10000,
    SETNX_MS = 2,
    SETNX_TTL_MS = 200,
};

struct race;

struct strategy {
    const char *name;
    unsigned stores; /* bits of enum lab_engine */
    enum lab_outcome expected;
    bool threads; /* workers are threads of one process */
    void (*open)(struct worker *worker);
    enum work (*work)(struct worker *worker);
    const char *const *variants;         /* NULL: one, without a name */
    const enum lab_outcome *expected_of; /* variants, if they differ */
};

/* One row. */
struct race {
    struct lab *lab;
    const struct strategy *strategy;
    const struct lab_place *store, *backend;
    const char *variant;
    enum hf_fairness fairness;
    enum lab_outcome expected;
    char lock_name[96];
};

/* What a worker has. */
struct clerk {
    struct stock *stock;
    hf_client *client;
    hf_lock *lock;
    pthread_mutex_t own;
    char uuid[32];
};

static const struct race *race_of(const struct worker *worker)
{
    return worker->arg;
}

static struct clerk *clerk_of(const struct worker *worker)
{
    return worker->mine;
}

static int64_t pause_ms(const struct worker *worker)
{
    return race_of(worker)->expected == LAB_FAILS ? MEET_MS : KEPT_OUT_MS;
}

static struct sql *sql_of(const struct worker *worker)
{
    return stock_sql(clerk_of(worker)->stock);
}

static redisContext *redis_of(const struct worker *worker)
{
    return stock_redis(clerk_of(worker)->stock);
}

static const char *key_of(const struct worker *worker)
{
    return stock_key(clerk_of(worker)->stock);
}

/* ---- read, pause, write: what has to be guarded ---------------------------
 */

static enum work sell(struct worker *worker)
{
    struct clerk *clerk = clerk_of(worker);
    struct timespec think = {0, THINK_NS};
    int64_t begin = lab_now(), seen = stock_read(clerk->stock);

    if (seen <= 0)
        return WORK_NOTHING;
    worker_meet(worker, pause_ms(worker));
    if (race_of(worker)->store->engine == LAB_FILE)
        nanosleep(&think, NULL); /* the database, the payment, the network */
    stock_write(clerk->stock, seen - 1);
    worker_span(worker, begin);
    return WORK_DONE;
}

/* ---- locks of one process ------------------------------------------------ */

static void *make_mutex(const void *arg)
{
    pthread_mutex_t *mutex = malloc(sizeof *mutex);

    (void)arg;
    if (!mutex)
        lab_die(CLI_OSERR, "out of memory");
    pthread_mutex_init(mutex, NULL);
    return mutex;
}

static enum work local_mutex(struct worker *worker)
{
    enum work work;

    pthread_mutex_lock(worker->process);
    work = sell(worker);
    pthread_mutex_unlock(worker->process);
    return work;
}

static enum work local_mutex_each(struct worker *worker)
{
    enum work work;

    pthread_mutex_lock(&clerk_of(worker)->own);
    work = sell(worker);
    pthread_mutex_unlock(&clerk_of(worker)->own);
    return work;
}

static const char *const isolation_levels[] = {
    "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE",
    NULL};
static const enum lab_outcome isolation_outcomes[] = {LAB_OK, LAB_FAILS,
                                                      LAB_FAILS, LAB_OK};

static void open_tx(struct worker *worker)
{
    sql_do(sql_of(worker), "SET SESSION TRANSACTION ISOLATION LEVEL %s",
           race_of(worker)->variant);
}

/* The mutex is released, and then the transaction commits: in between the next
 * one reads what was there before. */
static enum work local_mutex_tx(struct worker *worker)
{
    struct stock *stock = clerk_of(worker)->stock;
    int64_t seen, begin;

    sql_do(sql_of(worker), "START TRANSACTION");
    pthread_mutex_lock(worker->process);
    begin = lab_now();
    seen = stock_read(stock);
    worker_arrive(worker);
    if (seen > 0)
        stock_write(stock, seen - 1);
    pthread_mutex_unlock(worker->process);
    if (seen > 0)
        worker_await(worker, pause_ms(worker));
    sql_do(sql_of(worker), "COMMIT");
    worker_span(worker, begin);
    return seen > 0 ? WORK_DONE : WORK_NOTHING;
}

/* ---- the database -------------------------------------------------------- */

static enum work sql_update(struct worker *worker)
{
    sql_do(sql_of(worker),
           "UPDATE %s SET count = count - 1 WHERE id = 1 AND count >= 1",
           key_of(worker));
    return sql_changed(sql_of(worker)) ? WORK_DONE : WORK_NOTHING;
}

static enum work sql_for_update(struct worker *worker)
{
    struct sql *sql = sql_of(worker);
    int64_t seen, begin;

    sql_do(sql, "START TRANSACTION");
    seen = sql_number(sql, "SELECT count FROM %s WHERE id = 1 FOR UPDATE",
                      key_of(worker));
    begin = lab_now();
    if (seen > 0) {
        worker_meet(worker, pause_ms(worker));
        stock_write(clerk_of(worker)->stock, seen - 1);
        worker_span(worker, begin);
    }
    sql_do(sql, "COMMIT");
    return seen > 0 ? WORK_DONE : WORK_NOTHING;
}

/* Has the row changed since it was read? Then again. */
static enum work optimistic(struct worker *worker, const char *seen_as,
                            const char *next)
{
    struct sql *sql = sql_of(worker);
    const char *table = key_of(worker);
    int64_t seen[2];

    for (;;) {
        sql_row(sql, seen, 2, "SELECT count, %s FROM %s WHERE id = 1", seen_as,
                table);
        if (seen[0] <= 0)
            return WORK_NOTHING;
        worker_meet(worker, pause_ms(worker));
        sql_do(sql, "UPDATE %s SET count = %lld, %s WHERE id = 1 AND %s = %lld",
               table, (long long)seen[0] - 1, next, seen_as,
               (long long)seen[1]);
        if (sql_changed(sql))
            return WORK_DONE;
        worker->retries++;
        lab_sleep_ms(RETRY_MS);
    }
}

static enum work sql_version(struct worker *worker)
{
    return optimistic(worker, "version", "version = version + 1");
}

static enum work sql_timestamp(struct worker *worker)
{
    return optimistic(worker,
                      "CAST(UNIX_TIMESTAMP(updated) * 1000000 AS SIGNED)",
                      "updated = NOW(6)");
}

/* ---- Redis --------------------------------------------------------------- */

static enum work redis_watch(struct worker *worker)
{
    redisContext *redis = redis_of(worker);
    const char *key = key_of(worker);
    redisReply *reply;
    long long seen;
    bool done;

    for (;;) {
        rd_number(redis, "WATCH %s", key);
        seen = rd_number(redis, "GET %s", key);
        if (seen <= 0) {
            rd_number(redis, "UNWATCH");
            return WORK_NOTHING;
        }
        worker_meet(worker, pause_ms(worker));
        rd_number(redis, "MULTI");
        rd_number(redis, "SET %s %lld", key, seen - 1);
        reply = rd_ask(redis, "EXEC");
        done = reply->type == REDIS_REPLY_ARRAY;
        freeReplyObject(reply);
        if (done)
            return WORK_DONE;
        worker->retries++;
        lab_sleep_ms(RETRY_MS);
    }
}

static enum work redis_setnx(struct worker *worker)
{
    redisContext *redis = redis_of(worker);
    const char *key = race_of(worker)->lock_name;
    enum work work;

    while (!rd_lock(redis, key, "1", SETNX_TTL_MS)) {
        worker->retries++;
        lab_sleep_ms(SETNX_MS);
    }
    work = sell(worker);
    rd_number(redis, "DEL %s", key); /* whoever it belongs to by now */
    return work;
}

static enum work redis_spin(struct worker *worker)
{
    redisContext *redis = redis_of(worker);
    const char *key = race_of(worker)->lock_name;
    const char *uuid = clerk_of(worker)->uuid;
    enum work work;

    while (!rd_lock(redis, key, uuid, SPIN_TTL_MS)) {
        worker->retries++;
        lab_sleep_ms(SPIN_MS);
    }
    work = sell(worker);
    rd_unlock(redis, key, uuid);
    return work;
}

/* ---- holdfast ------------------------------------------------------------ */

static void open_lock(struct worker *worker)
{
    const struct race *race = race_of(worker);
    struct clerk *clerk = clerk_of(worker);
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;

    options.fairness = race->fairness;
    clerk->client = lab_open(race->backend, 0);
    clerk->lock = lab_lock(clerk->client, race->lock_name, &options);
}

static enum work lock(struct worker *worker)
{
    struct clerk *clerk = clerk_of(worker);
    hf_error err = HF_ERROR_INIT;
    enum work work;

    lab_check(hf_lock_acquire(clerk->lock, NULL, &err), "acquire", &err);
    work = sell(worker);
    lab_check(hf_lock_release(clerk->lock, &err), "release", &err);
    return work;
}

/* ---- strategies ---------------------------------------------------------- */

enum {
    ON_FILE = 1 << LAB_FILE,
    ON_REDIS = 1 << LAB_REDIS,
    ON_MARIADB = 1 << LAB_MARIADB,
};

static const struct strategy strategies[] = {
    {"none", ON_FILE | ON_MARIADB, LAB_FAILS, false, NULL, sell, NULL, NULL},
    {"local-mutex", ON_FILE | ON_MARIADB, LAB_FAILS, false, NULL, local_mutex,
     NULL, NULL},
    {"local-mutex-each", ON_FILE | ON_MARIADB, LAB_FAILS, true, NULL,
     local_mutex_each, NULL, NULL},
    {"local-mutex-tx", ON_MARIADB, LAB_FAILS, true, open_tx, local_mutex_tx,
     isolation_levels, isolation_outcomes},
    {"sql-update", ON_MARIADB, LAB_OK, false, NULL, sql_update, NULL, NULL},
    {"sql-for-update", ON_MARIADB, LAB_OK, false, NULL, sql_for_update, NULL,
     NULL},
    {"sql-version", ON_MARIADB, LAB_OK, false, NULL, sql_version, NULL, NULL},
    {"sql-timestamp", ON_MARIADB, LAB_OK, false, NULL, sql_timestamp, NULL,
     NULL},
    {"redis-watch", ON_REDIS, LAB_OK, false, NULL, redis_watch, NULL, NULL},
    {"redis-setnx", ON_REDIS, LAB_FAILS, false, NULL, redis_setnx, NULL, NULL},
    {"redis-spin", ON_REDIS, LAB_OK, false, NULL, redis_spin, NULL, NULL},
    {"lock", ON_FILE | ON_REDIS | ON_MARIADB, LAB_OK, false, open_lock, lock,
     NULL, NULL},
};
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

static const char *const strategy_names[] = {
    "none",        "local-mutex",    "local-mutex-each", "local-mutex-tx",
    "sql-update",  "sql-for-update", "sql-version",      "sql-timestamp",
    "redis-watch", "redis-setnx",    "redis-spin",       "lock",
    NULL};

/* ---- a row --------------------------------------------------------------- */

static void *begin(struct worker *worker)
{
    const struct race *race = race_of(worker);
    struct clerk *clerk = calloc(1, sizeof *clerk);

    if (!clerk)
        lab_die(CLI_OSERR, "out of memory");
    worker->mine = clerk;
    pthread_mutex_init(&clerk->own, NULL);
    snprintf(clerk->uuid, sizeof clerk->uuid, "%d-%u", (int)getpid(),
             worker->number);
    clerk->stock = stock_open(race->lab, race->store);
    if (race->strategy->open)
        race->strategy->open(worker);
    return clerk;
}

static void end(struct worker *worker)
{
    struct clerk *clerk = clerk_of(worker);

    hf_lock_free(clerk->lock);
    hf_close(clerk->client);
    stock_close(clerk->stock);
    free(clerk);
}

static void judge(struct lab *lab, struct lab_row *row, int64_t sold,
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

static struct lab_row *sell_all(const struct race *race)
{
    struct lab *lab = race->lab;
    const struct lab_settings *settings = lab_settings(lab);
    struct lab_row *row = lab_row(lab, race->expected);
    struct crew_plan plan = {.workers = (unsigned)settings->workers,
                             .threads = race->strategy->threads,
                             .attempts = settings->buyers,
                             .spans = true,
                             .begin_process = make_mutex,
                             .begin = begin,
                             .work = race->strategy->work,
                             .end = end,
                             .arg = race,
                             .places = {race->store, race->backend}};
    struct crew_result *result = malloc(sizeof *result);

    if (!result)
        lab_die(CLI_OSERR, "out of memory");
    lab_progress(lab, "%s%s%s on %s%s%s", race->strategy->name,
                 race->variant ? " " : "", race->variant ? race->variant : "",
                 race->store->name, race->backend ? " by " : "",
                 race->backend ? race->backend->name : "");
    stock_make(lab, race->store, (int64_t)settings->stock);
    crew_run(lab, &plan, result, row);
    lab_row_text(row, "strategy", "%s", race->strategy->name);
    if (race->backend)
        lab_row_text(row, "backend", "%s", race->backend->name);
    if (race->variant)
        lab_row_text(row, "variant", "%s", race->variant);
    lab_row_text(row, "store", "%s", race->store->name);
    lab_row_number(row, "attempts", (double)result->attempts);
    lab_row_number(row, "retries", (double)result->retries);
    lab_row_number(row, "per_s", result->per_s);
    lab_row_number(row, "p50_us", result->p50_us);
    lab_row_number(row, "p99_us", result->p99_us);
    lab_row_number(row, "cpu_ms", result->cpu_ms);
    if (result->server_cpu_ms >= 0)
        lab_row_number(row, "server_cpu_ms", result->server_cpu_ms);
    judge(lab, row, (int64_t)result->done, stock_left(lab, race->store));
    free(result);
    return row;
}

/* ---- which rows ---------------------------------------------------------- */

/* Of which the claims are made. */
struct seen {
    const struct lab_row *update, *for_update, *version, *spin;
    const struct lab_row *redis, *zookeeper; /* the lock, on a file */
    const struct lab_row *redis_on_redis;
};

static void remember(struct seen *seen, const struct race *race,
                     const struct lab_row *row)
{
    const char *name = race->strategy->name;
    bool is_lock = race->backend && race->fairness == HF_UNFAIR;

    if (strcmp(name, "sql-update") == 0)
        seen->update = row;
    else if (strcmp(name, "sql-for-update") == 0)
        seen->for_update = row;
    else if (strcmp(name, "sql-version") == 0)
        seen->version = row;
    else if (strcmp(name, "redis-spin") == 0)
        seen->spin = row;
    else if (is_lock && race->backend->engine == LAB_REDIS &&
             race->store->engine == LAB_FILE)
        seen->redis = row;
    else if (is_lock && race->backend->engine == LAB_REDIS &&
             race->store->engine == LAB_REDIS)
        seen->redis_on_redis = row;
    else if (race->backend && race->backend->engine == LAB_ZOOKEEPER &&
             race->fairness == HF_FAIR && race->store->engine == LAB_FILE)
        seen->zookeeper = row;
}

static void race_locks(struct race *race, struct seen *seen)
{
    static const enum hf_fairness fairness[] = {HF_FAIR, HF_UNFAIR};
    static const int caps[] = {HF_CAP_FAIR, HF_CAP_UNFAIR};

    for (size_t b = 0; (race->backend = lab_backend(race->lab, b)); b++) {
        int can = lab_caps(race->backend, HF_MUTEX);

        for (int i = 0; i < 2; i++) {
            char word[32];

            if (!(can & caps[i]))
                continue;
            race->fairness = fairness[i];
            race->variant = i ? "unfair" : "fair";
            /* A fair and an unfair lock of one name would not agree. */
            snprintf(word, sizeof word, "oversell-%s", race->variant);
            lab_name(race->lab, word, race->lock_name);
            remember(seen, race, sell_all(race));
        }
    }
}

static void race_on(struct race *race, struct seen *seen)
{
    const struct strategy *strategy = race->strategy;
    const char *const *variant = strategy->variants;

    lab_name(race->lab, "oversell", race->lock_name);
    race->expected = strategy->expected;
    if (strategy->work == lock) {
        race_locks(race, seen);
        return;
    }
    if (!variant) {
        remember(seen, race, sell_all(race));
        return;
    }
    for (int i = 0; variant[i]; i++) {
        race->variant = variant[i];
        race->expected = strategy->expected_of[i];
        remember(seen, race, sell_all(race));
    }
}

static void race_strategy(struct lab *lab, const struct strategy *strategy,
                          struct seen *seen)
{
    static const enum lab_engine engines[] = {LAB_FILE, LAB_REDIS, LAB_MARIADB};
    bool found = false;

    for (size_t i = 0; i < 3; i++) {
        struct race race = {.lab = lab, .strategy = strategy};

        if (!(strategy->stores & 1U << engines[i]))
            continue;
        race.store = lab_store(lab, engines[i]);
        if (!race.store)
            continue;
        found = true;
        race_on(&race, seen);
    }
    if (!found && lab_insists(lab, strategy->name))
        lab_die(CLI_USAGE, "%s needs %s: --servers, or --stores %s",
                strategy->name,
                strategy->stores & ON_REDIS ? "Redis" : "MariaDB",
                strategy->stores & ON_REDIS ? "redis://host"
                                            : "mariadb://user@host/database");
}

/* ---- claims -------------------------------------------------------------- */

static double per_s(const struct lab_row *row)
{
    return lab_row_get(row, "per_s");
}

/* Microseconds of all processors that one sale took. */
static double cpu_us(const struct lab_row *row)
{
    return (lab_row_get(row, "cpu_ms") + lab_row_get(row, "server_cpu_ms")) *
           1000 / lab_row_get(row, "sold");
}

static void claim(struct lab *lab, const struct seen *seen)
{
    if (seen->update && seen->for_update && seen->version)
        lab_claim(lab,
                  per_s(seen->update) > per_s(seen->for_update) &&
                      per_s(seen->for_update) > per_s(seen->version),
                  "one statement > for update > optimistic",
                  "%.0f, %.0f and %.0f sales per second", per_s(seen->update),
                  per_s(seen->for_update), per_s(seen->version));
    if (seen->redis && seen->zookeeper) {
        double redis = per_s(seen->redis), zookeeper = per_s(seen->zookeeper);

        lab_claim(lab, redis > zookeeper, "Redis is faster than ZooKeeper",
                  "%.0f and %.0f sales per second", redis, zookeeper);
        lab_claim(lab, zookeeper > redis, "ZooKeeper is faster than Redis",
                  "%.0f and %.0f sales per second", zookeeper, redis);
    }
    if (seen->spin && seen->redis_on_redis)
        lab_claim(lab, cpu_us(seen->redis_on_redis) < cpu_us(seen->spin),
                  "waiting for an event is cheaper than polling",
                  "%.0f and %.0f us of CPU per sale",
                  cpu_us(seen->redis_on_redis), cpu_us(seen->spin));
}

static void run(struct lab *lab)
{
    struct seen seen = {0};

    for (size_t i = 0; i < STRATEGIES; i++)
        if (lab_wants(lab, strategies[i].name))
            race_strategy(lab, &strategies[i], &seen);
    claim(lab, &seen);
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 16, LAB_LEFT},
    {"variant", "variant", 16, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"store", "store", 7, LAB_LEFT},
    {"sold", "sold", 5, 0},
    {"left", "left", 5, LAB_JSON_ONLY},
    {"oversold", "oversold", 8, 0},
    {"attempts", "attempts", 8, LAB_JSON_ONLY},
    {"retries", "retries", 7, LAB_JSON_ONLY},
    {"per_s", "sales/s", 7, LAB_BAR},
    {"p50_us", "p50 us", 8, LAB_JSON_ONLY},
    {"p99_us", "p99 us", 8, LAB_JSON_ONLY},
    {"cpu_ms", "CPU ms", 8, LAB_JSON_ONLY},
    {"server_cpu_ms", "server CPU ms", 8, LAB_JSON_ONLY},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_oversell = {
    .name = "oversell",
    .summary = "workers sell one stock, guarded in every way there is",
    .text =
        "Workers sell a stock to buyers. A sale reads the stock, and writes "
        "one\n"
        "less. Each way of guarding these two steps is tried: no lock, a "
        "mutex\n"
        "that is private to a process or to an object, one that is released\n"
        "before the transaction commits, statements of SQL, commands of "
        "Redis,\n"
        "and holdfast's lock. In its first sale each worker pauses between "
        "the\n"
        "two steps until another one has read too, so what does not keep "
        "others\n"
        "out oversells in every run.\n",
    .columns = columns,
    .options = LAB_STRATEGY | LAB_STOCK | LAB_BUYERS,
    .strategies = strategy_names,
    .run = run,
};
