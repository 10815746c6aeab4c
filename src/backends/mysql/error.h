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

/* Another transaction was in the way: nothing was done. */
bool hf__my_in_the_way(uint16_t error);
/* The same, or an administrator ended the statement: it is sent again. */
bool hf__my_again(uint16_t error);
/* A new connection, or another server, may do. */
bool hf__my_leaves(uint16_t error);
/* The server may say otherwise later, without somebody changing something. */
bool hf__my_passes(uint16_t error);
/* It has refused the request before it did anything for it. */
bool hf__my_untouched(uint16_t error);
int hf__my_code(uint16_t error);
/* Which statement helps against the error at the end of this answer; "". */
void hf__my_advice(const struct my_answer *, const struct my_login *, char *to,
                   size_t size);
/* Leaves a text; returns the code. */
int hf__my_refusal(struct mysql *, const struct my_answer *);

#endif
