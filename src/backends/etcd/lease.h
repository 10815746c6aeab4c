/*
 * The client's lease, under which all its entries are: its keep-alives are sent
 * here, and here it ends. session.c grants it and reads the answers.
 */
#ifndef HF_ETCD_LEASE_H
#define HF_ETCD_LEASE_H

#include "backends/backend.h"

struct etcd;

/* Sends a keep-alive now. */
void hf__et_keep(struct etcd *, hf__time now);
/* The lease is gone, with every entry under it, and the connection ends. The
 * next one has another lease. 0, or a code, for callbacks. */
int hf__et_lease_over(struct etcd *, const char *why);

#endif
