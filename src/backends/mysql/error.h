/*
 * What the server's errors mean, by their numbers: whether a statement was
 * done, whether it is sent again, whether the connection is left, and which
 * code the program gets, with a statement for the administrator that would
 * help. Called with the answers of cmd (cmd.c), of those who wait (wait.c) and
 * of a connection's first statements (session.c). The client's mutex is held.
 */
#ifndef HF_MYSQL_ERROR_H
#define HF_MYSQL_ERROR_H

#include "mysql.h"

#define MY_NO_COLUMN 1054
#define MY_NOT_YOURS 1095
#define MY_FORBIDDEN 1142
#define MY_NO_TABLE 1146

/* What an error means; one may mean several of these. */
enum my_meaning {
    MY_IN_THE_WAY = 1, /* another transaction was: nothing was done */
    MY_AGAIN = 2,      /* the same, or an administrator ended the statement: it
                          is sent again */
    MY_LEAVES = 4,     /* a new connection, or another server, may do */
    MY_DENIED = 8,     /* the user may not do it: HF_EAUTH */
    MY_UNTOUCHED = 16, /* refused before anything was done for the request */
    MY_LASTS = 32,     /* until somebody changes something */
};
bool hf__my_means(uint16_t error, enum my_meaning);
int hf__my_code(uint16_t error);
/* Which statement helps against the error at the end of this answer; "". */
void hf__my_advice(const struct my_answer *, const struct my_login *, char *to,
                   size_t size);
/* Leaves a text; returns the code. */
int hf__my_refusal(struct mysql *, const struct my_answer *);

#endif
