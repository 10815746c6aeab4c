/*
 * Statements on cmd for whose answer no request waits: the wake-ups of waiters
 * on other connections, a user lock that is given back, tidying up. An error in
 * the answer changes nothing. They go out behind what was submitted before.
 * cmd.c, wait.c and whoever reads answers call this; the client's mutex is
 * held.
 */
#ifndef HF_MYSQL_ASIDE_H
#define HF_MYSQL_ASIDE_H

#include "mysql.h"

/* fmt: as hf__my_sql(). Dropped if cmd is not up. */
void hf__my_aside(struct mysql *, const char *fmt, ...);
/* An attempt did not get the mutex: the bell that was to be ready for the grant
 * is given back. Of other kinds there is none. */
void hf__my_bell_give_back(struct mysql *, const struct my_lock *);
/* Wakes the first waiter, which is this thread of the server; 0: there is none.
 * Through a proxy nobody is woken, and the first waiter checks by itself. */
void hf__my_ring(struct mysql *, uint64_t thread);
/* Out of an answer of cmd: wakes all waiters of a latch. */
void hf__my_ring_all(struct mysql *, const struct hf__query *);

#endif
