/* A connection to MariaDB, for stores and scenarios. One thread may use it at a
 * time. */
#ifndef HF_LAB_SQL_H
#define HF_LAB_SQL_H

#include "../runner/place.h"

#include <stdint.h>

struct sql;

enum { SQL_WHY = 640 };

/* mariadb://user[:password]@host[:port]/database; the password may also be in
 * HOLDFAST_LAB_PASSWORD, else in HOLDFAST_PASSWORD. Dies if it cannot connect,
 * with the host, the user, and what to do. */
struct sql *sql_open(const struct lab_place *place);
/* The same for callers that must not die: returns NULL, an exit status, and the
 * reason. */
struct sql *sql_connect(const struct lab_place *place, int *status,
                        char why[SQL_WHY]);
/* Runs a statement as it is. Returns 0, or the error number, also of a lost
 * connection. If the answer has a row, its first column goes to *number, which
 * may be NULL. */
unsigned sql_send(struct sql *sql, const char *statement, int64_t *number);
/* Closes the connection and frees it. */
void sql_close(struct sql *sql);
/* A statement that must succeed. */
void sql_do(struct sql *sql, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns 0, or the server's error number, such as 1213 (deadlock) or 1205
 * (lock wait timeout). Dies if the connection is lost. */
unsigned sql_try(struct sql *sql, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The columns of the first row of an answer, as numbers (NULL is 0). Returns
 * how many columns there were; 0: no row. Dies on an error. */
unsigned sql_row(struct sql *sql, int64_t *out, unsigned max, const char *fmt,
                 ...) __attribute__((format(printf, 4, 5)));
/* One number; -1 if there is no row. */
int64_t sql_number(struct sql *sql, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* One text of up to size bytes; "" if there is no row. */
void sql_text(struct sql *sql, char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Rows that the last statement changed. */
uint64_t sql_changed(const struct sql *sql);
/* The text of the last error. */
const char *sql_error(const struct sql *sql);
/* Dies with the error of the last statement. */
void sql_fail(const struct sql *sql, const char *statement)
    __attribute__((noreturn));

#endif
