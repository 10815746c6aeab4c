/* clang-format off */
/*
 * The MySQL and MariaDB backend, inside. A row is the truth: who holds a name,
 * with which token, until when by the server's clock. GET_LOCK is the queue and
 * the bell, and decides nothing. docs/mysql.md shows the tables.
 *
 * Connections (conn.h):
 *
 *   cmd    every request, in order of submission; answers come in that order
 *   waits  up to wait_connections of them, made when somebody first has to
 *          wait: each does nothing but wait, for one line (wait.c)
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
 * Each wake-up is only a hint: the first looks every 2 s, and when a lease ends.
 *
 * Everything here runs with the client's mutex held, except open(), which runs
 * on the helper thread before that.
 *
 * Files, beside those of a connection: mysql.c the table, the URL; session.c
 * what a connection says first, and the tables; cmd.c requests under way;
 * error.c what the server's errors mean; lock.c what is asked of a lock, and
 * the mutex; share.c read-write lock and semaphore; wait.c those who wait;
 * renew.c renewals; query.c inspect, list, break, ask, downgrade, put; latch.c;
 * diagnose.c what the server says of itself.
 */
/* clang-format on */
#ifndef HF_MYSQL_H
#define HF_MYSQL_H

#include "backends/common/about.h"
#include "conn.h"

#define MY_OWNER_LEN ((size_t)16)
#define MY_HASH_LEN ((size_t)16)
#define MY_OUT_HIGH (64u << 10)
#define MY_TRIES 10 /* of a request that the server gave up for another one */

/* A waiter that is not the first looks, in case its connection is dead, or
 * somebody who is not of us has the queue. */
#define MY_CHECK_MS 4000        /* from so long after the last look */
#define MY_CHECK_SPREAD_MS 4000 /* by chance so much later */
#define MY_NAPS 3               /* looks of a try, with a pause before each */
#define MY_NAP_MS 10
#define MY_FREE_MS                                                             \
    3000 /* it is free, and nobody in the queue comes: look once more after    \
            this, and take it */
#define MY_EXPIRY_SLACK_MS 2
/* Who polls, because nobody tells it. */
#define MY_MUST_POLL "the URL says so (wait=poll, or wait_connections=0)"
#define MY_POLL_MS 50
#define MY_POLL_MAX_MS 500

struct mysql;
struct my_wait;

/* How a mutex is asked for: as if it were there and free; what is in the way;
 * by the one statement that is right in every case. */
enum my_step { MY_STEP_UPDATE, MY_STEP_SELECT, MY_STEP_UPSERT };

/* Whether the name is made one of our kind: once for each hold id. */
enum my_conversion { MY_NOT_CONVERTED, MY_CONVERTING, MY_CONVERTED };

/* What we keep of each line (remote->impl). */
struct my_lock {
    struct hf__remote *remote;
    struct my_wait *wait; /* the connection that waits for it; NULL */
    struct my_lock *next_nap;
    struct hf__req *napping; /* an ask that pauses: it is in m->naps */
    hf__time nap_until;      /* then it goes out again */
    uint64_t attempt_id;     /* the last hold id that was asked for */
    uint64_t round;          /* latch: which one is waited for; 0: not known */
    uint64_t reported_id;    /* of that hold so many asks were told */
    uint64_t reported;
    uint8_t hash[MY_HASH_LEN];
    uint8_t conversion;  /* enum my_conversion, for attempt_id */
    uint8_t step;        /* mutex: enum my_step, what is asked */
    uint8_t tries;       /* of it */
    uint8_t naps;        /* a try that finds it free looks again */
    uint8_t polls;       /* polls in a row */
    bool sent : 1;       /* something of attempt_id went out */
    bool attempting : 1; /* remote->ask is with us */
    bool rang : 1;       /* while the question was under way */
    bool seen_free : 1;  /* by the last look: the first does not come */
    bool crowded : 1;    /* it had to wait, the last time */
};

/* A packet that is under way on cmd. */
struct my_flight {
    struct my_sent sent;
    struct hf__req *req; /* NULL: nobody wants the answer any more */
    uint64_t hold_id;
    uint64_t late_us;    /* the server's clock from which it is not meant */
    uint32_t first, len; /* RENEW: which items */
    uint8_t op;          /* 0: nobody waits for it */
    uint8_t tries;
    bool fresh;   /* the server has heard nothing of hold_id before */
    bool refused; /* nothing was done for it, and another server may */
    bool alone;   /* a transaction: nothing is sent behind it before its answer,
                     because an error would leave it open */
};

