/*
 * The local queue of a line. The threads of this process queue here, count
 * their reentry and hand the lock over to each other; one attempt at a time
 * goes to the backend for all of them. Pure: no clock, no lock, no I/O, no
 * allocation. The caller holds the line's mutex, passes the time and a function
 * that wakes waiters, and afterwards sends what hf__queue_next() returns.
 *
 * The *remote hold* (lease) belongs to the process; the *owner* is a thread or
 * a handle. The two are separate. A hold may have no owner for a moment: local
 * waiters may take it while turns are left. An owner may have lost its hold:
 * the owner is then in `lost` (in a shared queue, in `readers`) until it has
 * released that hold.
 *
 * There are three kinds of queue. An *exclusive* queue has one owner at a time:
 * a mutex, the writers of a read-write lock, one hold of a semaphore. A
 * *shared* queue has readers: all that wait when the hold is granted share it,
 * and others may join for a short time. Therefore a process with many readers
 * sends few attempts, and a writer elsewhere does not wait for long. A *latch*
 * has waiters only: they pass together, and nothing is held afterwards. The
 * latch may be set again, so a new request is sent for a waiter that arrives
 * after the last request was sent.
 */
#ifndef HF_LOCAL_QUEUE_H
#define HF_LOCAL_QUEUE_H

#include "policy/lease.h"

/* How many owners with a lost hold are remembered until they have released it.
 * If a third owner loses its hold, the oldest record is dropped: its owner gets
 * ENOTOWNER instead of ELOST from a release or a check, and may acquire again
 * without a release. Even then no check tells it that it holds the lock. */
#define HF__LOST_MAX 2

/* The largest handoff: as many hand-overs as hf__queue.turns can count. */
#define HF__HANDOFF_MAX ((1u << 26) - 1)

/* How long readers may join a read hold. */
#define HF__JOIN (20 * HF__MS)

/* The value of hf__queue.owner while a shared queue has readers that hold the
 * lock. */
#define HF__READERS UINT64_MAX

enum hf__waiter_state { HF__W_WAITING, HF__W_FINISHED };

/* A reader that shares a hold, or has lost it and not released it yet. The
 * memory belongs to the caller: the entry comes with the waiter and is given
 * back through queue.left. */
struct hf__reader {
    struct hf__reader *next;
    struct hf__thread *thread; /* see hf__waiter.thread */
    uint64_t owner;
    struct hf__loss loss; /* why the hold was lost, if it was */
    uint32_t count;       /* how many times it has acquired */
    bool lost : 1;
    bool orphaned : 1; /* for the caller: the thread has exited, and that was
                          reported */
};

/* A request for the lock by one owner: on the stack of the waiting thread, or
 * in the handle for an asynchronous acquire. The memory belongs to the caller;
 * the queue only links it. */
struct hf__waiter {
    struct hf__waiter *next, *prev;
    struct hf__sleeper *sleeper; /* for the caller: what to wake */
    struct hf__thread *thread;   /* the thread that will own the hold, or NULL
                                    if the handle will */
    hf_lock *handle;             /* the handle that acquires */
    struct hf__reader *reader;   /* shared: the entry for the reader that this
                                    waiter becomes once it is granted */
    hf_error *err; /* for the caller: receives the error message, or NULL */
    uint64_t owner;
    uint32_t lease_ms;   /* the lease to request: a fixed one, or the TTL */
    uint32_t handoff;    /* how many local owners its grant allows; 0 means 1 */
    uint32_t permits;    /* the permits of a semaphore; otherwise 1 */
    int64_t max_hold_ms; /* the limit of the hold, or 0 for none */
    int16_t result;      /* FINISHED: HF__GRANTED or an error code */
    uint8_t state;
    bool is_try : 1;
    bool fixed : 1;
    bool reentrant : 1;
    bool is_async : 1;
    bool err_set : 1; /* for the caller: err contains the message */
    bool roused : 1;  /* it must look again: the hold is free for a local
                         owner */
    bool known : 1;   /* latch: it was waiting when the server said "not yet" */
    /* A bit for each hf__todo except NOTHING. It is set if a request of that
     * kind was sent after this waiter had arrived, so a refusal of that request
     * applies to this waiter, too. */
    uint8_t covered : 2;
};

