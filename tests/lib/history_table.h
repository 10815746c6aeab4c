/*
 * What the checkers share: the state of each owner on each lock at one point in
 * the history. Private to tests/lib/history*.c.
 */
#ifndef HISTORY_TABLE_H
#define HISTORY_TABLE_H

#include "history.h"

#define SECOND 1000000000LL

/* The state of one owner on one lock. */
struct stand {
    int64_t until; /* deadline of the hold */
    int64_t cap;
    int64_t back_by; /* deadline of the pending call, or NEVER */
    uint64_t token;
    uint64_t floor; /* the pending call may not get a lower token */
    uint32_t floor_process;
    uint32_t count;   /* acquires minus releases */
    uint32_t process; /* process of the owner */
    uint32_t share;   /* share of the lock that the hold takes */
    uint32_t wish;    /* share that the pending call wants */
    uint32_t place;   /* index in the lock's list of holders */
    bool pending;     /* an acquire is pending */
};

struct place { /* the state of one lock */
    uint64_t token;
    uint64_t exclusive; /* highest token of an exclusive hold */
    uint64_t value;
    uint64_t writes;
    int64_t free_at, excused, killed;
    uint32_t token_process;
    uint32_t whole;
    uint32_t *holder; /* the owners that hold the lock */
    uint32_t *waiter; /* owners in running processes with a pending call */
    uint32_t holders, waiters;
};

enum presence { PRESENT, STOPPED, DEAD };

struct table {
    struct stand *stand; /* [owner * locks + lock] */
    struct place *place;
    int64_t *resumed; /* by process: time of its last continue */
    uint8_t *away;    /* by process: enum presence */
    uint32_t stopped; /* number of stopped processes */
    uint32_t locks;
    uint32_t *lists;
};

struct table history_table_new(const struct history *);
/* Frees the table. Returns `ok`, so that a checker can end with `return
 * history_table_free()`. */
bool history_table_free(struct table *, bool ok);
/* Updates holds, deadlines and deaths. */
void history_follow(struct table *, const struct history *,
                    const struct history_event *);
/* Fills in the verdict that this check failed at this event; returns false. */
bool history_against(struct history_verdict *, const char *check,
                     const struct history *, size_t index, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

static inline struct stand *stand_of(struct table *t,
                                     const struct history_event *e)
{
    return &t->stand[(size_t)e->owner * t->locks + e->lock];
}

static inline bool claims(const struct stand *s, int64_t at)
{
    return s->count && s->until > at;
}

static inline struct stand *stand_at(const struct table *t, uint32_t owner,
                                     uint32_t lock)
{
    return &t->stand[(size_t)owner * t->locks + lock];
}

/* Returns whether a hold of this share is exclusive. Permits of a semaphore
 * with more than one permit are shared holds, even if one owner has all of
 * them; therefore their tokens need not rise. */
static inline bool is_exclusive(const struct table *t, uint32_t lock,
                                uint32_t share)
{
    uint32_t whole = t->place[lock].whole;

    return share == whole && (whole == 1 || whole == HISTORY_MANY);
}

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
