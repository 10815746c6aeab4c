/*
 * An attempt and what becomes of it (struct rl_hold), and the polls of its
 * servers (struct rl_poll). A hold lives as long as its lock has it, or a
 * command of it is under way or owed: each of these counts in `refs`.
 */
#ifndef HF_RL_HOLD_H
#define HF_RL_HOLD_H

#include "backends/common/about.h"
#include "backends/redis/pipe.h"

#define RL_AHEAD_MS 500 /* at most: see rl_hold.ahead_us */

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
    RL_ERROR,  /* it has answered an error */
    RL_SLOW,   /* no answer in time; it may still come */
    RL_FAILED, /* none will come */
};

/* A request to all servers, and their votes. Used again when it is decided. */
struct rl_poll {
    struct rl_poll *next, *prev; /* redlock.polls, until it is decided */
    struct rl_poll *more;        /* of the same hold */
    struct rl_hold *hold;
    struct hf__req *req; /* that waits for it; NULL: it is decided */
    size_t item;         /* of a batch */
    hf__time until;
    uint32_t round; /* of the hold: answers to an earlier one do not count */
    enum rl_op op;
    uint8_t vote[HF__HOSTS];
};

/* An attempt, and what becomes of it. Lives as long as its lock has it, or a
 * command of it is under way or owed. */
struct rl_hold {
    unsigned refs;
    struct rl_hold *next; /* of the lock, an older one */
    struct rl_lock *lock; /* NULL: the lock does not have it any more */
    uint64_t hold_id;
    uint64_t token;   /* 0: there is none yet */
    int64_t ahead_us; /* how far ahead of its base a server reserves tokens */
    uint32_t lease_ms;
    uint32_t rounds;       /* of polls, */
    uint32_t good;         /* and the last one of a renewal that succeeded */
    hf__time sent_at;      /* the first byte */
    hf__time gone_at;      /* its keys are gone by then */
    struct rl_poll poll;   /* all but the renewals */
    struct rl_poll *keeps; /* these */
    bool held;             /* the token is used: it is never undone */
    bool carefully;   /* it was sent to one server first, and not the rest */
    uint16_t touched; /* servers that may have its key */
    /* Servers that have not heard of its end. While there are any it is in
     * redlock.debtors. */
    uint16_t owes;
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

/* The poll is decided, and waits for nothing more. */
void hf__rl_poll_end(struct redlock *, struct rl_poll *);

/* One reference less. */
void hf__rl_hold_drop(struct redlock *, struct rl_hold *);

#endif
