/*
 * The statements of read-write locks and semaphores, and what their answers
 * mean: a row in holdfast_holds for each hold. lock.c calls this with a packet
 * begun on cmd, and with the answer. An attempt is a transaction in one packet,
 * so it is sent alone (cmd.c). The client's mutex is held.
 */
#ifndef HF_MYSQL_SHARE_H
#define HF_MYSQL_SHARE_H

#include "mysql.h"

void hf__my_share_take(struct mysql *, const struct hf__req *);
void hf__my_share_drop(struct mysql *);
/* 0, or HF_EPROTO. */
int hf__my_share_taken(struct mysql *, struct hf__req *,
                       const struct my_answer *);

#endif
