/* clang-format off */
/*
 * The MySQL and MariaDB backend, inside: what its files share, a client's state
 * and what is kept of each lock. A row is the truth: who holds a name, with
 * which token, until when by the server's clock. GET_LOCK is the queue and the
 * bell, and decides nothing. docs/mysql.md shows the tables; README.md says why
 * it is so.
 *
 * Connections (conn.h):
 *
 *   cmd    every request, in order of submission; answers come in that order
 *   waits  up to wait_connections of them, made when somebody first has to
 *          wait: each does nothing but wait, for one lock (wait.h)
 *
 * User locks: two of a name, by its hash, and one of each client.
 *
 *   hfq:<hash>   the queue: waiters stand in it in the order of their coming;
 *                the first of them has it
 *   hfb:<hash>   the bell of a mutex: its holder has it, on cmd; the first of
 *                the queue waits for it
 *   hfc:<owner>  a client's command connection has it (session.c)
 *
 * The release of a mutex wakes the first of the queue by the bell. The other
 * kinds have many holders, of which each may be the one to wait for: there the
 * first of the queue sleeps, and each release ends its sleep by KILL QUERY.
 * Each wake-up is only a hint: the first checks every 1.5 s, and when a
 * lease ends.
 *
 * Everything here runs with the client's mutex held, except open(), which runs
 * on the helper thread before that.
 *
 * Files, each calling only those above it:
 *
 *   wire, login, conn          a connection: packets, who we are, statements
 *   tables, error, clock, name leaves: the tables, what errors mean, the
 *                              server's clock, the hash of a name
 *   session, aside             a connection's first statements; statements for
 *                              which no request waits
 *   wait_sql, wait             those who wait
 *   cmd                        requests under way
 *   outcome                    may an attempt go first; what it comes to
 *   mutex, share, latch        the statements of each kind
 *   lock, renew, diagnose, query   the slots
 *   mysql                      the backend's table, the URL
 */
/* clang-format on */
#ifndef HF_MYSQL_H
#define HF_MYSQL_H

#include "conn.h"
#include "login.h"

#define MY_OWNER_LEN ((size_t)16)
#define MY_HASH_LEN ((size_t)16)
/* Why those who wait poll. */
#define MY_MUST_POLL "the URL says so (wait=poll, or wait_connections=0)"

struct my_op;
struct my_wait;

/* Which statement an attempt sends (my_lock.step): the UPDATE as if the row
 * were there and free; the SELECT of what is in the way; the INSERT .. ON
 * DUPLICATE KEY UPDATE that is right in every case. */
enum my_step { MY_STEP_UPDATE, MY_STEP_SELECT, MY_STEP_UPSERT };

/* Whether the name is made one of our kind: once for each hold id. */
enum my_conversion { MY_NOT_CONVERTED, MY_CONVERTING, MY_CONVERTED };

/* What we keep of each lock (remote->impl). */
struct my_lock {
    struct hf__remote *remote;
    struct my_wait *wait; /* the connection that waits for it; NULL */
    struct my_lock *next_nap;
    struct hf__req *napping; /* an attempt that pauses: it is in m->naps */
    hf__time nap_until;      /* then it goes out again */
    uint64_t attempt_id;     /* the hold id of the last attempt */
    uint64_t round;          /* latch: which one is waited for; 0: not known */
    uint64_t reported_id;    /* of that hold so many asks were reported */
    uint64_t reported;
    uint8_t hash[MY_HASH_LEN];
    uint8_t conversion;  /* enum my_conversion, for attempt_id */
    uint8_t step;        /* mutex: enum my_step */
    uint8_t tries;       /* of that step */
    uint8_t naps;        /* an attempt that finds it free pauses */
    uint8_t polls;       /* polls in a row */
    bool sent : 1;       /* something of attempt_id went out */
    bool attempting : 1; /* remote->attempt is with us */
    bool rang : 1;       /* while the attempt was under way */
    bool seen_free : 1;  /* by the last check: the first does not come */
    bool crowded : 1;    /* it had to wait, the last time */
};

struct mysql {
    const struct hf__core *core;
    const struct my_op *ops; /* by enum hf__op */
    hf_client *client;
    struct net_endpoint peer;
    struct net_endpoint here; /* the one of its addresses at which cmd is */
    struct my_login login;
    uint32_t tags;
    uint32_t
        made_tables; /* so many of them are there, or were made by this hello */
    struct my_conn cmd;
    uint8_t owner[MY_OWNER_LEN];
    char host[65];
    uint64_t pid;
    uint64_t chance; /* never 0 */
    uint32_t connect_ms, op_timeout_ms, idle_s;
    bool put_off; /* the core keeps requests */
    bool opened;
    bool alone;        /* a transaction is under way */
    bool wants_alone;  /* one is to be sent, when nothing is */
    bool must_poll;    /* wait=poll */
    bool listens;      /* the program hears of events */
    bool has_stray;    /* the thread of an earlier connection lives */
    bool is_proxied;   /* by what may share connections: nothing is killed */
    const char *polls; /* why those who wait poll; NULL: they queue */
    /* The server's clock was this, or later, when ours was that. */
    uint64_t server_us;
    hf__time server_at;
    uint32_t renew_ms; /* the shortest lease of those that are renewed */
    size_t renewing;
    struct my_wait *waits;
    uint32_t waits_len, waits_most;
    hf__time waits_from;     /* no more of them are made before that */
    uint32_t waits_pause_ms; /* the last such pause, after one was lost */
    struct my_lock *naps;    /* the locks that pause between two attempts */
    uint8_t tries;           /* of the request that is sent again */
};

#endif
