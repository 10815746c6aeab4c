/*
 * For a program with a loop of its own: one descriptor that says when to
 * dispatch, and the dispatch, which runs callbacks and events on the thread
 * that calls it and nowhere else.
 */
#ifndef HF_EVENT_LOOP_H
#define HF_EVENT_LOOP_H

#include "core/async.h"

/* Is this thread in a callback of that client? */
bool hf__is_dispatching(const hf_client *);
/* Takes the next step of the verb; if that was the last one, calls its
 * callback. False: the verb is not over, it has sent one more request. */
bool hf__loop_run_callback(struct hf__async *);

#endif
