/*
 * Verbs that send a request and end with its answer: renew, downgrade, put, and
 * the verbs of a latch. A verb takes the same steps in both forms: in the
 * synchronous form on the calling thread, in the asynchronous form on the
 * thread that dispatches.
 */
#ifndef HF_REQUEST_VERB_H
#define HF_REQUEST_VERB_H

#include "core/async.h"
#include "core/lock.h"
#include "core/requests.h"

/* Runs the whole verb, and waits for its end on the calling thread. */
int hf__verb_run(hf_lock *, const struct hf__verb_call *, hf_error *);
/* Begins the verb, and calls back when it has ended. */
int hf__verb_run_async(hf_lock *, const struct hf__verb_call *, union hf__done,
                       void *arg, hf_error *);
/* Sends the call's next request. line->mu is held. */
void hf__verb_send(hf_client *, struct hf__verb_call *, struct hf__request *);
/* Returns whether the deadline allows another request and the client is
 * open. */
bool hf__verb_may_go_on(const hf_lock *, const struct hf__verb_call *);
/* Handles the answer to the call's request. Returns the verb's result, or
 * PENDING if another request was sent. Takes line->mu itself. */
int hf__verb_answered(hf_lock *, struct hf__verb_call *, hf_error *);
/* Fails with ELOST and the reason of the loss, because the server no longer
 * knows the hold, or the hold is lost. */
int hf__verb_lost(hf_lock *, struct hf__verb_call *, hf_error *);
/* Returns 0 if the caller still has the hold t->hold_id, ELOST if the hold is
 * lost, or ENOTOWNER if another thread has released it. line->mu is held. */
int hf__verb_check(const hf_lock *, const struct hf__verb_call *);
/* Returns what rc, the answer about the hold t->hold_id, means for the caller.
 * Even if rc is a success, the hold may have ended before the answer came; the
 * result is then ELOST, or ENOTOWNER if another thread has released the hold.
 * line->mu is held. */
int hf__verb_judge(hf_lock *, struct hf__verb_call *,
                   const struct hf__request *, int rc, hf_error *);

#endif
