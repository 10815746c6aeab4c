/*
 * Requests about entries, between entry_request.c, answer.c and fixed_lease.c. Each is one call;
 * its answer decides about one line, or, of a renewal, about many.
 */
#ifndef HF_ETCD_ENTRY_REQUEST_H
#define HF_ETCD_ENTRY_REQUEST_H

#include "etcd.h"
#include "txn.h"

struct et_ask *hf__et_ask_new(struct etcd *, enum et_op, struct et_line *);
void hf__et_ask_free(struct etcd *, struct et_ask *);
/* 0, or a code; then the ask is gone. */
int hf__et_submit(struct et_ask *, const void *message);
int hf__et_ask_over(struct grpc_call *, hf__time now);
/* An ENTER that nobody hears of may have been done, or be done yet. */
void hf__et_lose(const struct et_ask *);
/* Where one that stands at the end has the lock, the youngest one before ours
 * is all that matters; else all are. */
bool hf__et_sees_all(const struct et_line *);
/* Those that are older still than what a look has seen. 0, or a code. */
int hf__et_look_on(const struct et_ask *);
/* TERM and MOVE were answered. 0, or EPROTO. */
int hf__et_termed(const struct et_ask *, const uint8_t *, size_t len);
int hf__et_moved(const struct et_ask *, const Etcd__TxnAnswer *);
/* The answer to one of them is an error: its caller gets the code. */
void hf__et_term_failed(const struct et_ask *, int code);

#endif
