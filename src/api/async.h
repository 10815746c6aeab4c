/* The asynchronous verbs of a lock. A handle runs one of them at a time. */
#ifndef HF_ASYNC_H
#define HF_ASYNC_H

#include "core/async.h"
#include "core/lock.h"

/* Returns 0 if the handle can be used for an asynchronous verb, otherwise an
 * error code with a message. */
int hf__async_check(hf_lock *, union hf__done, hf_error *);
/* Claims the handle for a verb. Returns 0, EBUSY if a verb of the handle is
 * under way already, or ENOMEM. line->mu is held. */
int hf__async_begin(hf_lock *, union hf__done, void *arg, hf_error *);
/* Gives up the claim of a verb that did not begin. */
void hf__async_undo(hf_lock *);
/* Does what hf_lock_acquire_async() does, for a lock or a latch. */
int hf__acquire_async(hf_lock *, const hf_acquire_options *, union hf__done,
                      void *arg, hf_error *);

#endif
