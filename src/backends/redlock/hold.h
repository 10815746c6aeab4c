/*
 * An attempt and what becomes of it (struct rl_hold), and its polls of the
 * servers (struct rl_poll). A hold exists while its lock has it, while one of
 * its commands is under way, and while a server must still be sent the end of
 * it; each of these counts in `refs`.
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

/* A request to all servers, and their votes. The struct is reused after the
 * decision. */
struct rl_poll {
    struct rl_poll *next, *prev; /* in redlock.polls until it is decided */
    struct rl_poll *more;        /* another poll of the same hold */
    struct rl_hold *hold;
    struct hf__req *req; /* the request that waits for it; NULL: decided */
    size_t item;         /* of a renewal: index in its batch */
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
    uint64_t token;   /* 0: it has none yet */
    int64_t ahead_us; /* servers reserve tokens up to `base` plus this */
    uint32_t lease_ms;
    uint32_t rounds;       /* number of the latest poll of this hold */
    uint32_t good;         /* round of the last renewal that succeeded */
    hf__time sent_at;      /* when the first byte of the attempt was sent */
    hf__time gone_at;      /* all its keys have expired by then */
    struct rl_poll poll;   /* for everything but renewals */
    struct rl_poll *keeps; /* polls of renewals */
    bool held;             /* granted to the core: never undone */
    bool carefully;        /* sent to one server first, not yet to the others */
    uint16_t touched;      /* servers that may have its key */
    /* Servers that must still be sent the release or the undo of this hold.
     * While there are any, the hold is in redlock.debtors. */
    uint16_t owes;
    struct rl_hold *next_debtor;
    uint16_t unsure; /* servers where the reply to a drop was lost */
    uint16_t late;   /* servers that refused it as too late, once */
    uint16_t lapsed; /* servers where a renewal had to set the key again */
    int64_t base[HF__HOSTS]; /* of a NO: made from the holder's value */
    uint8_t value_len;
    uint16_t name_len;
    char value[RL_VALUE_MAX];
    char name[];
};

/* Ends the poll, which is decided: no request waits for it. */
void hf__rl_poll_end(struct redlock *, struct rl_poll *);

/* Drops a reference; frees the hold with the last one. */
void hf__rl_hold_drop(struct redlock *, struct rl_hold *);

#endif
