/* clang-format off */
/*
 * The MySQL and MariaDB backend: what its files share, that is, the state of a
 * client and of each lock. The row in the database decides who holds a name,
 * with which token, and until when by the server's clock. GET_LOCK is only used
 * to queue and to wake; it decides nothing. docs/mysql.md shows the tables;
 * README.md gives the reasons.
 *
 * Connections (conn.h):
 *
 *   cmd    carries every request; answers come in the order of submission
 *   waits  up to wait_connections, created when a lock first has to wait: each
 *          waits at the server for one lock and does nothing else (wait.h)
 *
 * User locks: up to two per name, with a hash of the name, and one per client:
 *
 *   hfq:<hash>   the queue of the name: the first waiter owns this user lock,
 *                and the others wait for it in the order of arrival
 *   hfb:<hash>   the bell of a mutex: the holder owns it on cmd, and the first
 *                of the queue waits for it
 *   hfc:<owner>  owned by the client's command connection (session.c)
 *
 * Releasing a mutex wakes the first of the queue by the bell. A read-write lock
 * or a semaphore can have several holders, and the first of the queue may have
 * to wait for any of them. It therefore sleeps, and each release ends its sleep
 * by KILL QUERY. The waiters of a latch, which has no queue, are woken in the
 * same way. A wake-up is only a hint: the first of the queue also checks the
 * row every 1.5 s, and when a lease ends.
 *
 * The client's mutex is held in all functions except open(), which runs on the
 * helper thread before any other thread can use the client.
 *
 * Files, each calling only those above it:
 *
 *   wire, login, conn          a connection: packets, login, statements
 *   tables, error, clock, name
 *                              the tables, the meaning of errors, the server's
 *                              clock, the parameters of statements
 *   session, aside             the first statements of a connection; statements
 *                              that no request waits for
 *   wait_sql, wait             the connections that wait
 *   cmd                        requests in flight
 *   outcome                    whether an attempt may go first; how it ends
 *   mutex, share, latch        the statements of each kind of lock
 *   lock, renew, diagnose, query   the slots of the backend
 *   mysql                      the backend's table, the URL
 */
/* clang-format on */
#ifndef HF_MYSQL_H
#define HF_MYSQL_H

#include "conn.h"
#include "login.h"

#define MY_OWNER_LEN ((size_t)16)
#define MY_HASH_LEN ((size_t)16)
/* Why waiting clients poll. */
#define MY_MUST_POLL "the URL says so (wait=poll, or wait_connections=0)"

struct my_op;
struct my_wait;

/* The statement that an attempt for a mutex sends next (my_lock.step). UPDATE
 * assumes that the row exists and the mutex is free; SELECT finds out what is
 * in the way; UPSERT (INSERT .. ON DUPLICATE KEY UPDATE) is correct in every
 * case. */
enum my_step { MY_STEP_UPDATE, MY_STEP_SELECT, MY_STEP_UPSERT };

/* For each hold id, the client tries at most once to convert the name to the
 * kind of its lock. */
enum my_conversion { MY_NOT_CONVERTED, MY_CONVERTING, MY_CONVERTED };

/* The state of each lock (remote->impl). */
struct my_lock {
    struct hf__remote *remote;
    struct my_wait *wait; /* the connection that waits for it, or NULL */
    struct my_lock *next_nap;
    struct hf__req *napping; /* a paused attempt, or NULL; if set, the lock is
                                in m->naps */
    hf__time nap_until;      /* when the attempt is sent again */
    uint64_t attempt_id;     /* the hold id of the last attempt */
    uint64_t round; /* for a latch, its token when the wait began; 0 if the
                       token has not been read yet */
    uint64_t reported_id; /* the hold id that `reported` is about */
    uint64_t reported;    /* how many asks were reported to the program */
    uint8_t hash[MY_HASH_LEN];
    uint8_t conversion;  /* enum my_conversion, for attempt_id */
    uint8_t step;        /* for a mutex, enum my_step */
    uint8_t tries;       /* how often SELECT was followed by UPDATE */
    uint8_t naps;        /* pauses of the attempt so far */
    uint8_t polls;       /* polls in a row, counted up to 4 */
    bool sent : 1;       /* a packet of attempt_id was written */
    bool attempting : 1; /* remote->attempt was submitted and is not finished */
    bool rang : 1;       /* the bell rang while the attempt was pending */
    bool seen_free : 1;  /* the last check found the lock free, but the first of
                            the queue had not taken it */
    bool crowded : 1;    /* the last grant had to wait */
};

struct mysql {
    const struct hf__core *core;
    const struct my_op *ops; /* MY_VERB, MY_RENEW, MY_QUERY */
    hf_client *client;
    struct net_endpoint peer;
    struct net_endpoint here; /* the address that cmd is connected to */
    struct my_login login;
    uint32_t tags;
    uint32_t made_tables; /* how many tables the hello of cmd has found or
                             created */
    struct my_conn cmd;
    uint8_t owner[MY_OWNER_LEN];
    char host[65];
    uint64_t pid;
    uint64_t chance; /* state of hf__chance(); never 0 */
    uint32_t connect_ms, op_timeout_ms, idle_s;
    bool put_off; /* the core keeps new requests until go_on() */
    bool opened;
    bool exclusive;    /* a transaction is in flight */
    bool wants_alone;  /* a transaction waits until nothing is in flight */
    bool must_poll;    /* the URL has wait=poll or wait_connections=0 */
    bool listens;      /* the program has an event handler */
    bool has_stray;    /* the server may still run the thread of an earlier
                          connection of this client */
    bool is_proxied;   /* a proxy may share connections: no KILL is sent */
    const char *polls; /* why waiting clients poll, or NULL if they queue */
    /* The server's clock was at least server_us when our clock was
     * server_at. */
    uint64_t server_us;
    hf__time server_at;
    uint32_t renew_ms; /* the shortest TTL that is being renewed */
    size_t renewing;
    struct my_wait *waits;
    uint32_t waits_len, waits_most;
    hf__time waits_from;     /* the time from which connections may be created
                                again */
    uint32_t waits_pause_ms; /* the pause after the last loss of a waiting
                                connection, or 0 */
    struct my_lock *naps;    /* locks that pause between two attempts */
    uint8_t tries;           /* while a request is sent again, how often it was
                                sent before; otherwise 0 */
};

#endif
