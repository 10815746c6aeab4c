/*
 * The client's lease, to which all its entries belong. This unit sends
 * keep-alives and handles the end of the lease. session.c requests the lease
 * and reads the answers.
 */
#ifndef HF_ETCD_LEASE_H
#define HF_ETCD_LEASE_H

#include "backends/backend.h"

struct etcd;

/* Sends a keep-alive now. */
void hf__et_keep(struct etcd *, hf__time now);
/* Handles the end of the lease, and of every entry under it: ends the
 * connection; on the next connection the client gets another lease. Returns 0,
 * or a code for the caller to return. */
int hf__et_lease_over(struct etcd *, const char *why);

#endif
