/*
 * The lease of a line: what one client has at the server under one name
 * (nothing, an attempt, a place in the queue, a hold), until when a hold may be
 * used (deadline), when its next renewal is due (renew_at), and what is to be
 * sent now (hf__lease_next). Pure: no clock, no lock, no I/O. The caller
 * reports what happened, with the time.
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
 * - An answer that comes after its own lease is no grant: it is dropped.
 * - An answer that is lost changes nothing: the same question is asked again,
 *   under the same hold id, which makes it find what the first one did. Nor is
 *   it an answer: a server that lets each of them be lost is silent.
 * - A hold id is never used again after it was dropped.
 * - Nothing is asked while a let_go is unsure (its answer was lost, or the
 *   server refused it), so that one let_go at a time is enough.
 * - A refusal is an answer. If the server did nothing for the question, and
 *   cannot know its hold id from an earlier one, nothing is left to let go.
 *   A let_go that was refused is sent again after a pause, which grows; at once
 *   when a waiter comes, which then hears the next refusal.
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

/* ATTEMPTING: what has happened to the question since it was sent. */
enum hf__question {
    HF__QUESTION_SENT,
    HF__QUESTION_RANG, /* the bell rang: an answer to come may be older */
    HF__QUESTION_LOST, /* its answer was lost: the same is asked again */
};

/* What the server knows of the present hold id; it only grows, except
 * for the last step, which is taken back by a waiter that comes when the others
 * have given up. */
enum hf__known {
    HF__KNOWN_NOT,     /* it never did anything for it */
    HF__KNOWN_PERHAPS, /* an answer was lost, or a refusal came late */
    HF__KNOWN_QUEUED,  /* it has queued it, */
    HF__KNOWN_CURRENT, /* and those who wait have come before it said so */
};

/* The let_go, which may go on beside the next question. */
enum hf__let_go {
    HF__LET_GO_NONE,
    HF__LET_GO_SENT,
    HF__LET_GO_UNSURE, /* its answer was lost, or a refusal, once */
};

/* clang-format off */
/*
 * What may be together. `any': whatever is there means nothing.
 *
 *   state       drop   question  known            let_go          deadline
 *   IDLE        no     any       any              any             any
 *   ATTEMPTING  maybe  a state   a state          NONE or SENT,   any
 *                                                 then UNSURE
 *   WAITING     maybe  not LOST  PERHAPS or more  as above        any
 *   HELD        maybe  any       any              of another id   set, or drop
 *
 * A new question is asked beside a let_go that is SENT, not beside one that is
 * UNSURE; it may become so meanwhile. A let_go that is SENT was never refused,
 * and is not to be sent again. drop with a let_go under way: it waits for that.
 *
 * HELD, not drop: the deadline is the first of until, max_until and kept_until;
 * if all are NEVER, the caller may set one for an owner that cannot release.
 * renew_at and kept_until, where they are not NEVER:
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
    uint64_t hold_id;  /* of this question or hold */
    uint64_t token;    /* HELD */
    hf__time deadline; /* HELD: not ours from here on; HF__NEVER */
    hf__time renew_at; /* HELD: HF__NEVER if it is not renewed */
    union {
        hf__time until;   /* HELD, then let go: the deadline, but for
                             max_hold */
        hf__time poll_at; /* WAITING: ask again; ATTEMPTING: no answer by then
                             is silence */
    };
    hf__time silent_at; /* blocked: no answer to the let_go by then is silence;
                           HF__NEVER */
    hf__time max_until; /* HELD: no renewal goes beyond; HF__NEVER */
    hf__time
        kept_until;     /* HELD, session: the end of a fixed lease; HF__NEVER */
    hf__time gone_at;   /* let_go: the server has forgotten it by then */
    hf__time resend_at; /* let_go: it failed, send it again; HF__NEVER */
    hf__time least;     /* renewing: the first end that they may lead to */
    uint64_t let_go_id; /* let_go: the hold id that is let go */
    uint32_t lease_ms;  /* asked for */
    uint32_t session_ms;    /* session: for how long an answer is good */
    uint32_t patience;      /* ATTEMPTING: how many ms silence may last */
    uint32_t renew_ms;      /* renewing: the length of the last one sent */
    uint16_t renewing : 12; /* HELD: renewals under way, */
    uint16_t keeping : 1;   /* of which one leaves a fixed lease as it is, */
    uint16_t mixed : 1;     /* or of which not all have the same length */
    uint16_t refusals : 2;  /* let_go: how often it was refused, up to 3 */
    uint8_t state : 2;      /* enum hf__lease_state */
    uint8_t let_go_op : 2;  /* RELEASE or ABANDON */
    uint8_t let_go : 2;     /* enum hf__let_go */
    uint8_t question : 2;   /* enum hf__question */
    uint8_t known : 2;      /* enum hf__known */
    bool wanted : 1;        /* somebody waits for it */
    bool drop : 1;          /* the present hold id is to be let go */
    bool fixed : 1;         /* the lease is fixed: never renewed by itself */
    bool endless : 1;       /* the backend's holds need no renewal */
    bool session : 1;       /* they live as long as the client's session */
    bool refused : 1;       /* HELD: the last renewal was */
};

