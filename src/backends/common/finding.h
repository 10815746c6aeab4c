/*
 * Findings of a diagnosis (HF__DIAGNOSE) that several backends have. Each
 * function reports one or two to the core by core->find(), while the query is
 * with the backend. Called with the client's mutex held.
 */
#ifndef HF_FINDING_H
#define HF_FINDING_H

#include "backends/backend.h"

/* Servers that decide by majority. */
struct hf__quorum {
    const char *subject; /* "ensemble" */
    const char *one;     /* "server" */
    unsigned voters;
    const char *hosts; /* of the URL: "host:port,host:port" */
};

/* How many servers may fail, and whether the URL names enough of them. */
void hf__find_quorum(const struct hf__core *, hf_client *, struct hf__query *,
                     const struct hf__quorum *);

/* The difference between the server's clock, by which leases end, and ours.
 * trip: the round-trip time of the answer. */
void hf__find_clock(const struct hf__core *, hf_client *, struct hf__query *,
                    int64_t server_us, hf__time trip);

#endif
