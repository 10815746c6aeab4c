/* Renewals by the program. */
#ifndef HF_RENEW_H
#define HF_RENEW_H

#include "core/async.h"
#include "core/lock.h"
#include "core/requests.h"

/* Sends a renewal of the hold of t->line. If `no_longer`, the hold must not
 * last longer than before. line->mu is held. Returns 0 or ENOMEM. */
int hf__renew_send(hf_client *, struct hf__verb_call *, uint32_t ms,
                   bool no_longer, hf_error *);
/* Returns the result of a renewal that hf__renew_send() sent. line->mu is
 * held. */
int hf__renew_answered(hf_lock *, struct hf__verb_call *,
                       const struct hf__request *, hf_error *);

#endif
