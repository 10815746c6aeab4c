/*
 * Determines whether an attempt may overtake the waiters in the queue, and how
 * the attempt ends, for every kind of lock. An attempt is granted, waits (on a
 * waiting connection, or by polling), is BUSY, or finds that the name is of
 * another kind. mutex.c, share.c and latch.c call these functions with the
 * content of an answer. hf__my_granted(), hf__my_refused(), hf__my_other_kind()
 * and hf__my_attempt_again() either report the result of the attempt to the
 * core or send the attempt again, at once or after a nap. The caller must not
 * use the request afterwards. The client's mutex is held.
 *
 * A nap: if an attempt without may_queue finds the lock free, but another
 * client in the queue, it is paused (m->naps) and sent again, up to three
 * times.
 */
#ifndef HF_MYSQL_OUTCOME_H
#define HF_MYSQL_OUTCOME_H

#include "mysql.h"

#define MY_POLL_MS 50
#define MY_POLL_MAX_MS 500
/* A waiter that finds the lock free, but not taken by the first of the queue,
 * checks again after this time, and takes the lock if it is still free. */
#define MY_FREE_MS 3000

/* MY_HAVE_BELL is true if cmd owns the bell. The attempt tests this before it
 * takes the bell: a user lock counts how often its owner has taken it, and an
 * attempt that is sent repeatedly must take the bell only once. MY_OUR_TURN is
 * true if the queue is empty, or owned by the connection %T that waits for this
 * lock; the client may not know yet that this connection has become the
 * first. */
#define MY_HAVE_BELL "is_used_lock('hfb:%Q')<=>connection_id()"
#define MY_OUR_TURN "ifnull(is_used_lock('hfq:%Q'),%T)=%T"

/* Returns whether the attempt must go after the waiters, if there are any. */
bool hf__my_must_queue(const struct mysql *, const struct my_lock *);
/* Writes the statement that sets @b. If others go first, @b becomes NULL.
 * Otherwise, if `bell` is true, cmd tries to take the bell, and @b becomes 1 if
 * cmd owns it, else 0 (always 0 if clients poll). If `bell` is false, the value
 * has no meaning other than that it is not NULL. */
void hf__my_put_turn(struct mysql *, const struct my_lock *, bool bell);

/* The reason why an attempt is not granted. */
struct my_place {
    uint64_t left_us; /* how long until the lease in the way ends */
    bool free;        /* the lock is free, but others go first */
    bool rings;       /* the holder owns the bell */
};

/* Ends an attempt that was granted with this token; the lock no longer
 * waits. */
void hf__my_granted(struct mysql *, struct hf__req *, uint64_t token);
/* Handles an attempt that was not granted: reports QUEUED or BUSY, or lets the
 * attempt nap. */
void hf__my_refused(struct mysql *, struct hf__req *, const struct my_place *,
                    hf__time now);
/* Must be called if the name is of another kind, or a semaphore of another
 * size. Converts the name if it is unused; otherwise ends the attempt with
 * EMISMATCH. */
void hf__my_other_kind(struct mysql *, struct hf__req *);
/* hf__my_convert() writes the statements that convert the name;
 * hf__my_converted() reads their answer, and returns 0 or HF_EPROTO. */
void hf__my_convert(struct mysql *);
int hf__my_converted(struct mysql *, struct hf__req *,
                     const struct my_answer *);

/* Sends the attempt once more, or reports why this is impossible. */
void hf__my_attempt_again(struct mysql *, struct hf__req *);

/* Ends the nap of the lock, if it naps. */
void hf__my_nap_end(struct mysql *, struct my_lock *);
/* Sends again the attempts whose naps have ended. */
void hf__my_naps_advance(struct mysql *, hf__time now);
hf__time hf__my_naps_timeout(const struct mysql *);

#endif
