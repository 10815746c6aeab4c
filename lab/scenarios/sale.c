#include "sale.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../runner/memory.h"
#include "../runner/progress.h"
#include "../servers/client.h"
#include "../servers/places.h"
#include "../servers/redis.h"
#include "../servers/sql.h"
#include "stock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    THINK_NS = 50000,  /* pause between reading a file and writing it */
    KEPT_OUT_MS = 300, /* limit of a pause if the strategy keeps other workers
                          out */
    MEET_MS = 60000,   /* limit of a pause if another worker can arrive */
    RETRY_MS = 20,     /* before an optimistic retry, as in the documents */
    SPIN_MS = 50,      /* between tries of redis-spin, as in the documents */
    SPIN_TTL_MS = 10000,
    SETNX_MS = 2,
    SETNX_TTL_MS = 120000,
    SHORT_TTL_MS = 100, /* PEXPIRE sets the lease of a late holder to this
                           time */
};

/* The state of a worker. */
struct clerk {
    struct stock *stock;
    hf_client *client;
    hf_lock *lock;
    pthread_mutex_t own;
    char uuid[32];
};

static const struct race *sale_race_of(const struct worker *worker)
{
    return worker->arg;
}

static struct clerk *sale_clerk_of(const struct worker *worker)
{
    return worker->mine;
}

/* If the race has pauses, waits between the two steps of a sale until another
 * worker arrives there: for at most KEPT_OUT_MS if the strategy must keep other
 * workers out, otherwise for at most MEET_MS. */
static void sale_await_another(struct worker *worker)
{
    const struct race *race = sale_race_of(worker);

    if (race->pauses)
        worker_await(worker,
                     race->expected == LAB_FAILS ? MEET_MS : KEPT_OUT_MS);
}

static void sale_meet_another(struct worker *worker)
{
    if (sale_race_of(worker)->pauses)
        worker_arrive(worker);
    sale_await_another(worker);
}

/* Does what sale_meet_another() does, for optimistic strategies: these keep no
 * worker out, so another worker always arrives. */
static void sale_meet_freely(struct worker *worker)
{
    if (sale_race_of(worker)->pauses)
        worker_meet(worker, MEET_MS);
}

static struct sql *sale_sql_of(const struct worker *worker)
{
    return stock_sql(sale_clerk_of(worker)->stock);
}

static redisContext *sale_redis_of(const struct worker *worker)
{
    return stock_redis(sale_clerk_of(worker)->stock);
}

static const char *sale_key_of(const struct worker *worker)
{
    return stock_key(sale_clerk_of(worker)->stock);
}

static enum work sale_sell(struct worker *worker)
{
    struct clerk *clerk = sale_clerk_of(worker);
    struct timespec think = {0, THINK_NS};
    int64_t begin = lab_now(), seen = stock_read(clerk->stock);

    if (seen <= 0)
        return WORK_NOTHING;
    sale_meet_another(worker);
    if (sale_race_of(worker)->store->engine == LAB_FILE)
        nanosleep(&think, NULL); /* represents database, payment and network */
    stock_write(clerk->stock, seen - 1);
    worker_span(worker, begin);
    return WORK_DONE;
}

static void *sale_make_mutex(const void *arg)
{
    pthread_mutex_t *mutex = lab_alloc(sizeof *mutex);

    (void)arg;
    pthread_mutex_init(mutex, NULL);
    return mutex;
}

static enum work sale_local_mutex(struct worker *worker)
{
    enum work work;

    pthread_mutex_lock(worker->process);
    work = sale_sell(worker);
    pthread_mutex_unlock(worker->process);
    return work;
}

static enum work sale_local_mutex_each(struct worker *worker)
{
    enum work work;

    pthread_mutex_lock(&sale_clerk_of(worker)->own);
    work = sale_sell(worker);
    pthread_mutex_unlock(&sale_clerk_of(worker)->own);
    return work;
}

static const char *const isolation_levels[] = {
    "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE",
    NULL};
static const enum lab_outcome isolation_outcomes[] = {LAB_OK, LAB_FAILS,
                                                      LAB_FAILS, LAB_OK};

static void sale_open_tx(struct worker *worker)
{
    sql_do(sale_sql_of(worker), "SET SESSION TRANSACTION ISOLATION LEVEL %s",
           sale_race_of(worker)->variant);
}

/* Releases the mutex before the transaction commits. Between these two steps
 * the next worker reads the old stock, unless the isolation level prevents
 * it. */
static enum work sale_local_mutex_tx(struct worker *worker)
{
    struct stock *stock = sale_clerk_of(worker)->stock;
    int64_t seen, begin;

