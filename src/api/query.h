/*
 * Questions about names: hf_inspect(), hf_list(), hf_diagnose() and the others
 * begin one, send it and wait, and end it; and the memory of what they give to
 * the program.
 */
#ifndef HF_QUERY_H
#define HF_QUERY_H

#include "core/lock.h"
#include "core/requests.h"

/* Begins one of hf_inspect(), hf_list() ..., if the backend can do that: it
 * enters the client. NULL, and *rc: why not. */
struct hf__request *hf__query_begin(hf_client *, enum hf__op, const void *name,
                                    size_t len, int *rc, hf_error *);
/* A question about the name of a handle; NULL: out of memory, and err says so.
 */
struct hf__request *hf__query_new_of(const hf_lock *, enum hf__op, hf_error *);
/* Sends it and waits. On success hf__query_end() is the caller's to call, else
 * it has ended. given: where the answer goes, by hf__result_alloc(); NULL:
 * ENOMEM. */
int hf__query_run(hf_client *, struct hf__request *, const void *given,
                  hf_error *);
void hf__query_end(hf_client *, struct hf__request *);
/* Memory that a program is given, zeroed, or NULL. It may outlive the client,
 * so that the hooks are kept beside it. */
void *hf__result_alloc(hf_client *, size_t);
/* Frees what belongs to it; and at last it itself. */
void hf__result_free(void *given, void *part);

#endif
