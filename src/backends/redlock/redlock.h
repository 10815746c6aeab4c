/*
 * Redlock: a lock on the majority of several independent Redis servers, each of
 * which has the string of the `string` dialect. The mutex alone, unfair.
 *
 * An attempt (struct rl_hold) is known by a value that nobody had before, and
 * asks all servers at once. What is sent to a server, by letter (lua/vote.lua):
 *
 *   g  grant   sets the key unless it is there, and answers a number, `base`,
 *              that is above every token that anybody may have got there
 *   r  raise   a second round: this token is going to be used
 *   k  keep    a renewal
 *   d  drop    a release
 *   u  undo    the grant comes to nothing
 *
 *                 yes of a majority, whose numbers are close
 *        GRANT -----------------------------------------------> HELD --+ k
 *          |  \                                                ^  | ^--+
 *          |   +--> RAISE (numbers are not close): majority ---+  |
 *          | no majority  | no majority                           | d
 *          v              v                                       v
 *        UNDONE <---------+                                    DROPPED
 *
 * The token is the highest base of the majority M and one more. A server that
 * answers b gives nobody else a base below b + `ahead`; so if the token is not
 * above that at any server of M, it is used at once: every later holder shares
 * a server with M, and gets a higher one. Otherwise the token is written to a
 * majority first. A model of it is in tests/sim (redlock-model).
 *
 * A lease counts from the first byte of the attempt, or of the renewal. A
 * server that may have lost its memory (it was started less than max_lease ago,
 * or another one answers at its address) is out: nothing is asked of it until
 * all leases of that time are over.
 *
 * Everything runs with the client's mutex held, but for open().
 *
 * Files: redlock.c the table, the URL, driving; server.c one server;
 * vote.c attempts, votes, and what is made of them; diagnose.c
 * what the servers say of themselves.
 */
#ifndef HF_REDLOCK_H
#define HF_REDLOCK_H

#include "backends/redis/redis.h"

#define RL_AHEAD_MS 500 /* a lease that is shorter: that */
#define RL_PAUSE_MIN_MS 1
#define RL_PAUSE_MAX_MS 250
#define RL_ALL_MS 400 /* held for longer: now and then all are asked */
#define RL_BASE_MAX (INT64_C(1) << 52) /* exact in Lua, as are its sums */
#define RL_VALUE_MAX (HF__UUID_LEN + 1 + 21)

struct redlock;
struct rl_hold;

/* What a server answers, beside RD_GRANTED, RD_BUSY and RD_STALE: it has done
 * the thing, or (keep) had no key and has set it. */
enum { RL_DID = 1, RL_SET_AGAIN = 3 };

enum rl_op {
    RL_GRANT = 'g',
    RL_RAISE = 'r',
    RL_KEEP = 'k',
    RL_DROP = 'd',
    RL_UNDO = 'u',
};

/* ---- server.c -------------------------------------------------- */

struct rl_server {
    struct redlock *rl;
    struct net_endpoint peer;
    struct rd_pipe pipe;
    char run_id[48];    /* of the process that answered last; "": none has */
    char said[48];      /* by the one that is being greeted */
    int64_t uptime_s;   /* of it */
    hf__time out_until; /* it may lack what it had: nothing is sent */
    int64_t clock_us;   /* its clock at clock_at, or a little later */
    hf__time clock_at;
    const struct rl_server *twin; /* the same, at another address */
    bool by_text;                 /* it does not know the script */
    int error_code;               /* of the last error that it answered, */
    char error[80];               /* and its text */
    hf__time pay_at; /* what it is owed is tried again, if it is connected */
};

/* A command that is under way. */
struct rl_flight {
    struct rd_sent sent;
    struct rl_hold *hold;
    struct rl_poll *poll;       /* of the hold */
    struct rl_checkup *checkup; /* it is INFO, and of no hold; else NULL */
    uint32_t round;
    enum rl_op op;
};

