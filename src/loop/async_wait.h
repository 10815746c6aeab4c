/*
 * Ends the wait of an asynchronous verb before the answer has come: when the
 * verb's time limit has passed, or when the verb is cancelled. The verb's
 * callback is then queued. The callers of the first two functions hold
 * line->mu.
 */
#ifndef HF_ASYNC_WAIT_H
#define HF_ASYNC_WAIT_H

#include "core/async.h"

/* Ends the wait in the queue with that error code. The wait must not have
 * finished. */
void hf__async_leave(struct hf__async *, int code, hf__time now);
/* If the verb waits for the answer to a request, ends that wait. A request that
 * was sent stays with the backend. */
void hf__async_give_up(struct hf__async *);
/* Handles the timer of a wait. The timer has been removed from the heap, and
 * `firing` is set. No mutex is held. */
void hf__async_timed_out(struct hf__async *, hf__time now);

#endif
