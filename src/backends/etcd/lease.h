/*
 * The client's lease, under which all its entries are: sends keep-alives, and
 * ends it. session.c requests it and reads the answers.
 */
#ifndef HF_ETCD_LEASE_H
#define HF_ETCD_LEASE_H

#include "backends/backend.h"

struct etcd;

/* Sends a keep-alive now. */
void hf__et_keep(struct etcd *, hf__time now);
/* The lease is gone, with every entry under it. Ends the connection; the next
 * one has another lease. Returns 0, or a code for the caller to return. */
int hf__et_lease_over(struct etcd *, const char *why);

#endif
