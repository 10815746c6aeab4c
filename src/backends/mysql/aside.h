/*
 * Statements on cmd that no request waits for: they wake waiters on other
 * connections, give back a user lock, or tidy up. An error in the answer
 * changes nothing. They are sent in order with the requests. cmd.c, wait.c and
 * the functions that read answers call this. The client's mutex is held.
 */
#ifndef HF_MYSQL_ASIDE_H
#define HF_MYSQL_ASIDE_H

#include "mysql.h"

/* fmt: as hf__my_sql(). Dropped if cmd is not up. */
void hf__my_aside(struct mysql *, const char *fmt, ...);
/* The attempt was not granted: gives back the bell of a mutex, which it took in
 * advance. Other kinds have no bell. */
void hf__my_bell_give_back(struct mysql *, const struct my_lock *);
/* Wakes the first waiter, which has this connection id; 0: there is none.
 * Behind a proxy no waiter is woken, and the first one finds out by its own
 * checks. */
void hf__my_ring(struct mysql *, uint64_t thread);
/* Wakes all waiters of the latch. Called from an answer of cmd. */
void hf__my_ring_all(struct mysql *, const struct hf__query *);

#endif
