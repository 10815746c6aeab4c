/*
 * The local queue of a line: here the threads of this process queue, count
 * their reentry and hand over to each other, and one attempt at a time goes to
 * the backend for all of them. Pure: no clock, no lock, no I/O, no allocation;
 * the caller holds the queue's mutex, passes the time, and afterwards does what
 * hf__queue_next() says and wakes whom the queue marked.
 *
 * The *remote hold* (lease) is the process's, the *owner* a thread's or a
 * handle's. They are apart: a hold may be without an owner for a moment (free
 * for the taking by local ones, while turns are left), and an owner may have
 * lost its hold (then it is in `lost` until it has released what it had).
 *
 * Three characters. An *exclusive* queue has one owner at a time: a mutex, the
 * writers of a read-write lock, one hold of a semaphore. A *shared* one has
 * readers: whoever waits when the hold is granted has it, and others may join
 * for a short time, so that a process with many readers asks seldom and a
 * writer elsewhere is not kept waiting for long. A *latch* has waiters only:
 * they are let through together, and nothing is held afterwards. It may be set
 * again: who has come since the server was last asked asks anew then.
 */
#ifndef HF_LOCAL_QUEUE_H
#define HF_LOCAL_QUEUE_H

#include "policy/lease.h"

/* How many owners that have lost their hold are remembered until they have
 * released it. If a third loses its hold meanwhile, the first of them is
 * forgotten: it hears ENOTOWNER where it would have heard ELOST, from a release
 * or a check, and may acquire anew without having released. It never hears that
 * it holds. */
#define HF__LOST_MAX 2

/* So many fit beside the flags of a queue. */
#define HF__HANDOFF_MAX ((1u << 26) - 1)

/* For how long a read hold may be joined. */
#define HF__JOIN (20 * HF__MS)

/* The owner of a shared queue that is held. */
#define HF__READERS UINT64_MAX

enum hf__waiter_state { HF__W_WAITING, HF__W_FINISHED };

/* One of those who share a hold, or have lost it and not released it yet. The
 * caller's memory: comes with the waiter, goes back through queue.left. */
struct hf__reader {
    struct hf__reader *next;
    struct hf__thread *thread; /* as in the waiter */
    uint64_t owner;
    struct hf__loss loss; /* if it is lost */
    uint32_t count;       /* reentry */
    bool lost : 1;
    bool orphaned : 1; /* the caller's: its thread has exited; reported */
};

/* A wish for the lock: on the stack of the thread that waits, or in the handle
 * for an asynchronous acquire. The caller's; the queue links it. */
struct hf__waiter {
    struct hf__waiter *next, *prev;
    struct hf__sleeper *sleeper; /* the caller's: whom to wake, */
    struct hf__thread *thread;   /* who will own it; NULL: the handle */
    hf_lock *handle;             /* through which it wants it */
    struct hf__reader *reader;   /* shared: its entry, if it is granted */
    hf_error *err;               /* the caller's: where a text goes; or NULL */
    uint64_t owner;
    uint32_t lease_ms;   /* to ask for: fixed, or the TTL */
    uint32_t handoff;    /* local owners that its grant allows; 0 is 1 */
    uint32_t permits;    /* of a semaphore; else 1 */
    int64_t max_hold_ms; /* 0: none */
    int16_t result;      /* FINISHED: HF__GRANTED or a code */
    uint8_t state;
    bool is_try : 1;
    bool fixed : 1;
    bool reentrant : 1;
    bool is_async : 1;
    bool err_set : 1;    /* the caller's: err has the text */
    bool roused : 1;     /* look again: a turn is free, or nobody parks */
    bool known : 1;      /* latch: it waited when the server said "not yet" */
    uint8_t covered : 2; /* a bit for each hf__todo: the last such request was
                            sent since it came, and its refusal is for this
                            waiter, too */
};

