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
 * question may follow it without waiting for its answer. Rules:
 * - A hold counts from the moment its request was *sent*, less a margin.
 * - A grant that arrives after its own lease has ended is dropped.
 * - A lost answer changes nothing: the same question is asked again under the
 *   same hold id, so it finds what the first one did. A lost answer does not
 *   count as an answer: a server whose answers are all lost is silent.
 * - A hold id is never used again after it was dropped.
 * - Nothing is asked while a let_go is unsure (its answer was lost, or the
 *   server refused it), so that one let_go at a time is enough.
 * - A refusal is an answer. If the server did nothing for the question, and
 *   cannot know its hold id from an earlier one, nothing is left to let go.
 *   A let_go that was refused is sent again after a pause, which grows, and at
 *   once when a waiter arrives; that waiter gets the next refusal.
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
    HF__QUESTION_RANG, /* the bell rang: an answer still to come may be older */
    HF__QUESTION_LOST, /* its answer was lost: the same question is asked again
                        */
};

/* What the server knows of the present hold id. It only grows, except for its
 * last step: a waiter that arrives after all others have given up sets CURRENT
 * back to QUEUED. */
enum hf__known {
    HF__KNOWN_NOT,     /* the server did nothing for it */
    HF__KNOWN_PERHAPS, /* an answer was lost, or a refusal came late */
    HF__KNOWN_QUEUED,  /* the server has queued it */
    HF__KNOWN_CURRENT, /* queued, and every waiter arrived before the answer
                          that said so */
};

/* The let_go, which may be under way beside the next question. */
enum hf__let_go {
    HF__LET_GO_NONE,
    HF__LET_GO_SENT,
    HF__LET_GO_UNSURE, /* its answer was lost, or it was refused once */
};

/* clang-format off */
/*
 * Which values may occur together. `any': the value has no meaning.
 *
 *   state       drop   question  known            let_go          deadline
 *   IDLE        no     any       any              any             any
 *   ATTEMPTING  maybe  a state   a state          NONE or SENT,   any
 *                                                 then UNSURE
 *   WAITING     maybe  not LOST  PERHAPS or more  as above        any
 *   HELD        maybe  any       any              of another id   set, or drop
 *
 * A new question is asked beside a let_go that is SENT, but not beside one that
 * is UNSURE; a SENT one may become UNSURE meanwhile. A let_go that is SENT was
 * never refused, and is not to be sent again. A drop waits for a let_go that is
 * under way.
 *
 * HELD, not drop: the deadline is the first of until, max_until and kept_until.
 * If all are NEVER, the caller may set one for an owner that cannot release.
 * renew_at and kept_until are set where this table says so, and NEVER elsewhere:
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
    uint64_t hold_id;  /* of the present question or hold */
    uint64_t token;    /* HELD */
    hf__time deadline; /* HELD: the hold may be used until then; HF__NEVER */
    hf__time renew_at; /* HELD: when to renew; HF__NEVER: not at all */
    union {
        hf__time until;   /* HELD, and then during the let_go: when the lease
                             ends, whatever the other limits are */
        hf__time poll_at; /* WAITING: ask again then. ATTEMPTING: the server is
                             silent if it has not answered by then */
    };
    /* while a let_go blocks waiters: the server is silent if it has not
     * answered the let_go by then; HF__NEVER */
    hf__time silent_at;
    hf__time max_until;  /* HELD: no renewal extends the hold beyond this;
                            HF__NEVER */
    hf__time kept_until; /* HELD, session: a fixed lease ends; HF__NEVER */
    hf__time gone_at;    /* let_go: the server has forgotten the hold by then */
    hf__time resend_at;  /* let_go: it failed, send it again then; HF__NEVER */
    hf__time least; /* the earliest deadline to which the renewals under way may
                       lead */
    uint64_t let_go_id;  /* let_go: the hold id that it ends */
    uint32_t lease_ms;   /* as asked for */
    uint32_t session_ms; /* session: how long the server's answer extends it */
    uint32_t patience;   /* ATTEMPTING: how many ms the server may be silent */
    uint32_t renew_ms;   /* renewing: the length of the last renewal sent */
    uint16_t renewing : 12; /* HELD: how many renewals are under way */
    uint16_t keeping : 1;   /* one of these renewals keeps a fixed lease */
    uint16_t mixed : 1;     /* the renewals under way differ in length */
    uint16_t refusals : 2;  /* let_go: how often it was refused, at most 3 */
    uint8_t state : 2;      /* enum hf__lease_state */
    uint8_t let_go_op : 2;  /* RELEASE or ABANDON */
    uint8_t let_go : 2;     /* enum hf__let_go */
    uint8_t question : 2;   /* enum hf__question */
    uint8_t known : 2;      /* enum hf__known */
    bool wanted : 1;        /* a waiter wants it */
    bool drop : 1;          /* the present hold id is to be let go */
    bool fixed : 1;         /* the lease is fixed: the core does not renew it */
    bool endless : 1;       /* the backend's holds need no renewal */
    bool session : 1;       /* holds live as long as the client's session */
    bool refused : 1;       /* HELD: the last renewal was refused */
};

