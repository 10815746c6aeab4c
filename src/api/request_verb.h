/*
 * Verbs that send a request and are over with its answer: renew, downgrade,
 * put, those of a latch. The synchronous and the asynchronous form take the
 * same steps; they differ in who waits.
 */
#ifndef HF_REQUEST_VERB_H
#define HF_REQUEST_VERB_H

#include "core/async.h"
#include "core/lock.h"
#include "core/requests.h"

/* The whole verb, for the calling thread. */
int hf__verb_run(hf_lock *, const struct hf__verb_call *, hf_error *);
int hf__verb_run_async(hf_lock *, const struct hf__verb_call *, union hf__done,
                       void *arg, hf_error *);
/* Sends a question for it; line->mu is held. */
void hf__verb_send(hf_client *, struct hf__verb_call *, struct hf__request *);
/* There is time for one more, and somebody to ask. */
bool hf__verb_may_go_on(const hf_lock *, const struct hf__verb_call *);
/* The question that was under way has landed. PENDING: another one is. */
int hf__verb_answered(hf_lock *, struct hf__verb_call *, hf_error *);
/* The server does not know the hold that it is about any more, or it is lost;
 * ELOST. */
int hf__verb_lost(hf_lock *, struct hf__verb_call *, hf_error *);
/* Does the caller still have the hold t->hold_id? 0, ELOST, or ENOTOWNER if
 * another thread has released it. line->mu is held. */
int hf__verb_check(const hf_lock *, const struct hf__verb_call *);
/* What the answer rc about the hold t->hold_id means for the caller. A good
 * answer says nothing about a hold that has ended before it came: that is
 * ELOST, or ENOTOWNER if another thread has released it. line->mu is held. */
int hf__verb_judge(hf_lock *, struct hf__verb_call *,
                   const struct hf__request *, int rc, hf_error *);

#endif
