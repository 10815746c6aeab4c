/*
 * Callbacks of asynchronous verbs that have ended. A verb may end while a mutex
 * is held, and no code of the program may run under a mutex. Therefore the
 * callbacks are queued here until the program dispatches (api/event_loop.c).
 */
#ifndef HF_CALLBACKS_H
#define HF_CALLBACKS_H

#include "core/async.h"

/* Queues the callback of a verb that has ended. If a request of the verb was
 * answered, the callback receives what hf__verb_answered() returns for that
 * answer, otherwise `result`. client->mu is held. */
void hf__callback_queue_locked(hf_client *, struct hf__async *, int result);
/* Does the same as hf__callback_queue_locked(), but takes client->mu itself.
 * line->mu of the verb's line is held. */
void hf__callback_queue(struct hf__async *, int result);
/* Removes the next callback from the queue and returns its verb. Returns NULL
 * if the queue is empty, or if the timer of the next verb is still being
 * handled. */
struct hf__async *hf__callback_next(hf_client *);

#endif
