/*
 * Connections that wait at the server, each for one lock at a time. When the
 * core should attempt on cmd, wait.c calls core->bell. outcome.c and lock.c
 * assign locks to the connections; mysql.c drives them; cmd.c ends all of them
 * when cmd is lost.
 *
 * A connection is created when a lock has to wait and no connection is free, up
 * to m->waits_most, and is in m->waits until hf__my_waits_advance() frees it.
 * my_lock.wait and my_wait.lock point to each other, or are NULL. The client's
 * mutex is held.
 */
#ifndef HF_MYSQL_WAIT_H
#define HF_MYSQL_WAIT_H

#include "mysql.h"

/* clang-format off */
/*
 * The states of a waiting connection: the statement that it has at the server,
 * the request of its lock that may be in flight on cmd at the same time, and
 * whether `lock` is set. Only these combinations are legal.
 *
 *   state  | waits at the server, on this connection  | on cmd         | lock
 *   -------+------------------------------------------+----------------+------
 *   OFF    | nothing: the login, the settings         | an attempt (1) | maybe
 *   IDLE   | nothing; may still run RELEASE_LOCK of   | any, of others | no (2)
 *          |   queues in which it was first (leaving) |                |
 *   QUEUES | GET_LOCK of the queue; for a mutex also  | an attempt (1) | yes
 *          |   GET_LOCK of the bell, after it         |                |
 *   FIRST  | nothing; it owns the queue (3)           | an attempt     | yes
 *   BELL   | GET_LOCK of the bell; it owns the queue  | an attempt (1) | yes
 *   SLEEPS | GET_LOCK of the client's own hfc: lock,  | an attempt (1) | yes
 *          |   which cmd owns; it owns the queue (3)  |                |
 *   OVER   | nothing: the connection is closed        | any            | no
 *
 * (1) The core attempts again without a bell when poll_at is reached. If that
 *     attempt is answered with HF__QUEUED, the wait stays as it is. A grant,
 *     HF__BUSY and an abandon end the wait: in QUEUES, BELL and SLEEPS by KILL,
 *     which also ends the connection; in FIRST by changing to IDLE.
 * (2) One exception: after the stream has broken, a lock may be set until
 *     down() is called.
 * (3) A latch has no queue: its connection changes from IDLE to SLEEPS.
 *
 * `rings` selects the state after FIRST: BELL if it is set, else SLEEPS. In
 * QUEUES it is set for every mutex. `skips_bell` is set when KILL QUERY ends
 * the statement of QUEUES, and reset by the next answer.
 */
/* clang-format on */
enum my_wait_state {
    MY_OFF,    /* not logged in yet */
    MY_IDLE,   /* in no queue */
    MY_QUEUES, /* waits for the queue; may already own it */
    MY_FIRST,  /* owns the queue; the core must attempt on cmd */
    MY_BELL,   /* owns the queue, waits for the bell */
    MY_SLEEPS, /* owns the queue, sleeps */
    MY_OVER,   /* stopped; advance() frees it */
};

/* A connection that waits. */
struct my_wait {
    struct my_wait *next;
    struct mysql *m;
    struct my_conn conn;
    struct my_lock *lock; /* the lock that waits, or NULL */
    hf__time began_at;    /* the time at which `lock` was assigned */
    hf__time idle_at;     /* the time since which no lock has used it */
    uint64_t since_us;    /* the server's clock at began_at */
    uint32_t permits;
    uint32_t turn_s; /* the wait_timeout of the session, or 0 if not known */
    uint8_t state;   /* enum my_wait_state */
    uint8_t leaving; /* how many RELEASE_LOCKs of queues are in flight */
    bool rings : 1;  /* the next statement waits for the bell */
    /* KILL QUERY ended the last statement; the next one tries to take the bell
     * without waiting */
    bool skips_bell : 1;
};

/* Makes the lock wait, for the first time or again. `rings` is true if the
 * holder owns the bell; `permits` is how many permits the lock wants. Returns
 * false if there is no connection for the lock, which must then poll. */
bool hf__my_wait(struct mysql *, struct my_lock *, bool rings,
                 uint32_t permits);
/* Returns whether the lock is the first of the queue, as far as this client
 * knows. */
bool hf__my_is_first(const struct my_lock *);
/* Returns whether the lock waits, and has waited for more than CROWDED_US. In
 * that case another client was in the queue or held the lock. */
bool hf__my_waited(const struct my_lock *, hf__time now);
/* Ends the wait of the lock, if it waits. */
void hf__my_wait_end(struct mysql *, struct my_lock *);

/* Ends all waits, because the command connection is lost. */
void hf__my_waits_lost(struct mysql *);
void hf__my_waits_ready(struct mysql *, uint32_t tag, uint32_t events,
                        hf__time now);
void hf__my_waits_advance(struct mysql *, hf__time now);
hf__time hf__my_waits_timeout(const struct mysql *);
void hf__my_waits_fini(struct mysql *);

#endif
