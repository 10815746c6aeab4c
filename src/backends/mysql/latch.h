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
void hf__my_latch_put(struct mysql *, const struct hf__query *);
/* DONE, PENDING, or a code. */
int hf__my_latch_counted(struct mysql *, struct hf__query *,
                         const struct my_answer *);

#endif