    sql_do(sale_sql_of(worker), "START TRANSACTION");
    pthread_mutex_lock(worker->process);
    begin = lab_now();
    seen = stock_read(stock);
    worker_arrive(worker);
    if (seen > 0)
        stock_write(stock, seen - 1);
    pthread_mutex_unlock(worker->process);
    if (seen > 0)
        sale_await_another(worker);
    sql_do(sale_sql_of(worker), "COMMIT");
    worker_span(worker, begin);
    return seen > 0 ? WORK_DONE : WORK_NOTHING;
}

static enum work sale_sql_update(struct worker *worker)
{
    sql_do(sale_sql_of(worker),
           "UPDATE %s SET count = count - 1 WHERE id = 1 AND count >= 1",
           sale_key_of(worker));
    return sql_changed(sale_sql_of(worker)) ? WORK_DONE : WORK_NOTHING;
}

static enum work sale_sql_for_update(struct worker *worker)
{
    struct sql *sql = sale_sql_of(worker);
    int64_t seen, begin;

    sql_do(sql, "START TRANSACTION");
    seen = sql_number(sql, "SELECT count FROM %s WHERE id = 1 FOR UPDATE",
                      sale_key_of(worker));
    begin = lab_now();
    if (seen > 0) {
        sale_meet_another(worker);
        stock_write(sale_clerk_of(worker)->stock, seen - 1);
        worker_span(worker, begin);
    }
    sql_do(sql, "COMMIT");
    return seen > 0 ? WORK_DONE : WORK_NOTHING;
}

/* Sells with an update that has an effect only if the row has not changed since
 * it was read. If the row has changed, retries. */
static enum work sale_optimistic(struct worker *worker, const char *seen_as,
                                 const char *next)
{
    struct sql *sql = sale_sql_of(worker);
    const char *table = sale_key_of(worker);
    int64_t seen[2];

    for (;;) {
        sql_row(sql, seen, 2, "SELECT count, %s FROM %s WHERE id = 1", seen_as,
                table);
        if (seen[0] <= 0)
            return WORK_NOTHING;
        sale_meet_freely(worker);
        sql_do(sql, "UPDATE %s SET count = %lld, %s WHERE id = 1 AND %s = %lld",
               table, (long long)seen[0] - 1, next, seen_as,
               (long long)seen[1]);
        if (sql_changed(sql))
            return WORK_DONE;
        worker->retries++;
        lab_sleep_ms(RETRY_MS);
    }
}

static enum work sale_sql_version(struct worker *worker)
{
    return sale_optimistic(worker, "version", "version = version + 1");
}

static enum work sale_sql_timestamp(struct worker *worker)
{
    return sale_optimistic(worker,
                           "CAST(UNIX_TIMESTAMP(updated) * 1000000 AS SIGNED)",
                           "updated = NOW(6)");
}

static enum work sale_redis_watch(struct worker *worker)
{
    redisContext *redis = sale_redis_of(worker);
    const char *key = sale_key_of(worker);
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
        sale_meet_freely(worker);
        rd_number(redis, "MULTI");
        rd_number(redis, "SET %s %lld", key, seen - 1);
        reply = rd_send(redis, "EXEC");
        done = reply->type == REDIS_REPLY_ARRAY;
        freeReplyObject(reply);
        if (done)
            return WORK_DONE;
        worker->retries++;
        lab_sleep_ms(RETRY_MS);
    }
}

/* The order of the first three holders of redis-setnx (struct relay). The first
 * holder is late: it has written, but its lease ends before it releases. The
 * second holder gets the lock, and has read when the first holder releases. If
 * that release deletes the second holder's lock, a third worker gets the lock
 * and reads the same stock, and the second and the third holder both write one
 * less. No other holder's lease ends before its release. */
static const char *const setnx_releases[] = {"DEL", "owner check", NULL};
static const enum lab_outcome setnx_outcomes[] = {LAB_FAILS, LAB_OK};

struct relay {
    _Atomic unsigned holders, reads; /* so far */
    _Atomic unsigned released;       /* 1 once the first holder has released */
    _Atomic unsigned refused;        /* failed tries to get the lock after that
                                        release */
};

static void sale_setnx_lock(struct worker *worker)
{
    struct relay *relay = worker->shared;

    for (;;) {
        unsigned released = atomic_load(&relay->released);

        if (rd_lock(sale_redis_of(worker), sale_race_of(worker)->lock_name,
                    sale_clerk_of(worker)->uuid, SETNX_TTL_MS))
            return;
        atomic_fetch_add(&relay->refused, released);
        worker->retries++;
        lab_sleep_ms(SETNX_MS);
    }
}

