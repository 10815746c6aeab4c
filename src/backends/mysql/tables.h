/*
 * The four tables, as constants. session.c checks their columns and creates
 * missing tables, error.c and diagnose.c advise which statements to run, and
 * tests/docs/mysql.py compares the constants with docs/mysql.md.
 */
#ifndef HF_MYSQL_TABLES_H
#define HF_MYSQL_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#define MY_TABLES 4
#define MY_COLUMNS 15 /* number of columns of the largest table */

struct my_table {
    const char *name;
    const char
        *column[MY_COLUMNS + 1]; /* "name type ..."; NULL ends the list */
    const char *key; /* ",primary key(...)" after the columns, or "" */
};
extern const struct my_table hf__my_tables[MY_TABLES];

#define MY_STATEMENT_MAX 768
/* Writes the statement that creates the i-th table, and returns `to`. If
 * `database` is NULL, the table is created in the database of the session. */
const char *hf__my_make_table(char to[MY_STATEMENT_MAX], size_t i,
                              const char *database);
/* Appends to `to` a statement that grants `rights` on the i-th table to an
 * account, and writes "; " before the statement if `to` is not empty. The
 * account is the first user_len bytes of `user`. Returns false, and appends
 * nothing, if the whole statement does not fit into the `size` bytes: an
 * administrator runs the text, which must not end in the middle of a
 * statement. */
bool hf__my_add_grant(char *to, size_t size, size_t i, const char *rights,
                      const char *database, const char *user, int user_len);

#endif
