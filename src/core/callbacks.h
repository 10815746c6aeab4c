/*
 * Callbacks of asynchronous verbs that are over: they wait here until the
 * program dispatches (api/event_loop.c), because nothing of the program runs
 * under a mutex.
 */
#ifndef HF_CALLBACKS_H
#define HF_CALLBACKS_H

#include "core/async.h"

/* The verb is over: its callback will be called, with that result, or with
 * that of its request if one has been answered. client->mu is held. */
void hf__callback_queue_locked(hf_client *, struct hf__async *, int result);
/* The same; line->mu is held, as for the verb after it. */
void hf__callback_queue(struct hf__async *, int result);
/* The next one, taken out; or NULL. */
struct hf__async *hf__callback_next(hf_client *);

#endif
