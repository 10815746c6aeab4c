/*
 * Questions about names. hf_inspect(), hf_list(), hf_diagnose() and others
 * begin a question, send it and wait for the answer, and end it. Also allocates
 * and frees the answers that belong to the program.
 */
#ifndef HF_QUERY_H
#define HF_QUERY_H

#include "core/lock.h"
#include "core/requests.h"

/* Begins a question, and enters the client. Returns NULL, and a code in *rc, if
 * the question cannot be asked. */
struct hf__request *hf__query_begin(hf_client *, enum hf__op, const void *name,
                                    size_t len, int *rc, hf_error *);
/* Creates a question about the name of a handle. Returns NULL, with a text in
 * err, if out of memory. */
struct hf__request *hf__query_new_of(const hf_lock *, enum hf__op, hf_error *);
/* Sends the question and waits. Returns 0, and then the caller must call
 * hf__query_end(); or a code, and the question has ended. `given` is the memory
 * for the answer, from hf__result_alloc(); if it is NULL, the result is
 * ENOMEM. */
int hf__query_run(hf_client *, struct hf__request *, const void *given,
                  hf_error *);
void hf__query_end(hf_client *, struct hf__request *);
/* Returns zeroed memory for an answer; NULL if out of memory. The answer may
 * outlive the client, so the hooks are kept next to it. */
void *hf__result_alloc(hf_client *, size_t);
/* Frees a part of the answer; the answer itself comes last (part == given). */
void hf__result_free(void *given, void *part);

#endif
