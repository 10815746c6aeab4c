/*
 * The records of verbs that take more than one step: an asynchronous verb
 * (hf__async), and a verb that sends a request and is over with its answer
 * (hf__verb, hf__verb_call). api/async.h and api/request_verb.h say what is
 * done with them.
 */
#ifndef HF_CORE_ASYNC_H
#define HF_CORE_ASYNC_H

#include "base/list.h"
#include "core/line.h"
#include "core/wakeup.h"

struct hf__request;
struct hf__put;
struct hf__verb_call;

/* The callback, by the kind of the handle. */
union hf__done {
    hf_done_fn lock;
    hf_latch_done_fn latch;
};

/* A verb that sends a request and is over with its answer: renew, put,
 * downgrade, those of a latch. */
struct hf__verb {
    const char *what; /* "the renewal": for people, if it is not answered */
    /* Sends the request (hf__verb_send), or says why not; line->mu is held. */
    int (*begin)(hf_lock *, struct hf__verb_call *, hf_error *);
    /* What the answer means; PENDING: it has sent one more; line->mu is held.
     */
    int (*answered)(hf_lock *, struct hf__verb_call *,
                    const struct hf__request *, hf_error *);
};

/* One such verb, under way: on the stack of the thread that waits, or in the
 * handle. Its steps are taken by that thread, or by whoever dispatches. */
struct hf__verb_call {
    const struct hf__verb *verb;
    struct hf__request *request; /* client->mu. NULL: given up */
    struct hf__sleeper *sleeper;
    hf__time until;        /* all its requests together */
    struct hf__line *line; /* with the hold that it is about */
    uint64_t hold_id;
    int64_t lease_ms;          /* renew: what the caller wants */
    const struct hf__put *put; /* put: the caller's, until begin() is over */
    /* of a latch: */
    uint64_t count, request_id;
    uint64_t *left; /* the caller's, or NULL */
    uint8_t op;
};

/* An asynchronous verb; made at the handle's first. */
struct hf__async {
    struct hf__sleeper sleeper;
    struct hf__waiter waiter;
    struct hf__timer timer; /* when the wait is over */
    hf__time grace;         /* latest time to wait for the first answer */
    hf__time since;         /* when the acquire was called */
    struct hf__releaser releaser;
    struct hf__verb_call call;
    struct hf__async *next; /* in client->callbacks */
    hf_lock *lock;
    struct hf__line *line; /* where it waits */
    union hf__done done;
    void *arg;
    int result;    /* not written after the callback has been queued: the thread
                      that dispatches reads it without a mutex */
    bool busy;     /* from the call until its callback; line->mu */
    bool acquires; /* it waits in a queue: one of client->async_waits. Written
                      with line->mu and client->mu */
    bool firing;   /* its timer is being handled; client->mu */
};

/* The verb that waits; NULL: a thread does. */
static inline struct hf__async *hf__async_of(struct hf__sleeper *s)
{
    return s->is_async ? hf__container(s, struct hf__async, sleeper) : NULL;
}

#endif
