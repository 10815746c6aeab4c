/*
 * Requests about entries, between entry_request.c, answer.c and fixed_lease.c.
 * Each is one call; its answer decides about one lock, or, of a renewal, about
 * many.
 */
#ifndef HF_ETCD_ENTRY_REQUEST_H
#define HF_ETCD_ENTRY_REQUEST_H

#include "etcd.h"
#include "txn.h"

struct et_request *hf__et_request_new(struct etcd *, enum et_op,
                                      struct et_lock *);
void hf__et_request_free(struct etcd *, struct et_request *);
/* 0, or a code; then the request is gone. */
int hf__et_request_send(struct et_request *, const void *message);
int hf__et_request_over(struct grpc_call *, hf__time now);
/* An ENTER that nobody hears of may have been done, or be done yet. */
void hf__et_request_lost(const struct et_request *);
/* Where one that stands at the end has the lock, the youngest before ours
 * is all that matters; else all are. */
bool hf__et_needs_all(const struct et_lock *);
/* Those that are older still than those that were read. 0, or a code. */
int hf__et_read_on(const struct et_request *);
/* TERM and MOVE were answered. 0, or EPROTO. */
int hf__et_termed(const struct et_request *, const uint8_t *, size_t len);
int hf__et_moved(const struct et_request *, const Etcd__TxnAnswer *);
/* The answer to one of them is an error: its caller gets the code. */
void hf__et_term_failed(const struct et_request *, int code);

#endif