static void sale_setnx_unlock(struct worker *worker)
{
    const struct race *race = sale_race_of(worker);

    if (race->variant == setnx_releases[1])
        rd_unlock(sale_redis_of(worker), race->lock_name,
                  sale_clerk_of(worker)->uuid);
    else /* by now the lock may belong to another worker */
        rd_number(sale_redis_of(worker), "DEL %s", race->lock_name);
}

static void sale_outlive_lease(struct worker *worker)
{
    struct relay *relay = worker->shared;

    rd_number(sale_redis_of(worker), "PEXPIRE %s %d",
              sale_race_of(worker)->lock_name, SHORT_TTL_MS);
    worker_pause(worker, &relay->reads, 2, MEET_MS);
}

/* Pauses the second holder, which has read, until the first holder has released
 * and a third worker has read or was kept out. */
static void sale_await_third(struct worker *worker)
{
    struct relay *relay = worker->shared;
    bool fails = sale_race_of(worker)->expected == LAB_FAILS;

    worker_pause(worker, &relay->released, 1, MEET_MS);
    if (!fails)
        worker_pause(worker, &relay->refused, 1, MEET_MS);
    worker_pause(worker, &relay->reads, 3, fails ? MEET_MS : KEPT_OUT_MS);
}

static enum work sale_redis_setnx(struct worker *worker)
{
    struct stock *stock = sale_clerk_of(worker)->stock;
    struct relay *relay = worker->shared;
    int64_t begin, seen;
    unsigned before;

    sale_setnx_lock(worker);
    begin = lab_now();
    before = atomic_fetch_add(&relay->holders, 1);
    seen = stock_read(stock);
    atomic_fetch_add(&relay->reads, 1);
    if (before == 1)
        sale_await_third(worker);
    if (seen > 0)
        stock_write(stock, seen - 1);
    if (before == 0)
        sale_outlive_lease(worker);
    sale_setnx_unlock(worker);
    if (before == 0)
        atomic_store(&relay->released, 1);
    worker_span(worker, begin);
    return seen > 0 ? WORK_DONE : WORK_NOTHING;
}

static enum work sale_redis_spin(struct worker *worker)
{
    redisContext *redis = sale_redis_of(worker);
    const char *key = sale_race_of(worker)->lock_name;
    const char *uuid = sale_clerk_of(worker)->uuid;
    enum work work;

    while (!rd_lock(redis, key, uuid, SPIN_TTL_MS)) {
        worker->retries++;
        lab_sleep_ms(SPIN_MS);
    }
    work = sale_sell(worker);
    rd_unlock(redis, key, uuid);
    return work;
}

static void sale_open_lock(struct worker *worker)
{
    const struct race *race = sale_race_of(worker);
    struct clerk *clerk = sale_clerk_of(worker);
    hf_lock_options options = HF_LOCK_OPTIONS_INIT;

    options.fairness = race->fairness;
    clerk->client = lab_open(race->backend, 0);
    clerk->lock = lab_lock(clerk->client, race->lock_name, &options);
}

static enum work sale_lock(struct worker *worker)
{
    struct clerk *clerk = sale_clerk_of(worker);
    hf_error err = HF_ERROR_INIT;
    enum work work;

    lab_check(hf_lock_acquire(clerk->lock, NULL, &err), "acquire", &err);
    work = sale_sell(worker);
    lab_check(hf_lock_release(clerk->lock, &err), "release", &err);
    return work;
}

const struct strategy sale_strategies[] = {
    {"none", ON_FILE | ON_MARIADB, LAB_FAILS, false, NULL, sale_sell, NULL,
     NULL},
    {"local-mutex", ON_FILE | ON_MARIADB, LAB_FAILS, false, NULL,
     sale_local_mutex, NULL, NULL},
    {"local-mutex-each", ON_FILE | ON_MARIADB, LAB_FAILS, true, NULL,
     sale_local_mutex_each, NULL, NULL},
    {"local-mutex-tx", ON_MARIADB, LAB_FAILS, true, sale_open_tx,
     sale_local_mutex_tx, isolation_levels, isolation_outcomes},
    {"sql-update", ON_MARIADB, LAB_OK, false, NULL, sale_sql_update, NULL,
     NULL},
    {"sql-for-update", ON_MARIADB, LAB_OK, false, NULL, sale_sql_for_update,
     NULL, NULL},
    {"sql-version", ON_MARIADB, LAB_OK, false, NULL, sale_sql_version, NULL,
     NULL},
    {"sql-timestamp", ON_MARIADB, LAB_OK, false, NULL, sale_sql_timestamp, NULL,
     NULL},
    {"redis-watch", ON_REDIS, LAB_OK, false, NULL, sale_redis_watch, NULL,
     NULL},
    {"redis-setnx", ON_REDIS, LAB_FAILS, false, NULL, sale_redis_setnx,
     setnx_releases, setnx_outcomes},
    {"redis-spin", ON_REDIS, LAB_OK, false, NULL, sale_redis_spin, NULL, NULL},
    {"lock", ON_FILE | ON_REDIS | ON_MARIADB, LAB_OK, false, sale_open_lock,
     sale_lock, NULL, NULL},
};
_Static_assert(sizeof sale_strategies / sizeof *sale_strategies ==
                   SALE_STRATEGIES,
               "as many as sale.h says");

