/*
 * Connections that wait: each does nothing but wait, for one lock at a time,
 * and rings (core->bell) when an attempt on cmd is worthwhile. outcome.c and
 * lock.c say what is waited for; mysql.c drives the connections; cmd.c says
 * when all of them are lost.
 *
 * A connection is made when somebody first has to wait, up to
 * m->waits_most, and belongs to m->waits until hf__my_waits_advance() frees it.
 * my_lock.wait and my_wait.lock refer to each other, or are NULL. The client's
 * mutex is held.
 */
#ifndef HF_MYSQL_WAIT_H
#define HF_MYSQL_WAIT_H

#include "mysql.h"

/* clang-format off */
/*
 * What a connection that waits does: what waits at the server on it, which
 * request of its lock may be under way on cmd meanwhile, and whether `lock` is
 * set. These are the legal combinations.
 *
 *   state  | waits at the server, on this connection  | on cmd         | lock
 *   -------+------------------------------------------+----------------+------
 *   OFF    | nothing: the login, the settings         | an attempt (1) | maybe
 *   IDLE   | nothing; `leaving` RELEASE_LOCKs, of the | any, of others | no (2)
 *          |   queues in which it was the first       |                |
 *   QUEUES | GET_LOCK of the queue; behind it, of a   | an attempt (1) | yes
 *          |   mutex, GET_LOCK of the bell            |                |
 *   FIRST  | nothing; it has the queue (3)            | an attempt     | yes
 *   BELL   | GET_LOCK of the bell; it has the queue   | an attempt (1) | yes
 *   SLEEPS | GET_LOCK of the client's own hfc: lock,  | an attempt (1) | yes
 *          |   which cmd has; it has the queue (3)    |                |
 *   OVER   | nothing: the connection is closed        | any            | no
 *
 * (1) Because poll_at is reached: the core attempts again without being woken.
 *     If that is refused, the wait stays as it is. A grant, a refusal without
 *     may_queue, and an abandon end it: from QUEUES, BELL and SLEEPS by KILL,
 *     with the connection, from FIRST to IDLE.
 * (2) With a lock only if the stream is broken, and down() is still to come.
 * (3) But for a latch, which has no queue: from IDLE it goes to SLEEPS.
 *
 * `rings` chooses the statement that follows FIRST: BELL with it, SLEEPS
 * without it. In QUEUES it is set for every mutex. `skips_bell` is set by the
 * KILL QUERY that ends the statement of QUEUES, and reset by the next answer.
 */
/* clang-format on */
enum my_wait_state {
    MY_OFF,    /* not logged in yet */
    MY_IDLE,   /* in no queue */
    MY_QUEUES, /* waits for the queue; may have it by now */
    MY_FIRST,  /* has the queue, and the core is to attempt on cmd */
    MY_BELL,   /* has the queue, waits for the bell */
    MY_SLEEPS, /* has the queue, sleeps */
    MY_OVER,   /* stopped, to be freed */
};

/* A connection that waits. */
struct my_wait {
    struct my_wait *next;
    struct mysql *m;
    struct my_conn conn;
    struct my_lock *lock; /* for whom; NULL: nobody */
    hf__time began_at;    /* when that was */
    hf__time idle_at;     /* since when it is not used */
    uint64_t since_us;    /* when the lock began to wait, by the server */
    uint32_t permits;
    uint32_t turn_s; /* the server ends it if it says nothing */
    uint8_t state;   /* enum my_wait_state */
    uint8_t leaving; /* so many statements that leave a queue are under way */
    bool rings : 1;  /* the next statement waits for the bell */
    /* KILL QUERY has ended the last one: the next does not wait for the bell */
    bool skips_bell : 1;
};

/* The lock has to wait, for the first time or again. rings: the holder has
 * the bell. False: there is no connection for it, it has to poll. */
bool hf__my_wait(struct mysql *, struct my_lock *, bool rings,
                 uint32_t permits);
/* It has the queue, as far as is known. */
bool hf__my_is_first(const struct my_lock *);
/* It waits, and did not find the queue empty. */
bool hf__my_waited(const struct my_lock *, hf__time now);
/* It does not wait any more. */
void hf__my_wait_end(struct mysql *, struct my_lock *);

/* The command connection is lost: so are all places. */
void hf__my_waits_lost(struct mysql *);
void hf__my_waits_ready(struct mysql *, uint32_t tag, uint32_t events,
                        hf__time now);
void hf__my_waits_advance(struct mysql *, hf__time now);
hf__time hf__my_waits_timeout(const struct mysql *);
void hf__my_waits_fini(struct mysql *);

#endif
