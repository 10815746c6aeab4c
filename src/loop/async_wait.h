/*
 * What ends the wait of an asynchronous verb before its answer: its time, its
 * cancel. The callback is queued then.
 */
#ifndef HF_ASYNC_WAIT_H
#define HF_ASYNC_WAIT_H

#include "core/async.h"

/* Ends the wait in the queue, which is not over. */
void hf__async_leave(struct hf__async *, int code, hf__time now);
/* Ends the wait for an answer; what was sent goes its way. */
void hf__async_give_up(struct hf__async *);
/* Its timer was taken out, with `firing` set. No mutex is held. */
void hf__async_timed_out(struct hf__async *, hf__time now);

#endif