struct hf__queue {
    struct hf__lease lease;
    struct hf__waiter *head, *tail;
    uint64_t owner; /* the number of the owner, or 0 for none */
    uint64_t ids;   /* the last hold id used; each line counts from its own base
                       (name_table.c) */
    union {
        struct __attribute__((packed, aligned(4))) hf__lost {
            uint64_t owner;
            struct hf__loss loss; /* loss and owner stay after the release,
                                     until another loss is recorded here */
            uint32_t count;
        } lost[HF__LOST_MAX];
        struct { /* shared */
            struct hf__reader *readers;
            struct hf__reader *left; /* unused entries, which the caller takes
                                        back */
            hf__time join_until;     /* until when readers may join; NEVER after
                                        hf__queue_quick_share(), until another
                                        reader joins */
            struct hf__loss loss;    /* the latest loss */
        };
    };
    uint32_t count; /* acquires of the owner; shared: the number of readers */
    uint32_t turns : 26; /* local hand-overs left on this hold */
    bool fair : 1;
    bool queueing : 1; /* the server is allowed to queue the question */
    bool waking : 1;   /* unfair: a roused waiter has not looked yet */
    bool was_lost : 1; /* a hold was lost; the caller reports and clears this */
    bool shared : 1;
    bool latch : 1;
};

/* Aborts unless this is true of the queue and its lease:
 * - The lease is wanted if and only if there are waiters. Without waiters any
 *   question, and any hold without an owner, is being let go.
 * - An owner has a hold and has acquired it at least once. In a shared queue
 *   the count is the number of readers that have not lost their hold.
 * - Only the first waiter is roused. */
HF__VERIFIER(queue)

/* Called by the queue for each waiter that has finished or was roused, so that
 * the caller can wake it. */
typedef void hf__wake_fn(struct hf__queue *, struct hf__waiter *);

/* Initializes a queue with no hold and no waiters. Hold ids are counted from
 * `ids` on. */
void hf__queue_init(struct hf__queue *, bool fair, bool endless, uint64_t ids);

/*
 * Lets the waiter acquire. Returns HF__GRANTED (reentry, a free local turn, or
 * a read hold that the waiter joins), HF__PENDING (the waiter is queued), EBUSY
 * (a try), EDEADLK or ELOST.
 */
int hf__queue_enter(struct hf__queue *, struct hf__waiter *, hf__time now);

/* Lets a roused waiter take a free turn. Returns whether the waiter has taken
 * the turn and is finished. */
bool hf__queue_claim(struct hf__queue *, struct hf__waiter *, hf__time now);

/* Removes the waiter and gives it that code as its result, unless it has
 * finished already. Returns the waiter's result in either case. */
int hf__queue_leave(struct hf__queue *, struct hf__waiter *, int code,
                    hf__wake_fn *);

/* Fails all waiters with that code. */
void hf__queue_fail(struct hf__queue *, int code, hf__wake_fn *);

/*
 * Undoes one acquire. Returns 0 if it was the last one and the hold is being
 * let go. Returns HF__PENDING if the hold stays: this owner has acquired more
 * than once, there are other local owners, or a local waiter may take the hold.
 * Otherwise returns ELOST or ENOTOWNER.
 */
int hf__queue_release(struct hf__queue *, uint64_t owner, hf__time now,
                      hf__wake_fn *);

/* Returns how many times the owner has acquired what it holds. */
uint32_t hf__queue_count(const struct hf__queue *, uint64_t owner);

