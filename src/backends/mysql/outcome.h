/*
 * Whether an attempt may pass the waiters in the queue, and how an attempt
 * ends, for every kind of lock: it is granted, waits (on a waiting connection,
 * or by polling), is refused, or finds that the name is of another kind.
 * mutex.c, share.c and latch.c call this with the content of an answer.
 * hf__my_granted() to hf__my_attempt_again() either report the attempt to the
 * core or send it again: the caller must not use the request afterwards. The
 * client's mutex is held.
 *
 * A nap: an attempt without may_queue that finds the lock free but another
 * client in the queue is paused (m->naps) and sent again, up to three times.
 */
#ifndef HF_MYSQL_OUTCOME_H
#define HF_MYSQL_OUTCOME_H

#include "mysql.h"

#define MY_POLL_MS 50
#define MY_POLL_MAX_MS 500
/* A waiter that finds the lock free, but not taken by the first of the queue,
 * checks it again after this time, and then takes it. */
#define MY_FREE_MS 3000

/* MY_HAVE_BELL is true if cmd owns the bell. A user lock counts how often it
 * was taken, so it must be taken only once, however often an attempt is sent.
 * MY_OUR_TURN is true if the queue is empty, or owned by the waiting connection
 * %T, which the client may not know yet. */
#define MY_HAVE_BELL "is_used_lock('hfb:%Q')<=>connection_id()"
#define MY_OUR_TURN "ifnull(is_used_lock('hfq:%Q'),%T)=%T"

/* True if the attempt must go behind the waiters, if there are any. */
bool hf__my_must_queue(const struct mysql *, const struct my_lock *);
/* Writes the statement that sets @b: NULL if others go first; else 1 if cmd
 * owns the bell, 0 if not. `bell`: cmd tries to take the bell. */
void hf__my_put_turn(struct mysql *, const struct my_lock *, bool bell);

/* What is in the way of an attempt. */
struct my_place {
    uint64_t left_us; /* until the lease in the way ends */
    bool free;        /* the lock is free, but others go first */
    bool rings;       /* the holder owns the bell */
};

/* The attempt is granted with this token: the lock no longer waits. */
void hf__my_granted(struct mysql *, struct hf__req *, uint64_t token);
/* The attempt is refused: reports QUEUED or BUSY, or lets it nap. */
void hf__my_refused(struct mysql *, struct hf__req *, const struct my_place *,
                    hf__time now);
/* Called if the name is of another kind, or a semaphore of another size. An
 * unused name is converted; else the attempt ends with EMISMATCH. */
void hf__my_other_kind(struct mysql *, struct hf__req *);
/* Write the statements that convert the name, and read their answer: 0 or
 * HF_EPROTO. */
void hf__my_convert(struct mysql *);
int hf__my_converted(struct mysql *, struct hf__req *,
                     const struct my_answer *);

/* Sends the attempt once more, or reports why that is impossible. */
void hf__my_attempt_again(struct mysql *, struct hf__req *);

/* Ends the nap of the lock, if it naps. */
void hf__my_nap_end(struct mysql *, struct my_lock *);
/* Sends the attempts again whose naps have ended. */
void hf__my_naps_advance(struct mysql *, hf__time now);
hf__time hf__my_naps_timeout(const struct mysql *);

#endif
