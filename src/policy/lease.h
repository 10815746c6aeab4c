/*
 * The lease of a line (core/line.h): what one client has at the server under
 * one name (nothing, an attempt, a place in the queue, or a hold), until when a
 * hold may be used (deadline), when its next renewal is due (renew_at), and
 * what to send now (hf__lease_next). Pure: no clock, no lock, no I/O. The
 * caller reports what happened, with the time.
 *
 *            want                     answered GRANTED
 *     IDLE --------> ATTEMPTING --------------------------> HELD
 *      ^               |  ^                                   |
 *      |      QUEUED   v  |  bell, poll_at, answer lost       |
 *      |             WAITING                                  |
 *      +---- drop (abandon) ----+----------- drop (release) --+
 *
 * Letting go is a second, independent request (let_go), because the next
 * question may be sent before the let_go is answered. Rules:
 * - The time of a hold counts from the moment its attempt was *sent*, and is
 *   shortened by a margin.
 * - A grant that arrives after its own lease has ended is dropped.
 * - A lost answer changes nothing: the same question is sent again under the
 *   same hold id, so the server finds what the first request has done. A lost
 *   answer does not count as an answer: a server whose answers are all lost is
 *   silent.
 * - A hold id is never used again after it was dropped.
 * - While a let_go is unsure (its answer was lost, or the server refused it),
 *   no new question is sent. A drop waits for a let_go that is under way.
 *   Therefore there is never more than one let_go at a time.
 * - A refusal is an answer. If the server did nothing for a refused attempt,
 *   and cannot know its hold id from an earlier attempt, nothing is left to let
 *   go.
 * - A refused let_go is sent again after a pause, which grows with each
 *   refusal, or at once when a waiter arrives. If the server refuses it again,
 *   that waiter gets the refusal.
 */
#ifndef HF_LEASE_H
#define HF_LEASE_H

#include "backends/backend.h"
#include "policy/verify.h"

enum hf__lease_state { HF__IDLE, HF__ATTEMPTING, HF__WAITING, HF__HELD };

enum hf__todo {
    HF__TODO_NOTHING = 0,
    HF__TODO_ATTEMPT = 1,
    HF__TODO_LET_GO = 2
};

/* ATTEMPTING: what has happened since the question was sent. */
enum hf__question {
    HF__QUESTION_SENT,
    HF__QUESTION_RANG, /* the bell rang; an answer that is read later may be
                          older than the change that the bell reports */
    HF__QUESTION_LOST, /* its answer was lost: the same question is sent
                          again */
};

/* What the server knows of the current hold id. The value only grows, with one
 * exception: a waiter that arrives after all others have given up sets CURRENT
 * back to QUEUED. */
enum hf__known {
    HF__KNOWN_NOT,     /* the server has done nothing for this hold id */
    HF__KNOWN_PERHAPS, /* an answer was lost, or a refusal left it open whether
                          the server did anything */
    HF__KNOWN_QUEUED,  /* the server has queued the attempt */
    HF__KNOWN_CURRENT, /* queued, and since that answer the question has always
                          had a waiter */
};

/* The state of the let_go, which may be under way at the same time as the next
 * question. */
enum hf__let_go {
    HF__LET_GO_NONE,
    HF__LET_GO_SENT,
    HF__LET_GO_UNSURE, /* its answer was lost, or the server refused it */
};

/* clang-format off */
/*
 * Which values may occur together. `-': the field has no meaning. `any': every
 * value may occur.
 *
 *   state       drop   question  known            let_go         deadline
 *   IDLE        no     -         any              any            -
 *   ATTEMPTING  maybe  any       any              of another id  -
 *   WAITING     maybe  not LOST  PERHAPS or more  of another id  -
 *   HELD        maybe  -         any              of another id  set, or drop
 *
 * A new question may be asked while a let_go is SENT, but not while it is
 * UNSURE. A SENT let_go may become UNSURE while that question is under way. A
 * let_go that is SENT was never refused, and is not due to be sent again. A
 * drop waits for a let_go that is under way.
 *
 * HELD, not drop: the deadline is the first of until, max_until and kept_until.
 * If all are NEVER and the owner cannot release, the caller may set a deadline.
 * renew_at and kept_until are set where this table says so, and NEVER
 * elsewhere:
 *
 *                        renew_at     kept_until
 *   lease                set          -
 *   lease, fixed         -            -
 *   endless              -            -
 *   endless, fixed       -            -
 *   session              set          -
 *   session, fixed       set          set
 */
