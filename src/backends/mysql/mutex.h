/*
 * The statements of the mutex, and the meaning of their answers; mutex.c shows
 * what is sent. lock.c begins a packet on cmd, calls the function that writes
 * the statements, and later passes the answer to hf__my_mutex_taken(). The
 * client's mutex is held.
 */
#ifndef HF_MYSQL_MUTEX_H
#define HF_MYSQL_MUTEX_H

#include "mysql.h"

/* These write the statements: _take those of an attempt, _drop those of a
 * release or an abandon. */
void hf__my_mutex_take(struct mysql *, const struct hf__req *);
void hf__my_mutex_drop(struct mysql *, const struct hf__req *);
/* Handles the answer to an attempt. Returns 0 or HF_EPROTO. */
int hf__my_mutex_taken(struct mysql *, struct hf__req *,
                       const struct my_answer *);

#endif
