/*
 * The statements of read-write locks and semaphores, which have a row in
 * holdfast_holds for each hold, and the meaning of their answers. lock.c calls
 * these functions with a packet begun on cmd, and with its answer. An attempt
 * is a transaction in one packet; nothing is sent after it before its answer
 * (cmd.c). The client's mutex is held.
 */
#ifndef HF_MYSQL_SHARE_H
#define HF_MYSQL_SHARE_H

#include "mysql.h"

/* These write the statements: _take those of an attempt, _drop those of a
 * release or an abandon. */
void hf__my_share_take(struct mysql *, const struct hf__req *);
void hf__my_share_drop(struct mysql *);
/* Returns 0 or HF_EPROTO. */
int hf__my_share_taken(struct mysql *, struct hf__req *,
                       const struct my_answer *);

#endif
