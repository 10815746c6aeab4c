/*
 * The records of verbs that take more than one step: of an asynchronous verb
 * (hf__async), and of a verb that sends a request and ends with the answer
 * (hf__verb, hf__verb_call). The functions that use these records are declared
 * in api/async.h and api/request_verb.h.
 */
#ifndef HF_CORE_ASYNC_H
#define HF_CORE_ASYNC_H

#include "base/list.h"
#include "core/line.h"
#include "core/wakeup.h"

struct hf__request;
struct hf__put;
struct hf__verb_call;

/* The program's callback; the kind of the handle decides which member is
 * used. */
union hf__done {
    hf_done_fn lock;
    hf_latch_done_fn latch;
};

/* A verb that sends one request, or several in succession, and ends with the
 * last answer: renew, put, downgrade, and the verbs of a latch. */
struct hf__verb {
    const char *what; /* its name in error messages, such as "the renewal" */
    /* Sends the request (hf__verb_send). Returns 0, or an error code with a
     * message in *err. line->mu is held. */
    int (*begin)(hf_lock *, struct hf__verb_call *, hf_error *);
    /* Returns what the answer means for the caller, or PENDING if it has sent
     * another request. line->mu is held. */
    int (*answered)(hf_lock *, struct hf__verb_call *,
                    const struct hf__request *, hf_error *);
};

/* An ongoing call of a verb (struct hf__verb). The record is on the stack of
 * the waiting thread or, if the verb is asynchronous, in the handle. begin()
 * runs on the thread that calls the verb; answered() runs on the same thread
 * or, if the verb is asynchronous, on the thread that dispatches. */
struct hf__verb_call {
    const struct hf__verb *verb;
    struct hf__request *request; /* the request under way; NULL if there is
                                    none, or if the verb no longer waits for it;
                                    client->mu */
    struct hf__sleeper *sleeper;
    hf__time until;        /* the time limit for all its requests together */
    struct hf__line *line; /* the line with the hold */
    uint64_t hold_id;
    int64_t lease_ms;          /* renew: the length of the lease that the caller
                                  wants */
    const struct hf__put *put; /* put: belongs to the caller; used only in
                                  begin() */
    /* latch: */
    uint64_t count, request_id;
    uint64_t *left; /* where the caller wants the count, or NULL */
    uint8_t op;
};

/* The state of a handle's asynchronous verb. Created when the first
 * asynchronous verb of the handle begins. */
struct hf__async {
    struct hf__sleeper sleeper;
    struct hf__waiter waiter;
    struct hf__timer timer; /* ends the wait at the time limit */
    hf__time grace;         /* until when an acquire waits for its first answer,
                               even past its time limit */
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
    bool busy;  /* set from the call until the callback; line->mu */
    bool acquires; /* set for an acquire that waits in a queue and is counted in
                      client->async_waits. Written with line->mu and
                      client->mu */
    bool firing;   /* hf__async_timed_out() is about to run or runs;
                      client->mu */
};

/* Returns the asynchronous verb that the sleeper is part of, or NULL if the
 * sleeper is a thread. */
static inline struct hf__async *hf__async_of(struct hf__sleeper *s)
{
    return s->is_async ? hf__container(s, struct hf__async, sleeper) : NULL;
}

#endif
