/*
 * What happened in a run, and whether it may have: the checkers of the
 * invariants over a recorded history.
 *
 * Whoever runs locks under faults (the simulation, the fault tests) records
 * events with the times of one clock, in any order, sorts them once and asks
 * for a verdict. A history knows nothing of holdfast's insides: it has calls,
 * what they returned, and the faults that were made.
 *
 *   ME     the resource accepts no token lower than the highest it saw (that of
 *          a shared hold: than the highest exclusive one), and its counter
 *          ends at the number of accepted writes
 *   CLAIM  owners who exclude each other never say "held" at one time, and no
 *          more permits are out than there are
 *   TOK    tokens of exclusive holds are unique to a process, and rise from
 *          holder to holder; those of shared holds do not fall, or are in no
 *          order among themselves
 *   BOUND  after a death the next acquire succeeds within TTL + tick + 1 s
 *   WAKE   never free for all who wait for longer than wake_ns
 *   RET    every call is back by its limit + 1 s; a try by op_timeout + 1 s
 *   LEAK   nothing is left behind
 *   CAP    no hold outlasts its fixed lease or max_hold
 *   TURN   no more local owners on one grant than the hand-over allows
 *
 * An acquire that did not return 0 is no hold; a release ends the hold where it
 * was called, whatever it returned. Reentry: the acquires of one owner count.
 *
 * A hold takes a share of the lock: k of the n permits of a semaphore, one of
 * HISTORY_MANY to read, all of them to write. 0 of 0 is all there is: a mutex.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_NEVER INT64_MAX
#define HISTORY_MANY UINT32_MAX
#define HISTORY_THROUGH 1

enum history_kind {
    HISTORY_CALL,      /* acquire called, of a share of the whole; until: its
                          own deadline, or NEVER */
    HISTORY_RETURN,    /* result; 0: held, token, until: deadline, cap; THROUGH:
                          let through a latch */
    HISTORY_DEADLINE,  /* the owner's deadline is now until */
    HISTORY_RENEW,     /* the owner asked for more: cap is now until */
    HISTORY_DOWNGRADE, /* the owner has one share left, of those it had */
    HISTORY_RELEASE,   /* called; until: its own deadline */
    HISTORY_RELEASED,  /* result */
    HISTORY_LOST,      /* the owner knows that its hold is gone */
    HISTORY_KILLED,    /* process */
    HISTORY_STOPPED,   /* process */
    HISTORY_CONTINUED, /* process */
    HISTORY_FAULT,     /* waiting is not to be judged before until */
    HISTORY_READ,      /* resource: token, value read, result 0: accepted */
    HISTORY_WRITE,     /* resource: token, value written, result 0 */
    HISTORY_LEFT,      /* afterwards: value things too many are there */
    HISTORY_END,       /* nothing was looked at after this */
};

/* Locks, owners and processes are small numbers from 0, given by the test. An
 * owner belongs to one process. */
struct history_event {
    int64_t at;    /* nanoseconds */
    int64_t until; /* see kind */
    int64_t cap;   /* RETURN: until may never go beyond; NEVER */
    uint64_t token;
    uint64_t value;
    uint32_t lock, owner, process;
    uint32_t share, whole; /* CALL; READ, WRITE: share 1 if it is shared */
    int32_t result;
    uint8_t kind;
};

struct history {
    struct history_event *event;
    size_t len, room;
    uint32_t locks, owners, processes; /* how many: the highest seen + 1 */
};

struct history_rules {
    int64_t ttl_ns;   /* longest time for which the dead keep what they had */
    int64_t tick_ns;  /* of the server */
    int64_t wake_ns;  /* 2 s */
    int64_t grace_ns; /* what the test itself may add: round trips */
    uint32_t turns;   /* hand-overs that one grant allows */
    bool lossy;       /* the server forgot holds: CLAIM cannot be asked for */
    bool unhurried;   /* nothing is asked about waiting: BOUND, WAKE */
    bool mingled;    /* tokens of shared holds have no order among themselves */
    bool stop_keeps; /* a stopped process keeps what it holds (shm) */
};

struct history_verdict {
    const char *check; /* "CLAIM"; NULL: all is well */
    size_t index;      /* the event that shows it */
    char text[200];
};

void history_init(struct history *);
void history_fini(struct history *);
/* Copies the event. Ends the program when memory is out: it is a test's. */
void history_add(struct history *, const struct history_event *);
void history_clear(struct history *);
/* By time; events of one time keep their order. */
void history_sort(struct history *);

/* Each: true if the sorted history is right, else a verdict. */
typedef bool history_check_fn(const struct history *,
                              const struct history_rules *,
                              struct history_verdict *);
history_check_fn history_check_me, history_check_claim, history_check_tok,
    history_check_waits /* BOUND and WAKE */, history_check_ret,
    history_check_leak, history_check_cap, history_check_turn;

/* All of them; the first verdict that is against it. */
history_check_fn history_check;

/* One line for people. */
void history_print(const struct history_event *, char *buf, size_t len);

#endif