struct my_op;

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
    struct my_lock *naps;    /* the lines that pause between two looks */
    uint8_t tries;           /* of the request that is sent again */
};

/* A kind of request: 0 or a code; 0 or HF_EPROTO; NULL: hf__my_finish(). */
struct my_op {
    int (*encode)(struct mysql *, struct hf__req *);
    int (*answer)(struct mysql *, const struct my_flight *,
                  const struct my_result *, hf__time now);
    void (*failed)(struct mysql *, const struct my_flight *, int code);
};

/* ---- session.c ---------------------------------------------------------- */

int hf__my_session_hello(struct my_conn *, hf__time now);
/* The statements that make the tables; NULL is behind the last. */
#define MY_TABLES 4
extern const char *const hf__my_tables[MY_TABLES + 1];
/* The server's clock in us, and what it was. */
#define MY_CLOCK "timestampdiff(microsecond,'1970-01-01',utc_timestamp(6))"
void hf__my_clock(struct mysql *, uint64_t us);
/* From when on, by that clock, a request is not meant any more. */
uint64_t hf__my_late(const struct mysql *, const struct hf__req *);
/* For hello(): begins the packet, with the settings of a session. */
void hf__my_put_session(struct my_conn *, uint32_t idle_s);
/* Ends it. 0, or a code whose text is set. */
int hf__my_say(struct my_conn *, my_answer_fn *);
int hf__my_hello_refused(struct my_conn *, const struct my_result *,
                         hf__time now);
int hf__my_no_memory(struct my_conn *);

/* ---- error.c ------------------------------------------------------------ */

#define MY_NO_COLUMN 1054
#define MY_NOT_YOURS 1095
#define MY_FORBIDDEN 1142
#define MY_NO_TABLE 1146

/* Another one was in the way: nothing was done; or an administrator. The same
 * again. */
bool hf__my_in_the_way(uint16_t error);
bool hf__my_again(uint16_t error);
/* A new connection, or another server, may do. */
bool hf__my_leaves(uint16_t error);
bool hf__my_passes(uint16_t error); /* may it say otherwise later? */
/* It has refused the request before it did anything for it. */
bool hf__my_untouched(uint16_t error);
int hf__my_code(uint16_t error);
/* Which statement helps against the error at the end of this answer; "". */
void hf__my_advice(const struct my_result *, const struct my_login *, char *to,
                   size_t size);
/* Leaves a text; returns the code. */
int hf__my_refusal(struct mysql *, const struct my_result *);

/* ---- cmd.c -------------------------------------------------------------- */

/* The request is under way (HF__PENDING), or HF__LATER, or a code. Reports
 * nothing. */
int hf__my_submit(struct mysql *, struct hf__req *);
/* Writes; and if there is room then, what the core keeps can come. */
void hf__my_pump(struct mysql *);
/* Never mention this request again. */
void hf__my_forget(struct mysql *, const struct hf__req *);
void hf__my_finish(struct mysql *, struct hf__req *, int result);
/* Begins a packet on cmd, and ends it. NULL: out of memory. */
void hf__my_start(struct mysql *, const struct hf__req *);
struct my_flight *hf__my_sent(struct mysql *, struct hf__req *);
/* The same request once more, out of its answer, or later: PENDING, or a code.
 */
int hf__my_resend(struct mysql *, struct hf__req *);
/* A statement for whose answer nobody waits. */
void hf__my_aside(struct mysql *, const char *fmt, ...);
extern const struct my_owner hf__my_cmd;
/* The server ends a connection that says nothing for long. */
void hf__my_ping(struct mysql *, hf__time now);
hf__time hf__my_ping_at(const struct mysql *);

/* ---- mysql.c ------------------------------------------------------------ */

/* Where a connection leads, and how long it may take; its link lacks `lost`.
 */
void hf__my_aim(struct mysql *, struct my_conn *, struct net_endpoint *,
                uint32_t connect_ms);

