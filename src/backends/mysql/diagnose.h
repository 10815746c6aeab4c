/*
 * The findings about a server: rights, tables, persistence, replication, clock
 * and connections. query.c begins a packet on cmd, calls hf__my_diagnose_put(),
 * and passes the answer to hf__my_diagnosed(). If that function returns
 * HF__PENDING, it has sent the request again, with the next statements. The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_DIAGNOSE_H
#define HF_MYSQL_DIAGNOSE_H

#include "mysql.h"

/* Writes the next statements. */
void hf__my_diagnose_put(struct mysql *, const struct hf__query *);
/* Handles an answer. Returns HF__DONE, HF__PENDING if the request was sent
 * again, or a code. */
int hf__my_diagnosed(struct mysql *, struct hf__query *,
                     const struct my_answer *);

#endif