struct hf__queue {
    struct hf__lease lease;
    struct hf__waiter *head, *tail;
    uint64_t owner; /* 0: none */
    uint64_t ids;   /* the last hold id; starts at a base of its own */
    union {
        struct __attribute__((packed, aligned(4))) hf__lost {
            uint64_t owner;
            struct hf__loss loss; /* this and the owner stay when it is
                                     released, until another takes the place */
            uint32_t count;
        } lost[HF__LOST_MAX];
        struct { /* shared */
            struct hf__reader *readers;
            struct hf__reader *left; /* done with: for the caller to take */
            hf__time join_until;     /* NEVER: nobody has joined yet */
            struct hf__loss loss;    /* that was found last */
        };
    };
    uint32_t count;      /* reentry of the owner; shared: how many readers */
    uint32_t turns : 26; /* local hand-overs left on this hold */
    bool fair : 1;
    bool queueing : 1; /* the question was asked with leave to queue */
    bool waking : 1;   /* unfair: a roused waiter is on its way */
    bool was_lost : 1; /* for the caller to report and clear */
    bool shared : 1;
    bool latch : 1;
};

/* Aborts unless this is true of the queue and of its lease:
 * - The lease is wanted by those who wait. Without them no question goes on,
 *   and a hold that nobody owns is on its way out.
 * - An owner has a hold, and acquired it at least once. Of a shared queue the
 *   count is that of the readers that have not lost it.
 * - Whoever is roused is the first. */
HF__VERIFIER(queue)

/* Called by the queue for each waiter that finished or was roused, so that the
 * caller can wake it. Supplied by the owner of the queue. */
typedef void hf__wake_fn(struct hf__queue *, struct hf__waiter *);

void hf__queue_init(struct hf__queue *, bool fair, bool endless, uint64_t ids);

/*
 * HF__GRANTED: reentry or a free local turn. HF__PENDING: the waiter is
 * queued. Codes: EBUSY (a try), EDEADLK, ELOST.
 */
int hf__queue_enter(struct hf__queue *, struct hf__waiter *, hf__time now);

/* A roused waiter looks: true if it took a free turn and is finished. */
bool hf__queue_claim(struct hf__queue *, struct hf__waiter *, hf__time now);

/* Takes the waiter out, with that code, unless it is finished already; returns
 * its result in any case. */
int hf__queue_leave(struct hf__queue *, struct hf__waiter *, int code,
                    hf__wake_fn *);

/* Fails everybody who waits. */
void hf__queue_fail(struct hf__queue *, int code, hf__wake_fn *);

/*
 * One acquire less. 0: the last one, and the hold is on its way out;
 * HF__PENDING: still held, by count, or handed to a local one; ELOST,
 * ENOTOWNER.
 */
int hf__queue_release(struct hf__queue *, uint64_t owner, hf__time now,
                      hf__wake_fn *);

/* How often the owner has acquired what it holds. */
uint32_t hf__queue_count(const struct hf__queue *, uint64_t owner);

/* Does this owner hold it? 0, ELOST, ENOTOWNER. */
int hf__queue_check(struct hf__queue *, uint64_t owner, hf__time now);

/* Takes the hold away from its owner; gone: the server has taken it, else it
 * is to be let go. If its deadline has passed, that is why it was lost. */
void hf__queue_lose(struct hf__queue *, bool gone, enum hf__loss_why,
                    hf__time now);

/* The hold of that id, if it is ours still, is gone at the server. */
void hf__queue_gone(struct hf__queue *, uint64_t hold_id, enum hf__loss_why,
                    hf__time now);

/* Why that owner's hold was lost, after ELOST; also after the last release of
 * it. NONE: it was not. */
struct hf__loss hf__queue_loss(const struct hf__queue *, uint64_t owner);
/* The latest loss. */
struct hf__loss hf__queue_last_loss(const struct hf__queue *);

/* What to send now. For an ATTEMPT lease_ms, fixed and may_queue are those of
 * the waiter it is for: *first. */
