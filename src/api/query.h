/*
 * Queries. hf_inspect(), hf_list(), hf_diagnose() and others begin a query,
 * send it and wait for the answer, and end it. The last two functions allocate
 * and free the answers, which belong to the program.
 */
#ifndef HF_QUERY_H
#define HF_QUERY_H

#include "core/lock.h"
#include "core/requests.h"

/* Begins a query, and enters the client. If the query cannot be sent, returns
 * NULL and sets *rc to an error code, with a message in err. */
struct hf__request *hf__query_begin(hf_client *, enum hf__op, const void *name,
                                    size_t len, int *rc, hf_error *);
/* Creates a query about the name of a handle. Returns NULL, with a message in
 * err, if out of memory. */
struct hf__request *hf__query_new_of(const hf_lock *, enum hf__op, hf_error *);
/* Sends the query and waits for the answer. Returns 0, after which the caller
 * must call hf__query_end(); or an error code with a message, after which the
 * query has ended already. `given` is the memory for the answer, from
 * hf__result_alloc(); if it is NULL, the result is ENOMEM. */
int hf__query_run(hf_client *, struct hf__request *, const void *given,
                  hf_error *);
/* Frees the query, and leaves the client. */
void hf__query_end(hf_client *, struct hf__request *);
/* Returns zeroed memory for an answer, or NULL if out of memory. The answer may
 * outlive the client, so a copy of the hooks is stored next to it. */
void *hf__result_alloc(hf_client *, size_t);
/* Frees a part of the answer. The answer itself must be freed last, with part
 * == given. */
void hf__result_free(void *given, void *part);

#endif