/* Aborts unless the lease is in a state of the table above. */
HF__VERIFIER(lease)

/* Why a hold was lost. */
enum hf__loss_why {
    HF__LOSS_NONE,
    HF__LOSS_TAKEN,   /* the server no longer has it */
    HF__LOSS_SESSION, /* its session has ended */
    HF__LOSS_LEASE,   /* its fixed lease has ended */
    HF__LOSS_MAX,     /* max_hold_ms has passed */
    HF__LOSS_ORPHAN,  /* its thread exited, so it was not renewed */
    HF__LOSS_STOPPED, /* this process was not running when a renewal was due */
    HF__LOSS_REFUSED, /* the server refused to renew it */
    HF__LOSS_SILENT,  /* the server answered no renewal */
    HF__LOSS_RELEASE, /* the release found that it was gone */
};

/* True if a renewal failed because the server refused it, and not because the
 * server was silent, the hold was gone, or this process was out of memory. */
static inline bool hf__is_refusal(int result)
{
    return result != HF__DONE && result != HF_EUNKNOWN &&
           result != HF_ENOTOWNER && result != HF_ENOMEM;
}

/* Why and when a hold was lost. Kept until its owner has released it. The
 * client finds the text for it by the time (loss_reason.c). */
struct hf__loss {
    uint64_t why : 4;     /* enum hf__loss_why */
    uint64_t refused : 1; /* STOPPED: the last renewal before was refused */
    /* LEASE: the length of the lease in ms. STOPPED: a time at which the
     * process was not running. SILENT: the deadline. Otherwise the time when
     * the loss was found. */
    uint64_t at : 59;
};

static inline struct hf__loss hf__loss(enum hf__loss_why why, hf__time at)
{
    return (struct hf__loss){.why = why & 15u, .at = (uint64_t)at & ~0ull >> 5};
}

static const struct hf__loss hf__no_loss = {.why = HF__LOSS_NONE};

/* How much earlier than the server the client treats a lease as ended. It
 * covers clocks that run at different speeds and the time to read the clock. */
hf__time hf__lease_margin(uint32_t lease_ms);

/* IDLE. endless: the holds of the backend need no renewal. */
void hf__lease_init(struct hf__lease *, bool endless);

/* Says whether any waiter wants the lock. */
void hf__lease_want(struct hf__lease *, bool wanted);

/* Ends the present question or hold: hf__lease_next() will return LET_GO. */
void hf__lease_drop(struct hf__lease *);

/*
 * What to send now. ATTEMPT: an attempt of hold_id; fresh ids come from *ids.
 * LET_GO: let_go_op of let_go_id. The caller repeats the call until it returns
 * NOTHING.
 */
enum hf__todo hf__lease_next(struct hf__lease *, hf__time now, uint64_t *ids);

/* Follows each ATTEMPT: it was sent, and the server is silent if it does not
 * answer within op_timeout. A question that is repeated because its answer was
 * lost keeps the time limit of the first one. */
void hf__lease_attempted(struct hf__lease *, hf__time now,
                         uint32_t op_timeout_ms);

/* A new waiter wants the answer: its op_timeout starts now. */
void hf__lease_listen(struct hf__lease *, hf__time now);

