#include "stock.h"

#include "../../cli/shared/exit_code.h"
#include "../runner/die.h"
#include "../runner/lab.h"
#include "../servers/redis.h"
#include "../servers/sql.h"
#include "../servers/tidy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A file contains one number of constant length, so that a write leaves no
 * digits of an earlier number. A number of up to seven digits and the newline
 * share eight bytes, which are copied at once, so no reader sees half of the
 * number. */
#define FILE_FORMAT "%15lld\n"
enum { FILE_LEN = 16 };

struct stock {
    enum lab_engine engine;
    char key[512];
    int file;
    redisContext *redis;
    struct sql *sql;
};

static void stock_name_it(struct stock *stock, struct lab *lab,
                          const struct lab_place *place)
{
    char name[96];

    stock->engine = place ? place->engine : LAB_FILE;
    switch (stock->engine) {
    case LAB_FILE:
        snprintf(stock->key, sizeof(stock->key), "%s/stock",
                 lab_directory(lab));
        break;
    case LAB_REDIS:
        lab_name(lab, "stock", name);
        snprintf(stock->key, sizeof(stock->key), "%s", name);
        break;
    case LAB_MARIADB:
        lab_table(lab, "stock", name);
        snprintf(stock->key, sizeof(stock->key), "%s", name);
        break;
    default:
        lab_die(CLI_FAILED, "%s is not a store", place->name);
    }
}

struct stock *stock_open(struct lab *lab, const struct lab_place *place)
{
    struct stock *stock = calloc(1, sizeof(*stock));

    if (!stock)
        lab_die(CLI_OSERR, "out of memory");
    stock_name_it(stock, lab, place);
    stock->file = -1;
    if (stock->engine == LAB_REDIS)
        stock->redis = rd_open(place);
    else if (stock->engine == LAB_MARIADB)
        stock->sql = sql_open(place);
    else
        stock->file = open(stock->key, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (stock->engine == LAB_FILE && stock->file < 0)
        lab_die(CLI_OSERR, "%s: %s", stock->key, strerror(errno));
    return stock;
}

void stock_close(struct stock *stock)
{
    if (!stock)
        return;
    if (stock->redis)
        redisFree(stock->redis);
    sql_close(stock->sql);
    if (stock->file >= 0)
        close(stock->file);
    free(stock);
}

static int64_t stock_read_file(const struct stock *stock)
{
    char text[FILE_LEN + 1] = "";

    if (pread(stock->file, text, FILE_LEN, 0) != FILE_LEN)
        lab_die(CLI_OSERR, "%s: cannot be read: %s", stock->key,
                strerror(errno));
    return strtoll(text, NULL, 10);
}

static void stock_write_file(const struct stock *stock, int64_t count)
{
    char text[FILE_LEN + 8];

    snprintf(text, sizeof(text), FILE_FORMAT, (long long)count);
    if (pwrite(stock->file, text, FILE_LEN, 0) != FILE_LEN)
        lab_die(CLI_OSERR, "%s: cannot be written: %s", stock->key,
                strerror(errno));
}

int64_t stock_read(struct stock *stock)
{
    if (stock->redis)
        return rd_number(stock->redis, "GET %s", stock->key);
    if (stock->sql)
        return sql_number(stock->sql, "SELECT count FROM %s WHERE id = 1",
                          stock->key);
    return stock_read_file(stock);
}

void stock_write(struct stock *stock, int64_t count)
{
    if (stock->redis)
        rd_number(stock->redis, "SET %s %lld", stock->key, (long long)count);
    else if (stock->sql)
        sql_do(stock->sql, "UPDATE %s SET count = %lld WHERE id = 1",
               stock->key, (long long)count);
    else
        stock_write_file(stock, count);
}

static void stock_make_table(const struct stock *stock, int64_t count)
{
    sql_do(stock->sql,
           "CREATE TABLE IF NOT EXISTS %s (id INT PRIMARY KEY, "
           "count BIGINT NOT NULL, version BIGINT NOT NULL, "
           "updated TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) "
           "ENGINE = InnoDB",
           stock->key);
    sql_do(stock->sql,
           "REPLACE INTO %s (id, count, version, updated) "
           "VALUES (1, %lld, 0, CURRENT_TIMESTAMP(6))",
           stock->key, (long long)count);
}

void stock_make(struct lab *lab, const struct lab_place *place, int64_t count)
{
    struct stock *stock;

    if (place)
        lab_place_tidy(lab, place);
    stock = stock_open(lab, place);
    if (stock->sql)
        stock_make_table(stock, count);
    else
        stock_write(stock, count);
    stock_close(stock);
}

int64_t stock_left(struct lab *lab, const struct lab_place *place)
{
    struct stock *stock = stock_open(lab, place);
    int64_t count = stock_read(stock);

    stock_close(stock);
    return count;
}

struct sql *stock_sql(struct stock *stock)
{
    return stock->sql;
}

struct redisContext *stock_redis(struct stock *stock)
{
    return stock->redis;
}

const char *stock_key(const struct stock *stock)
{
    return stock->key;
}
