/*
 * The meaning of the server's errors: whether the statement was executed,
 * whether it is sent again, whether the connection is closed, which code the
 * program gets, and which statement an administrator can run to repair the
 * cause. cmd.c, wait.c and session.c call these functions with answers. The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_ERROR_H
#define HF_MYSQL_ERROR_H

#include "mysql.h"

#define MY_NO_COLUMN 1054
#define MY_NOT_YOURS 1095
#define MY_FORBIDDEN 1142
#define MY_NO_TABLE 1146

/* The meanings of an error. One error may have several. */
enum my_meaning {
    MY_IN_THE_WAY =
        1,         /* another transaction was in the way: nothing was done */
    MY_AGAIN = 2,  /* send it again: MY_IN_THE_WAY, or the statement was ended
                      by KILL QUERY or by a time limit */
    MY_LEAVES = 4, /* try a new connection, perhaps to another server */
    MY_DENIED = 8, /* the user lacks a right: HF_EAUTH */
    MY_UNTOUCHED = 16, /* refused before anything was done for the request */
    MY_LASTS = 32,     /* permanent until an administrator changes something */
};
/* Returns whether the error has any of these meanings. */
bool hf__my_means(uint16_t error, enum my_meaning);
/* Returns the code for the program: HF_EAUTH or HF_EBACKEND. */
int hf__my_code(uint16_t error);
/* Writes the statement that would repair the cause of the error with which the
 * answer ends, or "" if no such statement is known. */
void hf__my_advice(const struct my_answer *, const struct my_login *, char *to,
                   size_t size);
/* Sets the message of the failure with core->why() or core->lasts(). Returns
 * the code. */
int hf__my_refusal(struct mysql *, const struct my_answer *);

#endif
