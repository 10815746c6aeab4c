/*
 * An attempt and what becomes of it (struct rl_hold), and its polls of the
 * servers (struct rl_poll). A hold lives while its lock has it, or one of its
 * commands is under way or owed; each of these counts in `refs`.
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
    RL_SLOW,   /* no reply in time; it may still come */
    RL_FAILED, /* no reply will come */
};

/* A request to all servers and their votes. Reused after its decision. */
struct rl_poll {
    struct rl_poll *next, *prev; /* in redlock.polls until the decision */
    struct rl_poll *more;        /* of the same hold */
    struct rl_hold *hold;
    struct hf__req *req; /* waits for the decision; NULL: decided */
    size_t item;         /* index in a batch */
    hf__time until;
    uint32_t round; /* number within the hold; replies to earlier rounds do not
                       count */
    enum rl_op op;
    uint8_t vote[HF__HOSTS];
};

/* An attempt, and the hold that it becomes. */
struct rl_hold {
    unsigned refs;
    struct rl_hold *next; /* an older one of the same lock */
    struct rl_lock *lock; /* NULL: the lock has dropped it */
    uint64_t hold_id;
    uint64_t token;   /* 0: none yet */
    int64_t ahead_us; /* how far above its base a server reserves tokens */
    uint32_t lease_ms;
    uint32_t rounds;       /* number of the latest poll */
    uint32_t good;         /* round of the last renewal that succeeded */
    hf__time sent_at;      /* when its first byte was sent */
    hf__time gone_at;      /* all its keys have expired by then */
    struct rl_poll poll;   /* all polls but renewals */
    struct rl_poll *keeps; /* renewals */
    bool held;             /* granted to the core: never undone */
    bool carefully;        /* sent to one server first, not yet to the others */
    uint16_t touched;      /* servers that may have its key */
    /* Servers to which its end must be sent again. While there are any it is in
     * redlock.debtors. */
    uint16_t owes;
    struct rl_hold *next_debtor;
    uint16_t unsure; /* servers that did not answer a drop */
    uint16_t late;   /* servers that found it too late; it was sent again */
    uint16_t lapsed; /* servers where a renewal had to set the key again */
    int64_t base[HF__HOSTS]; /* a NO has a number for the holder's value */
    uint8_t value_len;
    uint16_t name_len;
    char value[RL_VALUE_MAX];
    char name[];
};

/* The poll is decided: its request no longer waits for it. */
void hf__rl_poll_end(struct redlock *, struct rl_poll *);

/* Drops a reference; frees the hold with the last one. */
void hf__rl_hold_drop(struct redlock *, struct rl_hold *);

#endif
