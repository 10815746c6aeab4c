/*
 * Sends one request for all holds whose renewal is due, and gives the results
 * to their lines. policy/lease.c decides when a renewal is due (renew_at):
 * after a third of the TTL or, if a session keeps the hold, of the session's
 * time.
 */
#ifndef HF_RENEWALS_H
#define HF_RENEWALS_H

#include "core/line.h"
#include "core/requests.h"

/* A hold to renew, with a reference to its line. */
struct hf__due {
    struct hf__line *line;
    uint64_t hold_id;
};

/* Sends a renewal of all these holds. Takes over the references to their
 * lines. */
void hf__renewals_due(hf_client *, const struct hf__due *, size_t,
                      hf__time now);
/* Gives the results of an answered request to the lines. */
void hf__renewals_landed(hf_client *, struct hf__request *);
/* Creates a request with room for that many renewals. Returns NULL, with a
 * message in err, if out of memory. */
struct hf__request *hf__renewals_batch(hf_client *, size_t room, hf_error *);
/* Returns a renewal of the line's current hold. line->mu is held. */
struct hf__renewal hf__renewals_of(struct hf__line *, uint32_t ms);
/* Returns the result of renewal i of the batch. If that result is unknown and
 * the whole request has failed, returns the result of the request. */
int hf__renewals_result(const struct hf__request *, size_t i);

#endif