/* ---- lock.c ------------------------------------------------------------ */

int hf__my_attach(void *, struct hf__remote *);
void hf__my_detach(void *, struct hf__remote *);
int hf__my_attempt(void *, struct hf__req *);
int hf__my_release(void *, struct hf__req *);
int hf__my_abandon(void *, struct hf__req *);
/* The asks whose pause is over go out again. */
void hf__my_naps_advance(struct mysql *, hf__time now);
hf__time hf__my_naps_timeout(const struct mysql *);
int hf__my_verb_encode(struct mysql *, struct hf__req *);
/* The answers: 0, or HF_EPROTO. */
int hf__my_verb_answer(struct mysql *, const struct my_flight *,
                       const struct my_result *, hf__time now);
void hf__my_nap_end(struct mysql *, struct my_lock *);
bool hf__my_must_queue(const struct mysql *, const struct my_lock *);
void hf__my_convert(struct mysql *, const struct hf__req *);
int hf__my_converted(struct mysql *, struct hf__req *,
                     const struct my_result *last);
void hf__my_mutex_take(struct mysql *, const struct hf__req *);
void hf__my_mutex_drop(struct mysql *, const struct hf__req *);
int hf__my_mutex_taken(struct mysql *, struct hf__req *,
                       const struct my_result *last, hf__time now);
void hf__my_attempt_again(struct mysql *, struct hf__req *);
uint64_t hf__my_thread_of(const struct my_lock *);
/* What can be had without waiting is had once, however often it is asked for:
 * user locks count. The queue may be ours already, and we not know it. */
#define MY_HAVE_BELL "is_used_lock('hfb:%h')<=>connection_id()"
#define MY_OUR_TURN "ifnull(is_used_lock('hfq:%h'),%u)=%u"
/* What was to be ready for a grant is given back. */
void hf__my_bell_give_back(struct mysql *, const struct my_lock *);

/* What an attempt ends with, of every kind. */
void hf__my_granted(struct mysql *, struct hf__req *, uint64_t token);
struct my_place {
    uint64_t left_us; /* of the lease that is in the way */
    bool free;        /* nothing is in the way, but others are to go first */
    bool rings;       /* who is in the way has the bell */
};
void hf__my_refused(struct mysql *, struct hf__req *, const struct my_place *,
                    hf__time now);
/* The name is of another kind, or size: it is made ours if nobody uses it, else
 * it is EMISMATCH. */
void hf__my_other_kind(struct mysql *, struct hf__req *);

/* A lease that ends later than its own length from now can only be there
 * because the server's clock was set back. sysdate() is when the row is looked
 * at, in the session's time zone: behind a proxy that shares sessions it may
 * not be ours, and nothing is odd then. */
#define MY_ODD                                                                 \
    "(@@session.time_zone='+00:00' and "                                       \
    "lease_until>sysdate(6)+interval lease_us+10000000 microsecond)"

/* Pieces of statements. The turn: @b is NULL if others are to go first; bell:
 * else it is 1 if cmd has the bell. */
void hf__my_put_turn(struct mysql *, const struct my_lock *, bool bell);
size_t hf__my_label_len(const struct hf__remote *);
void hf__my_hash(const struct mysql *, const char *name, size_t len,
                 uint8_t to[MY_HASH_LEN]);

/* ---- share.c ------------------------------------------------------------ */

void hf__my_share_take(struct mysql *, const struct hf__req *);
void hf__my_share_drop(struct mysql *, const struct hf__req *);
int hf__my_share_taken(struct mysql *, struct hf__req *,
                       const struct my_result *, hf__time now);

/* ---- wait.c ------------------------------------------------------------- */

