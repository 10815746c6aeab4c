/*
 * A table of goods in MariaDB, for scenarios about what SQL locks. Each row has
 * an id (1 to GOODS), a code with an index, the same text as a name without
 * one, a count and a version.
 */
#ifndef HF_LAB_GOODS_H
#define HF_LAB_GOODS_H

#include "../runner/place.h"
#include "../runner/report.h"

#include <stdbool.h>
#include <stdint.h>

struct lab;

enum {
    GOODS = 256,      /* rows: enough for the index to be used */
    GOODS_COUNT = 10, /* stock of each */
    GOODS_RETRIES = 5,
};

/* What actors report with the functions below. */
enum { GOODS_BLOCKED, GOODS_VERSION, GOODS_RETRIED, GOODS_SOLD, GOODS_VALUES };

struct goods {
    int64_t count, version;
};

/* A session as in the documents, at that isolation level; NULL: REPEATABLE
 * READ, the default of MySQL. */
struct sql *goods_session(const struct lab_place *place, const char *isolation);

/* In the runner: creates the table and its rows. */
void goods_make(struct sql *sql, const char *table);
/* Resets each row. */
void goods_reset(struct sql *sql, const char *table);

/* A plain select. */
struct goods goods_read(struct sql *sql, const char *table, int id);
/* SELECT ... FOR UPDATE: waits for the row. */
struct goods goods_lock(struct sql *sql, const char *table, int id);
/* The same with NOWAIT. False: another transaction has locked the row. The
 * server answers at once, so that no time must be measured. */
bool goods_try(struct sql *sql, const char *table, int id);

/* One less, by one statement; a new version. */
void goods_sell(struct sql *sql, const char *table, int id);
/* Sets the count without a check; a new version. */
void goods_write(struct sql *sql, const char *table, int id, int64_t count);
/* Sets the count to one less than what was read, if the row still has that
 * version. False: it does not. */
bool goods_swap(struct sql *sql, const char *table, int id,
                const struct goods *had);

/* In the runner: begins a row of a scenario with the fields that all of them
 * have. */
struct lab_row *goods_row(struct lab *lab, const struct lab_place *store,
                          const char *strategy, const char *variant,
                          enum lab_outcome expected);

/* This function and the following are for actors. goods_lock(), in a
 * transaction. Finds out with goods_try() whether it must wait, reports that
 * (GOODS_BLOCKED), and pauses at the step "has tried". When it has the row, it
 * begins a span, with actor_holds or actor_shares, and its label. */
struct goods goods_await(struct sql *sql, const char *table, int id,
                         void (*begins)(const char *label), const char *label);
/* COMMIT. The latest span ends just before, because the next one may begin at
 * once. */
void goods_commit(struct sql *sql);
/* Reads the row with `from', then writes one less with `to' if the row still
 * has the version that was read (goods_swap). If it does not, calls again(arg),
 * which may be NULL, and reads again: up to GOODS_RETRIES times. Pauses at the
 * step "has read" before the first write. Reports the version that was read
 * last (GOODS_VERSION), the retries (GOODS_RETRIED), and whether it has sold
 * (GOODS_SOLD). */
void goods_sell_by_version(struct sql *from, struct sql *to, const char *table,
                           int id, void (*again)(void *arg), void *arg);

#endif
