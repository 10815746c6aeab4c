/*
 * A line: what a client has at the server under one name, which is one wait or
 * one hold. A mutex has one line, which all handles of its name share. A
 * read-write lock, a semaphore and a latch may have several; the first of them
 * represents the name. The functions below run a line: they send the requests
 * that the line's queue wants to be sent (hf__line_run), and pass to the queue
 * what the backend has reported and which deadlines have passed.
 *
 * The mutex of the first line guards all lines of the name, and is locked
 * before client->mu. The callers of the functions below hold it, unless a
 * comment says otherwise.
 */
#ifndef HF_LINE_H
#define HF_LINE_H

#include "base/futex.h"
#include "base/thread_id.h"
#include "base/timer.h"
#include "policy/line_set.h"

struct hf__sleeper;

/* A release that waits for its answer. In line->releasers; line->mu guards
 * it. */
struct hf__releaser {
    struct hf__releaser *next;
    uint64_t hold_id;
    struct hf__sleeper *sleeper;
    hf_error *word; /* where to put the server's message if the release fails,
                       or NULL */
    int result;
    bool finished;
};

/* The two requests of a line to a networked backend. A line gets an exchange
 * for its first request, and gives it back when the queue is idle and neither
 * request is under way. (The requests to a direct backend are on the stack,
 * because it answers at once.) */
struct hf__exchange {
    struct hf__req
        attempt; /* must be first: remote.attempt is cast back to it */
    struct hf__req let_go;
    uint64_t lost_id;  /* the id of a hold that was lost, or 0; client->mu */
    hf_error *why[2];  /* the message of the last failure of each request, or
                          NULL; client->mu */
    bool session_over; /* lost_id was lost because its session has ended */
    struct hf__exchange *next; /* in client->exchanges */
};

/* The additional part of a line whose name may have several lines (every kind
 * except a mutex). Handles and the table of names refer to the first line of
 * the name, whose mutex guards all its lines. */
struct hf__kin {
    struct hf__line_entry line;
    struct hf__line *first;
    struct hf__line_set lines; /* only in the first line */
    struct hf__reader *spare;  /* only in the first line: entries for reuse */
    uint32_t permits;          /* permits of the current or the last hold */
};

/* A client has at least one line per name, and for some kinds several; the
 * handles of the name share them. If the client has on_event, the memory of
 * each line begins with a struct hf__event, in front of this struct. */
struct hf__line {
    struct hf__mutex mu; /* only the first line's is used: hf__line_lock() */
    uint32_t refs;       /* references by handles, requests under way, news, and
                            `owes`; client->mu */
    struct hf__queue queue;
    uint64_t tally; /* see hf__tally_add() */
    struct hf__remote remote;
    struct hf__timer timer;          /* client->mu; also contains the number of
                                        handles */
    struct hf__thread *owner_thread; /* the last owner's thread, or NULL for a
                                        handle */
    struct hf__releaser *releasers;
    struct hf__line *next_in_bucket, *next_news;
    hf_client *client;
    struct hf__kin *kin; /* NULL for a mutex, which has one line */
    hf_lock *watchers;   /* handles with a descriptor that signals losses */
    uint32_t *to_wake;   /* the futex to wake after mu is unlocked, or NULL */
    struct {
        bool parker : 1;   /* direct: a thread sleeps in park for this line */
        bool orphaned : 1; /* the thread of its owner has exited, and that was
                              reported */
        bool rings : 1;    /* direct: when the attempt was sent, no waiter was a
                              thread, so the helper thread sleeps in the backend
                              for them */
        bool owes : 1; /* a refused let_go is sent again later; counted in refs
                        */
    };
    struct { /* client->mu */
        bool in_news : 1, attempt_ready : 1, let_go_ready : 1, rang : 1;
        bool session_lost : 1;
    };
    char text[]; /* the name with the client's prefix, terminated */
};

/* Returns the first line of the name. */
static inline struct hf__line *hf__line_first(struct hf__line *n)
{
    return n->kin ? n->kin->first : n;
}

static inline void hf__line_lock(struct hf__line *n)
{
    hf__mutex_lock(&hf__line_first(n)->mu);
}

/* Unlocks the mutex, and only then makes the system call that wakes a thread,
 * because that thread wants the mutex next. */
static inline void hf__line_unlock_first(struct hf__line *n)
{
    uint32_t *word = n->to_wake;

    if (word)
        n->to_wake = NULL;
    hf__mutex_unlock(&n->mu);
    if (word)
        hf__futex_wake(word, 1);
}

static inline void hf__line_unlock(struct hf__line *n)
{
    hf__line_unlock_first(hf__line_first(n));
}

/* Returns the line's requests to a networked backend, or NULL if it has
 * none. */
static inline struct hf__exchange *hf__exchange_of(const struct hf__line *n)
{
    return (struct hf__exchange *)n->remote.attempt;
}

/* Returns the line's exchange, created if necessary, or NULL if out of
 * memory. */
struct hf__exchange *hf__exchange_make(struct hf__line *);
/* Sends what the queue wants sent, and sets the timer. Must be called after
 * every change of the queue. */
void hf__line_run(struct hf__line *, hf__time now);
/* Hands to the queue what the backend has reported. Takes line->mu itself. */
void hf__line_news(struct hf__line *);
/* Handles the line's timer, which has fired. Returns the id of the hold that
 * the caller must renew, or 0. If the caller does not renew the hold, the timer
 * fires again. Takes line->mu itself. */
uint64_t hf__line_timer(struct hf__line *, hf__time now);
/* Implements hf__wake_fn: wakes the waiter's thread. If the waiter is
 * asynchronous, queues its callback if its wait has ended. */
void hf__line_wake(struct hf__queue *, struct hf__waiter *);
/* Forgets a lost hold that no thread can release, because its owner's thread
 * has exited: the hold of the last owner or, in a shared queue, of one reader.
 * Returns whether there was such a hold. */
bool hf__line_forget_the_gone(struct hf__line *);
/* Records that w is the new owner, and remembers its thread, in order to notice
 * when the thread exits. */
void hf__line_own(struct hf__line *, const struct hf__waiter *);
/* Ends the waits for the release of the hold hold_id with that result. If
 * hold_id is 0, ends the waits for all releases of the line. Wakes the waiting
 * threads, and queues the callbacks. */
void hf__line_finish_releases(struct hf__line *, uint64_t hold_id, int result);
/* Removes r from the line's releasers, because its answer is no longer
 * awaited. */
void hf__line_forget_releaser(struct hf__line *, struct hf__releaser *);

#endif
