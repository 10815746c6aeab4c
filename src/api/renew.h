/* A renewal that the program asked for. */
#ifndef HF_RENEW_H
#define HF_RENEW_H

#include "core/async.h"
#include "core/lock.h"
#include "core/requests.h"

/* Asks for one renewal of the hold of t->line; no_longer: it is told for how
 * long it lasts, and shall not last longer by it. name->mu is held. */
int hf__renew_send(hf_client *, struct hf__verb_call *, uint32_t ms,
                   bool no_longer, hf_error *);
/* What it came to; name->mu is held. */
int hf__renew_answered(hf_lock *, struct hf__verb_call *,
                       const struct hf__request *, hf_error *);

#endif
