/*
 * Fixed leases: an entry gets a lease of its own, first when it is granted and
 * again with each renewal. answer.c passes the answers on; the outcome goes to
 * lock.h, or to the batch of the renewal.
 */
#ifndef HF_ETCD_FIXED_LEASE_H
#define HF_ETCD_FIXED_LEASE_H

#include "entry_request.h"
#include "etcd.pb-c.h"

struct etcd;
struct et_lock;

/* Gives the entry a lease of its own, for the attempt. 0: under way; HF__LATER,
 * HF_ENOMEM, or a code. */
int hf__et_term(struct et_lock *);
/* And another one, for that item of a renewal. */
int hf__et_term_anew(struct etcd *, struct hf__batch *, size_t item);
/* TERM and MOVE were answered. 0, or EPROTO. */
int hf__et_termed(const struct et_request *, const uint8_t *, size_t len);
int hf__et_moved(const struct et_request *, const Etcd__TxnAnswer *);
/* One of them has failed: its caller hears the code. */
void hf__et_term_failed(const struct et_request *, int code);

#endif
