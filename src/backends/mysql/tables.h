/*
 * The four tables, as the statements that make them: session.c runs those that
 * are missing, error.c cuts its advice out of them, and tests/docs/mysql.py
 * compares them with docs/mysql.md.
 */
#ifndef HF_MYSQL_TABLES_H
#define HF_MYSQL_TABLES_H

#define MY_TABLES 4

/* NULL is behind the last. */
extern const char *const hf__my_tables[MY_TABLES + 1];

#endif
