/* A renewal that the program asked for. */
#ifndef HF_RENEW_H
#define HF_RENEW_H

#include "core/async.h"
#include "core/lock.h"
#include "core/requests.h"

/* Sends one renewal of the hold of t->line. no_longer: the server is told the
 * length, and the hold must not last longer because of it. line->mu is held. */
int hf__renew_send(hf_client *, struct hf__verb_call *, uint32_t ms,
                   bool no_longer, hf_error *);
/* Its result; line->mu is held. */
int hf__renew_answered(hf_lock *, struct hf__verb_call *,
                       const struct hf__request *, hf_error *);

#endif
