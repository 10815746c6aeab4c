/*
 * Latches: the attempt of a waiter (from lock.c), and the requests that set,
 * count down and read a latch (from query.c). Each request counts once, no
 * matter how often it is sent. The client's mutex is held.
 */
#ifndef HF_MYSQL_LATCH_H
#define HF_MYSQL_LATCH_H

#include "mysql.h"

/* Writes the statements of an attempt. */
void hf__my_latch_take(struct mysql *);
/* Handles the answer to an attempt. Returns 0 or HF_EPROTO. */
int hf__my_latch_taken(struct mysql *, struct hf__req *,
                       const struct my_answer *);
/* The statements of the requests. In them, %R is the number of the request, %S
 * the count to set, %U the time in us for which an answer is kept. */
extern const char hf__my_latch_set[], hf__my_latch_down[], hf__my_latch_get[];
/* Handles the answer to one of these requests. Returns HF__DONE, HF__PENDING if
 * the request was sent again, or a code. */
int hf__my_latch_counted(struct mysql *, struct hf__query *,
                         const struct my_answer *);

#endif
