/*
 * For a program with its own event loop: a descriptor that becomes readable
 * when the program must dispatch, and the dispatch, which runs callbacks and
 * events on the calling thread and on no other.
 */
#ifndef HF_EVENT_LOOP_H
#define HF_EVENT_LOOP_H

#include "core/async.h"

/* Returns whether this thread is in a callback of that client. */
bool hf__is_dispatching(const hf_client *);
/* Takes the next step of the verb, and calls its callback after the last one.
 * Returns false if the verb has sent another request instead of ending. */
bool hf__loop_run_callback(struct hf__async *);

#endif
