/*
 * The history of a run, and the checkers that decide whether it keeps the
 * invariants.
 *
 * A program that uses locks under faults (the simulation, the fault tests)
 * records events with the times of one clock, in any order, sorts them once and
 * runs the checkers. A history knows nothing of holdfast's internals: it
 * consists of the calls, what they returned, and the faults that were injected.
 *
 *   ME     the resource accepts no exclusive token lower than the highest token
 *          that it saw, and no shared token lower than the highest exclusive
 *          one; its counter ends at the number of accepted writes
 *   CLAIM  owners that exclude each other never hold at the same time, and no
 *          more permits are taken than the semaphore has
 *   TOK    no two processes have the same token of an exclusive hold; these
 *          tokens rise from holder to holder. The tokens of shared holds do not
 *          fall (or, with `mingled`, have no order among themselves)
 *   BOUND  after a death the next acquire succeeds within TTL + tick + 1 s
 *   WAKE   a lock is not free for all its waiters for longer than wake_ns
 *   RET    each call returns by its deadline + 1 s; a try by op_timeout + 1 s
 *   LEAK   no entries are left at the end
 *   CAP    no hold outlasts its fixed lease or max_hold
 *   TURN   one grant serves no more local owners than the hand-over allows
 *
 * An acquire that did not return 0 is not a hold. A release ends the hold when
 * it is called, whatever it returns. Acquires of one owner are counted
 * (reentry).
 *
 * A hold takes a share of the lock, out of a whole: k of the n permits of a
 * semaphore; of a read-write lock, 1 of HISTORY_MANY to read and all of them to
 * write. An event of a mutex has share 0 and whole 0.
 */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_NEVER INT64_MAX
#define HISTORY_MANY UINT32_MAX
#define HISTORY_THROUGH 1

/* If the result of a RETURN is 0, a hold begins, with the event's token, cap
 * and deadline (`until`); HISTORY_THROUGH means that a latch let the owner
 * through. READ and WRITE are uses of the resource that the lock guards; a
 * result of 0 means that the resource accepted the use. */
enum history_kind {
    HISTORY_CALL,      /* acquire called for share of whole; until: deadline */
    HISTORY_RETURN,    /* the acquire returned `result` */
    HISTORY_DEADLINE,  /* the hold's deadline is now `until` */
    HISTORY_RENEW,     /* the owner extends its hold: cap is now `until` */
    HISTORY_DOWNGRADE, /* the owner keeps one share of its hold */
    HISTORY_RELEASE,   /* release called; until: its deadline */
    HISTORY_RELEASED,  /* the release returned `result` */
    HISTORY_LOST,      /* the owner has learned of its loss */
    HISTORY_KILLED,    /* `process` was killed */
    HISTORY_STOPPED,   /* `process` was stopped */
    HISTORY_CONTINUED, /* `process` was continued */
    HISTORY_FAULT,     /* waits before `until` are not judged */
    HISTORY_READ,      /* token, and the value read */
    HISTORY_WRITE,     /* token, and the value written */
    HISTORY_LEFT,      /* at the end: `value` entries are left behind */
    HISTORY_END,       /* the end of the recording */
};

/* Locks, owners and processes are small numbers from 0 that the test chooses.
 * An owner belongs to one process. */
struct history_event {
    int64_t at;    /* nanoseconds */
    int64_t until; /* meaning: see enum history_kind */
    int64_t cap;   /* RETURN: latest deadline allowed, or NEVER */
    uint64_t token;
    uint64_t value;
    uint32_t lock, owner, process;
    uint32_t share, whole; /* of a CALL; READ, WRITE: share is 1 if the hold is
                              shared */
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
    int64_t wake_ns; /* limit of WAKE, usually 2 s */
    int64_t grace_ns; /* added to every due time, for example because the test
                         delays round trips */
    uint32_t turns;   /* hand-overs that one grant allows */
    bool lossy;       /* the server may forget holds: skip CLAIM */
    bool unhurried;   /* waits are not judged: skip BOUND and WAKE */
    bool mingled;     /* tokens of shared holds have no order */
    bool stop_keeps;  /* holds of a stopped process last (shm) */
};

struct history_verdict {
    const char *check; /* name such as "CLAIM", or NULL if all is well */
    size_t index;      /* index of the offending event */
    char text[200];
};

void history_init(struct history *);
void history_fini(struct history *);
/* Adds a copy of the event. Ends the program if memory is exhausted. */
void history_add(struct history *, const struct history_event *);
void history_clear(struct history *);
/* Sorts by time; events of the same time keep their order. */
void history_sort(struct history *);

/* Each checker returns whether the sorted history keeps its invariant. If it
 * does not, the checker fills in the verdict. */
typedef bool history_check_fn(const struct history *,
                              const struct history_rules *,
                              struct history_verdict *);
history_check_fn history_check_me, history_check_claim, history_check_tok,
    history_check_waits /* BOUND and WAKE */, history_check_ret,
    history_check_leak, history_check_cap, history_check_turn;

/* Runs all checkers; stops at the first that fails. */
history_check_fn history_check;

/* Formats the event as one readable line. */
void history_print(const struct history_event *, char *buf, size_t len);

#endif
