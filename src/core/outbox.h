/*
 * The outbox: requests on their way to a networked backend. A request is handed
 * over at once, or parked here while the backend cannot send (HF__LATER in
 * backend.h). Requests stay in order, so that no request of a line overtakes an
 * earlier one. client->mu is held.
 */
#ifndef HF_OUTBOX_H
#define HF_OUTBOX_H

#include "backends/backend.h"

/* Hands the request to the backend, or parks it. Returns the result if the
 * request ended at once, otherwise PENDING. */
int hf__outbox_submit_locked(hf_client *, struct hf__req *);
/* Hands parked requests to the backend until it takes no more. */
void hf__outbox_flush_locked(hf_client *);
/* Removes the request if it is parked, so that it is not sent. */
void hf__outbox_remove_locked(hf_client *, struct hf__req *);
/* Removes the request if it is parked, and reports it with that result. */
void hf__outbox_finish_locked(hf_client *, struct hf__req *, int result);
/* Must be called when the caller no longer waits: if the request is parked, it
 * ends unsent, unless it must be sent in any case (meant_until is NEVER). */
void hf__outbox_give_up_locked(hf_client *, struct hf__req *);
/* Implements hf__core.unsent: parks the request in front of all others, except
 * an attempt that is being abandoned, which is not sent again. */
void hf__outbox_return(hf_client *, struct hf__req *);
/* Implements hf__core.refuse: fails all parked requests. */
void hf__outbox_refuse(hf_client *, int code);

#endif
