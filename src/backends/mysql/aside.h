/*
 * Statements on the command connection (cmd) that no request waits for: they
 * wake waiters on other connections, release a user lock, or tidy up. An error
 * in the answer has no effect. They are sent in order with the requests. cmd.c,
 * wait.c and the functions that read answers call these functions. The client's
 * mutex is held.
 */
#ifndef HF_MYSQL_ASIDE_H
#define HF_MYSQL_ASIDE_H

#include "mysql.h"

/* Sends the statement; hf__my_sql() explains its format. Sends nothing if cmd
 * is not up. */
void hf__my_aside(struct mysql *, const char *fmt, ...);
/* Releases the user lock hfb:<hash> (the bell, mysql.h) of a mutex after an
 * attempt that was not granted: each attempt takes this user lock in advance.
 * Does nothing for other kinds, which have no bell. */
void hf__my_bell_give_back(struct mysql *, const struct my_lock *);
/* Wakes the first waiter by KILL QUERY. `thread` is the id of the connection on
 * which it waits, or 0 if there is none. Does nothing if a proxy may share
 * connections; the first waiter then sees the change at its next check. */
void hf__my_ring(struct mysql *, uint64_t thread);
/* Wakes all waiters of the latch that the query names. Does nothing if a proxy
 * may share connections. Must be called while an answer on cmd is handled: cmd
 * must be up, which is certain only then. */
void hf__my_ring_all(struct mysql *, const struct hf__query *);

#endif
