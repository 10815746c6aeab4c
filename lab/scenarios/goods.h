/*
 * A table of goods in MariaDB, for scenarios about what SQL locks. Each row has
 * an id (1 to GOODS), a code with an index, a name with the same text but no
 * index, a count and a version.
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
    GOODS_COUNT = 10, /* stock of each row */
    GOODS_RETRIES = 5,
};

/* What actors report with the functions below. */
enum { GOODS_BLOCKED, GOODS_VERSION, GOODS_RETRIED, GOODS_SOLD, GOODS_VALUES };

struct goods {
    int64_t count, version;
};

/* Opens a session as in the documents (tutorials; see lab/README.md), at that
 * isolation level. NULL means REPEATABLE READ, the default of MySQL. */
struct sql *goods_session(const struct lab_place *place, const char *isolation);

/* In the runner: creates the table and its rows. */
void goods_make(struct sql *sql, const char *table);
/* Resets the count and the version of each row. */
void goods_reset(struct sql *sql, const char *table);

/* Reads a row with a plain select. */
struct goods goods_read(struct sql *sql, const char *table, int id);
/* Reads a row with SELECT ... FOR UPDATE, which locks the row. Waits while
 * another transaction has locked it. */
struct goods goods_lock(struct sql *sql, const char *table, int id);
/* Locks a row as goods_lock() does, but with NOWAIT: returns false at once if
 * another transaction has locked the row. Scenarios thus see that they would
 * have to wait, and need not measure a wait. */
bool goods_try(struct sql *sql, const char *table, int id);

/* Subtracts one from the count in one statement, and raises the version. */
void goods_sell(struct sql *sql, const char *table, int id);
/* Sets the count without a check, and raises the version. */
void goods_write(struct sql *sql, const char *table, int id, int64_t count);
/* Sets the count to one less than had->count and raises the version, if the row
 * still has had->version. Returns whether the row was changed. */
bool goods_swap(struct sql *sql, const char *table, int id,
                const struct goods *had);

/* In the runner: begins a row of the report, with the fields that all scenarios
 * with a table of goods have. */
struct lab_row *goods_row(struct lab *lab, const struct lab_place *store,
                          const char *strategy, const char *variant,
                          enum lab_outcome expected);

/* This function and the following ones are for actors. Needs a transaction that
 * the actor has begun. Calls goods_try(), and reports (GOODS_BLOCKED) whether
 * the actor must wait for the row. Then pauses at the step "has tried", and
 * does the same as goods_lock(). As soon as the actor has locked the row, which
 * may be before the pause, begins a span by calling begins(label). `begins' is
 * actor_holds or actor_shares. */
struct goods goods_await(struct sql *sql, const char *table, int id,
                         void (*begins)(const char *label), const char *label);
/* Ends the latest span and commits, in this order, because another actor may
 * have the row before COMMIT returns. */
void goods_commit(struct sql *sql);
/* Sells one item by optimistic locking. Reads the row through the connection
 * `from', and pauses at the step "has read". Then sets the count to one less
 * through the connection `to', if the row still has the version that was read
 * (goods_swap).
 *
 * If the version has changed, reads and writes again, up to GOODS_RETRIES
 * times. Before each of these retries, calls again(arg), unless `again' is
 * NULL.
 *
 * Reports the version that was read last (GOODS_VERSION), the number of retries
 * (GOODS_RETRIED), and whether the item was sold (GOODS_SOLD). */
void goods_sell_by_version(struct sql *from, struct sql *to, const char *table,
                           int id, void (*again)(void *arg), void *arg);

#endif
