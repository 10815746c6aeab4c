/*
 * Findings of a diagnosis (HF__DIAGNOSE) that several backends share. Each
 * function reports one or two findings by core->find(). It must be called while
 * the query is with the backend, and with the client's mutex held.
 */
#ifndef HF_FINDING_H
#define HF_FINDING_H

#include "backends/backend.h"

/* Servers that decide by majority. */
struct hf__quorum {
    const char *subject; /* subject of the findings, such as "ensemble" */
    const char *one;     /* the word for one voter, such as "server" */
    unsigned voters;
    const char *hosts; /* the hosts of the URL: "host:port,host:port" */
};

/* Adds findings on how many servers may fail, and on whether the URL names
 * enough of them. */
void hf__find_quorum(const struct hf__core *, hf_client *, struct hf__query *,
                     const struct hf__quorum *);

/* Compares the server's clock, by which leases end, with ours, and adds a
 * finding. `trip` is the round-trip time of the answer that contained
 * server_us. */
void hf__find_clock(const struct hf__core *, hf_client *, struct hf__query *,
                    int64_t server_us, hf__time trip);

#endif
