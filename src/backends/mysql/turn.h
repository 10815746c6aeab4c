/*
 * Whose turn it is: whether an attempt may pass those who wait in the queue of
 * the name, and the statement that finds out, in front of the one that takes
 * the lock. Called for a mutex (mutex.c), read-write locks and semaphores
 * (share.c). The client's mutex is held.
 */
#ifndef HF_MYSQL_TURN_H
#define HF_MYSQL_TURN_H

#include "mysql.h"

/* What can be had without waiting is had once, however often it is attempted:
 * user locks count. The queue may be ours already, and we not know it.
 * %T is the number of the connection that waits for the lock; 0: none. */
#define MY_HAVE_BELL "is_used_lock('hfb:%Q')<=>connection_id()"
#define MY_OUR_TURN "ifnull(is_used_lock('hfq:%Q'),%T)=%T"

/* It goes behind those who wait, if there are any. */
bool hf__my_must_queue(const struct mysql *, const struct my_lock *);
/* Sets @b: NULL if others are to go first; else 1 if cmd has the bell, which it
 * takes if `bell` is set. */
void hf__my_put_turn(struct mysql *, const struct my_lock *, bool bell);

#endif
