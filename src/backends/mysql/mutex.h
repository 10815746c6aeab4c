/*
 * The statements of the mutex, and the meaning of their answers; mutex.c shows
 * what goes over the wire. lock.c calls this with a packet begun on cmd, and
 * with the answer. The client's mutex is held.
 */
#ifndef HF_MYSQL_MUTEX_H
#define HF_MYSQL_MUTEX_H

#include "mysql.h"

/* Write the statements: of an attempt; of a release or an abandon. */
void hf__my_mutex_take(struct mysql *, const struct hf__req *);
void hf__my_mutex_drop(struct mysql *, const struct hf__req *);
/* Returns 0 or HF_EPROTO. */
int hf__my_mutex_taken(struct mysql *, struct hf__req *,
                       const struct my_answer *);

#endif