void hf__rl_server_init(struct rl_server *, struct redlock *);
void hf__rl_server_fini(struct rl_server *);
/* Waits until the server has read what was sent, and has closed: a connection
 * that is closed with answers unread is reset, and Redis forgets what it has
 * not read by then. */
void hf__rl_leave(struct rl_server *, hf__time until);
size_t hf__rl_index(const struct rl_server *);
/* It may be asked: it is connected, not out, and answers. */
bool hf__rl_is_usable(const struct rl_server *, hf__time now);
/* Why it may not: for people, without its address. */
void hf__rl_trouble(const struct rl_server *, hf__time now, char *buf,
                    size_t size);
/* false: it is not connected or out, or there is no memory. */
bool hf__rl_send(struct rl_server *, struct rl_poll *, enum rl_op);
/* The key of the hold goes there: now, or as soon as the server hears us. */
void hf__rl_end_at(struct rl_server *, struct rl_hold *);
/* What it has refused is sent again, when it is time. */
void hf__rl_pay_again(struct rl_server *, hf__time now);
hf__time hf__rl_pay_timeout(const struct rl_server *, hf__time now);

/* ---- vote.c ---------------------------------------------------- */

enum rl_vote {
    RL_UNASKED,
    RL_ASKED,
    RL_YES,
    RL_NO,
    RL_ERROR,  /* it has answered an error */
    RL_SLOW,   /* no answer in time; it may still come */
    RL_FAILED, /* none will come */
};

/* A question to all servers, and their votes. Used again when it is decided. */
struct rl_poll {
    struct rl_poll *next, **at; /* of those that are not decided */
    struct rl_poll *more;       /* of the same hold */
    struct rl_hold *hold;
    struct hf__req *req; /* to be told; NULL: it is decided */
    size_t item;         /* of a batch */
    hf__time until;
    uint32_t round; /* of the hold: answers to an earlier one do not count */
    enum rl_op op;
    uint8_t vote[HF__HOSTS];
};

/* An attempt, and what becomes of it. Lives as long as its line has it, or a
 * command of it is under way or owed. */
struct rl_hold {
    unsigned refs;
    struct rl_hold *next; /* of the line, an older one */
    struct rl_line *line; /* NULL: the line does not have it any more */
    uint64_t hold_id;
    uint64_t token; /* 0: there is none yet */
    uint32_t lease_ms;
    uint32_t rounds;       /* of polls, */
    uint32_t good;         /* and the last one of a renewal that succeeded */
    hf__time sent_at;      /* the first byte */
    hf__time gone_at;      /* its keys are gone by then */
    struct rl_poll ask;    /* all but the renewals */
    struct rl_poll *keeps; /* these */
    bool held;             /* the token is used: it is never undone */
    bool carefully;        /* one server was asked first, and not the rest */
    uint16_t touched;      /* servers that may have its key */
    uint16_t owes;         /* servers that have not heard of its end, */
    bool is_debtor;        /* and it is in their list: */
    struct rl_hold *next_debtor;
    uint16_t unsure;         /* the answer to a drop was lost there */
    uint16_t late;           /* found the request so: it was sent again */
    uint16_t lapsed;         /* a renewal has set the key there again */
    int64_t base[HF__HOSTS]; /* of no: a number that its owner's value has */
    uint8_t value_len;
    uint16_t name_len;
    char value[RL_VALUE_MAX];
    char name[];
};

/* What we keep of each line (remote->impl). */
struct rl_line {
    struct rl_hold *holds;   /* the newest, and those that are being released */
    bool careful;            /* the last try has failed: one server first */
    uint16_t lacks;          /* servers without the key of the holder */
    uint8_t looks;           /* how often it was asked for */
    uint64_t unheard;        /* the hold id that no majority has answered, 0; */
    hf__time unheard_at;     /* since when */
    hf__time seen_at;        /* since when the same one holds it, */
    int64_t seen[HF__HOSTS]; /* by the numbers of its values */
};

