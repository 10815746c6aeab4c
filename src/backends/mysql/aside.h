/*
 * Statements on cmd that no request waits for: they wake waiters on other
 * connections, give back a user lock, or tidy up. An error in the answer
 * changes nothing. They are sent in order with the requests. cmd.c, wait.c and
 * the functions that read answers call this. The client's mutex is held.
 */
#ifndef HF_MYSQL_ASIDE_H
#define HF_MYSQL_ASIDE_H

#include "mysql.h"

/* fmt: see hf__my_sql(). The statement is dropped if cmd is not up. */
void hf__my_aside(struct mysql *, const char *fmt, ...);
/* Gives back the bell (mysql.h) of a mutex: an attempt takes it in advance, and
 * was not granted. Other kinds have no bell. */
void hf__my_bell_give_back(struct mysql *, const struct my_lock *);
/* Wakes the first waiter. thread: the connection id on which it waits; 0: there
 * is none. Does nothing behind a proxy; the first waiter then finds out by its
 * own checks. */
void hf__my_ring(struct mysql *, uint64_t thread);
/* Wakes all waiters of the latch. Called from an answer of cmd. */
void hf__my_ring_all(struct mysql *, const struct hf__query *);

#endif
