/*
 * What the server says of itself, as findings: rights, tables, persistence,
 * replication, clock, connections. query.c calls this, with a packet begun on
 * cmd and with the answer, as often as it says PENDING. The client's mutex is
 * held.
 */
#ifndef HF_MYSQL_DIAGNOSE_H
#define HF_MYSQL_DIAGNOSE_H

#include "mysql.h"

void hf__my_diagnose_put(struct mysql *, const struct hf__query *);
/* DONE, or PENDING: more was sent. */
int hf__my_diagnosed(struct mysql *, struct hf__query *,
                     const struct my_answer *);

#endif