/* clang-format on */
struct hf__lease {
    uint64_t hold_id;  /* id of the current question or hold */
    uint64_t token;    /* HELD */
    hf__time deadline; /* HELD: until when the hold may be used, or HF__NEVER */
    hf__time renew_at; /* HELD: when to renew, or HF__NEVER */
    union {
        hf__time until;   /* HELD, and while that hold is being released: when
                             the lease ends, whatever the other limits are */
        hf__time poll_at; /* WAITING: when to repeat the attempt. ATTEMPTING:
                             when the server counts as silent */
    };
    /* While a let_go blocks waiters: the server counts as silent if it has not
     * answered the let_go by then. Otherwise HF__NEVER. */
    hf__time silent_at;
    hf__time max_until;  /* HELD: the limit beyond which no renewal extends the
                            hold, or HF__NEVER */
    hf__time kept_until; /* HELD, session: when a fixed lease ends, or
                            HF__NEVER */
    hf__time gone_at;    /* let_go: by when the server has forgotten the hold,
                            or HF__NEVER */
    hf__time resend_at;  /* let_go: when to send it again after a failure, or
                            HF__NEVER */
    hf__time least; /* the earliest deadline to which the renewals under way may
                       lead */
    uint64_t let_go_id;  /* let_go: the hold id that it ends */
    uint32_t lease_ms;   /* the requested length of the lease */
    uint32_t session_ms; /* session: for how long an answer of the server
                            extends the session */
    uint32_t patience;   /* ATTEMPTING: how many ms the server may be silent */
    uint32_t renew_ms;   /* renewing: the length of the last renewal sent */
    uint16_t renewing : 12; /* HELD: how many renewals are under way */
    uint16_t keeping : 1;   /* one of these renewals keeps the end of a fixed
                               lease */
    uint16_t mixed : 1;     /* the renewals under way differ in length */
    uint16_t refusals : 2;  /* let_go: how often it was refused, at most 3 */
    uint8_t state : 2;      /* enum hf__lease_state */
    uint8_t let_go_op : 2;  /* RELEASE or ABANDON */
    uint8_t let_go : 2;     /* enum hf__let_go */
    uint8_t question : 2;   /* enum hf__question */
    uint8_t known : 2;      /* enum hf__known */
    bool wanted : 1;        /* a waiter wants the lock */
    bool drop : 1;          /* the current hold id must be let go */
    bool fixed : 1;         /* the lease is fixed: the core does not renew it */
    bool endless : 1;       /* the backend's holds need no renewal */
    bool session : 1;       /* holds live as long as the client's session */
    bool refused : 1;       /* HELD: the last renewal was refused */
};

/* Aborts if the lease is in a state that the table above does not allow. */
HF__VERIFIER(lease)

/* Why a hold was lost. */
enum hf__loss_why {
    HF__LOSS_NONE,
    HF__LOSS_TAKEN,   /* the server no longer has the hold */
    HF__LOSS_SESSION, /* the session of the hold has ended */
    HF__LOSS_LEASE,   /* the fixed lease has ended */
    HF__LOSS_MAX,     /* max_hold_ms has passed */
    HF__LOSS_ORPHAN,  /* the owner's thread exited, so the hold was not
                         renewed */
    HF__LOSS_STOPPED, /* this process was not running when a renewal or the
                         deadline was due */
    HF__LOSS_REFUSED, /* the server refused to renew the hold */
    HF__LOSS_SILENT,  /* the server answered no renewal */
    HF__LOSS_RELEASE, /* the release found that the hold was gone */
};

/* Returns whether a renewal failed because the server refused it, and not
 * because the server was silent, the hold was gone, or this process was out of
 * memory. */
static inline bool hf__is_refusal(int result)
{
    return result != HF__DONE && result != HF_EUNKNOWN &&
           result != HF_ENOTOWNER && result != HF_ENOMEM;
}

/* Why and when a hold was lost. The record is kept until the owner has released
 * the lost hold. loss_reason.c uses the time to find the note that explains the
 * loss. */
struct hf__loss {
    uint64_t why : 4;     /* enum hf__loss_why */
    uint64_t refused : 1; /* STOPPED: the last renewal of the hold was
                             refused */
    /* LEASE: the length of the lease in ms. STOPPED: a time at which the
     * process was not running. REFUSED, SILENT: the deadline. Otherwise the
     * time when the loss was found. */
    uint64_t at : 59;
};

static inline struct hf__loss hf__loss(enum hf__loss_why why, hf__time at)
{
    return (struct hf__loss){.why = why & 15u, .at = (uint64_t)at & ~0ull >> 5};
}

static const struct hf__loss hf__no_loss = {.why = HF__LOSS_NONE};

/* Returns how much earlier than the server the client treats a lease as ended.
 * This margin covers clocks that run at different speeds and the time that it
 * takes to read the clock. */
hf__time hf__lease_margin(uint32_t lease_ms);

/* Initializes a lease that is IDLE. `endless` tells whether the backend's holds
 * need no renewal. */
void hf__lease_init(struct hf__lease *, bool endless);

/* Tells the lease whether any waiter wants the lock. */
void hf__lease_want(struct hf__lease *, bool wanted);

/* Ends the current question or hold: hf__lease_next() will return LET_GO. */
void hf__lease_drop(struct hf__lease *);

/*
 * Returns what to send now: ATTEMPT, an attempt under hold_id (for a new
 * question, hold_id is a fresh id from *ids); LET_GO, the request let_go_op for
 * let_go_id; or NOTHING. The caller repeats the call until it returns NOTHING.
 */
enum hf__todo hf__lease_next(struct hf__lease *, hf__time now, uint64_t *ids);

