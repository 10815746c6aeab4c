/*
 * The statement with which a connection waits. wait.c begins the packet, calls
 * hf__my_wait_put(), and ends the packet. The client's mutex is held.
 */
#ifndef HF_MYSQL_WAIT_SQL_H
#define HF_MYSQL_WAIT_SQL_H

#include "wait.h"

/* The wait_timeout of a connection that waits for a fair lock, in s: the server
 * closes the connection of a first waiter that is silent for this long. For an
 * unfair lock it is 1 s. */
#define MY_FAIR_TURN_S 2

/* Writes the statement for the next state, which is QUEUES, BELL or SLEEPS;
 * w->state is still the previous state. The answers:
 *
 *   QUEUES  0: the connection must queue again; else it is the first, and the
 *           value means the same as for BELL
 *   BELL    1: the bell rang, or there is none; 2: it did not ring in time
 *   SLEEPS  1: an attempt is worthwhile; 0: the sleep ended by its time limit,
 *           and the connection sleeps again; no row: the name does not exist,
 *           or is of another kind */
void hf__my_wait_put(struct my_wait *, enum my_wait_state);

#endif
