/*
 * A hot cache entry expires, and all its readers find it missing at the same
 * moment (the cache breakdown of the documents: the tutorials of
 * lab/README.md). Without a lock, each reader queries the database. With a
 * lock, only one reader at a time does so, and every reader checks the cache
 * again once it has the lock. No reader continues before all readers have
 * looked, so all of them miss the entry in every run.
 */
#include "../../cli/shared/exit_code.h"
#include "../actors/workers.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/place.h"
#include "../runner/progress.h"
#include "../runner/report.h"
#include "../runner/scenario.h"
#include "../servers/client.h"
#include "../servers/places.h"
#include "../servers/redis.h"
#include "../servers/sql.h"

#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    PROCESSES = 4, /* the readers are threads of these */
    POOL = 4,      /* connections of each process to the database */
    QUERY_MS = 20,
    STUCK_MS = 100000,
};

/* What all readers share. */
struct hot {
    _Atomic unsigned looked;  /* readers that have found the entry missing */
    _Atomic unsigned queries; /* used if there is no database */
    _Atomic bool cached;      /* used if there is no Redis */
};

/* One row. */
struct plan {
    struct lab *lab;
    const char *strategy;
    const struct lab_place *backend, *cache, *database; /* may be NULL */
    enum hf_kind kind;                                  /* 0: no lock */
    unsigned readers;
    struct hot *hot;
    char lock_name[96], key[96], table[96];
};

/* The state of one process: its client, its lock, and its pool of
 * connections. */
struct desk {
    hf_client *client;
    hf_lock *lock;
    pthread_mutex_t mutex;
    pthread_cond_t returned;
    struct sql *pool[POOL];
    unsigned free;
};

static void *stampede_begin_process(const void *arg)
{
    const struct plan *plan = arg;
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    struct desk *desk = lab_alloc(sizeof *desk);

    pthread_mutex_init(&desk->mutex, NULL);
    pthread_cond_init(&desk->returned, NULL);
    while (plan->database && desk->free < POOL)
        desk->pool[desk->free++] = sql_open(plan->database);
    if (plan->kind) {
        options.kind = plan->kind;
        desk->client = lab_open(plan->backend, 0);
        desk->lock = lab_lock(desk->client, plan->lock_name, &options);
    }
    return desk;
}

static void stampede_end_process(void *process)
{
    struct desk *desk = process;

    hf_lock_free(desk->lock);
    hf_close(desk->client);
    while (desk->free)
        sql_close(desk->pool[--desk->free]);
    free(desk);
}

static void *stampede_begin(struct worker *worker)
{
    const struct plan *plan = worker->arg;

    return plan->cache ? rd_open(plan->cache) : NULL;
}

static void stampede_end(struct worker *worker)
{
    if (worker->mine)
        redisFree(worker->mine);
}

static bool stampede_is_cached(const struct worker *worker)
{
    const struct plan *plan = worker->arg;

    if (!plan->cache)
        return atomic_load(&plan->hot->cached);
    return rd_number(worker->mine, "GET %s", plan->key) > 0;
}

static void stampede_put_into_cache(const struct worker *worker)
{
    const struct plan *plan = worker->arg;

    if (plan->cache)
        rd_number(worker->mine, "SET %s 1", plan->key);
    else
        atomic_store(&plan->hot->cached, true);
}

static void stampede_query(const struct worker *worker)
{
    const struct plan *plan = worker->arg;
    struct desk *desk = worker->process;
    struct sql *sql;

    if (!plan->database) {
        atomic_fetch_add(&plan->hot->queries, 1);
        lab_sleep_ms(QUERY_MS);
        return;
    }
    pthread_mutex_lock(&desk->mutex);
    while (desk->free == 0)
        pthread_cond_wait(&desk->returned, &desk->mutex);
    sql = desk->pool[--desk->free];
    pthread_mutex_unlock(&desk->mutex);
    sql_do(sql, "UPDATE %s SET queries = queries + 1", plan->table);
    sql_number(sql, "SELECT SLEEP(%d / 1000)", QUERY_MS);
    pthread_mutex_lock(&desk->mutex);
    desk->pool[desk->free++] = sql;
    pthread_cond_signal(&desk->returned);
    pthread_mutex_unlock(&desk->mutex);
}

