/*
 * The outbox: requests on their way to a networked backend. They are handed
 * over at once, or stay here as long as the backend cannot send (HF__LATER in
 * backend.h), in the order of asking, so that no request of a line overtakes
 * an earlier one. client->mu is held.
 */
#ifndef HF_OUTBOX_H
#define HF_OUTBOX_H

#include "backends/backend.h"

/* Hands it over, or parks it: PENDING. Else what it came to at once. */
int hf__outbox_submit_locked(hf_client *, struct hf__req *);
/* Those that are parked, as far as the backend takes them. */
void hf__outbox_flush_locked(hf_client *);
/* If it is parked: nothing is sent for it. */
void hf__outbox_remove_locked(hf_client *, struct hf__req *);
/* The same, and it is reported: that is what it came to. */
void hf__outbox_finish_locked(hf_client *, struct hf__req *, int result);
/* Its caller leaves: nothing is sent for it from now on, unless it is always
 * meant. */
void hf__outbox_give_up_locked(hf_client *, struct hf__req *);
/* hf__core.unsent: in front of all others. */
void hf__outbox_return(hf_client *, struct hf__req *);
/* hf__core.refuse: all that is here comes to that code. */
void hf__outbox_refuse(hf_client *, int code);

#endif