/* Returns 0 if this owner holds the lock, else ELOST or ENOTOWNER. */
int hf__queue_check(struct hf__queue *, uint64_t owner, hf__time now);

/* Takes the hold from its owner. If `gone`, the server no longer has the hold;
 * otherwise the hold must be let go. The reason of the loss is the one that is
 * passed, unless the deadline has passed: then the end of the lease is the
 * reason. */
void hf__queue_lose(struct hf__queue *, bool gone, enum hf__loss_why,
                    hf__time now);

/* Takes the hold of that id from its owner, because the server no longer has
 * it. Does nothing if the line no longer has that hold. */
void hf__queue_gone(struct hf__queue *, uint64_t hold_id, enum hf__loss_why,
                    hf__time now);

/* Returns why that owner's hold was lost. An exclusive queue returns the reason
 * even after the owner has released the hold, or NONE if it has no record of
 * the loss. A shared queue returns the reason only until the release; after
 * that, and for any other owner, it returns the latest loss. */
struct hf__loss hf__queue_loss(const struct hf__queue *, uint64_t owner);
/* Returns the latest loss. */
struct hf__loss hf__queue_last_loss(const struct hf__queue *);

/* Returns what to send now. For an ATTEMPT, sets *first to the first waiter,
 * whose lease is requested, and *may_queue to whether any waiter wanted to be
 * queued at the server when the question was first sent. */
enum hf__todo hf__queue_next(struct hf__queue *, hf__time now,
                             struct hf__waiter **first, bool *may_queue);

/* Handle the answer to an ATTEMPT, and the result of a renewal that was sent at
 * sent_at for lease_ms. */
void hf__queue_answered(struct hf__queue *, const struct hf__req *,
                        hf__time now, hf__wake_fn *);
void hf__queue_renewed(struct hf__queue *, uint64_t hold_id, int result,
                       hf__time sent_at, uint32_t lease_ms, hf__time now);

/* Handles the answer to a LET_GO; returns what hf__lease_let_go_answered()
 * returns. Waiters get a refusal even while their own question is under way,
 * because that question may wait for the very hold that was not let go. */
bool hf__queue_let_go_answered(struct hf__queue *, int result, hf__time now,
                               hf__wake_fn *);

/* Returns whether the server has not answered the waiters for longer than
 * op_timeout. */
static inline bool hf__queue_silent(const struct hf__queue *g, hf__time now)
{
    const struct hf__lease *l = &g->lease;

    return now >= l->silent_at ||
           (l->state == HF__ATTEMPTING && !l->drop && now >= l->poll_at);
}

/* Takes the hold from its owner if the deadline has passed, and fails all
 * waiters if the server has become silent. */
void hf__queue_tick(struct hf__queue *, hf__time now, hf__wake_fn *);

/* Returns whether a renewal is due, or will be due so soon that it can be sent
 * along with others. */
bool hf__queue_renewable(const struct hf__queue *, hf__time now);

/* Returns whether nothing is held, waited for or under way. */
bool hf__queue_idle(const struct hf__queue *);

/* Returns whether no owner has a lost hold to release. A shared queue must have
 * no readers at all. */
static inline bool hf__queue_owes_nothing(const struct hf__queue *g)
{
    return g->shared ? !g->readers : !g->lost[0].count && !g->lost[1].count;
}

/* Returns whether the queue is idle and no owner has anything to release, so
 * that any new waiter may use it. */
bool hf__queue_unused(const struct hf__queue *);

/* Returns whether the queue will be unused once its let_go has ended. */
bool hf__queue_leaving(const struct hf__queue *);

/* Returns whether hf__queue_leaving() is true and the let_go is unsure. */
bool hf__queue_stuck(const struct hf__queue *);

/* Returns whether that owner has a hold, including a lost one that it has not
 * released yet. */
bool hf__queue_knows(const struct hf__queue *, uint64_t owner);

