/*
 * Renewals: sends one request for all holds of which a renewal is due, and
 * takes its results to their lines. When the next renewal of a hold is due is
 * decided by policy/lease.c (renew_at): at a third of the TTL.
 */
#ifndef HF_RENEWALS_H
#define HF_RENEWALS_H

#include "core/line.h"
#include "core/requests.h"

/* A hold that hf__line_timer() wants renewed, with a reference to its name. */
struct hf__due {
    struct hf__line *line;
    uint64_t hold_id;
};

/* Sends a renewal of all of them; each reference goes along. */
void hf__renewals_due(hf_client *, const struct hf__due *, size_t,
                      hf__time now);
/* It has been answered: takes the results to the lines. */
void hf__renewals_landed(hf_client *, struct hf__request *);
/* A request with room for so many renewals; NULL: out of memory, and err says
 * so. */
struct hf__request *hf__renewals_batch(hf_client *, size_t room, hf_error *);
/* A renewal of the hold that the line has; line->mu is held. */
struct hf__renewal hf__renewals_of(struct hf__line *, uint32_t ms);
/* What became of one of them; all of them, if the request was not sent. */
int hf__renewals_result(const struct hf__request *, size_t i);

#endif
