/*
 * The statement with which a connection waits, for wait.c, which begins and
 * ends the packet. The client's mutex is held.
 */
#ifndef HF_MYSQL_WAIT_SQL_H
#define HF_MYSQL_WAIT_SQL_H

#include "wait.h"

/* The server ends a first waiter that says nothing for so long, and those of an
 * unfair lock after half of that: order is worth some patience. */
#define MY_FAIR_TURN_S 2

/* Writes the statement of the state that follows; w->state is still the one
 * before. What it answers:
 *
 *   QUEUES  0: it has to queue again; else it is the first, and as BELL
 *   BELL    1: it has rung, or there is none; 2: it has not, for so long
 *   SLEEPS  1: an attempt is worthwhile; 0, after a wait: it is not; no row:
 *           everything has changed
 */
void hf__my_wait_put(struct my_wait *, enum my_wait_state);

#endif