const char *const sale_names[] = {
    "none",        "local-mutex",    "local-mutex-each", "local-mutex-tx",
    "sql-update",  "sql-for-update", "sql-version",      "sql-timestamp",
    "redis-watch", "redis-setnx",    "redis-spin",       "lock",
    NULL};

static void *sale_begin(struct worker *worker)
{
    const struct race *race = sale_race_of(worker);
    struct clerk *clerk = lab_alloc(sizeof *clerk);

    worker->mine = clerk;
    pthread_mutex_init(&clerk->own, NULL);
    snprintf(clerk->uuid, sizeof clerk->uuid, "%d-%u", (int)getpid(),
             worker->number);
    clerk->stock = stock_open(race->lab, race->store);
    if (race->strategy->open)
        race->strategy->open(worker);
    return clerk;
}

static void sale_end(struct worker *worker)
{
    struct clerk *clerk = sale_clerk_of(worker);

    hf_lock_free(clerk->lock);
    hf_close(clerk->client);
    stock_close(clerk->stock);
    free(clerk);
}

static void sale_describe(const struct race *race,
                          const struct workers_result *result,
                          struct lab_row *row)
{
    lab_row_text(row, "strategy", "%s", race->strategy->name);
    if (race->backend)
        lab_row_text(row, "backend", "%s", race->backend->name);
    if (race->variant)
        lab_row_text(row, "variant", "%s", race->variant);
    lab_row_text(row, "store", "%s", race->store->name);
    lab_row_number(row, "attempts", (double)result->attempts);
    lab_row_number(row, "retries", (double)result->retries);
    workers_report(result, row);
}

int64_t sale_run(const struct race *race, const struct sale_size *size,
                 struct workers_result *result, struct lab_row *row)
{
    struct lab *lab = race->lab;
    struct workers_plan plan = {.workers = size->workers,
                                .threads = race->strategy->threads,
                                .attempts = size->attempts,
                                .run_ms = size->run_ms,
                                .spans = race->pauses,
                                .begin_process = sale_make_mutex,
                                .begin = sale_begin,
                                .work = race->strategy->work,
                                .end = sale_end,
                                .arg = race,
                                .places = {race->store, race->backend}};

    lab_progress(lab, "%s%s%s on %s%s%s", race->strategy->name,
                 race->variant ? " " : "", race->variant ? race->variant : "",
                 race->store->name, race->backend ? " by " : "",
                 race->backend ? race->backend->name : "");
    stock_make(lab, race->store, (int64_t)size->stock);
    workers_run(lab, &plan, result, row);
    sale_describe(race, result, row);
    return stock_left(lab, race->store);
}

void sale_lacks_store(struct lab *lab, const struct strategy *strategy)
{
    bool redis = strategy->stores & ON_REDIS;

    if (lab_insists(lab, strategy->name))
        lab_die(CLI_USAGE, "%s needs %s: --servers, or --stores %s",
                strategy->name, redis ? "Redis" : "MariaDB",
                redis ? "redis://host" : "mariadb://user@host/database");
}

bool sale_is_lock(const struct strategy *strategy)
{
    return strategy->work == sale_lock;
}

void sale_each_lock(struct race *race, const char *word,
                    void (*sell_by)(const struct race *race, void *arg),
                    void *arg)
{
    static const enum hf_fairness fairness[] = {HF_FAIR, HF_UNFAIR};
    static const int caps[] = {HF_CAP_FAIR, HF_CAP_UNFAIR};

    for (size_t b = 0; (race->backend = lab_backend(race->lab, b)); b++) {
        int can = lab_caps(race->backend, HF_MUTEX);

        for (int i = 0; i < 2; i++) {
            char name[48];

            if (!(can & caps[i]))
                continue;
            race->fairness = fairness[i];
            race->variant = i ? "unfair" : "fair";
            /* A fair and an unfair lock must not share a name. */
            snprintf(name, sizeof name, "%s-%s", word, race->variant);
            lab_name(race->lab, name, race->lock_name);
            sell_by(race, arg);
        }
    }
}