/* Must be called after each ATTEMPT was sent. The server counts as silent if it
 * does not answer within op_timeout. A question that is repeated because its
 * answer was lost keeps the time limit of the first attempt. */
void hf__lease_attempted(struct hf__lease *, hf__time now,
                         uint32_t op_timeout_ms);

/* Lets op_timeout start again now, because a new waiter wants the answer. */
void hf__lease_listen(struct hf__lease *, hf__time now);

/*
 * Handles the answer to an ATTEMPT of req->hold_id. Returns HF__GRANTED,
 * HF__PENDING (nothing to tell the waiters yet), HF__BUSY, or the code with
 * which all waiters fail. A hold that is granted ends max_hold_ms from now at
 * the latest; 0 means no limit.
 */
int hf__lease_answered(struct hf__lease *, const struct hf__req *, hf__time now,
                       int64_t max_hold_ms);

/* Limits the hold to max_hold_ms from now, because it has a new local owner. */
void hf__lease_cap(struct hf__lease *, hf__time now, int64_t max_hold_ms);

/* Makes the lease repeat its attempt, because the backend has called
 * core->bell() for this line. */
void hf__lease_bell(struct hf__lease *, hf__time now);

/* Handles the answer to a LET_GO. Returns whether it has succeeded; if not, it
 * will be sent again. */
bool hf__lease_let_go_answered(struct hf__lease *, int result, hf__time now);

/* Makes a refused let_go due now, because a waiter has arrived. */
void hf__lease_hurry(struct hf__lease *, hf__time now);

/* Must be called before a renewal for lease_ms is sent; lease_ms is 0 if the
 * session keeps a fixed lease and the end of that lease does not change. The
 * server may shorten the lease, and its answer may be lost. Therefore the
 * earlier of the old and the new deadline counts from now on. */
void hf__lease_renewing(struct hf__lease *, uint32_t lease_ms, hf__time now);

/* Returns the lease_ms of a renewal by the library itself. For a fixed lease
 * that the session keeps this is 0, because the end of the lease does not
 * change. */
static inline uint32_t hf__lease_renew_ms(const struct hf__lease *l)
{
    return l->session && l->fixed ? 0 : l->lease_ms;
}

/* Puts off the renewal that is due, because the caller is about to send it. If
 * the caller is stopped before it calls hf__lease_renewing(), the renewal is
 * due again after about a tenth of the lease or session, and another thread
 * sends it. */
void hf__lease_put_off(struct hf__lease *, hf__time now);

/* Forgets the hold, which the server no longer has. */
void hf__lease_gone(struct hf__lease *, hf__time now);

/* Handles the answer to a renewal. lease_ms is 0 if the renewal does not change
 * the end of a fixed lease. If the server no longer has the hold, the lease is
 * IDLE afterwards, and ELOST is returned; otherwise 0. */
int hf__lease_renewed(struct hf__lease *, uint64_t hold_id, int result,
                      hf__time sent_at, uint32_t lease_ms, hf__time now);

/* Returns whether a let_go is under way or will be sent again. */
static inline bool hf__lease_lets_go(const struct hf__lease *l)
{
    return l->let_go != HF__LET_GO_NONE;
}

/* Returns whether the lease is IDLE and no question can be sent before the
 * server has answered a let_go. */
static inline bool hf__lease_stuck(const struct hf__lease *l)
{
    return l->state == HF__IDLE && l->let_go == HF__LET_GO_UNSURE;
}

/* Returns whether no new question can be sent before the server has answered a
 * let_go. Either the lease is stuck, or the current question or hold must also
 * be let go, and has to wait for the answer to that let_go. */
static inline bool hf__lease_blocked(const struct hf__lease *l)
{
    return hf__lease_stuck(l) || (l->drop && hf__lease_lets_go(l));
}

/* Returns whether the server has not answered yet whether the lock is free.
 * Even a try waits for that answer. */
static inline bool hf__lease_unanswered(const struct hf__lease *l)
{
    return l->state == HF__IDLE || l->drop ||
           (l->state != HF__HELD && l->known != HF__KNOWN_CURRENT);
}

/* Moves the hold to another line's lease, which is idle. The hold is renewed as
 * soon as possible. */
void hf__lease_move(struct hf__lease *to, struct hf__lease *from, hf__time now);

/* Returns whether the deadline has passed. The caller then drops the hold. */
static inline bool hf__lease_expired(const struct hf__lease *l, hf__time now)
{
    return l->deadline <= now;
}

/* Returns whether the hold that is being released must have ended at the
 * server. This is wrong only if the server has renewed the hold and the answer
 * was lost. */
static inline bool hf__lease_over(const struct hf__lease *l, hf__time now)
{
    return l->state == HF__IDLE && hf__lease_lets_go(l) &&
           l->let_go_op == HF__RELEASE && l->let_go_id == l->hold_id &&
           l->until <= now;
}

/* Returns why the hold has expired. */
struct hf__loss hf__lease_why(const struct hf__lease *, hf__time now);

/* Returns the next time at which hf__lease_next() or the caller has something
 * to do even if no answer comes; HF__NEVER if there is none. */
hf__time hf__lease_timer(const struct hf__lease *);

#endif
