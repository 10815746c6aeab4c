/*
 * The pieces of the statement with which a connection waits, for wait.c, which
 * begins and ends the packet. They write to w->conn alone, of what w and its
 * lock say. The client's mutex is held.
 */
#ifndef HF_MYSQL_WAIT_SQL_H
#define HF_MYSQL_WAIT_SQL_H

struct my_wait;

/* The first may say nothing for so long; order is worth some patience. */
#define MY_TURN_S 1
#define MY_FAIR_TURN_S 2

/* Who waits, as a comment in front of the statement: inspections read it in the
 * server's list of statements (query.c). */
void hf__my_wait_put_about(struct my_wait *);
/* The session's wait_timeout, if it is not that of the lock yet. */
void hf__my_wait_put_turn(struct my_wait *);
/* QUEUES: a SELECT of 0, it has to queue again; 1, 2, as the bell. */
void hf__my_wait_put_queue(struct my_wait *);
/* BELL, an expression. 1: it has rung, or there is none; 2: it has not, for so
 * long. */
void hf__my_wait_put_bell(struct my_wait *);
/* SLEEPS: a SELECT of 1, an attempt is worthwhile; else it waits until that is
 * likely, and says 0. */
void hf__my_wait_put_sleep(struct my_wait *);

#endif
