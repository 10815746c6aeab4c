/*
 * Requests that belong to no single line: renewals of many holds (batch), and
 * queries. A request is created, submitted, reported by the backend, and
 * delivered (loop/deliver.c). The verb that waits for the answer frees the
 * request, or delivery does if no verb waits.
 */
#ifndef HF_REQUESTS_H
#define HF_REQUESTS_H

#include "backends/backend.h"

struct hf__sleeper;

/* Guarded by client->mu. */
struct hf__request {
    struct hf__request *next, *prev; /* in client->requests */
    struct hf__request *next_landed;
    struct hf__sleeper *sleeper; /* who waits for the answer, or NULL */
    bool delivered;
    hf_error why; /* the backend's message if the request failed */
    /* Frees the parts of the answer that no caller took. Called with client->mu
     * held before the request is freed. NULL if there are no such parts. */
    void (*destroy)(struct hf__request *);
    size_t names_bytes; /* LIST: the approximate memory size of the names */
    union {
        struct hf__req req;
        struct hf__batch batch;
        struct hf__query query;
    };
};

/* Creates a request, with `extra` bytes after it. Returns NULL, with a message
 * in err, if out of memory. */
struct hf__request *hf__request_new(hf_client *, enum hf__op, size_t extra,
                                    hf_error *);
/* Hands the request to the backend. A line's mutex may be held. */
void hf__request_submit(hf_client *, struct hf__request *);
void hf__request_free(hf_client *, struct hf__request *);

#endif
