/*
 * The records of verbs that take more than one step: an asynchronous verb
 * (hf__async), and a verb that sends one request and ends with its answer
 * (hf__verb, hf__verb_call). api/async.h and api/request_verb.h declare the
 * functions.
 */
#ifndef HF_CORE_ASYNC_H
#define HF_CORE_ASYNC_H

#include "base/list.h"
#include "core/line.h"
#include "core/wakeup.h"

struct hf__request;
struct hf__put;
struct hf__verb_call;

/* The program's callback, by the kind of the handle. */
union hf__done {
    hf_done_fn lock;
    hf_latch_done_fn latch;
};

/* A verb that sends a request and ends with its answer: renew, put, downgrade,
 * and those of a latch. */
struct hf__verb {
    const char *what; /* its name in error texts, such as "the renewal" */
    /* Sends the request (hf__verb_send) and returns 0, or a code with a text.
     * line->mu is held. */
    int (*begin)(hf_lock *, struct hf__verb_call *, hf_error *);
    /* Returns what the answer means for the caller, or PENDING if it has sent
     * another request. line->mu is held. */
    int (*answered)(hf_lock *, struct hf__verb_call *,
                    const struct hf__request *, hf_error *);
};

/* Such a verb under way: on the stack of the waiting thread, or in the handle.
 * The waiting thread takes the steps of the verb, or, if the verb is
 * asynchronous, the thread that dispatches. */
struct hf__verb_call {
    const struct hf__verb *verb;
    struct hf__request *request; /* the request under way; client->mu. NULL:
                                    none, or given up */
    struct hf__sleeper *sleeper;
    hf__time until;        /* the time limit for all its requests together */
    struct hf__line *line; /* the line with the hold */
    uint64_t hold_id;
    int64_t lease_ms;          /* renew: the lease that the caller wants */
    const struct hf__put *put; /* put: the caller's, until begin() returns */
    /* latch: */
    uint64_t count, request_id;
    uint64_t *left; /* the caller's, to receive the count; or NULL */
    uint8_t op;
};

/* The asynchronous verb of a handle, created when the handle's first one
 * begins. */
struct hf__async {
    struct hf__sleeper sleeper;
    struct hf__waiter waiter;
    struct hf__timer timer; /* ends the wait */
    hf__time grace;         /* latest time to wait for the first answer */
    hf__time since;         /* when the acquire was called */
    struct hf__releaser releaser;
    struct hf__verb_call call;
    struct hf__async *next; /* in client->callbacks */
    hf_lock *lock;
    struct hf__line *line; /* the line that the verb uses */
    union hf__done done;
    void *arg;
    int result; /* not written after the callback has been queued, because the
                   dispatching thread reads it without a mutex */
    bool busy;  /* from the call until its callback; line->mu */
    bool acquires; /* an acquire that waits in a queue and is counted in
                      client->async_waits. Written with line->mu and client->mu
                    */
    bool firing;   /* its timer is being handled; client->mu */
};

/* Returns the asynchronous verb of a sleeper; NULL if the sleeper is a
 * thread. */
static inline struct hf__async *hf__async_of(struct hf__sleeper *s)
{
    return s->is_async ? hf__container(s, struct hf__async, sleeper) : NULL;
}

#endif
