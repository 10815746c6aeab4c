/* The queries that set, count down and read a latch. They return PENDING, or a
 * result at once. */
#ifndef HF_ETCD_LATCH_H
#define HF_ETCD_LATCH_H

#include "backends/backend.h"

struct etcd;

int hf__et_latch(struct etcd *, struct hf__query *);

#endif
