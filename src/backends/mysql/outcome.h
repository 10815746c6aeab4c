/*
 * What an attempt comes to, of every kind of lock: it is granted, has to wait
 * (by a connection that waits, or by polling), is refused, or finds that the
 * name is of another kind. mutex.c, share.c and latch.c call this with what an
 * answer said. Each function either reports the attempt to the core or sends it
 * again; the request must not be used after it. The client's mutex is held.
 *
 * A nap: an attempt without may_queue that finds the lock free, and somebody in
 * the queue, pauses here and is sent again (m->naps), up to three times.
 */
#ifndef HF_MYSQL_OUTCOME_H
#define HF_MYSQL_OUTCOME_H

#include "mysql.h"

#define MY_POLL_MS 50
#define MY_POLL_MAX_MS 500
/* It is free, and nobody in the queue comes: it is checked once more after
 * this, and taken. */
#define MY_FREE_MS 3000

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

/* What is in the way. */
struct my_place {
    uint64_t left_us; /* of the lease that is in the way */
    bool free;        /* nothing is in the way, but others are to go first */
    bool rings;       /* who is in the way has the bell */
};

void hf__my_granted(struct mysql *, struct hf__req *, uint64_t token);
/* QUEUED, BUSY, or a nap. */
void hf__my_refused(struct mysql *, struct hf__req *, const struct my_place *,
                    hf__time now);
/* The name is of another kind, or size: it is made ours if nobody uses it, else
 * the attempt ends with EMISMATCH. */
void hf__my_other_kind(struct mysql *, struct hf__req *);
/* The statements that make it ours, and what their last result means: 0, or
 * HF_EPROTO. */
void hf__my_convert(struct mysql *);
int hf__my_converted(struct mysql *, struct hf__req *,
                     const struct my_answer *);

/* The attempt is sent once more; if that fails it is reported. */
void hf__my_attempt_again(struct mysql *, struct hf__req *);

/* If the lock naps, it does not any more. */
void hf__my_nap_end(struct mysql *, struct my_lock *);
/* The attempts whose pause is over go out again. */
void hf__my_naps_advance(struct mysql *, hf__time now);
hf__time hf__my_naps_timeout(const struct mysql *);

#endif
