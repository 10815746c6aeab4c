/*
 * An attempt and the hold that it becomes (struct rl_hold), and its ballots
 * among the servers (struct rl_poll). A struct rl_hold exists while its lock
 * refers to it, while one of its commands is under way, and while its release
 * or undo must still be sent to a server; each of these counts in `refs`.
 */
#ifndef HF_RL_HOLD_H
#define HF_RL_HOLD_H

#include "backends/common/about.h"
#include "backends/redis/pipe.h"

#define RL_AHEAD_MS 500 /* upper bound of rl_hold.ahead_us */

#define RL_VALUE_MAX (HF__UUID_LEN + 1 + 21)

struct redlock;
struct rl_hold;
struct rl_lock;

enum rl_op {
    RL_GRANT = 'g',
    RL_RAISE = 'r',
    RL_KEEP = 'k',
    RL_DROP = 'd',
    RL_UNDO = 'u',
};

enum rl_vote {
    RL_UNSENT,
    RL_SENT,
    RL_YES,
    RL_NO,
    RL_ERROR,  /* replied with an error */
    RL_SLOW,   /* no reply in time; one may still arrive */
    RL_FAILED, /* no reply will arrive */
};

/* A ballot: a request to all servers (an attempt may first go to one server
 * only, see rl_hold.carefully), and their votes. After the decision the struct
 * may be reused for another ballot. */
struct rl_poll {
    struct rl_poll *next, *prev; /* in redlock.polls until it is decided */
    struct rl_poll *more;        /* another ballot of the same hold */
    struct rl_hold *hold;
    struct hf__req *req; /* waits for the decision; NULL after it */
    size_t item;         /* of a renewal: index in its batch */
    hf__time until;
    uint32_t round; /* number of the ballot within the hold; replies to earlier
                       ballots are ignored */
    enum rl_op op;
    uint8_t vote[HF__HOSTS];
};

/* An attempt, and the hold that it becomes. */
struct rl_hold {
    unsigned refs;
    struct rl_hold *next; /* the next older hold of the same lock */
    struct rl_lock *lock; /* NULL once the lock has dropped the hold */
    uint64_t hold_id;
    uint64_t token;   /* 0 until the token is decided */
    int64_t ahead_us; /* servers reserve tokens up to `base` plus this */
    uint32_t lease_ms;
    uint32_t rounds;       /* number of the latest ballot of this hold */
    uint32_t good;         /* number of the last renewal ballot that
                              succeeded */
    hf__time sent_at;      /* before the first byte of the attempt was sent */
    hf__time gone_at;      /* when all keys of the hold will have expired */
    struct rl_poll poll;   /* the ballot for everything but renewals */
    struct rl_poll *keeps; /* ballots of renewals */
    bool held;             /* granted to the core, so never undone */
    bool carefully;        /* sent to one server only so far */
    uint16_t touched;      /* servers that may have the key of this hold */
    /* Servers to which the release or the undo of this hold must still be sent.
     * While there are any, the hold is in redlock.debtors. */
    uint16_t owes;
    struct rl_hold *next_debtor;
    uint16_t unsure; /* servers whose reply to a drop was lost */
    uint16_t late;   /* servers that have refused the attempt as too late */
    uint16_t lapsed; /* servers where a renewal had to set the key again */
    /* The number in each server's reply to the grant: `base`, or a hash of the
     * holder's value if the vote was NO. */
    int64_t base[HF__HOSTS];
    uint8_t value_len;
    uint16_t name_len;
    char value[RL_VALUE_MAX];
    char name[];
};

/* Ends a ballot, whether or not it was decided: no request waits for it from
 * now on. */
void hf__rl_poll_end(struct redlock *, struct rl_poll *);

/* Drops a reference to the hold, and frees it with the last one. */
void hf__rl_hold_drop(struct redlock *, struct rl_hold *);

#endif