static void stampede_lock(const struct worker *worker, enum hf_mode mode)
{
    struct desk *desk = worker->process;
    hf_acquire_options options = HF_ACQUIRE_OPTIONS_INIT;
    hf_error err = HF_ERROR_INIT;

    options.mode = mode;
    lab_check(hf_lock_acquire(desk->lock, &options, &err), "acquire", &err);
}

static void stampede_unlock(const struct worker *worker)
{
    struct desk *desk = worker->process;
    hf_error err = HF_ERROR_INIT;

    lab_check(hf_lock_release(desk->lock, &err), "release", &err);
}

/* Waits until all readers have seen that the entry is missing. */
static void stampede_await_all(const struct worker *worker)
{
    const struct plan *plan = worker->arg;
    int64_t until = lab_now() + STUCK_MS * 1000000LL;

    atomic_fetch_add(&plan->hot->looked, 1);
    while (atomic_load(&plan->hot->looked) < plan->readers) {
        if (lab_now() > until)
            lab_die(CLI_FAILED, "only %u of %u readers have looked",
                    atomic_load(&plan->hot->looked), plan->readers);
        lab_sleep_ms(1);
    }
}

static enum work stampede_look_up(struct worker *worker)
{
    const struct plan *plan = worker->arg;
    bool hit;

    if (plan->kind == HF_RWLOCK)
        stampede_lock(worker, HF_READ);
    hit = stampede_is_cached(worker);
    if (plan->kind == HF_RWLOCK)
        stampede_unlock(worker);
    if (hit)
        return WORK_DONE;
    stampede_await_all(worker);
    if (plan->kind)
        stampede_lock(worker, HF_WRITE);
    if (!plan->kind || !stampede_is_cached(worker)) {
        stampede_query(worker);
        stampede_put_into_cache(worker);
    }
    if (plan->kind)
        stampede_unlock(worker);
    return WORK_DONE;
}

/* Resets what the readers share: the entry has expired, and no query has been
 * made. */
static void stampede_prepare(const struct plan *plan)
{
    if (plan->cache) {
        redisContext *redis = rd_open(plan->cache);

        rd_number(redis, "DEL %s", plan->key);
        redisFree(redis);
    }
    if (plan->database) {
        struct sql *sql = sql_open(plan->database);

        sql_do(sql, "DROP TABLE IF EXISTS %s", plan->table);
        sql_do(sql, "CREATE TABLE %s (queries BIGINT) ENGINE = InnoDB",
               plan->table);
        sql_do(sql, "INSERT INTO %s VALUES (0)", plan->table);
        sql_close(sql);
    }
}

static int64_t stampede_count_queries(const struct plan *plan)
{
    struct sql *sql;
    int64_t queries;

    if (!plan->database)
        return atomic_load(&plan->hot->queries);
    sql = sql_open(plan->database);
    queries = sql_number(sql, "SELECT queries FROM %s", plan->table);
    sql_close(sql);
    return queries;
}

static void stampede_judge(const struct plan *plan, struct lab_row *row,
                           const struct workers_result *result)
{
    int64_t queries = stampede_count_queries(plan);

    lab_row_number(row, "readers", plan->readers);
    lab_row_number(row, "queries", (double)queries);
    if (result->done != plan->readers)
        lab_row_done(plan->lab, row, LAB_FAILS, "%llu of %u readers served",
                     (unsigned long long)result->done, plan->readers);
    else if (queries == 1)
        lab_row_done(plan->lab, row, LAB_OK, "1 query for %u reader%s",
                     plan->readers, plan->readers == 1 ? "" : "s");
    else
        lab_row_done(plan->lab, row, LAB_FAILS,
                     "%lld of %u readers reached the database",
                     (long long)queries, plan->readers);
}