/*
 * The answer to an ATTEMPT of req->hold_id. Returns HF__GRANTED, HF__PENDING
 * (nothing to tell the waiters yet), HF__BUSY, or the code with which all
 * waiters fail. max_hold_ms 0: no limit.
 */
int hf__lease_answered(struct hf__lease *, const struct hf__req *, hf__time now,
                       int64_t max_hold_ms);

/* The hold has a new local owner, whose own max_hold_ms counts from now. */
void hf__lease_cap(struct hf__lease *, hf__time now, int64_t max_hold_ms);

/* The backend has called core->bell() for this line: ask again. */
void hf__lease_bell(struct hf__lease *, hf__time now);

/* The answer to a LET_GO. True: it has succeeded. False: it will be sent
 * again. */
bool hf__lease_let_go_answered(struct hf__lease *, int result, hf__time now);

/* A waiter has arrived: a let_go that was refused is sent again now. */
void hf__lease_hurry(struct hf__lease *, hf__time now);

/* A renewal of lease_ms is about to be sent. lease_ms is 0 for a fixed lease
 * that the session keeps and that is to stay as it is. The server may shorten
 * the lease and the answer may be lost, so the earlier of both deadlines counts
 * from now on. */
void hf__lease_renewing(struct hf__lease *, uint32_t lease_ms, hf__time now);

/* The length for a renewal that the program did not ask for. 0: a fixed lease
 * that the session keeps stays as long as it is. */
static inline uint32_t hf__lease_renew_ms(const struct hf__lease *l)
{
    return l->session && l->fixed ? 0 : l->lease_ms;
}

/* A renewal is due and the caller is about to send it. If the caller does not
 * call hf__lease_renewing(), because it was stopped, the renewal is due again
 * after a tenth of the term, and another thread sends it. */
void hf__lease_put_off(struct hf__lease *, hf__time now);

/* The server no longer has the hold. */
void hf__lease_gone(struct hf__lease *, hf__time now);

/* The answer to a renewal. lease_ms is 0 if a fixed lease was to keep its end.
 * Returns ELOST if the hold is gone; the state is IDLE then. */
int hf__lease_renewed(struct hf__lease *, uint64_t hold_id, int result,
                      hf__time sent_at, uint32_t lease_ms, hf__time now);

/* True if a let_go is under way or is to be sent again. */
static inline bool hf__lease_lets_go(const struct hf__lease *l)
{
    return l->let_go != HF__LET_GO_NONE;
}

/* True if nothing is held or asked, and nothing can be asked before the server
 * has answered a let_go. */
static inline bool hf__lease_stuck(const struct hf__lease *l)
{
    return l->state == HF__IDLE && l->let_go == HF__LET_GO_UNSURE;
}

/* True if nothing can be asked before the server has answered a let_go: because
 * the line is stuck, or because its question or hold has to be let go after
 * that. */
static inline bool hf__lease_blocked(const struct hf__lease *l)
{
    return hf__lease_stuck(l) || (l->drop && hf__lease_lets_go(l));
}

/* True if the server has not yet said whether the lock is free. A try waits for
 * that answer, too. */
static inline bool hf__lease_unanswered(const struct hf__lease *l)
{
    return l->state == HF__IDLE || l->drop ||
           (l->state != HF__HELD && l->known != HF__KNOWN_CURRENT);
}

/* The hold moves to another line's lease, which is idle. It is renewed as soon
 * as possible. */
void hf__lease_move(struct hf__lease *to, struct hf__lease *from, hf__time now);

/* True if the deadline has passed. The caller then drops the hold. */
static inline bool hf__lease_expired(const struct hf__lease *l, hf__time now)
{
    return l->deadline <= now;
}

/* True if the hold that is being released must have ended at the server, unless
 * the server has renewed it and the answer was lost. */
static inline bool hf__lease_over(const struct hf__lease *l, hf__time now)
{
    return l->state == HF__IDLE && hf__lease_lets_go(l) &&
           l->let_go_op == HF__RELEASE && l->let_go_id == l->hold_id &&
           l->until <= now;
}

/* Why the hold has expired. */
struct hf__loss hf__lease_why(const struct hf__lease *, hf__time now);

/* The next time at which hf__lease_next() or the caller has something to do
 * even if nothing happens; HF__NEVER. */
hf__time hf__lease_timer(const struct hf__lease *);

#endif
