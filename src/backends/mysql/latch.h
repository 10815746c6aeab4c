/*
 * Latches: the attempt of one who waits (from lock.c), and the requests that
 * set, count down and read it (from query.c), which count once however often
 * they are sent. The client's mutex is held.
 */
#ifndef HF_MYSQL_LATCH_H
#define HF_MYSQL_LATCH_H

#include "mysql.h"

void hf__my_latch_take(struct mysql *);
/* 0, or HF_EPROTO. */
int hf__my_latch_taken(struct mysql *, struct hf__req *,
                       const struct my_answer *);
/* The statements of the requests. %R is the number of the request, %S the count
 * to set, %U for how long an answer is kept, in us. */
extern const char hf__my_latch_set[], hf__my_latch_down[], hf__my_latch_get[];
/* DONE, PENDING, or a code. */
int hf__my_latch_counted(struct mysql *, struct hf__query *,
                         const struct my_answer *);

#endif
