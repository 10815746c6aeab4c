/*
 * The stock that is sold: one number, at a place, without any protection. It is
 * a file, a key of Redis, or a row of MariaDB (with a version and a time, for
 * strategies that check them). Scenarios create it once; each worker opens it.
 */
#ifndef HF_LAB_STOCK_H
#define HF_LAB_STOCK_H

#include "../runner/place.h"

#include <stdint.h>

struct lab;

struct stock;

/* In the runner: creates the stock with that count. If place is NULL, the stock
 * is a file. In a place that was given by a URL, the stock is removed after the
 * run. */
void stock_make(struct lab *lab, const struct lab_place *place, int64_t count);
/* In the runner: returns the current count. */
int64_t stock_left(struct lab *lab, const struct lab_place *place);

/* For workers. Reading and writing are two steps, on purpose. */
struct stock *stock_open(struct lab *lab, const struct lab_place *place);
void stock_close(struct stock *stock);
int64_t stock_read(struct stock *stock);
void stock_write(struct stock *stock, int64_t count);
/* Return the underlying connection, for other access, or NULL if the stock is
 * of another kind. */
struct sql *stock_sql(struct stock *stock);
struct redisContext *stock_redis(struct stock *stock);
/* Returns the name of the file, the key of Redis, or the table of MariaDB. That
 * table has one row: id = 1, count, version (0 at first) and updated, a
 * TIMESTAMP(6). stock_write() sets only the count. */
const char *stock_key(const struct stock *stock);

#endif