/* clang-format off */
/*
 * What a connection that waits does: what waits at the server on it, which
 * request of its lock may be under way on cmd meanwhile, and whether `lock` is
 * set. These are the legal combinations.
 *
 *   state   | waits at the server, on this connection   | on cmd         | lock
 *   --------+-------------------------------------------+----------------+-------
 *   OFF     | nothing: the login, the settings          | an attempt (1) | may be
 *   IDLE    | nothing; `leaving` RELEASE_LOCKs, of the  | any, of others | no (2)
 *           |   queues in which it was the first        |                |
 *   QUEUES  | GET_LOCK of the queue; behind it, of a    | an attempt (1) | yes
 *           |   mutex, GET_LOCK of the bell             |                |
 *   FIRST   | nothing; it has the queue (3)             | an attempt     | yes
 *   BELL    | GET_LOCK of the bell; it has the queue    | an attempt (1) | yes
 *   SLEEPS  | GET_LOCK of the client's own hfc: lock,   | an attempt (1) | yes
 *           |   which cmd has; it has the queue (3)     |                |
 *   OVER    | nothing: the connection is closed         | any            | no
 *
 * (1) Because look_at is reached: the core attempts again without being woken.
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
    uint64_t since_us;    /* when the line began to wait, by the server */
    uint32_t permits;
    uint32_t turn_s;           /* the server ends it if it says nothing */
    uint8_t hash[MY_HASH_LEN]; /* of the name in whose queue it is */
    uint8_t state;             /* enum my_wait_state */
    uint8_t leaving; /* so many statements that leave a queue are under way */
    bool rings : 1;  /* the next statement waits for the bell */
    /* KILL QUERY has ended the last one: the next does not wait for the bell */
    bool skips_bell : 1;
};

/* The first may say nothing for so long; order is worth some patience. */
#define MY_TURN_S 1
#define MY_FAIR_TURN_S 2
void hf__my_wait_put_turn(struct my_wait *);
void hf__my_wait_put_about(struct my_wait *);
void hf__my_wait_put_bell(struct my_wait *);
void hf__my_wait_put_sleep(struct my_wait *);
void hf__my_wait_put_queue(struct my_wait *);

/* The line is told to wait, for the first time or again. rings: the holder has
 * the bell. False: there is no connection for it, it has to poll. */
bool hf__my_wait(struct mysql *, struct my_lock *, bool rings,
                 uint32_t permits);
bool hf__my_is_first(const struct my_lock *);
/* It waits, and did not find the queue empty. */
bool hf__my_waited(const struct my_lock *, hf__time now);
/* It does not wait any more. */
void hf__my_wait_end(struct mysql *, struct my_lock *);
/* The first waiter is to look: it is this thread of the server; 0: nobody.
 * Through a proxy it is not told, and looks by itself. */
void hf__my_ring(struct mysql *, uint64_t thread);
/* Out of an answer of cmd: all waiters of a latch are to look. */
void hf__my_ring_all(struct mysql *, const uint8_t hash[MY_HASH_LEN]);
/* The command connection is lost: so are all places. */
void hf__my_waits_lost(struct mysql *);
void hf__my_waits_ready(struct mysql *, uint32_t tag, uint32_t events,
                        hf__time now);
void hf__my_waits_advance(struct mysql *, hf__time now);
hf__time hf__my_waits_timeout(const struct mysql *);
void hf__my_waits_fini(struct mysql *);

/* ---- renew.c ------------------------------------------------------------ */

int hf__my_renew(void *, struct hf__batch *);
int hf__my_renew_encode(struct mysql *, struct hf__req *);
int hf__my_renew_answer(struct mysql *, const struct my_flight *,
                        const struct my_result *, hf__time now);
void hf__my_renew_failed(struct mysql *, const struct my_flight *, int code);

/* ---- query.c ------------------------------------------------------------ */

int hf__my_query(void *, struct hf__query *);
int hf__my_query_encode(struct mysql *, struct hf__req *);
/* 0, or HF_EPROTO. */
int hf__my_query_answer(struct mysql *, const struct my_flight *,
                        const struct my_result *, hf__time now);

/* ---- latch.c ------------------------------------------------------------ */

void hf__my_latch_take(struct mysql *, const struct hf__req *);
int hf__my_latch_taken(struct mysql *, struct hf__req *,
                       const struct my_result *, hf__time now);
void hf__my_latch_put(struct mysql *, const struct hf__query *);
/* DONE, PENDING, or a code. */
int hf__my_latch_counted(struct mysql *, struct hf__query *,
                         const struct my_result *);

/* ---- diagnose.c --------------------------------------------------------- */

void hf__my_diagnose_put(struct mysql *, const struct hf__query *);
/* DONE, or PENDING: more is asked. */
int hf__my_diagnosed(struct mysql *, struct hf__query *,
                     const struct my_result *);

#endif
