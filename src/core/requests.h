/*
 * Requests that are not of one line: a renewal of many holds (batch), and
 * questions about names (query). A request is made, submitted, reported by the
 * backend, delivered (loop/deliver.c), and freed by whoever is last: the thread
 * that waits for it, or delivery if no thread waits or waits any longer.
 */
#ifndef HF_REQUESTS_H
#define HF_REQUESTS_H

#include "backends/backend.h"

struct hf__sleeper;

/* client->mu guards it. */
struct hf__request {
    struct hf__request *next, *prev; /* client->requests */
    struct hf__request *next_landed;
    struct hf__sleeper *sleeper; /* NULL: nobody waits */
    bool delivered;
    hf_error why; /* what the backend said of its failure */
    /* Frees what the answer brought and nobody took. Called with client->mu
     * held, before the request is freed; NULL: there is nothing to free. */
    void (*destroy)(struct hf__request *);
    size_t names_bytes; /* LIST: what the names take, about */
    union {
        struct hf__req req;
        struct hf__batch batch;
        struct hf__query query;
    };
};

/* With that much room behind it; NULL: out of memory, and err says so. */
struct hf__request *hf__request_new(hf_client *, enum hf__op, size_t extra,
                                    hf_error *);
/* Hands it to the backend; a line's mutex may be held. */
void hf__request_submit(hf_client *, struct hf__request *);
void hf__request_free(hf_client *, struct hf__request *);

#endif