/* Discards the record of the hold that this owner has lost, because the owner
 * will never release it. Returns whether there was one. */
bool hf__queue_forget(struct hf__queue *, uint64_t owner);
void hf__queue_forget_all(struct hf__queue *); /* the records of all owners */

/* Returns whether w would be granted at once, or together with the waiters in
 * the queue. */
bool hf__queue_joinable(const struct hf__queue *, const struct hf__waiter *,
                        hf__time now);

/* Turns the owner's write hold of `from` into its read hold of `to`, which is
 * unused; r becomes the reader's entry. The caller has checked that the owner
 * still holds the lock. */
void hf__queue_downgrade(struct hf__queue *from, struct hf__queue *to,
                         struct hf__reader *r, hf__time now);

/*
 * The short way, for backends that answer at once and whose holds need no
 * renewal. If no other owner of this process uses the lock, one attempt and its
 * answer are enough, and the work of the queue would cost more than both.
 * Returns whether w may go this way. The caller then sends an attempt under a
 * fresh hold id, without queueing, and reports a grant.
 */
static inline bool hf__queue_quiet(const struct hf__queue *g,
                                   const struct hf__waiter *w)
{
    return g->lease.state == HF__IDLE && !hf__lease_lets_go(&g->lease) &&
           !g->head && !g->owner && hf__queue_owes_nothing(g) && !w->fixed &&
           !w->max_hold_ms && g->lease.endless;
}

/* Returns how many more owners may have a new hold after w. */
static inline uint32_t hf__queue_turns(const struct hf__waiter *w)
{
    return w->handoff ? w->handoff - 1 : 0;
}

static inline void hf__queue_quick_grant(struct hf__queue *g,
                                         const struct hf__waiter *w,
                                         uint64_t hold_id, uint64_t token)
{
    struct hf__lease *l = &g->lease;

    l->state = HF__HELD;
    l->hold_id = hold_id;
    l->token = token;
    l->deadline = l->until = l->renew_at = l->max_until = HF__NEVER;
    l->lease_ms = w->lease_ms;
    l->fixed = l->drop = false;
    l->renewing = 0;
    g->owner = w->owner;
    g->count = 1;
    g->turns = hf__queue_turns(w) & HF__HANDOFF_MAX;
}

/* Does what hf__queue_quick_grant() does, for a shared queue; w has an entry.
 * No clock is read, so the time to join starts when the first other reader
 * arrives. */
static inline void hf__queue_quick_share(struct hf__queue *g,
                                         struct hf__waiter *w, uint64_t hold_id,
                                         uint64_t token)
{
    hf__ends_verified(queue, g);

    hf__queue_quick_grant(g, w, hold_id, token);
    *w->reader =
        (struct hf__reader){.thread = w->thread, .owner = w->owner, .count = 1};
    g->readers = w->reader;
    w->reader = NULL;
    g->owner = HF__READERS;
    g->join_until = HF__NEVER;
}

/* If that owner is the only reader and has acquired once, gives back its entry
 * and returns true. (A reader that has lost its hold and not released it yet
 * counts as a reader.) */
bool hf__queue_quick_unshare(struct hf__queue *, uint64_t owner);

/* Releases the short way (see hf__queue_quiet). Returns true if the caller must
 * now let go of lease.hold_id, or false if nothing has changed. */
static inline bool hf__queue_quick_release(struct hf__queue *g, uint64_t owner)
{
    hf__ends_verified(queue, g);

    if (g->count != 1 || g->head || g->lease.state != HF__HELD ||
        g->lease.deadline != HF__NEVER || g->lease.drop ||
        hf__lease_lets_go(&g->lease))
        return false;
    if (__builtin_expect(g->owner != owner, 0) &&
        !hf__queue_quick_unshare(g, owner))
        return false;
    g->owner = 0;
    g->count = 0;
    g->lease.state = HF__IDLE;
    return true;
}

#endif
