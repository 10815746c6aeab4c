/* A connection to MariaDB, for stores and scenarios. Only one thread may use it
 * at a time. */
#ifndef HF_LAB_SQL_H
#define HF_LAB_SQL_H

#include "../runner/place.h"

#include <stdint.h>

struct sql;

enum { SQL_WHY = 640 };

/* Connects to mariadb://user[:password]@host[:port]/database. If the URL has no
 * password, HOLDFAST_LAB_PASSWORD or else HOLDFAST_PASSWORD is used. On
 * failure, dies with a message that names the host and says what to do. */
struct sql *sql_open(const struct lab_place *place);
/* Does the same for callers that must not die: on failure returns NULL, and
 * sets *status to an exit status and `why' to the reason. */
struct sql *sql_connect(const struct lab_place *place, int *status,
                        char why[SQL_WHY]);
/* Runs a statement as it is. Returns 0 or the error number, even if the
 * connection is lost. If there is a row, stores its first column in *number,
 * unless `number' is NULL. */
unsigned sql_send(struct sql *sql, const char *statement, int64_t *number);
/* Closes the connection and frees it. */
void sql_close(struct sql *sql);
/* Runs a statement. Dies if it fails. */
void sql_do(struct sql *sql, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs a statement. Returns 0, or the server's error number, such as 1213
 * (deadlock) or 1205 (lock wait timeout). Dies if the connection is lost. */
unsigned sql_try(struct sql *sql, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Runs a query, and stores up to max columns of its first row as numbers (NULL
 * is 0). Returns how many columns there were, or 0 if there is no row. Dies on
 * an error. */
unsigned sql_row(struct sql *sql, int64_t *out, unsigned max, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));
/* Returns one number, or -1 if there is no row. */
int64_t sql_number(struct sql *sql, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Copies one string to `out', which has size bytes; "" if there is no row. */
void sql_text(struct sql *sql, char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Returns how many rows the last statement changed. */
uint64_t sql_changed(const struct sql *sql);
/* Returns the message of the last error. */
const char *sql_error(const struct sql *sql);
/* Dies with the error of the last statement. */
void sql_fail(const struct sql *sql, const char *statement)
    __attribute__((noreturn));

#endif
