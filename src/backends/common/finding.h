/*
 * Findings of a diagnosis (HF__DIAGNOSE) that several backends have: each
 * function reports one or two to the core, by core->find(), while the query is
 * with the backend. Called with the client's mutex held.
 */
#ifndef HF_FINDING_H
#define HF_FINDING_H

#include "backends/backend.h"

/* Servers of which a majority decides. */
struct hf__quorum {
    const char *subject; /* "ensemble" */
    const char *one;     /* "server" */
    unsigned voters;
    const char *hosts; /* those of the URL: "host:port,host:port" */
};

/* How many may be down, and whether the URL names enough of them. */
void hf__find_quorum(const struct hf__core *, hf_client *, struct hf__query *,
                     const struct hf__quorum *);

/* How far the server's clock, by which leases end, is from ours. trip: how long
 * the answer has taken. */
void hf__find_clock(const struct hf__core *, hf_client *, struct hf__query *,
                    int64_t server_us, hf__time trip);

#endif