enum hf__todo hf__queue_next(struct hf__queue *, hf__time now,
                             struct hf__waiter **first, bool *may_queue);

void hf__queue_answered(struct hf__queue *, const struct hf__req *,
                        hf__time now, hf__wake_fn *);
void hf__queue_renewed(struct hf__queue *, uint64_t hold_id, int result,
                       hf__time sent_at, uint32_t lease_ms, hf__time now);

/* The answer to a LET_GO: hf__lease_let_go_answered(). Waiters hear a refusal
 * even if their own question is under way: it may stand behind what is not let
 * go. */
bool hf__queue_let_go_answered(struct hf__queue *, int result, hf__time now,
                               hf__wake_fn *);

/* The server owes those who wait an answer for longer than op_timeout. */
static inline bool hf__queue_silent(const struct hf__queue *g, hf__time now)
{
    const struct hf__lease *l = &g->lease;

    return now >= l->silent_at ||
           (l->state == HF__ATTEMPTING && !l->drop && now >= l->poll_at);
}

/* The clock has moved on: losses, silence, looks. */
void hf__queue_tick(struct hf__queue *, hf__time now, hf__wake_fn *);

/* Is it to be renewed, with a little slack so that many go together? */
bool hf__queue_renewable(const struct hf__queue *, hf__time now);

/* Nothing is held, waited for or under way. */
bool hf__queue_idle(const struct hf__queue *);

/* Nobody has lost what it has not released yet; nor, shared, holds it. */
static inline bool hf__queue_owes_nothing(const struct hf__queue *g)
{
    return g->shared ? !g->readers : !g->lost[0].count && !g->lost[1].count;
}

/* And nobody has something to release: fit for any new waiter. */
bool hf__queue_unused(const struct hf__queue *);

/* It will be, when it is let go. */
bool hf__queue_leaving(const struct hf__queue *);

/* It would be, but for a let_go that is unsure. */
bool hf__queue_stuck(const struct hf__queue *);

/* Does that owner hold it, or has lost it and not released it yet? */
bool hf__queue_knows(const struct hf__queue *, uint64_t owner);

/* That owner will not release what it has lost. True: it had. */
bool hf__queue_forget(struct hf__queue *, uint64_t owner);
void hf__queue_forget_all(struct hf__queue *); /* nobody will */

/* Would w be granted, or be granted with those who wait already? */
bool hf__queue_joinable(const struct hf__queue *, const struct hf__waiter *,
                        hf__time now);

/* The owner's write hold of `from` becomes its read hold of `to`, which is
 * unused; r is for its entry. The owner holds it: the caller has checked. */
void hf__queue_downgrade(struct hf__queue *from, struct hf__queue *to,
                         struct hf__reader *r, hf__time now);

/*
 * The short way, for backends that answer at once and whose holds need no
 * renewal: when nobody else of this process is about, one question and one
 * answer are all there is, and going through the queue would cost more than
 * both. quiet: w may go it. The caller asks under a fresh hold id, without
 * queueing, and reports a grant.
 */
static inline bool hf__queue_quiet(const struct hf__queue *g,
                                   const struct hf__waiter *w)
{
    return g->lease.state == HF__IDLE && !hf__lease_lets_go(&g->lease) &&
           !g->head && !g->owner && hf__queue_owes_nothing(g) && !w->fixed &&
           !w->max_hold_ms && g->lease.endless;
}

/* How many turns others may take on a new hold: the first is w's own. */
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

/* A shared one: w has an entry. No clock is read, so the time for others to
 * join begins when the first of them comes. */
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

/* Is that owner, and nobody else, one who reads, and once? Its entry goes back
 * then. (Not those who have lost it.) */
bool hf__queue_quick_unshare(struct hf__queue *, uint64_t owner);

/* The same for a release: the caller lets go of lease.hold_id. */
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
