#include "goods.h"

#include "../../cli/shared/exit_code.h"
#include "../actors/stage.h"
#include "../runner/clock.h"
#include "../runner/die.h"
#include "../runner/progress.h"
#include "../servers/sql.h"

#include <mysqld_error.h>

enum {
    MYSQL_NOWAIT = 3572,      /* MySQL's error number; MariaDB has 1205 */
    LOCK_WAIT_TIMEOUT_S = 40, /* shorter than the limit of a step */
    SEEN_MS = 10,             /* a pause, so that the span is visible in the
                                 timeline */
};

struct sql *goods_session(const struct lab_place *place, const char *isolation)
{
    struct sql *sql = sql_open(place);
    unsigned error;

    sql_do(sql, "SET SESSION TRANSACTION ISOLATION LEVEL %s",
           isolation ? isolation : "REPEATABLE READ");
    sql_do(sql, "SET SESSION autocommit = 1, innodb_lock_wait_timeout = %d",
           LOCK_WAIT_TIMEOUT_S);
    /* In MariaDB 11.6 and later this setting is on by default, which makes it
     * an error to update a row that has changed since the snapshot. The lab
     * shows what happens without this error. Older servers do not know the
     * setting and reject it. */
    error = sql_try(sql, "SET SESSION innodb_snapshot_isolation = OFF");
    if (error && error != ER_UNKNOWN_SYSTEM_VARIABLE)
        sql_fail(sql, "SET SESSION innodb_snapshot_isolation = OFF");
    return sql;
}

struct lab_row *goods_row(struct lab *lab, const struct lab_place *store,
                          const char *strategy, const char *variant,
                          enum lab_outcome expected)
{
    struct lab_row *row = lab_row(lab, expected);

    lab_progress(lab, "%s, %s", strategy, variant);
    lab_row_text(row, "strategy", "%s", strategy);
    lab_row_text(row, "variant", "%s", variant);
    lab_row_text(row, "store", "%s", store->name);
    return row;
}

void goods_make(struct sql *sql, const char *table)
{
    sql_do(sql, "DROP TABLE IF EXISTS %s", table);
    sql_do(sql,
           "CREATE TABLE %s (id INT PRIMARY KEY, "
           "code VARCHAR(20) NOT NULL DEFAULT '', "
           "name VARCHAR(20) NOT NULL DEFAULT '', "
           "count INT NOT NULL DEFAULT %d, version INT NOT NULL DEFAULT 0, "
           "KEY (code)) ENGINE = InnoDB",
           table, GOODS_COUNT);
    sql_do(sql, "INSERT INTO %s (id) VALUES (1)", table);
    for (int rows = 1; rows < GOODS; rows *= 2)
        sql_do(sql, "INSERT INTO %s (id) SELECT id + %d FROM %s", table, rows,
               table);
    sql_do(sql,
           "UPDATE %s SET code = CONCAT('p-', id), name = CONCAT('p-', id)",
           table);
    /* These statistics decide whether the optimizer uses the index. */
    sql_do(sql, "ANALYZE TABLE %s", table);
}

void goods_reset(struct sql *sql, const char *table)
{
    sql_do(sql, "UPDATE %s SET count = %d, version = 0", table, GOODS_COUNT);
}

static struct goods goods_select_row(struct sql *sql, const char *table, int id,
                                     const char *how)
{
    int64_t row[2];

    if (!sql_row(sql, row, 2, "SELECT count, version FROM %s WHERE id = %d%s",
                 table, id, how))
        lab_die(CLI_FAILED, "row %d of the lab's table does not exist", id);
    return (struct goods){row[0], row[1]};
}

struct goods goods_read(struct sql *sql, const char *table, int id)
{
    return goods_select_row(sql, table, id, "");
}

struct goods goods_lock(struct sql *sql, const char *table, int id)
{
    return goods_select_row(sql, table, id, " FOR UPDATE");
}

bool goods_try(struct sql *sql, const char *table, int id)
{
    unsigned error = sql_try(
        sql, "SELECT count FROM %s WHERE id = %d FOR UPDATE NOWAIT", table, id);

    if (error && error != ER_LOCK_WAIT_TIMEOUT && error != MYSQL_NOWAIT)
        sql_fail(sql, "SELECT ... FOR UPDATE NOWAIT");
    return !error;
}

void goods_sell(struct sql *sql, const char *table, int id)
{
    sql_do(sql,
           "UPDATE %s SET count = count - 1, version = version + 1 "
           "WHERE id = %d",
           table, id);
}

void goods_write(struct sql *sql, const char *table, int id, int64_t count)
{
    sql_do(sql,
           "UPDATE %s SET count = %lld, version = version + 1 WHERE id = %d",
           table, (long long)count, id);
}

bool goods_swap(struct sql *sql, const char *table, int id,
                const struct goods *had)
{
    sql_do(sql,
           "UPDATE %s SET count = %lld, version = version + 1 "
           "WHERE id = %d AND version = %lld",
           table, (long long)had->count - 1, id, (long long)had->version);
    return sql_changed(sql) == 1;
}

struct goods goods_await(struct sql *sql, const char *table, int id,
                         void (*begins)(const char *label), const char *label)
{
    bool blocked = !goods_try(sql, table, id);
    struct goods goods;

    actor_report(GOODS_BLOCKED, blocked);
    if (blocked)
        actor_waits("for the row");
    else
        begins(label);
    actor_step("has tried");
    goods = goods_lock(sql, table, id);
    if (blocked) {
        actor_lets_go();
        begins(label);
    }
    return goods;
}

void goods_commit(struct sql *sql)
{
    lab_sleep_ms(SEEN_MS);
    actor_lets_go();
    sql_do(sql, "COMMIT");
}

void goods_sell_by_version(struct sql *from, struct sql *to, const char *table,
                           int id, void (*again)(void *arg), void *arg)
{
    bool sold = false;

    for (int retries = 0; !sold && retries <= GOODS_RETRIES; retries++) {
        struct goods had;

        if (retries && again)
            again(arg);
        had = goods_read(from, table, id);
        if (!retries) {
            actor_mark(false, "reads version %lld", (long long)had.version);
            actor_step("has read");
        }
        sold = goods_swap(to, table, id, &had);
        actor_mark(!sold, "version %lld: %s", (long long)had.version,
                   sold ? "sold" : "refused");
        actor_report(GOODS_VERSION, had.version);
        actor_report(GOODS_RETRIED, retries);
    }
    actor_report(GOODS_SOLD, sold);
}