/* Aborts unless the table above holds. */
HF__VERIFIER(lease)

/* Why a hold was lost. */
enum hf__loss_why {
    HF__LOSS_NONE,
    HF__LOSS_TAKEN,   /* the server does not have it any more */
    HF__LOSS_SESSION, /* its session is over */
    HF__LOSS_LEASE,   /* the fixed lease ended */
    HF__LOSS_MAX,     /* max_hold_ms ended */
    HF__LOSS_ORPHAN,  /* its thread exited, so that it was not renewed */
    HF__LOSS_STOPPED, /* this process did not run when it was to be renewed */
    HF__LOSS_REFUSED, /* the server refused to renew it */
    HF__LOSS_SILENT,  /* no renewal was answered */
    HF__LOSS_RELEASE, /* the release found that it was gone */
};

/* The server refused to renew it: neither was it silent, nor was it gone, nor
 * was the failure ours. */
static inline bool hf__is_refusal(int result)
{
    return result != HF__DONE && result != HF_EUNKNOWN &&
           result != HF_ENOTOWNER && result != HF_ENOMEM;
}

/* The whole of it, which is kept until the owner has released the hold. The
 * texts that belong to it are the client's (loss_reason.c), found by the time.
 */
struct hf__loss {
    uint64_t why : 4;     /* enum hf__loss_why */
    uint64_t refused : 1; /* STOPPED: the last renewal before was */
    uint64_t at : 59; /* LEASE: how many ms it lasted. STOPPED: a time at which
                     the process did not run. SILENT: the deadline. Else
                     when it was found out. */
};

static inline struct hf__loss hf__loss(enum hf__loss_why why, hf__time at)
{
    return (struct hf__loss){.why = why & 15u, .at = (uint64_t)at & ~0ull >> 5};
}

static const struct hf__loss hf__no_loss = {.why = HF__LOSS_NONE};

/* How much earlier than the server we stop believing: clocks that run at
 * different speeds, and the time it takes to look at ours. */
hf__time hf__lease_margin(uint32_t lease_ms);

void hf__lease_init(struct hf__lease *, bool endless);

/* Somebody wants the lock, or nobody any more. */
void hf__lease_want(struct hf__lease *, bool wanted);

/* Ends the present question or hold: hf__lease_next() will say LET_GO. */
void hf__lease_drop(struct hf__lease *);

/*
 * What to send now. ATTEMPT: of hold_id (fresh ones come from *ids). LET_GO:
 * let_go_op of let_go_id. Call again until NOTHING.
 */
enum hf__todo hf__lease_next(struct hf__lease *, hf__time now, uint64_t *ids);

/* It was sent: silence after op_timeout; of one that is asked again because its
 * answer was lost, after the op_timeout of the first. Follows each ATTEMPT. */
void hf__lease_attempted(struct hf__lease *, hf__time now,
                         uint32_t op_timeout_ms);

/* Somebody new waits for the answer: silence counts from now. */
void hf__lease_listen(struct hf__lease *, hf__time now);

