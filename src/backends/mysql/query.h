/*
 * Requests about a name (inspect, list, break and ask), and the requests of a
 * holder (downgrade and put). latch.c and diagnose.c contain those of latches
 * and the diagnosis. The slot hf__my_query() is in the backend's table, the
 * other functions are in the table of struct my_op (cmd.h). The client's mutex
 * is held.
 */
#ifndef HF_MYSQL_QUERY_H
#define HF_MYSQL_QUERY_H

#include "mysql.h"

struct my_flight;

int hf__my_query(void *, struct hf__query *);
/* Writes and sends the next statements of the query, as struct my_op
 * requires. */
int hf__my_query_encode(struct mysql *, struct hf__req *);
/* Returns 0 or HF_EPROTO. */
int hf__my_query_answer(struct mysql *, const struct my_flight *,
                        const struct my_answer *);

#endif