static void stampede(struct plan *plan)
{
    struct workers_plan workers = {
        .workers = plan->readers,
        .threads = true,
        .processes = plan->readers < PROCESSES ? plan->readers : PROCESSES,
        .attempts = plan->readers,
        .begin_process = stampede_begin_process,
        .end_process = stampede_end_process,
        .begin = stampede_begin,
        .work = stampede_look_up,
        .end = stampede_end,
        .arg = plan,
        .places = {plan->backend}};
    bool survives = plan->kind || plan->readers == 1;
    struct lab_row *row = lab_row(plan->lab, survives ? LAB_OK : LAB_FAILS);
    struct workers_result *result = lab_alloc(sizeof *result);

    lab_progress(plan->lab, "%s%s%s", plan->strategy,
                 plan->backend ? " on " : "",
                 plan->backend ? plan->backend->name : "");
    plan->hot = lab_share(sizeof *plan->hot);
    stampede_prepare(plan);
    workers_run(plan->lab, &workers, result, NULL);
    lab_row_text(row, "strategy", "%s", plan->strategy);
    if (plan->backend)
        lab_row_text(row, "backend", "%s", plan->backend->name);
    lab_row_text(row, "cache", "%s",
                 plan->cache ? plan->cache->name : "memory");
    lab_row_text(row, "store", "%s",
                 plan->database ? plan->database->name : "memory");
    lab_row_number(row, "ms", result->seconds * 1000);
    lab_row_number(row, "cpu_ms", result->cpu_ms);
    stampede_judge(plan, row, result);
    lab_unshare(plan->hot, sizeof *plan->hot);
    free(result);
}

static void stampede_run(struct lab *lab)
{
    struct plan plan = {.lab = lab,
                        .strategy = "none",
                        .cache = lab_store(lab, LAB_REDIS),
                        .database = lab_store(lab, LAB_MARIADB),
                        .readers = (unsigned)lab_settings(lab)->readers};

    lab_name(lab, "stampede", plan.key);
    lab_table(lab, "stampede", plan.table);
    stampede(&plan);
    for (size_t i = 0; (plan.backend = lab_backend(lab, i)); i++) {
        plan.strategy = "lock";
        plan.kind = HF_MUTEX;
        lab_name(lab, "stampede-lock", plan.lock_name);
        stampede(&plan);
        if (lab_caps(plan.backend, HF_RWLOCK) <= 0)
            continue;
        plan.strategy = "rwlock";
        plan.kind = HF_RWLOCK;
        lab_name(lab, "stampede-rwlock", plan.lock_name);
        stampede(&plan);
    }
}

static const struct lab_column columns[] = {
    {"strategy", "strategy", 8, LAB_LEFT},
    {"backend", "backend", 7, LAB_LEFT},
    {"cache", "cache", 7, LAB_LEFT},
    {"store", "database", 8, LAB_LEFT},
    {"readers", "readers", 7, 0},
    {"queries", "queries", 7, LAB_BAR},
    {"ms", "all served, ms", 14, 0},
    {"cpu_ms", "CPU ms", 8, LAB_WIDE},
    {NULL, NULL, 0, 0},
};

const struct lab_scenario lab_stampede = {
    .name = "stampede",
    .summary = "a hot cache entry expires under its readers",
    .text =
        "All readers (--readers) of a cache entry find that it has expired,\n"
        "and want to get it from the database, where a query takes 20 ms.\n"
        "Without a lock each of them does. With a lock one of them does, and\n"
        "the others find the entry in the cache when their turn comes.\n"
        "rwlock: the same with a read-write lock, whose read mode guards the\n"
        "first look into the cache.\n",
    .columns = columns,
    .options = LAB_READERS,
    .run = stampede_run,
};