/*
 * The answer to an ATTEMPT of req->hold_id. Returns HF__GRANTED, HF__PENDING
 * (go on), HF__BUSY, or a code with which everybody who waits fails.
 * max_hold_ms 0: none.
 */
int hf__lease_answered(struct hf__lease *, const struct hf__req *, hf__time now,
                       int64_t max_hold_ms);

/* A new local owner of the hold: its own max_hold counts, from now. */
void hf__lease_cap(struct hf__lease *, hf__time now, int64_t max_hold_ms);

/* The bell rang. */
void hf__lease_bell(struct hf__lease *, hf__time now);

/* The answer to a LET_GO. True: that is the end of it; else it will be sent
 * again. */
bool hf__lease_let_go_answered(struct hf__lease *, int result, hf__time now);

/* A waiter has come: a let_go that was refused is sent again now. */
void hf__lease_hurry(struct hf__lease *, hf__time now);

/* A renewal is about to be sent; of a fixed lease that the session keeps with
 * its new length, or 0: it stays as it is. The server may shorten the lease by
 * it and the answer may be lost: believe the shorter of both from now on. */
void hf__lease_renewing(struct hf__lease *, uint32_t lease_ms, hf__time now);

/* What a renewal by itself asks for: a fixed lease that the session keeps stays
 * as long as it is. */
static inline uint32_t hf__lease_renew_ms(const struct hf__lease *l)
{
    return l->session && l->fixed ? 0 : l->lease_ms;
}

/* It is due to be renewed, and the caller is about to do that. Until it is
 * marked by hf__lease_renewing() it is not due again for a tenth of its term:
 * then another thread renews it, if that one was stopped. */
void hf__lease_put_off(struct hf__lease *, hf__time now);

/* The server has forgotten the hold. */
void hf__lease_gone(struct hf__lease *, hf__time now);

/* The answer to a renewal; lease_ms 0: of a fixed lease that was to end when it
 * does. ELOST: the hold is gone; the state is IDLE then. */
int hf__lease_renewed(struct hf__lease *, uint64_t hold_id, int result,
                      hf__time sent_at, uint32_t lease_ms, hf__time now);

/* A let_go is under way, or to be sent again. */
static inline bool hf__lease_lets_go(const struct hf__lease *l)
{
    return l->let_go != HF__LET_GO_NONE;
}

/* Nothing is held or asked, and nothing can be asked before the server has
 * answered a let_go. */
static inline bool hf__lease_stuck(const struct hf__lease *l)
{
    return l->state == HF__IDLE && l->let_go == HF__LET_GO_UNSURE;
}

/* The same, or there is a question or hold that has to be let go first. */
static inline bool hf__lease_blocked(const struct hf__lease *l)
{
    return hf__lease_stuck(l) || (l->drop && hf__lease_lets_go(l));
}

/* The server has not said yet whether the lock is free: a try waits for that,
 * too. */
static inline bool hf__lease_unanswered(const struct hf__lease *l)
{
    return l->state == HF__IDLE || l->drop ||
           (l->state != HF__HELD && l->known != HF__KNOWN_CURRENT);
}

/* The hold goes from one line to another, which is idle. It is renewed at the
 * next opportunity. */
void hf__lease_move(struct hf__lease *to, struct hf__lease *from, hf__time now);

/* Not held any more, by the clock. The caller drops it then. */
static inline bool hf__lease_expired(const struct hf__lease *l, hf__time now)
{
    return l->deadline <= now;
}

/* What is being released has ended by itself at the server, unless that has
 * renewed it and the answer was lost. */
static inline bool hf__lease_over(const struct hf__lease *l, hf__time now)
{
    return l->state == HF__IDLE && hf__lease_lets_go(l) &&
           l->let_go_op == HF__RELEASE && l->let_go_id == l->hold_id &&
           l->until <= now;
}

/* Why it has expired. */
struct hf__loss hf__lease_why(const struct hf__lease *, hf__time now);

/* When something is to be done although nothing happens; HF__NEVER. */
hf__time hf__lease_timer(const struct hf__lease *);

#endif
