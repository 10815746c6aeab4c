/*
 * What happened in a run, and whether it was allowed to: the checkers of the
 * invariants over a recorded history.
 *
 * A program that uses locks under faults (the simulation, the fault tests)
 * records events with the times of one clock, in any order, sorts them once and
 * asks for a verdict. A history knows nothing of holdfast's internals: it has
 * the calls, what they returned, and the faults that were injected.
 *
 *   ME     the resource accepts no token lower than the highest it saw (from
 *          a shared hold: than the highest exclusive one), and its counter
 *          ends at the number of accepted writes
 *   CLAIM  owners that exclude each other never hold at the same time, and no
 *          more permits are out than the semaphore has
 *   TOK    tokens of exclusive holds are unique to a process, and rise from
 *          holder to holder; those of shared holds do not fall, or have no
 *          order among themselves
 *   BOUND  after a death the next acquire succeeds within TTL + tick + 1 s
 *   WAKE   a lock is not free for all its waiters for longer than wake_ns
 *   RET    each call returns by its deadline + 1 s; a try by op_timeout + 1 s
 *   LEAK   nothing is left behind
 *   CAP    no hold outlasts its fixed lease or max_hold
 *   TURN   one grant serves no more local owners than the hand-over allows
 *
 * An acquire that did not return 0 is not a hold. A release ends the hold when
 * it is called, whatever it returns. Acquires of one owner are counted
 * (reentry).
 *
 * A hold takes a share of the lock: k of the n permits of a semaphore; to read,
 * one of HISTORY_MANY, and to write, all of them. A mutex has the share 0 of 0.
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
    HISTORY_CALL, /* acquire called, for a share of the whole; until: its
                     deadline, or NEVER */
    /* acquire returned `result`; 0: held, with token, until
     *                           (deadline) and cap; THROUGH: let through a
     * latch */
    HISTORY_RETURN,
    HISTORY_DEADLINE,  /* the deadline of the hold is now `until` */
    HISTORY_RENEW,     /* the owner extends its hold: cap is now `until` */
    HISTORY_DOWNGRADE, /* the owner keeps one share of its hold */
    HISTORY_RELEASE,   /* release called; until: its deadline */
    HISTORY_RELEASED,  /* the release returned `result` */
    HISTORY_LOST,      /* the owner has learned of its loss */
    HISTORY_KILLED,    /* `process` was killed */
    HISTORY_STOPPED,   /* `process` was stopped */
    HISTORY_CONTINUED, /* `process` was continued */
    HISTORY_FAULT,     /* no verdicts on waits before `until` */
    HISTORY_READ,      /* resource: token, value read; result 0: accepted */
    HISTORY_WRITE,     /* resource: token, value written; result 0: accepted */
    HISTORY_LEFT,      /* at the end: `value` entries too many are left */
    HISTORY_END,       /* the end of the recording */
};

/* Locks, owners and processes are small numbers from 0, chosen by the test. An
 * owner belongs to one process. */
struct history_event {
    int64_t at;    /* nanoseconds */
    int64_t until; /* depends on the kind: see there */
    int64_t cap;   /* RETURN: upper limit of until, or NEVER */
    uint64_t token;
    uint64_t value;
    uint32_t lock, owner, process;
    uint32_t share, whole; /* CALL; READ, WRITE: share 1 if shared */
    int32_t result;
    uint8_t kind;
};

struct history {
    struct history_event *event;
    size_t len, room;
    uint32_t locks, owners, processes; /* the highest number seen + 1 */
};

struct history_rules {
    int64_t ttl_ns;  /* how long a dead owner may keep its holds */
    int64_t tick_ns; /* how late the server may notice that a lease has ended */
    int64_t wake_ns; /* usually 2 s */
    int64_t grace_ns; /* for round trips that the test delays */
    uint32_t turns;   /* hand-overs that one grant allows */
    bool lossy;       /* the server may forget holds: no CLAIM */
    bool unhurried;   /* no verdicts on waits: no BOUND, no WAKE */
    bool mingled;     /* tokens of shared holds have no order */
    bool stop_keeps;  /* a stopped process keeps its holds (shm) */
};

struct history_verdict {
    const char *check; /* such as "CLAIM", or NULL if all is well */
    size_t index;      /* of the offending event */
    char text[200];
};

void history_init(struct history *);
void history_fini(struct history *);
/* Adds a copy of the event. Ends the program if there is no memory, since it is
 * a test. */
void history_add(struct history *, const struct history_event *);
void history_clear(struct history *);
/* By time; events of the same time keep their order. */
void history_sort(struct history *);

/* Each returns true if the sorted history is right, else false with a
 * verdict. */
typedef bool history_check_fn(const struct history *,
                              const struct history_rules *,
                              struct history_verdict *);
history_check_fn history_check_me, history_check_claim, history_check_tok,
    history_check_waits /* BOUND and WAKE */, history_check_ret,
    history_check_leak, history_check_cap, history_check_turn;

/* All of them; stops at the first that fails. */
history_check_fn history_check;

/* Formats the event as one line for a reader. */
void history_print(const struct history_event *, char *buf, size_t len);

#endif
