/*
 * The statements of read-write locks and semaphores, which have a row in
 * holdfast_holds for each hold, and the meaning of their answers. lock.c begins
 * a packet on cmd, calls the function that writes the statements, and later
 * passes the answer to hf__my_share_taken(). An attempt is a transaction in one
 * packet; after it, nothing is sent until it is answered (cmd.c). The client's
 * mutex is held.
 */
#ifndef HF_MYSQL_SHARE_H
#define HF_MYSQL_SHARE_H

#include "mysql.h"

/* These write the statements: _take those of an attempt, _drop those of a
 * release or an abandon. */
void hf__my_share_take(struct mysql *, const struct hf__req *);
void hf__my_share_drop(struct mysql *);
/* Handles the answer to an attempt. Returns 0 or HF_EPROTO. */
int hf__my_share_taken(struct mysql *, struct hf__req *,
                       const struct my_answer *);

#endif