int hf__rl_attach(void *, struct hf__remote *);
void hf__rl_detach(void *, struct hf__remote *);
int hf__rl_attempt(void *, struct hf__req *);
int hf__rl_release(void *, struct hf__req *);
int hf__rl_abandon(void *, struct hf__req *);
int hf__rl_renew(void *, struct hf__batch *);
/* The poll still waits for this server's answer to it. */
bool hf__rl_counts(const struct rl_server *, const struct rl_flight *);
/* The answer of a server has come: its first number, and the last. */
void hf__rl_voted(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
/* An error, or no answer will come; lost: the server may have done it. */
void hf__rl_failed(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);
void hf__rl_vote_move(struct redlock *, hf__time now);
hf__time hf__rl_vote_timeout(const struct redlock *);
void hf__rl_poll_end(struct rl_poll *);
void hf__rl_hold_drop(struct redlock *, struct rl_hold *);
/* What ends it: a token that was used is never undone. */
enum rl_op hf__rl_end_of(const struct rl_hold *);
/* How far ahead of its base a server reserves tokens. */
uint32_t hf__rl_ahead_ms(const struct rl_hold *);

/* ---- diagnose.c ------------------------------------------------ */

int hf__rl_query(void *, struct hf__query *);
/* One answer to INFO has come, or none will; advance() comes afterwards, and
 * with it checkup_move(), unless the client ends. */
void hf__rl_checkup_drop(struct redlock *, struct rl_checkup *);
void hf__rl_checkups_fini(struct redlock *);
void hf__rl_checkup_move(struct redlock *, hf__time now);
hf__time hf__rl_checkup_timeout(const struct redlock *);

/* ---- all of it --------------------------------------------------------- */

/* What a server reports. */
struct rl_calls {
    /* Its answer has come: its first number, and the last. */
    void (*voted)(struct rl_server *, const struct rl_flight *, int64_t what,
                  int64_t base, hf__time now);
    /* An error, or no answer will come; lost: the server may have done it. */
    void (*failed)(struct rl_server *, const struct rl_flight *, enum rl_vote,
                   bool lost);
    /* No answer to INFO will come. */
    void (*unchecked)(struct redlock *, struct rl_checkup *);
};

struct redlock {
    const struct hf__core *core;
    hf_client *client;
    const struct rl_calls *calls;
    struct rd_login login;
    uint32_t op_timeout_ms, server_timeout_ms;
    uint32_t
        max_lease_ms; /* 0: servers keep what they have through a restart */
    char uuid[HF__UUID_LEN + 1];
    uint64_t values;       /* how many there were */
    uint64_t chance;       /* state of the jitter */
    struct rl_poll *polls; /* those that are not decided */
    struct rl_hold *debtors;
    struct rl_checkup *checkups; /* that are not over */
    uint32_t tags;
    bool put_off;         /* the core keeps requests that are not sent yet */
    bool is_down;         /* and was told so */
    bool is_unheard;      /* no majority has voted since one did not */
    bool is_open;         /* hf_open has its client */
    bool is_up;           /* a majority is connected */
    hf__time opens_until; /* so long hf_open waits for the others, too */
    size_t majority, len;
    struct rl_server server[HF__HOSTS];
};

extern const struct hf__backend hf__rl_backend;

/* A bit for each server that can be asked. */
unsigned hf__rl_usable(const struct redlock *, hf__time now);
void hf__rl_flush(struct redlock *);
size_t hf__rl_connected(const struct redlock *);
bool hf__rl_has_majority(const struct redlock *, hf__time now);
/* What is wrong with each server, those with the same trouble together: with
 * its part in a poll, or, if there is none, with itself. */
void hf__rl_describe(const struct redlock *, const struct rl_poll *,
                     hf__time now, char *to, size_t size);

#endif
