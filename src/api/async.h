/* The asynchronous verbs of a lock: one at a time through a handle. */
#ifndef HF_ASYNC_H
#define HF_ASYNC_H

#include "core/async.h"
#include "core/lock.h"

/* Is the handle fit for asynchronous verbs? */
int hf__async_check(hf_lock *, union hf__done, hf_error *);
/* Claims the handle for one; line->mu is held. */
int hf__async_begin(hf_lock *, union hf__done, void *arg, hf_error *);
void hf__async_undo(hf_lock *); /* it did not begin after all */
/* hf_lock_acquire_async(), of a lock or a latch. */
int hf__acquire_async(hf_lock *, const hf_acquire_options *, union hf__done,
                      void *arg, hf_error *);

#endif
